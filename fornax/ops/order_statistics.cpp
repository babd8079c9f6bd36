// Medians, modes and quantiles.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

void check_ordered(const Infer& f) {
  FX_CHECK(!f.args.tensor(0).is_complex(), kType, f.op.name(), ": complex numbers have no order");
}

void median_infer(Infer& f) {
  check_ordered(f);
  f.outs.push_back(Meta(f.args.tensor(0).dtype(), {}, f.args.tensor(0).device()));
}

// Elements equal to the result share the gradient.
void median_vjp(Vjp& v) {
  Tensor x = v.in(0), result = v.out(0);
  Tensor chosen = x.eq(result).logical_or(x.isnan().logical_and(result.isnan()));
  v.set(0, chosen.mul(v.grad().div(chosen.sum())));
}

void median_vmap(Vmapped& v) {
  const Tensor& x = v.args().tensor(0);
  Tensor rows = x.reshape({v.size, v.size ? x.numel() / v.size : 0});
  bool nan = &v.call.op == &nanmedian_op;
  v.call.outs = {std::get<0>(nan ? rows.nanmedian(1) : rows.median(1))};
  v.out_bdims.assign(1, 0);
}

Saves saves_place(const SaveQuery&) { return {0, 0b10}; }

// A place between elements of sorted rows, for each probability.
struct Ranks {
  Tensor below, above, weight;
};
Ranks ranks_of(const Tensor& rank, std::string_view interpolation) {
  Tensor low = rank.floor(), high = rank.ceil();
  if (interpolation == "lower") high = low;
  if (interpolation == "higher") low = high;
  if (interpolation == "nearest") low = high = rank.round();
  Tensor weight = interpolation == "midpoint" ? full_like(rank, 0.5) : rank.sub(low);
  return {low.to(Dtype::kI64), high.to(Dtype::kI64), weight};
}

void check_quantile(const Tensor& x, const Tensor& q, std::string_view interpolation,
                    std::string_view call) {
  FX_CHECK(x.dtype() == Dtype::kF32 || x.dtype() == Dtype::kF64, kType, call,
           ": expected a float32 or float64 input, got ", x.dtype());
  FX_CHECK(q.dtype() == x.dtype() && q.dim() <= 1, kValue, call,
           ": q must be a 0-D or 1-D tensor of the input's dtype, got ", q.dtype(), " ", q.sizes());
  FX_CHECK(x.numel() > 0, kValue, call, ": quantiles of no elements are undefined");
  for (std::string_view known : {"linear", "lower", "higher", "midpoint", "nearest"})
    if (interpolation == known) return;
  fail(ErrorKind::kValue, call, ": interpolation must be linear, lower, higher, midpoint or ",
       "nearest, got '", interpolation, "'");
}

Tensor quantile_of(const Tensor& x, const Tensor& q, Arg dim_arg, bool keepdim,
                   std::string_view interpolation, bool ignore_nan) {
  check_quantile(x, q, interpolation, ignore_nan ? "nanquantile" : "quantile");
  bool all = dim_arg.is_none();
  int64_t dim = all || x.dim() == 0 ? 0 : wrap_dim(dim_arg.i, x.dim(), "quantile");
  Tensor rows = all || x.dim() == 0 ? x.reshape({x.numel()}) : x.movedim(dim, -1);
  Tensor sorted = std::get<0>(rows.sort());
  int64_t n = rows.size(-1);
  Tensor nans = rows.isnan().sum({-1}, true);
  Tensor last = ignore_nan ? nans.rsub(n - 1).clamp_min(Scalar(0)) : full_like(nans, n - 1);
  Tensor rank = q.reshape({q.numel()}).mul(last);
  if (!ignore_nan) rank = where(nans.gt(0), full_like(rank, double(n - 1)), rank);
  Ranks r = ranks_of(rank, interpolation);
  Tensor y = sorted.gather(-1, r.below);
  if (interpolation == "linear" || interpolation == "midpoint")
    y = y.lerp(sorted.gather(-1, r.above), r.weight);
  y = y.movedim(-1, 0);
  if (keepdim) {
    Dims sizes(x.sizes().begin(), x.sizes().end());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (all || int64_t(d) == dim) sizes[d] = 1;
    sizes.insert(sizes.begin(), q.numel());
    y = y.reshape(sizes);
  }
  return q.dim() == 0 ? y.squeeze(0) : y;
}

template <bool kIgnoreNan>
void quantile_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  std::string_view interpolation = a.has(4) ? a.text(4) : "linear";
  Tensor q;
  if (a[1].is_tensor()) {
    q = a.tensor(1);
  } else {
    double p = a.real(1);
    FX_CHECK(p >= 0 && p <= 1, kValue, "quantile: q must lie in [0, 1], got ", p);
    q = scalar_tensor(p, TensorOptions(x.dtype()).device(x.device()));
  }
  c.outs = {quantile_of(x, q, a[2], a.flag(3), interpolation, kIgnoreNan)};
}

}  // namespace

constexpr Op median_op{.schema = "median(Tensor self) -> Tensor",
                       .doc = "The lower median of all elements; NaN if one of them is.",
                       .infer = median_infer,
                       .vjp = median_vjp,
                       .saves = saves_both,
                       .vmap = median_vmap};
constexpr Op nanmedian_op{.schema = "nanmedian(Tensor self) -> Tensor",
                          .doc = "The lower median of all elements that are not NaN.",
                          .infer = median_infer,
                          .vjp = median_vjp,
                          .saves = saves_both,
                          .vmap = median_vmap};
constexpr Op median_dim_op{
    .schema =
        "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The lower median along a dimension and its place; a NaN if there is one.",
    .infer = selection_infer,
    .nondiff = 0b10,
    .vjp = selection_vjp,
    .saves = saves_place,
    .vmap = reduction_vmap};
constexpr Op nanmedian_dim_op{
    .schema =
        "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor "
        "indices)",
    .doc = "The lower median along a dimension of what is not NaN, and its place.",
    .infer = selection_infer,
    .nondiff = 0b10,
    .vjp = selection_vjp,
    .saves = saves_place,
    .vmap = reduction_vmap};
constexpr Op mode_op{
    .schema =
        "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc =
        "The most frequent value along a dimension, the smallest of several, and its last place.",
    .infer = selection_infer,
    .nondiff = 0b10,
    .vjp = selection_vjp,
    .saves = saves_place,
    .vmap = reduction_vmap};
constexpr Op quantile_op{
    .schema =
        "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
        "interpolation=\"linear\") -> Tensor\n"
        "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation=\"linear\") -> Tensor",
    .doc = "Quantiles along a dimension (of all elements if none is given); NaN if there is one.",
    .kind = OpKind::kComposite,
    .body = quantile_body<false>};
constexpr Op nanquantile_op{
    .schema =
        "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
        "interpolation=\"linear\") -> Tensor\n"
        "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation=\"linear\") -> Tensor",
    .doc = "Quantiles along a dimension of the elements that are not NaN.",
    .kind = OpKind::kComposite,
    .body = quantile_body<true>};

}  // namespace fornax
