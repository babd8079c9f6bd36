// Complex nodes become pairs of real nodes. The inverse functions follow W. Kahan, "Branch cuts for
// complex elementary functions" (1987): right on the cuts, signed zeros included.
#include <cmath>

#include "fornax/base/error.h"
#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::is_value;
using detail::operand;

namespace {

Expr square(Expr x) { return x * x; }

bool is_real_number(Parts z) { return is_value(z.im, 0.0); }

Parts conjugate(Parts z) { return {z.re, -z.im}; }
Parts times_i(Parts z) { return {-z.im, z.re}; }
Parts times_minus_i(Parts z) { return {z.im, -z.re}; }
Parts scale(Parts z, double factor) { return {z.re * factor, z.im * factor}; }

Parts multiply(Parts x, Parts y) {
  if (is_real_number(y)) return {x.re * y.re, x.im * y.re};
  if (is_real_number(x)) return {x.re * y.re, x.re * y.im};
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

// Scaled by the larger part of y, so that |y|^2 neither overflows nor underflows.
Parts divide(Parts x, Parts y) {
  if (is_real_number(y)) return {x.re / y.re, x.im / y.re};
  const Expr larger = max(abs(y.re), abs(y.im));
  const Expr c = y.re / larger;
  const Expr d = y.im / larger;
  const Expr denominator = y.re * c + y.im * d;
  return {(x.re * c + x.im * d) / denominator, (x.im * c - x.re * d) / denominator};
}

Parts lower_sign(Parts z) {
  const Expr r = hypot(z.re, z.im);
  const Expr at_zero = r == 0.0;
  return {where(at_zero, 0.0, z.re / r), where(at_zero, 0.0, z.im / r)};
}

Parts lower_sqrt(Parts z) {
  const Expr t = sqrt((abs(z.re) + hypot(z.re, z.im)) * 0.5);
  const Expr u = where(t == 0.0, 0.0, abs(z.im) / (t * 2.0));
  const Expr right_half = z.re >= 0.0;
  return {where(right_half, t, u), copysign(where(right_half, u, t), z.im)};
}

Parts lower_exp(Parts z) {
  const Expr r = exp(z.re);
  return {r * cos(z.im), where(z.im == 0.0, z.im, r * sin(z.im))};
}

// e^x cos y - 1 = expm1(x) cos y - 2 sin(y/2)^2
Parts lower_expm1(Parts z) {
  const Expr s = sin(z.im * 0.5);
  return {expm1(z.re) * cos(z.im) - 2.0 * s * s, exp(z.re) * sin(z.im)};
}

Parts lower_log(Parts z) { return {log(hypot(z.re, z.im)), atan2(z.im, z.re)}; }

// |1 + z|^2 - 1 = x (x + 2) + y^2 keeps the digits near z = 0.
Parts lower_log1p(Parts z) {
  const Expr t = (z.re + 2.0) * z.re + square(z.im);
  const Expr one_more = z.re + 1.0;
  return {where(abs(t) < 0.5, 0.5 * log1p(t), log(hypot(one_more, z.im))), atan2(z.im, one_more)};
}

// x^0 = 1, also for x = 0; 0^y = 0 for Re y > 0.
Parts lower_pow(Parts x, Parts y) {
  const Expr base_zero = (x.re == 0.0) & (x.im == 0.0);
  const Expr exponent_zero = (y.re == 0.0) & (y.im == 0.0);
  const Expr vanishes = base_zero & (y.re > 0.0);
  const Parts general = lower_exp(multiply(y, lower_log(x)));
  return {where(exponent_zero, 1.0, where(vanishes, 0.0, general.re)),
          where(exponent_zero | vanishes, 0.0, general.im)};
}

// Kahan's tanh; beyond |x| = 20 the quotient overflows, and 1 - tanh^2 decays as e^-2|x|.
Parts lower_tanh(Parts z) {
  const Expr t = tan(z.im);
  const Expr beta = t * t + 1.0;
  const Expr s = sinh(z.re);
  const Expr rho = sqrt(s * s + 1.0);
  const Expr denominator = beta * s * s + 1.0;
  const Expr large = abs(z.re) > 20.0;
  const Expr tail = 4.0 * sin(z.im) * cos(z.im) * exp(-2.0 * abs(z.re));
  return {where(large, copysign(1.0, z.re), beta * rho * s / denominator),
          where(large, tail, t / denominator)};
}

Parts lower_asin(Parts z) {
  const Parts minus = lower_sqrt({1.0 - z.re, -z.im});
  const Parts plus = lower_sqrt({z.re + 1.0, z.im});
  return {atan2(z.re, multiply(minus, plus).re), asinh(multiply(conjugate(minus), plus).im)};
}

Parts lower_acos(Parts z) {
  const Parts minus = lower_sqrt({1.0 - z.re, -z.im});
  const Parts plus = lower_sqrt({z.re + 1.0, z.im});
  return {2.0 * atan2(minus.re, plus.re), asinh(multiply(conjugate(plus), minus).im)};
}

Parts lower_acosh(Parts z) {
  const Parts minus = lower_sqrt({z.re - 1.0, z.im});
  const Parts plus = lower_sqrt({z.re + 1.0, z.im});
  return {asinh(multiply(conjugate(minus), plus).re), 2.0 * atan2(minus.im, plus.re)};
}

Parts lower_atanh(Parts z) {
  const Expr q = 1.0 - z.re;
  const Expr y2 = square(z.im);
  return {0.25 * log1p(4.0 * z.re / (q * q + y2)), 0.5 * atan2(2.0 * z.im, q * (z.re + 1.0) - y2)};
}

Parts lower_sin(Parts z) { return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)}; }
Parts lower_cos(Parts z) { return {cos(z.re) * cosh(z.im), -(sin(z.re) * sinh(z.im))}; }
Parts lower_sinh(Parts z) { return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)}; }
Parts lower_cosh(Parts z) { return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)}; }

