#include "fornax/expr/functions.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "fornax/base/error.h"

namespace fornax::expr {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

bool is_complex(Expr x) { return x.kind() == Kind::kComplex; }
bool is_integral(Expr x) { return x.kind() < Kind::kReal; }

}  // namespace

// ---- Classification

Expr truth(Expr x) { return cast(x, Kind::kBool); }

Expr is_nan(Expr x) { return x != x; }

Expr is_inf(Expr x) {
  if (is_integral(x)) return boolean(false);
  if (is_complex(x)) return is_inf(real(x)) | is_inf(imag(x));
  return abs(x) == kInfinity;
}

Expr is_finite(Expr x) {
  if (is_integral(x)) return boolean(true);
  if (is_complex(x)) return is_finite(real(x)) & is_finite(imag(x));
  return abs(x) < kInfinity;
}

Expr is_positive_inf(Expr x) { return is_integral(x) ? boolean(false) : x == kInfinity; }

Expr is_negative_inf(Expr x) { return is_integral(x) ? boolean(false) : x == -kInfinity; }

Expr sign_bit(Expr x) { return is_integral(x) ? x < 0 : copysign(1.0, x) < 0.0; }

Expr nan_to_num(Expr x, Expr nan, Expr positive_inf, Expr negative_inf) {
  if (is_integral(x)) return x;
  if (is_complex(x)) {
    const Expr re = nan_to_num(real(x), nan, positive_inf, negative_inf);
    return complex(re, nan_to_num(imag(x), nan, positive_inf, negative_inf));
  }
  const Expr bounded = where(x == kInfinity, positive_inf, where(x == -kInfinity, negative_inf, x));
  return where(is_nan(x), nan, bounded);
}

Expr is_close(Expr a, Expr b, double rtol, double atol, bool equal_nan) {
  const Expr equal = a == b;
  if (is_integral(a) && is_integral(b) && rtol == 0 && atol == 0) return equal;
  const Expr reference = to_real(b);
  const Expr distance = abs(to_real(a) - reference);
  const Expr allowed = atol + abs(rtol * reference);
  Expr close = equal | ((distance < kInfinity) & (distance <= allowed));
  if (equal_nan) close = close | (is_nan(a) & is_nan(b));
  return close;
}

// ---- Rational and elementary

// -r^2 saves the result only; the derived -(1/x)/x would save x too.
Expr reciprocal(Expr x) {
  x = to_real(x);
  const Expr r = 1.0 / x;
  return with_grad(r, {{x, -(r * r)}});
}

Expr rsqrt(Expr x) {
  x = to_real(x);
  const Expr r = 1.0 / sqrt(x);
  return with_grad(r, {{x, r * r * r * -0.5}});
}

// The derived (cos t - sinc) / x cancels near 0: a series there, which gives the second derivative
// at 0 as well.
Expr sinc(Expr x) {
  x = to_real(x);
  const Expr t = x * kPi;
  const Expr value = where(x == 0.0, 1.0, sin(t) / t);
  const Expr q = t * t;
  const Expr inner = 1.0 / 280 - q * (1.0 / 15120 - q * (1.0 / 1330560));
  const Expr series = t * (-kPi / 3) * (1.0 - q * (0.1 - q * inner));
  return with_grad(value, {{x, where(abs(t) < 0.5, series, (cos(t) - value) / x)}});
}

Expr logit(Expr x) {
  x = to_real(x);
  const Expr inside = (x >= 0.0) & (x <= 1.0);
  const Expr slope = where(inside, 1.0 / (x * (1.0 - x)), kNan);
  return with_grad(log(x / (1.0 - x)), {{x, slope}});
}

// Written with max and abs, but smooth: the derived second derivative would be 0 at ties.
Expr logaddexp(Expr a, Expr b) {
  a = to_real(a);
  b = to_real(b);
  if (is_complex(a) || is_complex(b)) {
    const Expr swap = real(a) < real(b);
    const Expr larger = where(swap, b, a);
    const Expr smaller = where(swap, a, b);
    return with_grad(larger + log1p(exp(smaller - larger)),
                     {{a, 1.0 / (exp(b - a) + 1.0)}, {b, 1.0 / (exp(a - b) + 1.0)}});
  }
  const Expr same_inf = is_inf(a) & (a == b);
  const Expr value = where(same_inf, a, max(a, b) + log1p(exp(-abs(a - b))));
  return with_grad(value, {{a, sigmoid(a - b)}, {b, sigmoid(b - a)}});
}

Expr logaddexp2(Expr a, Expr b) {
  a = to_real(a);
  b = to_real(b);
  const Expr same_inf = is_inf(a) & (a == b);
  const Expr tail = log1p(exp2(-abs(a - b))) * M_LOG2E;
  const Expr value = where(same_inf, a, max(a, b) + tail);
  return with_grad(value, {{a, sigmoid((a - b) * M_LN2)}, {b, sigmoid((b - a) * M_LN2)}});
}

