// Orthogonal polynomials by their three-term recurrences, with PyTorch's conventions for n.
#include <cmath>

#include "fornax/expr/special_functions.h"

namespace fornax::expr::special_functions {

namespace {

// The degree, or -1 for negative and NaN.
int64_t degree(double n) { return n > -1 && n < 0x1p62 ? int64_t(n) : -1; }

double alternating(int64_t n) { return n % 2 == 0 ? 1 : -1; }

bool is_endpoint(double x, double n) { return n >= 0 && std::fabs(x) == 1; }

// p_0, p_1, then p_k = step(k, p_(k-1), p_(k-2)).
template <class Step>
double recurrence(double n, double p0, double p1, Step step) {
  const int64_t last = degree(n);
  if (last < 0) return 0;
  if (last == 0) return p0;
  double before = p0;
  double current = p1;
  for (int64_t k = 2; k <= last && !std::isnan(current); ++k) {
    const double next = step(double(k), current, before);
    before = current;
    current = next;
  }
  return current;
}

double chebyshev(double x, double n, double p1) {
  return recurrence(n, 1, p1, [x](double, double p, double q) { return 2 * x * p - q; });
}

}  // namespace

double chebyshev_t(double x, double n) {
  if (is_endpoint(x, n)) return x > 0 ? 1 : alternating(degree(n));
  if (n > 6 && std::fabs(x) < 1) return std::cos(double(degree(n)) * std::acos(x));
  return chebyshev(x, n, x);
}

double chebyshev_u(double x, double n) {
  if (is_endpoint(x, n)) {
    const double size = double(degree(n)) + 1;
    return x > 0 ? size : alternating(degree(n)) * size;
  }
  return chebyshev(x, n, 2 * x);
}

double chebyshev_v(double x, double n) {
  if (is_endpoint(x, n)) {
    return x > 0 ? 1 : alternating(degree(n)) * (2 * double(degree(n)) + 1);
  }
  return chebyshev(x, n, 2 * x - 1);
}

double chebyshev_w(double x, double n) {
  if (is_endpoint(x, n)) return x > 0 ? 2 * double(degree(n)) + 1 : alternating(degree(n));
  return chebyshev(x, n, 2 * x + 1);
}

double hermite_h(double x, double n) {
  return recurrence(n, 1, 2 * x,
                    [x](double k, double p, double q) { return 2 * x * p - 2 * (k - 1) * q; });
}

double hermite_he(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double p, double q) { return x * p - (k - 1) * q; });
}

double laguerre_l(double x, double n) {
  return recurrence(n, 1, 1 - x, [x](double k, double p, double q) {
    return ((2 * k - 1 - x) * p - (k - 1) * q) / k;
  });
}

double legendre_p(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double p, double q) {
    return ((2 * k - 1) * x * p - (k - 1) * q) / k;
  });
}

}  // namespace fornax::expr::special_functions
