// Vector norms and log-sum-exp.
#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

// Arguments of linalg_vector_norm.
constexpr size_t kOrd = 1, kDim = 2, kKeepdim = 3, kDtype = 4;

double order_of(Args args) { return args.has(kOrd) ? args.number(kOrd).to_double() : 2.0; }

void vector_norm_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_differentiable(x.dtype()), kType,
           "linalg_vector_norm: expected a floating or complex tensor, got ", x.dtype());
  Dtype d = f.args.dtype(kDtype, x.dtype());
  FX_CHECK(is_differentiable(d) && is_complex(d) == x.is_complex(), kType,
           "linalg_vector_norm: dtype ", d, " does not fit an input of ", x.dtype());
  uint64_t mask = dim_mask(f.args, kDim, x.dim(), "linalg_vector_norm");
  double order = order_of(f.args);
  FX_CHECK(reduced_count(x.sizes(), mask) > 0 || (order >= 0 && !std::isinf(order)), kIndex,
           "linalg_vector_norm: order ", order, " of no elements is undefined; sizes ", x.sizes());
  f.outs.push_back(
      Meta(to_real(d), reduced_sizes(x.sizes(), mask, f.args.flag(kKeepdim)), x.device()));
}

// |x|^(order - 1) sgn(x), without the 0 * inf of an element 0.
Tensor slope(const Tensor& x, double order) {
  if (order == 1) return x.sgn();
  if (order == 2) return x;
  Tensor size = x.abs();
  if (order > 2) return x.mul(size.pow(order - 2));
  return x.sgn().mul(size.pow(order - 1)).masked_fill(size.eq(0), 0);
}

void vector_norm_vjp(Vjp& v) {
  Tensor x = v.in(0).to(v.args().dtype(kDtype, v.meta(0).dtype));
  double order = order_of(v.args());
  if (order == 0) return v.set(0, zeros_like(x));
  Tensor norm = spread(v, v.out(0), kDim, kKeepdim), grad = spread(v, v.grad(), kDim, kKeepdim);
  if (order == 1) return v.set(0, x.sgn().mul(grad));
  if (std::isinf(order)) {
    Tensor chosen = x.abs().eq(norm);
    Dims dims = dims_of_mask(dim_mask(v.args(), kDim, x.dim(), "linalg_vector_norm"), x.dim());
    Tensor count = dims.empty() ? chosen : chosen.sum(dims, true);
    return v.set(0, x.sgn().mul(chosen).mul(grad.div(count)));
  }
  Tensor scale = grad.div(order == 2 ? norm : norm.pow(order - 1)).masked_fill(norm.eq(0), 0);
  v.set(0, slope(x, order).mul(scale));
}

void vector_norm_vmap(Vmapped& v) {
  Args a = v.args();
  Dims dims;
  uint64_t mask = dim_mask(a, kDim, v.dim(0), "linalg_vector_norm");
  for (int64_t d = 0; d < v.dim(0); ++d)
    if (mask >> d & 1) dims.push_back(d + 1);
  if (!dims.empty()) return v.run({a[0], a[kOrd], dims, a.flag(kKeepdim), a[kDtype]});
  v.run({a.tensor(0).reshape({v.size, 1}), a[kOrd], Dims{1}, false, a[kDtype]});
}

void norm_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  FX_CHECK(is_differentiable(x.dtype()) || a.has(4), kType,
           "norm: expected a floating or complex tensor, got ", x.dtype());
  Tensor t = is_differentiable(x.dtype()) ? x : x.to(a.dtype(4, Dtype::kF32));
  Arg order = a.has(1) ? a[1] : Arg(2.0);
  c.outs = {call1(linalg_vector_norm_op, {t, order, a[2], Arg(a.flag(3)), a[4]})};
}

void logsumexp_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Dtype d = is_integral(x.dtype()) ? get_default_dtype() : x.dtype();
  uint64_t mask = dim_mask(f.args, 1, x.dim(), "logsumexp");
  f.outs.push_back(Meta(d, reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

// exp(x - result); where the result is -inf, all elements are, and none gets a gradient.
void logsumexp_vjp(Vjp& v) {
  Tensor result = spread(v, v.out(0), 1, 2);
  Tensor x = v.in(0);
  Tensor share = x.is_complex() ? x.sub(result).exp().conj()
                                : x.sub(result.masked_fill(result.eq(-INFINITY), 0)).exp();
  v.set(0, spread(v, v.grad(), 1, 2).mul(share));
}

}  // namespace

constexpr Op linalg_vector_norm_op{
    .schema =
        "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .doc =
        "(sum |x|^ord)^(1/ord) over dimensions; order 0 counts nonzero elements, inf and -inf "
        "give the largest and smallest |x|. Does not overflow where the norm does not.",
    .infer = vector_norm_infer,
    .vjp = vector_norm_vjp,
    .saves = saves_both,
    .vmap = vector_norm_vmap};
constexpr Op norm_op{
    .schema =
        "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
        "dtype) -> Tensor\n"
        "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor\n"
        "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor\n"
        "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    .doc = "linalg_vector_norm under its older name.",
    .kind = OpKind::kComposite,
    .body = norm_body};
constexpr Op logsumexp_op{
    .schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .doc = "log(sum(exp(x))) over dimensions without overflow, exact at infinities.",
    .infer = logsumexp_infer,
    .vjp = logsumexp_vjp,
    .saves = saves_both,
    .vmap = reduction_vmap};

}  // namespace fornax
