// Variance and standard deviation.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

// Arguments of the `correction` forms.
constexpr size_t kDim = 1, kCorrection = 2, kKeepdim = 3;

double correction_of(Args args) {
  return args.has(kCorrection) ? args.number(kCorrection).to_double() : 1.0;
}

void var_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_differentiable(x.dtype()), kType, f.op.name(),
           ": expected a floating or complex tensor, got ", x.dtype());
  uint64_t mask = dim_mask(f.args, kDim, x.dim(), f.op.name());
  Dims sizes = reduced_sizes(x.sizes(), mask, f.args.flag(kKeepdim));
  f.outs.push_back(Meta(to_real(x.dtype()), sizes, x.device()));
  if (f.op.n_returns == 2) f.outs.push_back(Meta(x.dtype(), sizes, x.device()));
}

// Elements of one result less the correction, at least 0: 0 divides to infinity or NaN.
double freedom(Vjp& v) {
  const Dims& sizes = v.meta(0).sizes;
  uint64_t mask = dim_mask(v.args(), kDim, int64_t(sizes.size()), v.op().name());
  double n = double(reduced_count(sizes, mask)) - correction_of(v.args());
  return n > 0 ? n : 0;
}

Tensor var_gradient(Vjp& v, const Tensor& x, const Tensor& grad) {
  Dims dims = dims_of_mask(dim_mask(v.args(), kDim, x.dim(), v.op().name()), x.dim());
  Tensor centered = dims.empty() ? x.sub(x) : x.sub(x.mean(dims, true));
  return spread(v, grad.mul(2 / freedom(v)), kDim, kKeepdim).mul(centered);
}

Tensor mean_gradient(Vjp& v, const Tensor& grad) {
  const Dims& sizes = v.meta(0).sizes;
  uint64_t mask = dim_mask(v.args(), kDim, int64_t(sizes.size()), v.op().name());
  Tensor share = grad.div(double(reduced_count(sizes, mask)));
  return spread(v, share, kDim, kKeepdim).expand(sizes);
}

// The gradient of the variance that stands for a gradient of its root; 0 where the root is 0.
Tensor root_gradient(const Tensor& grad, const Tensor& root) {
  return grad.div(root.mul(2)).masked_fill(root.eq(0), 0);
}

void add_gradients(Vjp& v, const Tensor& spread_grad) {
  Tensor g = spread_grad;
  if (v.op().n_returns == 2 && v.grad(1).defined()) {
    Tensor m = mean_gradient(v, v.grad(1));
    g = g.defined() ? g.add(m) : m;
  }
  v.set(0, g);
}

void var_vjp(Vjp& v) {
  add_gradients(v, v.grad(0).defined() ? var_gradient(v, v.in(0), v.grad(0)) : Tensor());
}
void std_vjp(Vjp& v) {
  Tensor g;
  if (v.grad(0).defined()) g = var_gradient(v, v.in(0), root_gradient(v.grad(0), v.out(0)));
  add_gradients(v, g);
}

// The forms with `unbiased`.
void call_corrected(Call& c, const Op& op) {
  Args a = c.args;
  Arg args[] = {a[0], a[1], Arg(int64_t(a.flag(2, true) ? 1 : 0)), Arg(a.flag(3))};
  c.outs = call(op, Form::kNew, Args(args, 4));
}

}  // namespace

constexpr Op var_op{
    .schema =
        "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> Tensor",
    .doc =
        "Variance over dimensions: squared deviations from the mean, summed and divided by "
        "their number less the correction (default 1).",
    .kind = OpKind::kReduction,
    .infer = var_infer,
    .vjp = var_vjp,
    .saves = saves_input,
    .vmap = reduction_vmap};
constexpr Op std_op{
    .schema =
        "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> Tensor",
    .doc = "Square root of var().",
    .kind = OpKind::kReduction,
    .infer = var_infer,
    .vjp = std_vjp,
    .saves = saves_both,
    .vmap = reduction_vmap};
constexpr Op var_mean_op{
    .schema =
        "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .doc = "var() and mean() in one pass.",
    .infer = var_infer,
    .vjp = var_vjp,
    .saves = saves_input,
    .vmap = reduction_vmap};
constexpr Op std_mean_op{
    .schema =
        "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .doc = "std() and mean() in one pass.",
    .infer = var_infer,
    .vjp = std_vjp,
    .saves = saves_both,
    .vmap = reduction_vmap};
constexpr Op var_unbiased_op{
    .schema =
        "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor\n"
        "var(Tensor self, bool unbiased=True) -> Tensor",
    .doc = "var() with correction 1 or 0.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_corrected(c, var_op); }};
constexpr Op std_unbiased_op{
    .schema =
        "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor\n"
        "std(Tensor self, bool unbiased=True) -> Tensor",
    .doc = "std() with correction 1 or 0.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_corrected(c, std_op); }};
constexpr Op var_mean_unbiased_op{
    .schema =
        "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
        "(Tensor, Tensor)\n"
        "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .doc = "var_mean() with correction 1 or 0.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_corrected(c, var_mean_op); }};
constexpr Op std_mean_unbiased_op{
    .schema =
        "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
        "(Tensor, Tensor)\n"
        "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .doc = "std_mean() with correction 1 or 0.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_corrected(c, std_mean_op); }};

}  // namespace fornax
