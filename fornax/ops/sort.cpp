// Sorting and searching.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/index.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void check_ordered(const Tensor& x, std::string_view call) {
  FX_CHECK(!x.is_complex(), kUnsupported, call, ": complex numbers have no order, got ", x.dtype());
}

void push_values_and_indices(Infer& f, const Tensor& x, const Dims& sizes) {
  f.outs.push_back(Meta(x.dtype(), sizes, x.device()));
  f.outs.push_back(Meta(Dtype::kI64, sizes, x.device()));
}

// (self, stable, dim, descending)
void sort_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  check_ordered(x, "sort");
  wrap_dim(f.args.integer(2, -1), x.dim(), "sort");
  push_values_and_indices(f, x, Dims(x.sizes().begin(), x.sizes().end()));
}

// (self, k, dim, largest, sorted)
void topk_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  check_ordered(x, "topk");
  int64_t k = f.args.integer(1), dim = wrap_dim(f.args.integer(2, -1), x.dim(), "topk");
  int64_t n = x.dim() ? x.size(dim) : 1;
  FX_CHECK(k >= 0 && k <= n, kIndex, "topk: k is ", k, ", dimension ", dim, " has size ", n);
  Dims sizes(x.sizes().begin(), x.sizes().end());
  if (x.dim()) sizes[size_t(dim)] = k;
  push_values_and_indices(f, x, sizes);
}

// (self, k, dim, keepdim)
void kthvalue_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  check_ordered(x, "kthvalue");
  int64_t k = f.args.integer(1), dim = wrap_dim(f.args.integer(2, -1), x.dim(), "kthvalue");
  int64_t n = x.dim() ? x.size(dim) : 1;
  FX_CHECK(k >= 1 && k <= n, kIndex, "kthvalue: k is ", k, ", dimension ", dim, " has size ", n);
  Dims sizes(x.sizes().begin(), x.sizes().end());
  if (x.dim() && f.args.flag(3))
    sizes[size_t(dim)] = 1;
  else if (x.dim())
    sizes.erase(sizes.begin() + dim);
  push_values_and_indices(f, x, sizes);
}

// The dimension a call selects along, and whether its results lack it.
struct Selected {
  int64_t dim;
  bool dropped;
};

Selected selected_by(const Op& op, Args args, int64_t rank) {
  bool kth = op.name() == "kthvalue";
  int64_t dim = wrap_dim(args.integer(2, -1), rank, op.name());
  return {dim, kth && !args.flag(3) && rank > 0};
}

// Values move their gradient to where they came from.
void selection_vjp(Vjp& v) {
  if (!v.grad().defined()) return;
  const Dims& sizes = v.meta(0).sizes;
  Selected s = selected_by(v.op(), v.args(), int64_t(sizes.size()));
  Tensor g = v.grad(), at = v.out(1);
  if (s.dropped) {
    g = g.unsqueeze(s.dim);
    at = at.unsqueeze(s.dim);
  }
  v.set(0, scatter_into_zeros(g, sizes, s.dim, at));
}

void selection_jvp(Jvp& j) {
  const Tensor& t = j.tangent(0);
  if (!t.defined()) return;
  Selected s = selected_by(j.call.op, j.call.args, t.dim());
  const Tensor& at = j.outs[1];
  j.set(0, s.dropped ? t.gather(s.dim, at.unsqueeze(s.dim)).squeeze(s.dim) : t.gather(s.dim, at));
}

void selection_vmap(Vmapped& v) {
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  bool scalar = v.dim(0) == 0;
  Tensor x = scalar ? v.args().tensor(0).unsqueeze(1) : v.args().tensor(0);
  args[0] = Arg(x);
  args[2] = Arg(wrap_dim(v.args().integer(2, -1), v.dim(0), v.call.op.name()) + 1);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
  if (!scalar) return;
  for (Tensor& t : v.call.outs)
    if (t.dim() > 1) t = t.squeeze(1);
}

void argsort_body(Call& c) {
  Tensors r =
      call(sort_op, Form::kNew, {c.args[0], c.args.flag(1), c.args.integer(2, -1), c.args.flag(3)});
  c.outs = {r[1]};
}

void msort_body(Call& c) {
  Tensors r = call(sort_op, Form::kNew, {c.args[0], false, int64_t(0), false});
  c.outs = {r[0]};
}

