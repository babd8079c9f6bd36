// Exponentials, logarithms, trigonometry and special functions.
#include <cmath>
#include <numbers>

#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise_macros.h"

namespace fornax {
namespace {

constexpr auto kToFloat = Promote::kFloat;

void logit_body(Body& b) {
  Expr x = b.in(0);
  if (b.has(1)) {
    Expr eps = expr::to_real(b.in(1));
    // Not clamp: for eps above one half PyTorch asks for the lower bound first.
    x = expr::where(x < eps, eps, expr::where(x > 1.0 - eps, 1.0 - eps, x));
  }
  b.out(0, expr::logit(x));
}

// Fraction and exponent; the exponent of 0, NaN and infinities is 0.
void frexp_body(Body& b) {
  Expr x = b.in(0);
  Expr exponent = expr::where(expr::is_finite(x), expr::call("frexp_exponent", x), 0.0);
  b.out(0, expr::call("frexp_mantissa", x));
  b.out(1, expr::cast(exponent, expr::Kind::kInt));
}
// Divided by 2^exponent: as a factor, 2^-exponent overflows for subnormal numbers.
void frexp_vjp(Vjp& v) {
  if (v.grad(0).defined()) v.set(0, v.grad(0).div(v.out(1).exp2()));
}
Saves frexp_saves(const SaveQuery&) {
  Saves s;
  s.out = 0b10;
  return s;
}
void frexp_infer(Infer& f) {
  pointwise_infer(f);
  f.outs[1].dtype = Dtype::kI32;
}
constexpr Op frexp_record() {
  Op op = accepts(kReals, pointwise("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor "
                                    "exponent)",
                                    "self = mantissa * 2^exponent, |mantissa| in [0.5, 1).",
                                    Promote::kDefault, frexp_body));
  op.infer = frexp_infer;
  op.vjp = frexp_vjp;
  op.saves = frexp_saves;
  op.nondiff = 0b10;
  return op;
}

void polygamma_infer(Infer& f) {
  FX_CHECK(f.args.integer(0) >= 0, kValue, "polygamma: the order must not be negative, got ",
           f.args.integer(0));
  pointwise_infer(f);
}
void mvlgamma_infer(Infer& f) {
  FX_CHECK(f.args.integer(1) >= 1, kValue, "mvlgamma: p must be at least 1, got ",
           f.args.integer(1));
  pointwise_infer(f);
}

}  // namespace

// ---- exponentials and logarithms
FX_UNARY_SAVES(exp, kToFloat, "e^self.", expr::exp(x))
constexpr Op exp2_op =
    saves_result(pointwise("exp2(Tensor self) -> Tensor\nspecial_exp2(Tensor self) -> Tensor",
                           "2^self.", kToFloat, [](Expr x) -> Expr { return expr::exp2(x); }));
constexpr Op expm1_op = saves_result(pointwise(
    "expm1(Tensor self) -> Tensor\nspecial_expm1(Tensor self) -> Tensor",
    "e^self - 1, exact for small self.", kToFloat, [](Expr x) -> Expr { return expr::expm1(x); }));
FX_UNARY(log, kToFloat, "The natural logarithm.", expr::log(x))
FX_UNARY(log2, kToFloat, "The logarithm to base 2.", expr::log2(x))
FX_UNARY(log10, kToFloat, "The logarithm to base 10.", expr::log10(x))
FX_UNARY_AS(log1p, special_log1p, kToFloat, "log(1 + self), exact for small self.", expr::log1p(x))
FX_UNARY_SAVES(sqrt, kToFloat, "The square root.", expr::sqrt(x))
FX_UNARY_SAVES(rsqrt, kToFloat, "1 / sqrt(self).", expr::rsqrt(x))
FX_BINARY_OF(kFloating, logaddexp, Promote::kDefault, "log(e^self + e^other).",
             expr::logaddexp(a, b))
FX_BINARY_OF(kReals, logaddexp2, Promote::kDefault, "log2(2^self + 2^other).",
             expr::logaddexp2(a, b))
constexpr Op xlogy_op =
    accepts(kReals, pointwise("xlogy.Tensor(Tensor self, Tensor other) -> Tensor\n"
                              "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor\n"
                              "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor\n"
                              "special_xlogy(Tensor self, Tensor other) -> Tensor\n"
                              "special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor\n"
                              "special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
                              "self * log(other), 0 where self is 0.", kToFloat,
                              [](Expr a, Expr b) -> Expr { return expr::xlogy(a, b); }));
constexpr Op special_xlog1py_op =
    accepts(kReals, pointwise("special_xlog1py(Tensor self, Tensor other) -> Tensor\n"
                              "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor\n"
                              "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
                              "self * log(1 + other), 0 where self is 0.", kToFloat,
                              [](Expr a, Expr b) -> Expr { return expr::xlog1py(a, b); }));
constexpr Op logit_op =
    accepts(kReals, pointwise("logit(Tensor self, float? eps=None) -> Tensor\n"
                              "special_logit(Tensor self, float? eps=None) -> Tensor",
                              "log(self / (1 - self)), self clamped to [eps, 1 - eps] first.",
                              kToFloat, logit_body));
constexpr Op frexp_op = frexp_record();

// ---- trigonometry
FX_UNARY(sin, kToFloat, "Sine.", expr::sin(x))
FX_UNARY(cos, kToFloat, "Cosine.", expr::cos(x))
FX_UNARY_SAVES(tan, kToFloat, "Tangent.", expr::tan(x))
FX_UNARY(sinh, kToFloat, "Hyperbolic sine.", expr::sinh(x))
FX_UNARY(cosh, kToFloat, "Hyperbolic cosine.", expr::cosh(x))
FX_UNARY_SAVES(tanh, kToFloat, "Hyperbolic tangent.", expr::tanh(x))
FX_UNARY_AS(asin, arcsin, kToFloat, "Inverse sine.", expr::asin(x))
FX_UNARY_AS(acos, arccos, kToFloat, "Inverse cosine.", expr::acos(x))
FX_UNARY_AS(atan, arctan, kToFloat, "Inverse tangent.", expr::atan(x))
FX_UNARY_AS(asinh, arcsinh, kToFloat, "Inverse hyperbolic sine.", expr::asinh(x))
FX_UNARY_AS(acosh, arccosh, kToFloat, "Inverse hyperbolic cosine.", expr::acosh(x))
FX_UNARY_AS(atanh, arctanh, kToFloat, "Inverse hyperbolic tangent.", expr::atanh(x))
FX_UNARY_AS(sinc, special_sinc, kToFloat, "sin(pi self) / (pi self).", expr::sinc(x))
FX_UNARY_OF(kReals, deg2rad, kToFloat, "Degrees to radians.", x*(std::numbers::pi / 180))
FX_UNARY_OF(kReals, rad2deg, kToFloat, "Radians to degrees.", x*(180 / std::numbers::pi))

// ---- special functions of reals
// clang-format off
#define FX_SPECIAL(name, row, doc)                                                                 \
  constexpr Op name##_op =                                                                         \
      accepts(kReals, pointwise(#name "(Tensor self) -> Tensor", doc, kToFloat,                      \
                                [](Expr x) -> Expr { return expr::call(row, x); }));
#define FX_SPECIAL_AS(name, alias, doc, ...)                                                       \
  constexpr Op name##_op =                                                                         \
      accepts(kReals, pointwise(#name "(Tensor self) -> Tensor\n" #alias "(Tensor self) -> Tensor",\
                                doc, kToFloat, [](Expr x) -> Expr { return __VA_ARGS__; }));
// clang-format on
FX_SPECIAL_AS(erf, special_erf, "The error function.", expr::erf(x))
FX_SPECIAL_AS(erfc, special_erfc, "1 - erf(self), exact for large self.", expr::erfc(x))
FX_SPECIAL_AS(erfinv, special_erfinv, "The inverse of erf.", expr::call("erfinv", x))
FX_SPECIAL_AS(lgamma, special_gammaln, "log |Gamma(self)|.", expr::call("lgamma", x))
FX_SPECIAL_AS(digamma, special_digamma, "The derivative of log Gamma.", expr::call("digamma", x))
FX_SPECIAL_AS(i0, special_i0, "Modified Bessel function of the first kind, order 0.",
              expr::call("i0", x))
FX_SPECIAL(special_i0e, "i0e", "e^-|self| i0(self).")
FX_SPECIAL(special_i1, "i1", "Modified Bessel function of the first kind, order 1.")
FX_SPECIAL(special_i1e, "i1e", "e^-|self| i1(self).")
FX_SPECIAL(special_erfcx, "erfcx", "e^(self^2) erfc(self).")
FX_SPECIAL(special_ndtri, "ndtri", "The inverse of ndtr.")
FX_SPECIAL(special_log_ndtr, "log_ndtr", "log(ndtr(self)), exact for small results.")
FX_SPECIAL(special_modified_bessel_i0, "i0", "Modified Bessel function I0.")
FX_SPECIAL(special_modified_bessel_i1, "i1", "Modified Bessel function I1.")
FX_SPECIAL(special_modified_bessel_k0, "k0", "Modified Bessel function K0.")
FX_SPECIAL(special_modified_bessel_k1, "k1", "Modified Bessel function K1.")
FX_SPECIAL(special_bessel_j0, "j0", "Bessel function of the first kind J0.")
FX_SPECIAL(special_bessel_j1, "j1", "Bessel function of the first kind J1.")
FX_SPECIAL(special_bessel_y0, "y0", "Bessel function of the second kind Y0.")
FX_SPECIAL(special_bessel_y1, "y1", "Bessel function of the second kind Y1.")
FX_UNARY_OF(kReals, special_ndtr, kToFloat, "The normal distribution function.", expr::ndtr(x))
FX_UNARY_OF(kReals, special_entr, kToFloat, "-self log(self), 0 at 0, -inf below.", expr::entr(x))
// clang-format off
#define FX_SPECIAL_OF_X(name, doc, ...)                                                            \
  constexpr Op name##_op =                                                                         \
      accepts(kReals, pointwise(#name "(Tensor x) -> Tensor", doc, kToFloat,                         \
                                [](Expr x) -> Expr { return __VA_ARGS__; }));
// Polynomials: x, degree n.
#define FX_POLYNOMIAL(name, doc, ...)                                                              \
  constexpr Op special_##name##_op =                                                               \
      accepts(kReals, pointwise("special_" #name "(Tensor x, Tensor n) -> Tensor\n"                \
                                "special_" #name ".x_scalar(Scalar x, Tensor n) -> Tensor\n"       \
                                "special_" #name ".n_scalar(Tensor x, Scalar n) -> Tensor",        \
                                doc, kToFloat, [](Expr x, Expr n) -> Expr { return __VA_ARGS__; }));
// clang-format on
FX_SPECIAL_OF_X(special_airy_ai, "Airy function Ai.", expr::call("airy_ai", x))
FX_SPECIAL_OF_X(special_scaled_modified_bessel_k0, "e^x K0(x).", expr::call("k0e", x))
FX_SPECIAL_OF_X(special_scaled_modified_bessel_k1, "e^x K1(x).", expr::call("k1e", x))
FX_SPECIAL_OF_X(special_spherical_bessel_j0, "sin(x) / x.", expr::spherical_j0(x))
FX_POLYNOMIAL(chebyshev_polynomial_t, "Chebyshev polynomial T_n(x).",
              expr::call("chebyshev_t", x, n))
FX_POLYNOMIAL(chebyshev_polynomial_u, "Chebyshev polynomial U_n(x).",
              expr::call("chebyshev_u", x, n))
FX_POLYNOMIAL(chebyshev_polynomial_v, "Chebyshev polynomial V_n(x).",
              expr::call("chebyshev_v", x, n))
FX_POLYNOMIAL(chebyshev_polynomial_w, "Chebyshev polynomial W_n(x).",
              expr::call("chebyshev_w", x, n))
FX_POLYNOMIAL(shifted_chebyshev_polynomial_t, "T_n(2x - 1).",
              expr::call("chebyshev_t", x * 2.0 - 1.0, n))
FX_POLYNOMIAL(shifted_chebyshev_polynomial_u, "U_n(2x - 1).",
              expr::call("chebyshev_u", x * 2.0 - 1.0, n))
FX_POLYNOMIAL(shifted_chebyshev_polynomial_v, "V_n(2x - 1).",
              expr::call("chebyshev_v", x * 2.0 - 1.0, n))
FX_POLYNOMIAL(shifted_chebyshev_polynomial_w, "W_n(2x - 1).",
              expr::call("chebyshev_w", x * 2.0 - 1.0, n))
FX_POLYNOMIAL(hermite_polynomial_h, "Physicists' Hermite polynomial H_n(x).",
              expr::call("hermite_h", x, n))
FX_POLYNOMIAL(hermite_polynomial_he, "Probabilists' Hermite polynomial He_n(x).",
              expr::call("hermite_he", x, n))
FX_POLYNOMIAL(laguerre_polynomial_l, "Laguerre polynomial L_n(x).", expr::call("laguerre_l", x, n))
FX_POLYNOMIAL(legendre_polynomial_p, "Legendre polynomial P_n(x).", expr::call("legendre_p", x, n))
#undef FX_SPECIAL
#undef FX_SPECIAL_AS
#undef FX_SPECIAL_OF_X
#undef FX_POLYNOMIAL
constexpr Op polygamma_op =
    accepts(kReals, inferred_by(polygamma_infer,
                                pointwise("polygamma(int n, Tensor self) -> Tensor\n"
                                          "special_polygamma(int n, Tensor self) -> Tensor",
                                          "The n-th derivative of digamma.", kToFloat, [](Body& b) {
                                            double order = double(b.integer(0));
                                            b.out(0, expr::call("polygamma", Expr(order), b.in(1)));
                                          })));
constexpr Op mvlgamma_op = accepts(
    kReals, inferred_by(mvlgamma_infer,
                        pointwise("mvlgamma(Tensor self, int p) -> Tensor\n"
                                  "special_multigammaln(Tensor self, int p) -> Tensor",
                                  "Multivariate log-gamma of order p.", kToFloat, [](Body& b) {
                                    b.out(0, expr::mvlgamma(b.in(0), int(b.integer(1))));
                                  })));
constexpr Op igamma_op =
    accepts(kReals, pointwise("igamma(Tensor self, Tensor other) -> Tensor\n"
                              "special_gammainc(Tensor self, Tensor other) -> Tensor",
                              "Regularised lower incomplete gamma function P(self, other).",
                              Promote::kDefault,
                              [](Expr a, Expr b) -> Expr { return expr::call("igamma", a, b); }));
constexpr Op igammac_op =
    accepts(kReals, pointwise("igammac(Tensor self, Tensor other) -> Tensor\n"
                              "special_gammaincc(Tensor self, Tensor other) -> Tensor",
                              "Regularised upper incomplete gamma function Q(self, other).",
                              Promote::kDefault,
                              [](Expr a, Expr b) -> Expr { return expr::call("igammac", a, b); }));
constexpr Op special_zeta_op =
    accepts(kReals, pointwise("special_zeta(Tensor self, Tensor other) -> Tensor\n"
                              "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor\n"
                              "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
                              "Hurwitz zeta function of self at other.", kToFloat,
                              [](Expr a, Expr b) -> Expr { return expr::call("zeta", a, b); }));

}  // namespace fornax
