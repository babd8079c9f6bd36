// Rare scalar functions in double, for the special function table. All are total: NaN in, NaN out;
// outside the domain NaN; poles give infinities.
#pragma once

#include <cstdint>

namespace fornax::expr::special_functions {

double digamma(double x);
double polygamma(double n, double x);  // n-th derivative of digamma, n an integer >= 0
double zeta(double s, double q);       // Hurwitz, s > 1
double igamma(double a, double x);     // regularised lower incomplete gamma P(a, x)
double igammac(double a, double x);    // 1 - P

double erfinv(double y);
double erfcx(double x);  // e^(x^2) erfc(x)
double ndtri(double p);  // inverse of the normal distribution function
double log_ndtr(double x);

double bessel_i0(double x);
double bessel_i1(double x);
double bessel_i0e(double x);  // e^-|x| I0
double bessel_i1e(double x);
double bessel_k0(double x);
double bessel_k1(double x);
double bessel_k0e(double x);  // e^x K0
double bessel_k1e(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double airy_ai(double x);

// Orthogonal polynomials; n is truncated to an integer, n < 0 gives 0.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

int64_t gcd(int64_t a, int64_t b);

}  // namespace fornax::expr::special_functions