// Derived, the branch for x = 0 would give 0 instead of log y.
Expr xlogy(Expr x, Expr y) {
  x = to_real(x);
  y = to_real(y);
  const Expr l = log(y);
  const Expr value = where(is_nan(y), y, where(x == 0.0, 0.0, x * l));
  return with_grad(value, {{x, where((x == 0.0) & (y <= 0.0), 0.0, l)}, {y, x / y}});
}

Expr xlog1py(Expr x, Expr y) {
  x = to_real(x);
  y = to_real(y);
  const Expr l = log1p(y);
  const Expr value = where(is_nan(y), y, where(x == 0.0, 0.0, x * l));
  return with_grad(value, {{x, where((x == 0.0) & (y <= -1.0), 0.0, l)}, {y, x / (y + 1.0)}});
}

Expr entr(Expr x) {
  x = to_real(x);
  const Expr l = log(x);
  const Expr outside = where(x == 0.0, 0.0, -kInfinity);
  const Expr value = where(is_nan(x), x, where(x > 0.0, -(x * l), outside));
  return with_grad(value, {{x, -l - 1.0}});
}

Expr ndtr(Expr x) { return erfc(to_real(x) * -M_SQRT1_2) * 0.5; }

Expr angle(Expr x) {
  if (is_complex(x)) return atan2(imag(x), real(x));
  x = to_real(x);
  return where(is_nan(x), x, where(x < 0.0, kPi, 0.0));
}

Expr spherical_j0(Expr x) {
  x = to_real(x);
  const Expr q = x * x;
  Expr series = 1.0 - q / 110.0;
  for (double divisor : {72.0, 42.0, 20.0, 6.0}) series = 1.0 - q / divisor * series;
  return where(abs(x) < 0.5, series, sin(x) / x);
}

Expr mvlgamma(Expr x, int p) {
  x = to_real(x);
  Expr total = p * (p - 1) / 4.0 * std::log(kPi);
  for (int i = 0; i < p; ++i) total = total + call("lgamma", x - i / 2.0);
  return total;
}

Expr lerp(Expr a, Expr b, Expr weight) {
  const Expr d = b - a;
  return where(abs(weight) < 0.5, a + weight * d, b - d * (1.0 - weight));
}

// CPython's float division: the quotient is corrected where a / b rounded up to an integer.
Expr floor_divide(Expr a, Expr b) {
  if (is_integral(a) && is_integral(b)) return (a - mod(a, b)) / b;
  a = to_real(a);
  b = to_real(b);
  const Expr remainder = fmod(a, b);
  const Expr quotient = (a - remainder) / b;
  const Expr opposite = (remainder != 0.0) & ((b < 0.0) ^ (remainder < 0.0));
  const Expr below = where(opposite, quotient - 1.0, quotient);
  const Expr floored = floor(below);
  const Expr rounded = where(below - floored > 0.5, floored + 1.0, floored);
  const Expr ratio = a / b;
  const Expr nonzero = where(below != 0.0, rounded, copysign(0.0, ratio));
  return where(b == 0.0, ratio, nonzero);
}

Expr heaviside(Expr x, Expr at_zero) {
  const Expr step = where(x == 0, at_zero, where(x < 0, 0, 1));
  return where(is_nan(x), x, step);
}

Expr fmax(Expr a, Expr b) { return where(is_nan(a), b, where(is_nan(b), a, max(a, b))); }

Expr fmin(Expr a, Expr b) { return where(is_nan(a), b, where(is_nan(b), a, min(a, b))); }

Expr lcm(Expr a, Expr b) {
  const Expr divisor = call("gcd", a, b);
  return abs(where(divisor == 0, 0, a / divisor * b));
}

Expr round_decimals(Expr x, int decimals) {
  if (decimals == 0 || is_integral(x)) return round(x);
  const double power = std::pow(10.0, std::abs(decimals));
  if (decimals > 0) return round(x * power) / power;
  return round(x / power) * power;
}

// ---- Bounds

Expr clamp(Expr x, Expr lo, Expr hi) {
  if (!lo.empty()) x = max(x, lo);
  if (!hi.empty()) x = min(x, hi);
  return x;
}

// PyTorch takes the minimum last: hi wins where lo > hi. The bounds are the same for all elements,
// so their minimum is computed once.
Expr clamp_numbers(Expr x, Expr lo, Expr hi) {
  const Expr below_hi = hi.empty() ? x : where(x > hi, hi, x);
  if (lo.empty()) return below_hi;
  return where(x < lo, hi.empty() ? lo : min(lo, hi), below_hi);
}

Expr hardtanh(Expr x, Expr lo, Expr hi) { return where(x <= lo, lo, where(x >= hi, hi, x)); }

// ---- Activations