[[noreturn]] void no_complex_form(Prim prim) {
  fail(ErrorKind::kUnsupported, name_of(prim), " is not implemented for complex numbers");
}

Parts lower_unary(Prim prim, Parts z) {
  switch (prim) {
    case Prim::kNeg: return {-z.re, -z.im};
    case Prim::kConj: return conjugate(z);
    case Prim::kSign: return lower_sign(z);
    case Prim::kSqrt: return lower_sqrt(z);
    case Prim::kExp: return lower_exp(z);
    case Prim::kExp2: return lower_exp(scale(z, M_LN2));
    case Prim::kExpm1: return lower_expm1(z);
    case Prim::kLog: return lower_log(z);
    case Prim::kLog2: return scale(lower_log(z), M_LOG2E);
    case Prim::kLog10: return scale(lower_log(z), M_LOG10E);
    case Prim::kLog1p: return lower_log1p(z);
    case Prim::kSin: return lower_sin(z);
    case Prim::kCos: return lower_cos(z);
    case Prim::kSinh: return lower_sinh(z);
    case Prim::kCosh: return lower_cosh(z);
    case Prim::kTanh: return lower_tanh(z);
    case Prim::kTan: return times_minus_i(lower_tanh(times_i(z)));
    case Prim::kAsin: return lower_asin(z);
    case Prim::kAcos: return lower_acos(z);
    case Prim::kAcosh: return lower_acosh(z);
    case Prim::kAtanh: return lower_atanh(z);
    case Prim::kAsinh: return times_minus_i(lower_asin(times_i(z)));
    case Prim::kAtan: return times_minus_i(lower_atanh(times_i(z)));
    default: no_complex_form(prim);
  }
}

Parts lower_binary(Prim prim, Parts x, Parts y) {
  switch (prim) {
    case Prim::kAdd: return {x.re + y.re, x.im + y.im};
    case Prim::kSub: return {x.re - y.re, x.im - y.im};
    case Prim::kMul: return multiply(x, y);
    case Prim::kDiv: return divide(x, y);
    case Prim::kPow: return lower_pow(x, y);
    default: no_complex_form(prim);
  }
}

Expr lower_real(Expr e) { return lower(e).re; }

Parts lower_complex_node(const Node& n) {
  switch (n.prim) {
    case Prim::kInput: return {input(n.a, Kind::kReal, 1), input(n.a, Kind::kReal, 2)};
    case Prim::kComplex: {
      const Expr re = lower_real(operand(n.a));
      return {re, lower_real(operand(n.b))};
    }
    case Prim::kWhere: {
      const Expr condition = lower_real(operand(n.a));
      const Parts x = lower(operand(n.b));
      const Parts y = lower(operand(n.c));
      return {where(condition, x.re, y.re), where(condition, x.im, y.im)};
    }
    default: break;
  }
  const Parts x = lower(operand(n.a));
  if (n.b < 0) return lower_unary(n.prim, x);
  return lower_binary(n.prim, x, lower(operand(n.b)));
}

// A real (or bool, or int) value of complex operands.
Expr lower_to_real(const Node& n) {
  const Parts x = lower(operand(n.a));
  switch (n.prim) {
    case Prim::kAbs: return hypot(x.re, x.im);
    case Prim::kReal: return x.re;
    case Prim::kImag: return x.im;
    case Prim::kEq: {
      const Parts y = lower(operand(n.b));
      return (x.re == y.re) & (x.im == y.im);
    }
    default: no_complex_form(n.prim);
  }
}

Expr lower_real_node(Expr e, const Node& n) {
  if (arity(n.prim) == 0) return e;
  const Expr a = operand(n.a);
  if (a.kind() == Kind::kComplex) return lower_to_real(n);
  const Expr x = lower_real(a);
  const Expr y = n.b < 0 ? Expr() : lower_real(operand(n.b));
  const Expr z = n.c < 0 ? Expr() : lower_real(operand(n.c));
  if (x.id() == n.a && y.id() == n.b && z.id() == n.c) return e;
  return detail::rebuild(n, x, y, z);
}

}  // namespace

Parts lower(Expr e) {
  const Parts known = current_arena().lowered(e.id());
  if (!known.re.empty()) return known;
  const Node n = e.node();
  Parts result;
  if (n.kind == Kind::kComplex) {
    result = lower_complex_node(n);
  } else {
    result.re = lower_real_node(e, n);
  }
  writable_arena().set_lowered(e.id(), result);
  return result;
}

}  // namespace fornax::expr
