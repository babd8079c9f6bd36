// The table of rare functions: a row is a scalar function and its derivative.
#include <cmath>
#include <cstring>
#include <iterator>
#include <numbers>

#include "fornax/base/error.h"
#include "fornax/base/numeric.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/special_functions.h"

namespace fornax::expr {

namespace {

namespace f = special_functions;

using Function = double (*)(double, double);
using Gradient = Partials (*)(Expr a, Expr b, Expr self);

// The table calls everything with two arguments.
template <double (*kFunction)(double)>
double unary(double x, double) {
  return kFunction(x);
}

double lgamma(double x) { return std::lgamma(x); }

// ---- Rounding to storage types

double round_bf16(double x) { return double(float(BFloat16(float(x)))); }
double round_f16(double x) { return double(float(Half(float(x)))); }

double nextafter_f32(double a, double b) { return double(std::nextafter(float(a), float(b))); }
double nextafter_f64(double a, double b) { return std::nextafter(a, b); }

// Steps through the 16-bit patterns, which are ordered like the magnitudes.
template <class T>
double nextafter_16(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return b;
  if (a == 0) return double(float(T(uint16_t(b < 0 ? 0x8001 : 1), typename T::FromBits{})));
  const uint16_t bits = T(float(a)).bits;
  const bool grows = (b > a) == (a > 0);
  return double(float(T(uint16_t(grows ? bits + 1 : bits - 1), typename T::FromBits{})));
}

double frexp_mantissa(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent);
}

double frexp_exponent(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return double(exponent);
}

double gcd_of_doubles(double a, double b) { return double(f::gcd(int64_t(a), int64_t(b))); }

// ---- Derivatives

Partials d_lgamma(Expr a, Expr, Expr) { return {call("digamma", a), {}}; }
Partials d_digamma(Expr a, Expr, Expr) { return {call("polygamma", 1.0, a), {}}; }
Partials d_polygamma(Expr n, Expr x, Expr) { return {{}, call("polygamma", n + 1.0, x)}; }
Partials d_zeta(Expr s, Expr q, Expr) { return {{}, -s * call("zeta", s + 1.0, q)}; }

Partials d_erfinv(Expr, Expr, Expr e) { return {exp(e * e) * (1 / M_2_SQRTPI), {}}; }

Partials d_ndtri(Expr, Expr, Expr e) {
  return {exp(e * e * 0.5) * std::sqrt(2 * std::numbers::pi), {}};
}

// 2 x e - 2 / sqrt(pi) cancels for large x: its asymptotic series from 8 on.
Partials d_erfcx(Expr a, Expr, Expr e) {
  const Expr r = 1.0 / (a * a);
  const Expr series = 1.0 - r * (1.5 - r * (3.75 - r * (13.125 - r * 59.0625)));
  return {where(a > 8.0, r * (-0.5 * M_2_SQRTPI) * series, 2.0 * a * e - M_2_SQRTPI), {}};
}

Partials d_log_ndtr(Expr a, Expr, Expr) {
  return {std::sqrt(2 / std::numbers::pi) / call("erfcx", a * -M_SQRT1_2), {}};
}

Partials d_i0(Expr a, Expr, Expr) { return {call("i1", a), {}}; }

// i0 - i1 / x is inf - inf for large x: the scaled functions stay finite.
Partials d_i1(Expr a, Expr, Expr) {
  const Expr scaled = call("i0e", a) - call("i1e", a) / a;
  return {where(a == 0.0, 0.5, exp(abs(a)) * scaled), {}};
}

Partials d_i0e(Expr a, Expr, Expr e) { return {call("i1e", a) - sign(a) * e, {}}; }

Partials d_i1e(Expr a, Expr, Expr e) {
  return {where(a == 0.0, 0.5, call("i0e", a) - e * (sign(a) + 1.0 / a)), {}};
}

Partials d_k0(Expr a, Expr, Expr) { return {-call("k1", a), {}}; }
Partials d_k1(Expr a, Expr, Expr e) { return {-call("k0", a) - e / a, {}}; }
Partials d_k0e(Expr a, Expr, Expr e) { return {e - call("k1e", a), {}}; }
Partials d_k1e(Expr a, Expr, Expr e) { return {e - call("k0e", a) - e / a, {}}; }
Partials d_j0(Expr a, Expr, Expr) { return {-call("j1", a), {}}; }

Partials d_j1(Expr a, Expr, Expr e) { return {where(a == 0.0, 0.5, call("j0", a) - e / a), {}}; }

Partials d_y0(Expr a, Expr, Expr) { return {-call("y1", a), {}}; }
Partials d_y1(Expr a, Expr, Expr e) { return {call("y0", a) - e / a, {}}; }

Expr igamma_density(Expr a, Expr x) { return exp((a - 1.0) * log(x) - x - call("lgamma", a)); }
Partials d_igamma(Expr a, Expr x, Expr) { return {{}, igamma_density(a, x)}; }
Partials d_igammac(Expr a, Expr x, Expr) { return {{}, -igamma_density(a, x)}; }

Partials d_nextafter(Expr a, Expr b, Expr) { return {where(a == b, 0.0, 1.0), {}}; }
// The mantissa is x / 2^e.
Partials d_frexp(Expr a, Expr, Expr) { return {exp2(-call("frexp_exponent", a)), {}}; }
Partials d_identity(Expr, Expr, Expr) { return {1.0, {}}; }
Partials d_zero(Expr, Expr, Expr) { return {}; }

constexpr uint8_t kNone = 0;
constexpr uint8_t kFirst = 1;
constexpr uint8_t kSecond = 2;
constexpr uint8_t kBoth = 3;

// PyTorch, too, has no derivative where `known` lacks one.
constexpr Special kTable[] = {
    {"lgamma", 1, unary<lgamma>, nullptr, d_lgamma, kFirst},
    {"digamma", 1, unary<f::digamma>, nullptr, d_digamma, kFirst},
    {"polygamma", 2, f::polygamma, nullptr, d_polygamma, kSecond},
    {"zeta", 2, f::zeta, nullptr, d_zeta, kSecond},
    {"igamma", 2, f::igamma, nullptr, d_igamma, kSecond},
    {"igammac", 2, f::igammac, nullptr, d_igammac, kSecond},
    {"erfinv", 1, unary<f::erfinv>, nullptr, d_erfinv, kFirst},
    {"erfcx", 1, unary<f::erfcx>, nullptr, d_erfcx, kFirst},
    {"ndtri", 1, unary<f::ndtri>, nullptr, d_ndtri, kFirst},
    {"log_ndtr", 1, unary<f::log_ndtr>, nullptr, d_log_ndtr, kFirst},
    {"i0", 1, unary<f::bessel_i0>, nullptr, d_i0, kFirst},
    {"i1", 1, unary<f::bessel_i1>, nullptr, d_i1, kFirst},
    {"i0e", 1, unary<f::bessel_i0e>, nullptr, d_i0e, kFirst},
    {"i1e", 1, unary<f::bessel_i1e>, nullptr, d_i1e, kFirst},
    {"k0", 1, unary<f::bessel_k0>, nullptr, d_k0, kFirst},
    {"k1", 1, unary<f::bessel_k1>, nullptr, d_k1, kFirst},
    {"k0e", 1, unary<f::bessel_k0e>, nullptr, d_k0e, kFirst},
    {"k1e", 1, unary<f::bessel_k1e>, nullptr, d_k1e, kFirst},
    {"j0", 1, unary<f::bessel_j0>, nullptr, d_j0, kFirst},
    {"j1", 1, unary<f::bessel_j1>, nullptr, d_j1, kFirst},
    {"y0", 1, unary<f::bessel_y0>, nullptr, d_y0, kFirst},
    {"y1", 1, unary<f::bessel_y1>, nullptr, d_y1, kFirst},
    {"airy_ai", 1, unary<f::airy_ai>, nullptr, nullptr, kNone},
    {"chebyshev_t", 2, f::chebyshev_t, nullptr, nullptr, kNone},
    {"chebyshev_u", 2, f::chebyshev_u, nullptr, nullptr, kNone},
    {"chebyshev_v", 2, f::chebyshev_v, nullptr, nullptr, kNone},
    {"chebyshev_w", 2, f::chebyshev_w, nullptr, nullptr, kNone},
    {"hermite_h", 2, f::hermite_h, nullptr, nullptr, kNone},
    {"hermite_he", 2, f::hermite_he, nullptr, nullptr, kNone},
    {"laguerre_l", 2, f::laguerre_l, nullptr, nullptr, kNone},
    {"legendre_p", 2, f::legendre_p, nullptr, nullptr, kNone},
    {"gcd", 2, gcd_of_doubles, f::gcd, d_zero, kBoth},
    {"nextafter_f32", 2, nextafter_f32, nullptr, d_nextafter, kBoth},
    {"nextafter_f64", 2, nextafter_f64, nullptr, d_nextafter, kBoth},
    {"nextafter_bf16", 2, nextafter_16<BFloat16>, nullptr, d_nextafter, kBoth},
    {"nextafter_f16", 2, nextafter_16<Half>, nullptr, d_nextafter, kBoth},
    {"round_bf16", 1, unary<round_bf16>, nullptr, d_identity, kFirst},
    {"round_f16", 1, unary<round_f16>, nullptr, d_identity, kFirst},
    {"frexp_mantissa", 1, unary<frexp_mantissa>, nullptr, d_frexp, kFirst},
    {"frexp_exponent", 1, unary<frexp_exponent>, nullptr, d_zero, kFirst},
};

}  // namespace

const Special& special(int row) { return kTable[row]; }

int special_count() { return int(std::size(kTable)); }

int special_index(const char* name) {
  for (size_t row = 0; row < std::size(kTable); ++row) {
    if (std::strcmp(kTable[row].name, name) == 0) return int(row);
  }
  fail(ErrorKind::kInternal, "expr: no special function ", name);
}

}  // namespace fornax::expr