// Derived: e^-x / (1 + e^-x)^2, inf / inf for large -x.
Expr sigmoid(Expr x) {
  x = to_real(x);
  const Expr s = 1.0 / (exp(-x) + 1.0);
  return with_grad(s, {{x, s * (1.0 - s)}});
}

// This and softplus are smooth, but the stable form has a kink at 0.
Expr log_sigmoid(Expr x) {
  x = to_real(x);
  return with_grad(min(x, 0.0) - log1p(exp(-abs(x))), {{x, sigmoid(-x)}});
}

Expr softplus(Expr x) {
  x = to_real(x);
  return with_grad(max(x, 0.0) + log1p(exp(-abs(x))), {{x, sigmoid(x)}});
}

Expr softplus(Expr x, Expr beta, Expr threshold) {
  x = to_real(x);
  const Expr z = x * beta;
  const Expr value = with_grad(log1p(exp(z)), {{z, sigmoid(z)}});
  return where(z > threshold, x, value / beta);
}

Expr relu(Expr x) { return where(x <= 0, 0, x); }

Expr leaky_relu(Expr x, Expr slope) { return where(x > 0, x, x * slope); }

Expr threshold(Expr x, Expr bound, Expr value) { return where(x <= bound, value, x); }

Expr gelu(Expr x, bool tanh_form) {
  x = to_real(x);
  if (!tanh_form) return x * 0.5 * (erf(x * M_SQRT1_2) + 1.0);
  const Expr inner = (x * x * x * 0.044715 + x) * (M_2_SQRTPI * M_SQRT1_2);
  return x * 0.5 * (tanh(inner) + 1.0);
}

Expr silu(Expr x) { return x * sigmoid(x); }

Expr mish(Expr x) { return x * tanh(softplus(x)); }

Expr elu(Expr x, Expr alpha, Expr scale, Expr input_scale) {
  x = to_real(x);
  return where(x <= 0.0, expm1(x * input_scale) * (alpha * scale), x * scale);
}

Expr selu(Expr x) { return elu(x, 1.6732632423543772, 1.0507009873554805, 1.0); }

Expr celu(Expr x, Expr alpha) {
  alpha = to_real(alpha);
  return elu(x, alpha, 1.0, 1.0 / alpha);
}

Expr hardsigmoid(Expr x) {
  x = to_real(x);
  return where(x <= -3.0, 0.0, where(x >= 3.0, 1.0, x / 6.0 + 0.5));
}

Expr hardswish(Expr x) {
  x = to_real(x);
  return where(x <= -3.0, 0.0, where(x < 3.0, x * (x + 3.0) / 6.0, x));
}

Expr hardshrink(Expr x, Expr lambda) { return where((x >= -lambda) & (x <= lambda), 0.0, x); }

// x * 0 in the middle: NaN stays NaN.
Expr softshrink(Expr x, Expr lambda) {
  return where(x > lambda, x - lambda, where(x < -lambda, x + lambda, x * 0.0));
}

// Derived: 1 / u - |x| / u^2 cancels.
Expr softsign(Expr x) {
  x = to_real(x);
  const Expr u = abs(x) + 1.0;
  const Expr value = x / u;
  if (is_complex(x)) return value;
  const Expr r = 1.0 / u;
  return with_grad(value, {{x, r * r}});
}

// Derived: 1 - (1 - t^2) cancels.
Expr tanhshrink(Expr x) {
  x = to_real(x);
  const Expr t = tanh(x);
  return with_grad(x - t, {{x, t * t}});
}

// ---- Losses

namespace {

Expr weighted(Expr loss, Expr weight) { return weight.empty() ? loss : loss * weight; }

}  // namespace

// The logarithms stop at -100 and the denominator at 1e-12, as in PyTorch.
Expr binary_cross_entropy(Expr x, Expr target, Expr weight) {
  const Expr log_x = max(log(x), -100.0);
  const Expr log_1mx = max(log1p(-x), -100.0);
  const Expr loss = (target - 1.0) * log_1mx - target * log_x;
  const Expr by_x = (x - target) / max((1.0 - x) * x, 1e-12);
  return weighted(with_grad(loss, {{x, by_x}, {target, log_1mx - log_x}}), weight);
}

Expr binary_cross_entropy_with_logits(Expr x, Expr target, Expr weight, Expr positive_weight) {
  Expr tail = softplus(-x);
  if (!positive_weight.empty()) tail = ((positive_weight - 1.0) * target + 1.0) * tail;
  return weighted((1.0 - target) * x + tail, weight);
}

Expr smooth_l1(Expr x, Expr target, Expr beta) {
  const Expr z = abs(x - target);
  return where(z < beta, z * z * 0.5 / beta, z - beta * 0.5);
}

Expr huber(Expr x, Expr target, Expr delta) {
  const Expr z = abs(x - target);
  return where(z <= delta, z * z * 0.5, delta * (z - delta * 0.5));
}

}  // namespace fornax::expr
