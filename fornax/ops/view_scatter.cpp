// Writing a part of a tensor functionally: view_scatter over a recorded step, the *_scatter
// spellings, and views with arbitrary strides, whose steps depend on the geometry below them.
#include <unordered_map>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// ---- as_strided
// Places of all elements in the storage, row-major.
std::vector<int64_t> places_of(const Meta& m) {
  int64_t n = checked_numel(m.sizes);
  std::vector<int64_t> places;
  places.reserve(size_t(n));
  Dims index(m.sizes.size(), 0);
  int64_t at = m.offset;
  for (int64_t i = 0; i < n; ++i) {
    places.push_back(at);
    for (size_t d = index.size(); d-- > 0;) {
      at += m.strides[d];
      if (++index[d] < m.sizes[d]) break;
      at -= m.sizes[d] * m.strides[d];
      index[d] = 0;
    }
  }
  return places;
}

Tensor index_tensor(const std::vector<int64_t>& values, Device device) {
  return tensor(values, TensorOptions(Dtype::kI64).device(device));
}

// The gradient of a view with any strides: elements of the input that share a place share what
// arrives there evenly.
Tensor as_strided_gradient(const Tensor& g, const Meta& in, const Meta& out) {
  TensorOptions like = TensorOptions(g.dtype()).device(g.device());
  std::vector<int64_t> from = places_of(out), to = places_of(in);
  std::unordered_map<int64_t, int64_t> slots;  // place -> slot of a dense buffer
  for (int64_t& p : to) p = slots.try_emplace(p, int64_t(slots.size())).first->second;
  std::vector<double> share(slots.size(), 0.0);
  bool shared = slots.size() != to.size();
  for (int64_t p : to) share[size_t(p)] += 1;
  int64_t n = int64_t(slots.size());
  for (int64_t& p : from) {
    auto it = slots.find(p);
    p = it == slots.end() ? n : it->second;
  }
  Tensor buffer = zeros({n + 1}, like);
  buffer = index_add(buffer, 0, index_tensor(from, g.device()), g.reshape({-1}));
  if (shared) {
    for (double& s : share) s = 1 / s;
    share.push_back(0);
    buffer = buffer * tensor(share, TensorOptions(to_real(g.dtype())).device(g.device()));
  }
  return buffer.index_select(0, index_tensor(to, g.device())).reshape(in.sizes);
}

// For each element of the input: the element of the result at the same place, or -1.
std::vector<int64_t> covering(const Step& step) {
  std::unordered_map<int64_t, int64_t> at;
  std::vector<int64_t> out = places_of(step.result), in = places_of(step.in);
  for (size_t i = 0; i < out.size(); ++i) at[out[i]] = int64_t(i);
  for (int64_t& p : in) {
    auto it = at.find(p);
    p = it == at.end() ? -1 : it->second;
  }
  return in;
}

Tensor as_strided_write(const Tensor& self, const Tensor& src, const Step& step) {
  std::vector<int64_t> pick = covering(step);
  int64_t n = self.numel();
  for (size_t i = 0; i < pick.size(); ++i) pick[i] = pick[i] < 0 ? int64_t(i) : n + pick[i];
  Tensor all =
      cat({self.reshape({-1}), src.to(self.dtype()).expand(step.result.sizes).reshape({-1})});
  return all.index_select(0, index_tensor(pick, self.device())).reshape(self.sizes());
}

Tensor as_strided_read(const Tensor& g, const Step& step) {
  std::vector<int64_t> pick(size_t(checked_numel(step.result.sizes)), g.numel());
  std::vector<int64_t> in = covering(step);
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] >= 0) pick[size_t(in[i])] = int64_t(i);
  Tensor zero = zeros({1}, TensorOptions(g.dtype()).device(g.device()));
  return cat({g.reshape({-1}), zero})
      .index_select(0, index_tensor(pick, g.device()))
      .reshape(step.result.sizes);
}

