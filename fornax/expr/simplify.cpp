// Rewrites at construction. Each must hold bit for bit (NaN payloads aside) for NaN, infinities and
// signed zeros. Deliberately absent: x + 0 (-0 + 0 is +0), x * 0, x - x, x / x, x == x,
// -(a - b), pow(x, 0.5), reordering of min and max, re-association.
#include <cmath>
#include <cstdlib>

#include "fornax/expr/detail.h"

namespace fornax::expr::detail {

bool is_value(Expr e, double value) {
  const Node& n = e.node();
  if (n.prim != Prim::kConst) return false;
  if (n.kind == Kind::kInt) return double(n.bits()) == value;
  return n.value == value && std::signbit(n.value) == std::signbit(value);
}

namespace {

bool is_constant(const Node& n, Kind kind) { return n.prim == Prim::kConst && n.kind == kind; }

Expr fold_unary(Prim prim, double x) {
  switch (prim) {
    case Prim::kNeg: return constant(-x);
    case Prim::kAbs: return constant(std::fabs(x));
    case Prim::kSign: return constant(x > 0 ? 1.0 : x < 0 ? -1.0 : x);
    case Prim::kFloor: return constant(std::floor(x));
    case Prim::kSqrt: return constant(std::sqrt(x));
    case Prim::kExp: return constant(std::exp(x));
    case Prim::kLog: return constant(std::log(x));
    case Prim::kLog2: return constant(std::log2(x));
    default: return {};
  }
}

Expr fold_real(Prim prim, double x, double y) {
  switch (prim) {
    case Prim::kAdd: return constant(x + y);
    case Prim::kSub: return constant(x - y);
    case Prim::kMul: return constant(x * y);
    case Prim::kDiv: return constant(x / y);
    case Prim::kPow: return constant(std::pow(x, y));
    case Prim::kEq: return boolean(x == y);
    case Prim::kLt: return boolean(x < y);
    case Prim::kLe: return boolean(x <= y);
    default: return {};
  }
}

Expr fold_int(Prim prim, int64_t x, int64_t y) {
  switch (prim) {
    case Prim::kAdd: return integer(int64_t(uint64_t(x) + uint64_t(y)));
    case Prim::kSub: return integer(int64_t(uint64_t(x) - uint64_t(y)));
    case Prim::kMul: return integer(int64_t(uint64_t(x) * uint64_t(y)));
    case Prim::kEq: return boolean(x == y);
    case Prim::kLt: return boolean(x < y);
    case Prim::kLe: return boolean(x <= y);
    default: return {};
  }
}

Expr simplify_part(Prim prim, Expr a, const Node& x) {
  const bool is_pair = x.prim == Prim::kComplex;
  if (prim == Prim::kConj) {
    if (x.kind != Kind::kComplex) return a;
    if (x.prim == Prim::kConj) return operand(x.a);
    if (is_pair) return complex(operand(x.a), -operand(x.b));
  }
  if (prim == Prim::kReal) {
    if (x.kind != Kind::kComplex) return a;
    if (x.prim == Prim::kConj) return real(operand(x.a));
    if (is_pair) return operand(x.a);
  }
  if (prim == Prim::kImag) {
    if (x.kind != Kind::kComplex) return constant(0.0);
    if (is_pair) return operand(x.b);
  }
  return {};
}

Expr simplify_add(Expr a, Expr b, Kind kind) {
  const Node x = a.node();
  const Node y = b.node();
  if (y.prim == Prim::kNeg) return a - operand(y.a);
  if (x.prim == Prim::kNeg) return b - operand(x.a);
  const double neutral = kind == Kind::kInt ? 0.0 : -0.0;
  if (is_value(b, neutral)) return a;
  if (is_value(a, neutral)) return b;
  return {};
}

Expr simplify_sub(Expr a, Expr b) {
  const Node y = b.node();
  if (is_value(b, 0.0)) return a;
  if (y.prim == Prim::kNeg) return a + operand(y.a);
  return {};
}

Expr simplify_mul(Expr a, Expr b) {
  const Node x = a.node();
  const Node y = b.node();
  if (is_value(a, 1.0)) return b;
  if (is_value(b, 1.0)) return a;
  if (is_value(a, -1.0)) return -b;
  if (is_value(b, -1.0)) return -a;
  if (x.prim == Prim::kNeg) return -(operand(x.a) * b);
  if (y.prim == Prim::kNeg) return -(a * operand(y.a));
  return {};
}

// x / 2^k is x * 2^-k, rounded once either way. The exponent stays within what f32 holds.
Expr simplify_div(Expr a, Expr b) {
  if (is_value(b, 1.0)) return a;
  const Node y = b.node();
  if (!is_constant(y, Kind::kReal)) return {};
  int exponent = 0;
  const double mantissa = std::frexp(y.value, &exponent);
  if (std::fabs(mantissa) != 0.5 || std::abs(exponent) >= 100) return {};
  return a * constant(1.0 / y.value);
}

Expr simplify_pow(Expr a, Expr b) {
  if (is_value(b, 1.0)) return a;
  if (is_value(b, 2.0)) return a * a;
  if (is_value(b, 3.0)) return a * a * a;
  return {};
}

Expr simplify_and_or(Prim prim, Expr a, Expr b) {
  if (a.is(b)) return a;
  const Node x = a.node();
  const Node y = b.node();
  const bool is_and = prim == Prim::kAnd;
  if (is_constant(x, Kind::kBool)) return (x.value != 0) == is_and ? b : a;
  if (is_constant(y, Kind::kBool)) return (y.value != 0) == is_and ? a : b;
  return {};
}

}  // namespace

Expr simplify_unary(Prim prim, Expr a) {
  const Node x = a.node();
  if (is_constant(x, Kind::kReal)) {
    const Expr folded = fold_unary(prim, x.value);
    if (!folded.empty()) return folded;
  }
  switch (prim) {
    case Prim::kNeg:
      if (x.prim == Prim::kNeg) return operand(x.a);
      if (is_constant(x, Kind::kInt)) return integer(int64_t(0 - uint64_t(x.bits())));
      return {};
    case Prim::kAbs:
      if (x.prim == Prim::kAbs) return a;
      if (x.prim == Prim::kNeg || x.prim == Prim::kConj) return abs(operand(x.a));
      return {};
    case Prim::kNot:
      if (x.prim == Prim::kNot) return operand(x.a);
      if (is_constant(x, Kind::kBool)) return boolean(x.value == 0);
      return {};
    case Prim::kConj:
    case Prim::kReal:
    case Prim::kImag: return simplify_part(prim, a, x);
    default: return {};
  }
}

Expr simplify_binary(Prim prim, Expr a, Expr b, Kind kind) {
  const Node x = a.node();
  const Node y = b.node();
  if (is_constant(x, Kind::kReal) && is_constant(y, Kind::kReal)) {
    const Expr folded = fold_real(prim, x.value, y.value);
    if (!folded.empty()) return folded;
  }
  if (is_constant(x, Kind::kInt) && is_constant(y, Kind::kInt)) {
    const Expr folded = fold_int(prim, x.bits(), y.bits());
    if (!folded.empty()) return folded;
  }
  switch (prim) {
    case Prim::kAdd: return simplify_add(a, b, kind);
    case Prim::kSub: return simplify_sub(a, b);
    case Prim::kMul: return simplify_mul(a, b);
    case Prim::kDiv: return simplify_div(a, b);
    case Prim::kPow: return simplify_pow(a, b);
    case Prim::kAnd:
    case Prim::kOr: return simplify_and_or(prim, a, b);
    case Prim::kMin:
    case Prim::kMax: return a.is(b) ? a : Expr();
    default: return {};
  }
}

}  // namespace fornax::expr::detail
