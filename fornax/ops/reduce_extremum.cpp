// Extrema, their places, and logic over dimensions.
#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

constexpr ReductionSpec kMaxSpec{.identity = [] { return Expr(-INFINITY); },
                                 .combine = [](Expr a, Expr x) { return expr::max(a, x); }};
constexpr ReductionSpec kMinSpec{.identity = [] { return Expr(double(INFINITY)); },
                                 .combine = [](Expr a, Expr x) { return expr::min(a, x); }};
constexpr ReductionSpec kAllSpec{.identity = [] { return expr::boolean(true); },
                                 .element = [](Expr x) { return expr::truth(x); },
                                 .combine = [](Expr a, Expr x) { return a & x; }};
constexpr ReductionSpec kAnySpec{.identity = [] { return expr::boolean(false); },
                                 .element = [](Expr x) { return expr::truth(x); },
                                 .combine = [](Expr a, Expr x) { return a | x; }};
constexpr ReductionSpec kCountSpec{
    .identity = [] { return Expr(0); },
    .element = [](Expr x) { return expr::cast(expr::truth(x), expr::Kind::kInt); },
    .combine = [](Expr a, Expr x) { return a + x; }};

void check_ordered(const Infer& f) {
  FX_CHECK(!f.args.tensor(0).is_complex(), kType, f.op.name(), ": complex numbers have no order");
}

// A result of reducing `mask`, which must not be empty of elements.
void push_nonempty(Infer& f, uint64_t mask, bool keepdim, Dtype dtype) {
  const Tensor& x = f.args.tensor(0);
  // The dimensions that are reduced count, not whether there are results.
  FX_CHECK(reduced_count(x.sizes(), mask) > 0, kIndex, f.op.name(),
           ": the extremum of no elements is undefined; sizes ", x.sizes());
  f.outs.push_back(Meta(dtype, reduced_sizes(x.sizes(), mask, keepdim), x.device()));
}

void extremum_infer(Infer& f) {
  check_ordered(f);
  const Tensor& x = f.args.tensor(0);
  push_nonempty(f, dim_mask(f.args, 1, x.dim(), f.op.name()), f.args.flag(2), x.dtype());
}

void aminmax_infer(Infer& f) {
  extremum_infer(f);
  f.outs.push_back(Meta(f.outs[0]));
}

void arg_infer(Infer& f) {
  check_ordered(f);
  const Tensor& x = f.args.tensor(0);
  push_nonempty(f, dim_mask(f.args, 1, x.dim(), f.op.name()), f.args.flag(2), Dtype::kI64);
}

void logic_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  uint64_t mask = dim_mask(f.args, 1, x.dim(), f.op.name());
  Dtype d = x.dtype() == Dtype::kU8 ? Dtype::kU8 : Dtype::kBool;
  f.outs.push_back(Meta(d, reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

void count_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  uint64_t mask = dim_mask(f.args, 1, x.dim(), "count_nonzero");
  f.outs.push_back(Meta(Dtype::kI64, reduced_sizes(x.sizes(), mask, false), x.device()));
}

// The part of gradient `grad` of result `best` that each element of x gets: ties share equally.
Tensor share_among_ties(Vjp& v, const Tensor& x, const Tensor& best, const Tensor& grad) {
  Tensor kept = spread(v, best, 1, 2);
  Tensor chosen = x.eq(kept).logical_or(x.isnan().logical_and(kept.isnan()));
  Dims dims = dims_of_mask(dim_mask(v.args(), 1, x.dim(), v.op().name()), x.dim());
  Tensor count = dims.empty() ? chosen : chosen.sum(dims, true);
  return spread(v, grad, 1, 2).div(count).mul(chosen);
}

void extremum_vjp(Vjp& v) { v.set(0, share_among_ties(v, v.in(0), v.out(0), v.grad())); }

void aminmax_vjp(Vjp& v) {
  Tensor x = v.in(0), g;
  for (int k = 0; k < 2; ++k) {
    if (!v.grad(k).defined()) continue;
    Tensor part = share_among_ties(v, x, v.out(k), v.grad(k));
    g = g.defined() ? g.add(part) : part;
  }
  v.set(0, g);
}

// Flattens a call over all elements to one over dimension 0 of each batch member.
void arg_vmap(Vmapped& v) {
  Args a = v.args();
  const Tensor& x = a.tensor(0);
  if (a.has(1) && v.dim(0) > 0) return reduction_vmap(v);
  int64_t n = v.size ? x.numel() / v.size : 0;
  v.run({x.reshape({v.size, n}), int64_t(1), false});
  if (!a.flag(2)) return;
  Dims sizes(size_t(v.dim(0)) + 1, 1);
  sizes[0] = v.size;
  for (Tensor& t : v.call.outs) t = t.reshape(sizes);
}

}  // namespace