void as_strided_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Meta& m = f.outs.emplace_back(view_meta_of(x));
  IntArrayRef sizes = f.args.ints(1), strides = f.args.ints(2);
  FX_CHECK(sizes.size() == strides.size(), kShape, "as_strided: ", sizes.size(), " sizes but ",
           strides.size(), " strides");
  m.offset = f.args.integer(3, m.offset);
  FX_CHECK(m.offset >= 0, kValue, "as_strided: storage_offset ", m.offset, " is negative");
  m.sizes.assign(sizes.begin(), sizes.end());
  m.strides.assign(strides.begin(), strides.end());
  int64_t n = checked_numel(m.sizes), last = m.offset;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    FX_CHECK(strides[d] >= 0, kValue, "as_strided: stride ", strides[d], " at dimension ", d,
             " is negative");
    int64_t reach = 0;
    if (n == 0) continue;
    overflow = __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) || overflow;
    overflow = __builtin_add_overflow(last, reach, &last) || overflow;
  }
  if (n == 0 || !x.impl()->storage) return;
  int64_t have = int64_t(x.impl()->storage->bytes()) / size_of(m.dtype);
  FX_CHECK(!overflow && last < have, kIndex, "as_strided: sizes ", sizes, ", strides ", strides,
           " and offset ", m.offset, " reach past a storage of ", have, " elements");
}

void as_strided_vmap(Vmapped& v) {
  const Tensor& x = v.args().tensor(0);
  Dims sizes = with_batch(v.size, v.args().ints(1));
  Dims strides = with_batch(x.strides()[0], v.args().ints(2));
  v.run({x, sizes, strides, v.args().integer(3, x.storage_offset())});
}

// ---- view_scatter
void view_scatter_infer(Infer& f) {
  const Tensor& t = f.args.tensor(0);
  f.outs.push_back(Meta(t.dtype(), t.sizes(), t.device()));
}

void view_scatter_body(Call& c) {
  const Step& step = c.args.step(2);
  if (step.op == &as_strided_op) {
    c.outs = {as_strided_write(c.args.tensor(0), c.args.tensor(1), step)};
    return;
  }
  Tensor r = c.args.tensor(0).clone(MemoryFormat::Contiguous);
  apply(step, r).copy_(c.args.tensor(1));
  c.outs = {r};
}

void view_scatter_kernel_on_any(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  StateGuard guard;
  thread_state.top = nullptr;
  thread_state.set_grad_mode(false);
  const Step& step = args.step(2);
  if (step.op == &as_strided_op) {
    outs[0].copy_(as_strided_write(args.tensor(0), args.tensor(1), step));
    return;
  }
  if (!outs[0].is_same(args.tensor(0))) outs[0].copy_(args.tensor(0));
  apply(step, outs[0]).copy_(args.tensor(1));
}

void view_scatter_vjp(Vjp& v) {
  const Step& step = v.args().step(2);
  const Tensor& g = v.grad();
  if (v.need(0)) {
    const GradMeta& src = v.meta(1);
    Tensor zero = zeros(step.result.sizes, TensorOptions(src.dtype).device(src.device));
    v.set(0, view_scatter(g, zero, step));
  }
  if (!v.need(1)) return;
  v.set(1, step.op == &as_strided_op ? as_strided_read(g, step) : apply(step, g.contiguous()));
}

// ---- spellings
// self with what view(self, attributes...) shows replaced by src.
Tensor scatter_as(const Op& view, const Call& c) {
  SmallVec<Arg, 8> args;
  args.push_back(c.args[0]);
  for (size_t i = 2; i < c.args.size(); ++i) args.push_back(c.args[i]);
  Args all(args.data(), args.size());
  Infer infer{view, all, {}};
  view.infer(infer);
  const Tensor &self = c.args.tensor(0), &src = c.args.tensor(1);
  Ref<Step> step(new Step);
  step->op = &view;
  step->args = OwnedArgs::make(all, false);
  step->in = view_meta_of(self);
  step->result = infer.outs[0];
  FX_CHECK(src.sizes() == IntArrayRef(step->result.sizes), kShape, c.op.name(), ": src has sizes ",
           src.sizes(), ", the part it replaces ", step->result.sizes);
  return view_scatter(self, src, *step);
}

