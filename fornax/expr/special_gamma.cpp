// Gamma and error function families.
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "fornax/expr/special_functions.h"

namespace fornax::expr::special_functions {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// c[0] + c[1] z + c[2] z^2 + ...
template <size_t N>
double polynomial(double z, const double (&c)[N]) {
  double result = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) result = result * z + c[i];
  return result;
}

// The asymptotic series sum B_2k / x^(2k + 1), good from x = 10 on.
double trigamma(double x) {
  if (x < 0.5) {
    const double s = std::sin(kPi * (x - std::round(x)));
    return kPi * kPi / (s * s) - trigamma(1 - x);
  }
  double result = 0;
  while (x < 10) {
    result += 1 / (x * x);
    x += 1;
  }
  static constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                          5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const double z = 1 / (x * x);
  return result + (1 + 0.5 / x + z * polynomial(z, kBernoulli)) / x;
}

// x^a e^-x / Gamma(a + 1) * a without the cancellation of a log x - x - lgamma(a) for large a.
double gamma_density(double a, double x) {
  if (a < 20) return std::exp(a * std::log(x) - x - std::lgamma(a));
  const double d = (x - a) / a;
  const double z = 1 / (a * a);
  static constexpr double kStirling[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680};
  const double correction = polynomial(z, kStirling) / a;
  return std::exp(a * (std::log1p(d) - d) - correction) * std::sqrt(a / (2 * kPi));
}

constexpr int kMaxTerms = 100000;

double lower_series(double a, double x) {
  double term = 1 / a;
  double total = term;
  for (int n = 1; n < kMaxTerms && std::fabs(term) > std::fabs(total) * 1e-17; ++n) {
    term *= x / (a + n);
    total += term;
  }
  return total * gamma_density(a, x);
}

// Lentz's evaluation of the continued fraction.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double h = d;
  for (int i = 1; i < kMaxTerms; ++i) {
    const double numerator = -double(i) * (i - a);
    b += 2;
    d = numerator * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + numerator / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double factor = d * c;
    h *= factor;
    if (std::fabs(factor - 1) < 1e-16) break;
  }
  return h * gamma_density(a, x);
}

double incomplete_gamma(double a, double x, bool upper) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0) return kNan;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : kNan;
  if (x == 0) return upper ? 1 : 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : (upper ? 1 : 0);
  if (std::isinf(x)) return upper ? 0 : 1;
  if (x < a + 1) {
    const double p = lower_series(a, x);
    return upper ? 1 - p : p;
  }
  const double q = upper_fraction(a, x);
  return upper ? q : 1 - q;
}

}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    const double fraction = x - std::round(x);
    return digamma(1 - x) - kPi / std::tan(kPi * fraction);
  }
  double result = 0;
  while (x < 10) {
    result -= 1 / x;
    x += 1;
  }
  static constexpr double kSeries[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                       1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const double z = 1 / (x * x);
  return result + std::log(x) - 0.5 / x - z * polynomial(z, kSeries);
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * zeta(n + 1, x);
}

// Euler-Maclaurin summation, as in Cephes: 12 correction terms after at least 9 direct ones.
double zeta(double s, double q) {
  if (s == 1) return kInfinity;
  if (!(s > 1)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s)) return kNan;
  }
  // (2k)! / B_2k
  static constexpr double kCoefficients[] = {12.0,
                                             -720.0,
                                             30240.0,
                                             -1209600.0,
                                             47900160.0,
                                             -1.8924375803183791606e9,
                                             7.47242496e10,
                                             -2.950130727918164224e12,
                                             1.1646782814350067249e14,
                                             -4.5979787224074726105e15,
                                             1.8152105401943546773e17,
                                             -7.1661652561756670113e18};
  double total = std::pow(q, -s);
  double a = q;
  double term = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    term = std::pow(a, -s);
    total += term;
    if (std::fabs(term / total) < 1e-17) return total;
  }
  total += term * a / (s - 1) - 0.5 * term;
  double factor = 1;
  double k = 0;
  for (double coefficient : kCoefficients) {
    factor *= s + k;
    term /= a;
    const double step = factor * term / coefficient;
    total += step;
    if (std::fabs(step / total) < 1e-17) break;
    k += 1;
    factor *= s + k;
    term /= a;
    k += 1;
  }
  return total;
}

double igamma(double a, double x) { return incomplete_gamma(a, x, false); }

double igammac(double a, double x) { return incomplete_gamma(a, x, true); }

// Winitzki's estimate (0.2 %), then Halley's steps on erf, or on erfc where that has the digits.
double erfinv(double y) {
  if (std::fabs(y) >= 1) return y == 1 ? kInfinity : y == -1 ? -kInfinity : kNan;
  constexpr double kFit = 0.147;
  const double log_tail = std::log1p(-y * y);
  const double c = 2 / (kPi * kFit) + log_tail / 2;
  double x = std::copysign(std::sqrt(std::sqrt(c * c - log_tail / kFit) - c), y);
  for (int i = 0; i < 3; ++i) {
    double error = std::erf(x) - y;
    if (y > 0.5) error = (1 - y) - std::erfc(x);
    if (y < -0.5) error = std::erfc(-x) - (1 + y);
    x -= error / (M_2_SQRTPI * std::exp(-x * x) + error * x);
  }
  return x;
}

double erfcx(double x) {
  if (x < 25) return double(std::exp((long double)x * x) * std::erfc((long double)x));
  const double z = 1 / (x * x);
  static constexpr double kSeries[] = {1.0, -0.5, 0.75, -1.875, 6.5625};
  return M_2_SQRTPI / 2 / x * polynomial(z, kSeries);
}

double ndtri(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (!(p > 0 && p < 1)) return kNan;
  if (p > 0.5) return -ndtri(1 - p);
  if (p > 1e-3) return M_SQRT2 * erfinv(2 * p - 1);
  const double t = -2 * std::log(p);
  double x = -std::sqrt(t - std::log(t * 2 * kPi));
  for (int i = 0; i < 10; ++i) {  // Halley's steps
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
    const double newton = (0.5 * std::erfc(-x * M_SQRT1_2) - p) / density;
    x -= newton / (1 + x * newton / 2);
    if (std::fabs(newton) < 1e-15 * std::fabs(x)) break;
  }
  return x;
}

double log_ndtr(double x) {
  const double t = x * M_SQRT1_2;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - uint64_t(a) : uint64_t(a);
  uint64_t y = b < 0 ? 0 - uint64_t(b) : uint64_t(b);
  while (y != 0) {
    const uint64_t remainder = x % y;
    x = y;
    y = remainder;
  }
  return int64_t(x);
}

}  // namespace fornax::expr::special_functions
