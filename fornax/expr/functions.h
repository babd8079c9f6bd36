// Composite functions for operator bodies. Where the derivative that follows from the primitives
// would overflow, cancel or miss a limit, the function carries a hand-written one; the numbers of
// a kink (0, 1/2 or 1 at the bound) are PyTorch's.
#pragma once

#include "fornax/expr/expr.h"

namespace fornax::expr {

// ---- Classification. Bool and int values are finite; a complex value is NaN or infinite if a part
// is.

Expr truth(Expr x);  // x != 0 as bool; NaN is true
Expr is_nan(Expr x);
Expr is_inf(Expr x);
Expr is_finite(Expr x);
Expr is_positive_inf(Expr x);
Expr is_negative_inf(Expr x);
Expr sign_bit(Expr x);
// NaN, +inf and -inf replaced, in both parts of a complex value.
Expr nan_to_num(Expr x, Expr nan, Expr positive_inf, Expr negative_inf);
// |a - b| <= atol + |rtol b|, or equal; NaN equals NaN if asked.
Expr is_close(Expr a, Expr b, double rtol, double atol, bool equal_nan);

// ---- Rational and elementary

Expr reciprocal(Expr x);
Expr rsqrt(Expr x);
Expr sinc(Expr x);                // sin(pi x) / (pi x)
Expr logit(Expr x);               // NaN derivative outside [0, 1]
Expr logaddexp(Expr a, Expr b);   // log(e^a + e^b)
Expr logaddexp2(Expr a, Expr b);  // log2(2^a + 2^b)
Expr xlogy(Expr x, Expr y);       // 0 where x is 0, unless y is NaN
Expr xlog1py(Expr x, Expr y);
Expr entr(Expr x);  // -x log x
Expr ndtr(Expr x);  // the normal distribution function
Expr angle(Expr x);
Expr spherical_j0(Expr x);  // sin(x) / x
// Multivariate log-gamma, order p >= 1.
Expr mvlgamma(Expr x, int p);
Expr lerp(Expr a, Expr b, Expr weight);
Expr floor_divide(Expr a, Expr b);  // as Python's //; a division by 0 of reals is a / b
Expr heaviside(Expr x, Expr at_zero);
// NaN loses against a number.
Expr fmax(Expr a, Expr b);
Expr fmin(Expr a, Expr b);
Expr lcm(Expr a, Expr b);
// Half to even at a decimal place (negative: left of the point).
Expr round_decimals(Expr x, int decimals);

// ---- Bounds

// Bounds that take part in differentiation: a tie gives half to each. Either bound may be empty.
Expr clamp(Expr x, Expr lo, Expr hi);
// Number bounds: derivative 1 at the bound. Either may be empty.
Expr clamp_numbers(Expr x, Expr lo, Expr hi);
// Number bounds: derivative 0 at the bound.
Expr hardtanh(Expr x, Expr lo, Expr hi);

// ---- Activations

Expr sigmoid(Expr x);
Expr log_sigmoid(Expr x);
Expr softplus(Expr x);  // log(1 + e^x)
// softplus(beta x) / beta, x itself where beta x > threshold.
Expr softplus(Expr x, Expr beta, Expr threshold);
Expr relu(Expr x);
Expr leaky_relu(Expr x, Expr slope);
Expr threshold(Expr x, Expr bound, Expr value);
Expr gelu(Expr x, bool tanh_form);
Expr silu(Expr x);
Expr mish(Expr x);
// x <= 0 ? alpha scale expm1(input_scale x) : scale x; selu and celu are special cases.
Expr elu(Expr x, Expr alpha, Expr scale, Expr input_scale);
Expr selu(Expr x);
Expr celu(Expr x, Expr alpha);
Expr hardsigmoid(Expr x);
Expr hardswish(Expr x);
Expr hardshrink(Expr x, Expr lambda);
Expr softshrink(Expr x, Expr lambda);
Expr softsign(Expr x);
Expr tanhshrink(Expr x);

// ---- Losses, before the reduction. An empty weight is 1.

Expr binary_cross_entropy(Expr x, Expr target, Expr weight);
Expr binary_cross_entropy_with_logits(Expr x, Expr target, Expr weight, Expr positive_weight);
Expr smooth_l1(Expr x, Expr target, Expr beta);
Expr huber(Expr x, Expr target, Expr delta);

}  // namespace fornax::expr