void scatter_body(Call& c) { c.outs = {scatter_as(*static_cast<const Op*>(c.op.extra), c)}; }

void copy_body(Call& c) {
  const Op& view = *static_cast<const Op*>(c.op.extra);
  c.outs.clear();
  Call inner{view, Form::kNew, c.args, c.outs};
  dispatch(inner);
  for (Tensor& t : c.outs) t = t.clone(MemoryFormat::Contiguous);
}

constexpr Op scatter_of(const Op& view, std::string_view schema) {
  return Op{.schema = schema,
            .doc = "self with the part that the view shows replaced by src.",
            .kind = OpKind::kComposite,
            .body = scatter_body,
            .extra = &view};
}

constexpr Op copy_of(const Op& view, std::string_view schema) {
  return Op{.schema = schema,
            .doc = "A copy of the view.",
            .kind = OpKind::kComposite,
            .body = copy_body,
            .extra = &view};
}

}  // namespace

constexpr Op as_strided_op{
    .schema =
        "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor(a)",
    .doc = "The storage under any sizes, strides and offset.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = as_strided_infer,
    .vjp = [](Vjp& v) { v.set(0, as_strided_gradient(v.grad(), v.step().in, v.step().result)); },
    .vmap = as_strided_vmap};
constexpr Op view_scatter_op{.schema = "view_scatter(Tensor self, Tensor src, Step step) -> Tensor",
                             .doc = "self with the part that a view step shows replaced by src.",
                             .traits = kLinearOp,
                             .infer = view_scatter_infer,
                             .body = view_scatter_body,
                             .vjp = view_scatter_vjp};

constexpr Op select_scatter_op = scatter_of(
    select_op, "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor");
constexpr Op slice_scatter_op =
    scatter_of(slice_op,
               "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, "
               "SymInt? end=None, SymInt step=1) -> Tensor");
constexpr Op diagonal_scatter_op =
    scatter_of(diagonal_op,
               "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) "
               "-> Tensor");
constexpr Op as_strided_scatter_op =
    scatter_of(as_strided_op,
               "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] "
               "stride, SymInt? storage_offset=None) -> Tensor");

constexpr Op as_strided_copy_op =
    copy_of(as_strided_op,
            "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? "
            "storage_offset=None) -> Tensor");
constexpr Op diagonal_copy_op = copy_of(
    diagonal_op, "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor");
constexpr Op expand_copy_op =
    copy_of(expand_op, "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor");
constexpr Op narrow_copy_op =
    copy_of(narrow_op, "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor");
constexpr Op permute_copy_op =
    copy_of(permute_op, "permute_copy(Tensor self, int[] dims) -> Tensor");
constexpr Op select_copy_op =
    copy_of(select_op, "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor");
constexpr Op slice_copy_op =
    copy_of(slice_op,
            "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? "
            "end=None, SymInt step=1) -> Tensor");
constexpr Op split_copy_op =
    copy_of(split_op,
            "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]\n"
            "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]");
constexpr Op squeeze_copy_op = copy_of(squeeze_op,
                                       "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor\n"
                                       "squeeze_copy.dim(Tensor self, int dim) -> Tensor\n"
                                       "squeeze_copy(Tensor self) -> Tensor");
constexpr Op t_copy_op = copy_of(t_op, "t_copy(Tensor self) -> Tensor");
constexpr Op transpose_copy_op =
    copy_of(transpose_op, "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor");
constexpr Op unbind_copy_op =
    copy_of(unbind_op, "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]");
constexpr Op unfold_copy_op =
    copy_of(unfold_op, "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor");
constexpr Op unsqueeze_copy_op =
    copy_of(unsqueeze_op, "unsqueeze_copy(Tensor self, int dim) -> Tensor");
constexpr Op view_copy_op = copy_of(view_op, "view_copy(Tensor self, SymInt[] size) -> Tensor");
void register_view_kernels(const KernelTable& table) {
  table.set(view_scatter_op, view_scatter_kernel_on_any, kAnyStrides | kAliasSafe);
}

}  // namespace fornax
