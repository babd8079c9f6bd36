// Bessel and Airy functions: the C and C++ library where it is defined and does not overflow,
// asymptotic series beyond.
#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "fornax/expr/special_functions.h"

namespace fornax::expr::special_functions {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargeArgument = 500;

// sum of sign^k a_k(nu) / x^k with a_k = product (4 nu^2 - (2j - 1)^2) / (k! 8^k); converges to
// double precision within 10 terms for x >= 500.
double hankel_series(double nu, double x, double sign) {
  const double mu = 4 * nu * nu;
  double term = 1;
  double total = 1;
  for (int k = 1; k <= 10; ++k) {
    const double odd = 2 * k - 1;
    term *= sign * (mu - odd * odd) / (k * 8 * x);
    total += term;
  }
  return total;
}

// e^-|x| I_nu(x), nu = 0 or 1
double scaled_i(int nu, double x) {
  if (std::isnan(x)) return x;
  const double y = std::fabs(x);
  double result = 0;
  if (y < kLargeArgument) {
    result = std::cyl_bessel_i(double(nu), y) * std::exp(-y);
  } else {
    result = hankel_series(nu, y, -1) / std::sqrt(2 * kPi * y);
  }
  return nu == 1 ? std::copysign(result, x) : result;
}

double unscaled_i(int nu, double x) {
  const double y = std::fabs(x);
  if (std::isnan(x)) return x;
  if (y >= kLargeArgument) {
    const double half = std::exp(y / 2);
    if (std::isinf(half)) return nu == 1 ? std::copysign(half, x) : half;
    return half * scaled_i(nu, x) * half;
  }
  const double result = std::cyl_bessel_i(double(nu), y);
  return nu == 1 ? std::copysign(result, x) : result;
}

// e^x K_nu(x)
double scaled_k(int nu, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInfinity;
  if (x < kLargeArgument) return std::cyl_bessel_k(double(nu), x) * std::exp(x);
  return hankel_series(nu, x, 1) * std::sqrt(kPi / (2 * x));
}

double unscaled_k(int nu, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInfinity;
  if (x < kLargeArgument) return std::cyl_bessel_k(double(nu), x);
  return scaled_k(nu, x) * std::exp(-x);
}

}  // namespace

double bessel_i0(double x) { return unscaled_i(0, x); }
double bessel_i1(double x) { return unscaled_i(1, x); }
double bessel_i0e(double x) { return scaled_i(0, x); }
double bessel_i1e(double x) { return scaled_i(1, x); }
double bessel_k0(double x) { return unscaled_k(0, x); }
double bessel_k1(double x) { return unscaled_k(1, x); }
double bessel_k0e(double x) { return scaled_k(0, x); }
double bessel_k1e(double x) { return scaled_k(1, x); }

double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNan : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNan : ::y1(x); }

double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : kNan;
  if (x == 0) return 0.355028053887817239;
  const double z = 2.0 / 3 * std::pow(std::fabs(x), 1.5);
  if (x > 104) return 0;  // underflows
  if (x > 0) return std::sqrt(x / 3) / kPi * std::cyl_bessel_k(1.0 / 3, z);
  const double j = std::cyl_bessel_j(1.0 / 3, z);
  const double y = std::cyl_neumann(1.0 / 3, z);
  return std::sqrt(-x) / 2 * (j - y / std::numbers::sqrt3);
}

}  // namespace fornax::expr::special_functions