// ---- searching
// (sorted_sequence, self, out_int32, right, side, sorter)
void searchsorted_infer(Infer& f) {
  const Tensor &sequence = f.args.tensor(0), &values = f.args.optional(1);
  FX_CHECK(sequence.dim() > 0, kShape, "searchsorted: sorted_sequence is 0-dim");
  check_ordered(sequence, "searchsorted");
  IntArrayRef sizes;
  if (values.defined()) {
    sizes = values.sizes();
    FX_CHECK(sequence.dtype() == values.dtype(), kType, "searchsorted: sorted_sequence is of ",
             sequence.dtype(), ", values of ", values.dtype());
  }
  if (sequence.dim() > 1) {
    FX_CHECK(values.defined(), kShape, "searchsorted: a number needs a 1-D sorted_sequence, got ",
             sequence.dim(), "-D");
    bool match = sequence.dim() == values.dim();
    for (int64_t d = 0; match && d + 1 < sequence.dim(); ++d)
      match = sequence.sizes()[size_t(d)] == values.sizes()[size_t(d)];
    FX_CHECK(match, kShape, "searchsorted: sorted_sequence of sizes ", sequence.sizes(),
             " and values of sizes ", values.sizes(), " differ before the last dimension");
  }
  if (f.args.has(4)) {
    std::string_view side = f.args.text(4);
    FX_CHECK(side == "left" || side == "right", kValue,
             "searchsorted: side is \"left\" or \"right\", got \"", side, "\"");
    FX_CHECK(!(f.args.flag(3) && side == "left"), kValue,
             "searchsorted: right=true and side=\"left\" contradict each other");
  }
  if (f.args.has(5)) {
    const Tensor& sorter = f.args.tensor(5);
    FX_CHECK(sorter.sizes() == sequence.sizes() && sorter.dtype() == Dtype::kI64, kShape,
             "searchsorted: sorter must be int64 of sizes ", sequence.sizes(), ", got ", sorter);
  }
  f.outs.push_back(Meta(f.args.flag(2) ? Dtype::kI32 : Dtype::kI64, sizes, sequence.device()));
}

void searchsorted_vmap(Vmapped& v) {
  Args a = v.args();
  Tensor sequence = v.dim0(0);
  if (a[1].is_number()) {
    Tensor value = full({v.size, 1}, a.number(1), TensorOptions(sequence.dtype()));
    v.call.outs = call(searchsorted_op, Form::kNew, {sequence, value, a[2], a[3], a[4], a[5]});
    v.call.outs[0] = v.call.outs[0].squeeze(1);
    v.out_bdims = {0};
    return;
  }
  Tensor values = v.dim0(1);
  bool scalar = v.dim(1) == 0;
  if (!v.is(0) && sequence.dim() == 2 && !v.is(5)) {  // one sequence for all
    v.run({a[0], a[1], a[2], a[3], a[4], a[5]});
    return;
  }
  if (v.dim(0) == 1 && v.dim(1) != 1) values = values.reshape({v.size, -1});
  Tensor sorter = a.has(5) ? v.dim0(5) : Tensor();
  Tensors outs;
  outs = call(searchsorted_op, Form::kNew, {sequence, values, a[2], a[3], a[4], sorter});
  Dims sizes = with_batch(
      v.size, scalar ? IntArrayRef() : a.tensor(1).sizes().slice(v.is(1), size_t(v.dim(1))));
  v.call.outs = {outs[0].reshape(sizes)};
  v.out_bdims = {0};
}

void bucketize_body(Call& c) {
  const Tensor& boundaries = c.args.tensor(1);
  FX_CHECK(boundaries.dim() == 1, kShape, "bucketize: expected 1-D boundaries, got ",
           boundaries.dim(), "-D");
  c.outs = call(searchsorted_op, Form::kNew,
                {boundaries, c.args[0], c.args.flag(2), c.args.flag(3), Arg(), Arg()});
}

}  // namespace

constexpr Op sort_op{
    .schema =
        "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> "
        "(Tensor values, Tensor indices)\n"
        "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
        "indices)",
    .doc =
        "Values in order along a dimension, NaN last (first if descending), and where they "
        "came from; always stable.",
    .infer = sort_infer,
    .nondiff = 2,
    .vjp = selection_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.out = 2}; },
    .jvp = selection_jvp,
    .vmap = selection_vmap};
constexpr Op topk_op{
    .schema =
        "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> "
        "(Tensor values, Tensor indices)",
    .doc =
        "The k largest or smallest values along a dimension in order, and where they came "
        "from; which of equal ones is unspecified.",
    .infer = topk_infer,
    .nondiff = 2,
    .vjp = selection_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.out = 2}; },
    .jvp = selection_jvp,
    .vmap = selection_vmap};
constexpr Op kthvalue_op{
    .schema =
        "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, "
        "Tensor indices)",
    .doc = "The k-th smallest value along a dimension (from 1), and where it came from.",
    .infer = kthvalue_infer,
    .nondiff = 2,
    .vjp = selection_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.out = 2}; },
    .jvp = selection_jvp,
    .vmap = selection_vmap};
constexpr Op argsort_op{
    .schema =
        "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> "
        "Tensor\n"
        "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    .doc = "The indices of sort().",
    .kind = OpKind::kComposite,
    .traits = kNoGrad,
    .body = argsort_body};
constexpr Op msort_op{.schema = "msort(Tensor self) -> Tensor",
                      .doc = "Values in order along dimension 0.",
                      .kind = OpKind::kComposite,
                      .body = msort_body};
constexpr Op searchsorted_op{
    .schema =
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, "
        "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor\n"
        "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, "
        "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    .doc =
        "Where each value would be inserted in sorted sequences along the last dimension: "
        "before equal ones, or behind them if right.",
    .traits = kNoGrad,
    .infer = searchsorted_infer,
    .vmap = searchsorted_vmap};
constexpr Op bucketize_op{
    .schema =
        "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool "
        "right=False) -> Tensor\n"
        "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool "
        "right=False) -> Tensor",
    .doc = "The bucket of each value among sorted boundaries.",
    .kind = OpKind::kComposite,
    .body = bucketize_body};

}  // namespace fornax