void selection_infer(Infer& f) {
  check_ordered(f);
  const Tensor& x = f.args.tensor(0);
  uint64_t mask = dim_mask(f.args, 1, x.dim(), f.op.name());
  push_nonempty(f, mask, f.args.flag(2), x.dtype());
  push_nonempty(f, mask, f.args.flag(2), Dtype::kI64);
}

// One-hot along the dimension rather than a scatter: the same writes, and it batches.
void selection_vjp(Vjp& v) {
  if (!v.grad().defined()) return;
  const Dims& sizes = v.meta(0).sizes;
  int64_t rank = int64_t(sizes.size());
  if (rank == 0) return v.set(0, v.grad());
  int64_t dim = wrap_dim(v.args().integer(1), rank);
  Dims along(size_t(rank), 1);
  along[size_t(dim)] = sizes[size_t(dim)];
  Tensor places = arange(sizes[size_t(dim)], TensorOptions(Dtype::kI64).device(v.grad().device()));
  Tensor chosen = places.reshape(along).eq(spread(v, v.out(1), 1, 2));
  v.set(0, spread(v, v.grad(), 1, 2).mul(chosen));
}

constexpr Op amax_op{.schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                     .doc = "Largest element over dimensions; ties share the gradient equally.",
                     .kind = OpKind::kReduction,
                     .infer = extremum_infer,
                     .vjp = extremum_vjp,
                     .saves = saves_both,
                     .vmap = reduction_vmap,
                     .extra = &kMaxSpec};
constexpr Op amin_op{.schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
                     .doc = "Smallest element over dimensions; ties share the gradient equally.",
                     .kind = OpKind::kReduction,
                     .infer = extremum_infer,
                     .vjp = extremum_vjp,
                     .saves = saves_both,
                     .vmap = reduction_vmap,
                     .extra = &kMinSpec};
constexpr Op aminmax_op{
    .schema =
        "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    .doc = "Smallest and largest element along a dimension (all if none is given).",
    .infer = aminmax_infer,
    .vjp = aminmax_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{1, 3};
        },
    .vmap = reduction_vmap};
constexpr Op max_op{.schema = "max(Tensor self) -> Tensor",
                    .doc = "Largest element; ties share the gradient equally.",
                    .kind = OpKind::kComposite,
                    .body = [](Call& c) { c.outs = {amax(c.args.tensor(0))}; }};
constexpr Op min_op{.schema = "min(Tensor self) -> Tensor",
                    .doc = "Smallest element; ties share the gradient equally.",
                    .kind = OpKind::kComposite,
                    .body = [](Call& c) { c.outs = {amin(c.args.tensor(0))}; }};
constexpr Op max_dim_op{
    .schema =
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "Largest element along a dimension and its place, the first of equal ones; the gradient "
        "goes to that place.",
    .infer = selection_infer,
    .nondiff = 0b10,
    .vjp = selection_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0, 0b10};
        },
    .vmap = reduction_vmap};
constexpr Op min_dim_op{
    .schema =
        "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "Smallest element along a dimension and its place, the first of equal ones; the "
        "gradient goes to that place.",
    .infer = selection_infer,
    .nondiff = 0b10,
    .vjp = selection_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0, 0b10};
        },
    .vmap = reduction_vmap};
constexpr Op argmax_op{
    .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc =
        "Place of the largest element along a dimension (in row-major order of all if none is "
        "given); the first of equal ones, a NaN before all.",
    .traits = kNoGrad,
    .infer = arg_infer,
    .vmap = arg_vmap};
constexpr Op argmin_op{
    .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc =
        "Place of the smallest element along a dimension (in row-major order of all if none is "
        "given); the first of equal ones, a NaN before all.",
    .traits = kNoGrad,
    .infer = arg_infer,
    .vmap = arg_vmap};
constexpr Op all_op{
    .schema =
        "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor\n"
        "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor\n"
        "all(Tensor self) -> Tensor",
    .doc = "Whether every element over dimensions is not 0; uint8 gives uint8, others bool.",
    .kind = OpKind::kReduction,
    .traits = kNoGrad,
    .infer = logic_infer,
    .vmap = reduction_vmap,
    .extra = &kAllSpec};
constexpr Op any_op{
    .schema =
        "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor\n"
        "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor\n"
        "any(Tensor self) -> Tensor",
    .doc = "Whether some element over dimensions is not 0; uint8 gives uint8, others bool.",
    .kind = OpKind::kReduction,
    .traits = kNoGrad,
    .infer = logic_infer,
    .vmap = reduction_vmap,
    .extra = &kAnySpec};
constexpr Op count_nonzero_op{
    .schema =
        "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor\n"
        "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    .doc = "Number of elements over dimensions (all if none are given) that are not 0.",
    .kind = OpKind::kReduction,
    .traits = kNoGrad,
    .infer = count_infer,
    .vmap = reduction_vmap,
    .extra = &kCountSpec};

}  // namespace fornax
