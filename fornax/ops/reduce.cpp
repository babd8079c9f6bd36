// Sums, means and products over dimensions, and what all reductions share.
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

Dims dims_of_mask(uint64_t mask, int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    if (mask >> d & 1) dims.push_back(d);
  return dims;
}

Tensor restore_dims(const Tensor& reduced, uint64_t mask, int64_t rank, bool keepdim) {
  if (keepdim || mask == 0) return reduced;
  Dims sizes;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) sizes.push_back(mask >> d & 1 ? 1 : reduced.sizes()[next++]);
  return reduced.reshape(sizes);
}

Tensor spread(Vjp& v, const Tensor& result_like, size_t dim_arg, size_t keepdim_arg) {
  const Dims& sizes = v.meta(0).sizes;
  int64_t rank = int64_t(sizes.size());
  uint64_t mask = dim_mask(v.args(), dim_arg, rank, v.op().name());
  return restore_dims(result_like, mask, rank, v.args().flag(keepdim_arg));
}

static Dims batched_dims(Vmapped& v, size_t at) {
  Dims dims;
  uint64_t mask = dim_mask(v.args(), at, v.dim(0), v.call.op.name());
  for (int64_t d = 0; d < v.dim(0); ++d)
    if (mask >> d & 1) dims.push_back(d + 1);
  return dims;
}

void reduction_vmap(Vmapped& v) {
  bool one = schema_of(v.call.op).params[1].list == false;
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
  args[1] = one && dims.size() == 1 ? Arg(dims[0]) : Arg(dims);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

namespace {

constexpr ReductionSpec kSumSpec{.identity = [] { return Expr(0.0); },
                                 .combine = [](Expr a, Expr x) { return a + x; }};
constexpr ReductionSpec kNanSumSpec{
    .identity = [] { return Expr(0.0); },
    .element = [](Expr x) { return expr::where(expr::is_nan(x), Expr(0.0), x); },
    .combine = [](Expr a, Expr x) { return a + x; }};
constexpr ReductionSpec kMeanSpec{.identity = [] { return Expr(0.0); },
                                  .combine = [](Expr a, Expr x) { return a + x; },
                                  .finish = [](Expr a, Expr count) { return a / count; }};
constexpr ReductionSpec kProdSpec{.identity = [] { return Expr(1.0); },
                                  .combine = [](Expr a, Expr x) { return a * x; }};

}  // namespace

namespace {

void sum_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Dtype d = f.args.dtype(3, is_integral(x.dtype()) ? Dtype::kI64 : x.dtype());
  uint64_t mask = dim_mask(f.args, 1, x.dim(), f.op.name());
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

void nansum_infer(Infer& f) {
  FX_CHECK(!f.args.tensor(0).is_complex(), kType, "nansum: complex tensors are not supported");
  sum_infer(f);
}

void sum_vjp(Vjp& v) { v.set(0, spread(v, v.grad(), 1, 2).expand(v.meta(0).sizes)); }

void nansum_vjp(Vjp& v) { v.set(0, spread(v, v.grad(), 1, 2).mul(v.in(0).isnan().logical_not())); }

void mean_vjp(Vjp& v) {
  const Dims& sizes = v.meta(0).sizes;
  uint64_t mask = dim_mask(v.args(), 1, int64_t(sizes.size()), "mean");
  Tensor share = v.grad().div(double(reduced_count(sizes, mask)));
  v.set(0, spread(v, share, 1, 2).expand(sizes));
}

void nanmean_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(is_float(x.dtype()), kType, "nanmean: expected a floating dtype, got ", x.dtype());
  Arg dims = c.args[1], keepdim(c.args.flag(2));
  Tensor count = call1(sum_op, {x.isnan().logical_not(), dims, keepdim, Arg()});
  c.outs = {call1(nansum_op, {x, dims, keepdim, c.args[3]}).div(count)};
}

// The product of all elements along `dim` but each itself: of those before it, times those after.
Tensor products_of_others(const Tensor& x, int64_t dim) {
  int64_t n = x.size(dim);
  if (n == 1) return ones_like(x);
  Tensor one = ones_like(x.narrow(dim, 0, 1));
  Tensor before = cat({one, x.narrow(dim, 0, n - 1).cumprod(dim)}, dim);
  Tensor after = cat({one, x.flip({dim}).narrow(dim, 0, n - 1).cumprod(dim)}, dim).flip({dim});
  return before.mul(after);
}

void prod_vjp(Vjp& v) {
  Tensor x = v.in(0).to(v.grad().dtype());
  if (x.numel() == 0) return v.set(0, zeros_like(x));
  bool all = v.args()[1].is_none() || x.dim() == 0;
  Tensor others = all ? products_of_others(x.reshape({-1}), 0).reshape(x.sizes())
                      : products_of_others(x, v.args().integer(1));
  Tensor g = all ? v.grad() : spread(v, v.grad(), 1, 2);
  v.set(0, g.mul(others.conj()));
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
    .traits = kLinearOp,
    .infer = sum_infer,
    .vjp = sum_vjp,
    .vmap = reduction_vmap,
    .extra = &kSumSpec};
constexpr Op nansum_op{
    .schema =
        "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Sum over dimensions that counts NaN as 0.",
    .kind = OpKind::kReduction,
    .infer = nansum_infer,
    .vjp = nansum_vjp,
    .saves = saves_input,
    .vmap = reduction_vmap,
    .extra = &kNanSumSpec};
constexpr Op mean_op{
    .schema =
        "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor\n"
        "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Arithmetic mean over dimensions (all if none are given).",
    .kind = OpKind::kReduction,
    .traits = kLinearOp,
    .infer = mean_infer,
    .vjp = mean_vjp,
    .vmap = reduction_vmap,
    .extra = &kMeanSpec};
constexpr Op nanmean_op{
    .schema =
        "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .doc = "Mean over dimensions of the elements that are not NaN.",
    .kind = OpKind::kComposite,
    .body = nanmean_body};
constexpr Op prod_op{
    .schema =
        "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor\n"
        "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Product along a dimension (all if none is given); integers and bools give int64.",
    .kind = OpKind::kReduction,
    .infer = sum_infer,
    .vjp = prod_vjp,
    .saves = saves_input,
    .vmap = reduction_vmap,
    .extra = &kProdSpec};
constexpr Op sum_to_size_op{.schema = "sum_to_size(Tensor self, int[] size) -> Tensor",
                            .doc = "Sums away what broadcasting from `size` would have repeated.",
                            .kind = OpKind::kComposite,
                            .body = sum_to_size_body};

}  // namespace fornax
