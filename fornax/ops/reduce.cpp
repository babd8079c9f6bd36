// Sums, means and extrema over dimensions.
#include "fornax/ops/reduce.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {

uint64_t dim_mask(Args args, size_t at, int64_t rank, std::string_view call) {
  IntArrayRef dims = args.ints(at);
  if (dims.empty()) return rank == 0 ? 0 : ~uint64_t(0) >> (64 - rank);
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, rank, call);
    FX_CHECK(!(mask & bit), kValue, call, ": dimension ", d, " is repeated in ", dims);
    mask |= bit;
  }
  return rank == 0 ? 0 : mask;
}

Dims reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim) {
  Dims out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1))
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

int64_t reduced_count(IntArrayRef sizes, uint64_t mask) {
  int64_t n = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) n *= sizes[d];
  return n;
}

Tensor restore_dims(const Tensor& reduced, uint64_t mask, int64_t rank, bool keepdim) {
  if (keepdim || mask == 0) return reduced;
  Dims sizes;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) sizes.push_back(mask >> d & 1 ? 1 : reduced.sizes()[next++]);
  return reduced.reshape(sizes);
}

static Dims batched_dims(Vmapped& v, size_t at) {
  Dims dims;
  uint64_t mask = dim_mask(v.args(), at, v.dim(0), v.call.op.name());
  for (int64_t d = 0; d < v.dim(0); ++d)
    if (mask >> d & 1) dims.push_back(d + 1);
  return dims;
}

void reduction_vmap(Vmapped& v) {
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  Dims dims = batched_dims(v, 1);
  Tensor x;
  if (dims.empty()) {  // a batched 0-dim operand: over a dimension of one
    x = v.args().tensor(0).reshape({v.size, 1});
    args[0] = Arg(x);
    dims.push_back(1);
    for (Arg& a : args)
      if (a.tag == Tag::kBool) a = Arg(false);  // keepdim
  }
  args[1] = Arg(dims);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

namespace {

void sum_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Dtype d = f.args.dtype(3, is_integral(x.dtype()) ? Dtype::kI64 : x.dtype());
  uint64_t mask = dim_mask(f.args, 1, x.dim(), "sum");
  f.outs.push_back(Meta(d, reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

void mean_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Dtype d = f.args.dtype(3, x.dtype());
  FX_CHECK(is_differentiable(d), kType, "mean: expected a floating or complex dtype, got ", d,
           "; give dtype=");
  uint64_t mask = dim_mask(f.args, 1, x.dim(), "mean");
  f.outs.push_back(Meta(d, reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

// The gradient with the reduced dimensions put back, expanded to argument 0's sizes.
Tensor spread(Vjp& v, const Tensor& grad, size_t dim_arg, size_t keepdim_arg) {
  const Dims& sizes = v.meta(0).sizes;
  int64_t rank = int64_t(sizes.size());
  uint64_t mask = dim_mask(v.args(), dim_arg, rank, v.op().name());
  return restore_dims(grad, mask, rank, v.args().flag(keepdim_arg)).expand(sizes);
}

void sum_vjp(Vjp& v) { v.set(0, spread(v, v.grad(), 1, 2)); }

void mean_vjp(Vjp& v) {
  const Dims& sizes = v.meta(0).sizes;
  uint64_t mask = dim_mask(v.args(), 1, int64_t(sizes.size()), "mean");
  v.set(0, spread(v, v.grad().div(double(reduced_count(sizes, mask))), 1, 2));
}

void extremum_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(!x.is_complex(), kType, f.op.name(), ": complex numbers have no order");
  uint64_t mask = dim_mask(f.args, 1, x.dim(), f.op.name());
  FX_CHECK(reduced_count(x.sizes(), mask) > 0, kValue, f.op.name(),
           ": the extremum of no elements is undefined; sizes ", x.sizes());
  f.outs.push_back(Meta(x.dtype(), reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

// Ties share the gradient equally.
void extremum_vjp(Vjp& v) {
  Tensor x = v.in(0);
  int64_t rank = x.dim();
  uint64_t mask = dim_mask(v.args(), 1, rank, v.op().name());
  bool keepdim = v.args().flag(2);
  Tensor best = restore_dims(v.out(0), mask, rank, keepdim);
  bool largest = &v.op() == &amax_op;
  Tensor beaten = largest ? best.gt(x) : x.gt(best);
  Tensor chosen = beaten.to(v.grad().dtype()).mul(-1).add(1);
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    if (mask >> d & 1) dims.push_back(d);
  Tensor count = rank ? chosen.sum(dims, true) : chosen;
  v.set(0, chosen.mul(restore_dims(v.grad(), mask, rank, keepdim).div(count)));
}

void sum_to_size_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef size = c.args.ints(1);
  FX_CHECK(int64_t(size.size()) <= x.dim(), kShape, "sum_to_size: ", x.sizes(),
           " can't be summed to ", size);
  int64_t lead = x.dim() - int64_t(size.size());
  Dims dims;
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t want = d < lead ? -1 : size[size_t(d - lead)];
    FX_CHECK(d < lead || want == x.sizes()[size_t(d)] || want == 1, kShape,
             "sum_to_size: ", x.sizes(), " can't be summed to ", size);
    if (d < lead || (want == 1 && x.sizes()[size_t(d)] != 1)) dims.push_back(d);
  }
  if (dims.empty()) {
    c.outs = {x};
    return;
  }
  Tensor y = x.sum(dims, true);
  c.outs = {lead ? y.reshape(size) : y};
}

}  // namespace

constexpr Op sum_op{
    .schema =
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor\n"
        "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Sum over dimensions (all if none are given); integers and bools give int64.",
    .kind = OpKind::kReduction,
    .traits = kLinear,
    .infer = sum_infer,
    .vjp = sum_vjp,
    .vmap = reduction_vmap};
constexpr Op mean_op{
    .schema =
        "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor\n"
        "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Arithmetic mean over dimensions (all if none are given).",
    .kind = OpKind::kReduction,
    .traits = kLinear,
    .infer = mean_infer,
    .vjp = mean_vjp,
    .vmap = reduction_vmap};
constexpr Op amax_op{.schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                     .doc = "Largest element over dimensions; ties share the gradient equally.",
                     .kind = OpKind::kReduction,
                     .infer = extremum_infer,
                     .vjp = extremum_vjp,
                     .saves =
                         [](const SaveQuery&) {
                           return Saves{1, 1};
                         },
                     .vmap = reduction_vmap};
constexpr Op amin_op{.schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                     .doc = "Smallest element over dimensions; ties share the gradient equally.",
                     .kind = OpKind::kReduction,
                     .infer = extremum_infer,
                     .vjp = extremum_vjp,
                     .saves =
                         [](const SaveQuery&) {
                           return Saves{1, 1};
                         },
                     .vmap = reduction_vmap};
constexpr Op sum_to_size_op{.schema = "sum_to_size(Tensor self, int[] size) -> Tensor",
                            .doc = "Sums away what broadcasting from `size` would have repeated.",
                            .kind = OpKind::kComposite,
                            .body = sum_to_size_body};

}  // namespace fornax
