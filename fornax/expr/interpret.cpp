#include "fornax/expr/interpret.h"

#include <cmath>
#include <complex>

#include "fornax/base/error.h"
#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::operand;

Value Value::of_int(int64_t value) {
  Value v;
  v.kind = Kind::kInt;
  v.integer = value;
  return v;
}

Value Value::of_bool(bool value) {
  Value v(value ? 1.0 : 0.0);
  v.kind = Kind::kBool;
  return v;
}

namespace {

using Z = std::complex<double>;

[[noreturn]] void unsupported(Prim prim, Kind kind) {
  fail(ErrorKind::kUnsupported, name_of(prim), " is not implemented for ", name_of(kind));
}

Value from_complex(Z z) { return {z.real(), z.imag()}; }

bool truth(const Value& v) {
  return v.kind == Kind::kInt ? v.integer != 0 : v.re != 0 || v.im != 0;
}

Value convert(const Value& v, Kind kind) {
  if (v.kind == kind) return v;
  if (kind == Kind::kBool) return Value::of_bool(truth(v));
  if (kind == Kind::kInt) {
    const bool fits = std::fabs(v.re) < 0x1p63;
    return Value::of_int(fits ? int64_t(v.re) : INT64_MIN);
  }
  const double re = v.kind == Kind::kInt ? double(v.integer) : v.re;
  return kind == Kind::kReal ? Value(re) : Value(re, v.im);
}

// ---- Real

double real_unary(Prim prim, double x) {
  switch (prim) {
    case Prim::kNeg: return -x;
    case Prim::kAbs: return std::fabs(x);
    case Prim::kSign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case Prim::kFloor: return std::floor(x);
    case Prim::kCeil: return std::ceil(x);
    case Prim::kRound: return std::nearbyint(x);
    case Prim::kTrunc: return std::trunc(x);
    case Prim::kSqrt: return std::sqrt(x);
    case Prim::kExp: return std::exp(x);
    case Prim::kExp2: return std::exp2(x);
    case Prim::kExpm1: return std::expm1(x);
    case Prim::kLog: return std::log(x);
    case Prim::kLog1p: return std::log1p(x);
    case Prim::kLog2: return std::log2(x);
    case Prim::kLog10: return std::log10(x);
    case Prim::kSin: return std::sin(x);
    case Prim::kCos: return std::cos(x);
    case Prim::kTan: return std::tan(x);
    case Prim::kSinh: return std::sinh(x);
    case Prim::kCosh: return std::cosh(x);
    case Prim::kTanh: return std::tanh(x);
    case Prim::kAsin: return std::asin(x);
    case Prim::kAcos: return std::acos(x);
    case Prim::kAtan: return std::atan(x);
    case Prim::kAsinh: return std::asinh(x);
    case Prim::kAcosh: return std::acosh(x);
    case Prim::kAtanh: return std::atanh(x);
    case Prim::kErf: return std::erf(x);
    case Prim::kErfc: return std::erfc(x);
    default: unsupported(prim, Kind::kReal);
  }
}

double floor_mod(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

double real_binary(Prim prim, double x, double y) {
  switch (prim) {
    case Prim::kAdd: return x + y;
    case Prim::kSub: return x - y;
    case Prim::kMul: return x * y;
    case Prim::kDiv: return x / y;
    case Prim::kMin: return x < y ? x : (x != x ? x : y);
    case Prim::kMax: return x > y ? x : (x != x ? x : y);
    case Prim::kFmod: return std::fmod(x, y);
    case Prim::kMod: return floor_mod(x, y);
    case Prim::kPow: return std::pow(x, y);
    case Prim::kAtan2: return std::atan2(x, y);
    case Prim::kHypot: return std::hypot(x, y);
    case Prim::kCopysign: return std::copysign(x, y);
    default: unsupported(prim, Kind::kReal);
  }
}

bool real_comparison(Prim prim, double x, double y) {
  if (prim == Prim::kEq) return x == y;
  return prim == Prim::kLt ? x < y : x <= y;
}

// ---- Integer: arithmetic wraps

int64_t int_unary(Prim prim, int64_t x) {
  switch (prim) {
    case Prim::kNeg: return int64_t(0 - uint64_t(x));
    case Prim::kAbs: return x < 0 ? int64_t(0 - uint64_t(x)) : x;
    case Prim::kSign: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case Prim::kNot: return ~x;
    default: unsupported(prim, Kind::kInt);
  }
}

int64_t int_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 != 0 ? -1 : 1;
    return 0;
  }
  uint64_t result = 1;
  for (auto square = uint64_t(base); exponent != 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return int64_t(result);
}

int64_t int_remainder(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }

int64_t int_divide(int64_t x, int64_t y) {
  if (y == 0) return 0;
  return y == -1 ? int64_t(0 - uint64_t(x)) : x / y;
}

int64_t int_mod(int64_t x, int64_t y) {
  const int64_t r = int_remainder(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

int64_t int_binary(Prim prim, int64_t x, int64_t y) {
  const auto u = uint64_t(x);
  const auto v = uint64_t(y);
  switch (prim) {
    case Prim::kAdd: return int64_t(u + v);
    case Prim::kSub: return int64_t(u - v);
    case Prim::kMul: return int64_t(u * v);
    case Prim::kDiv: return int_divide(x, y);
    case Prim::kMin: return x < y ? x : y;
    case Prim::kMax: return x > y ? x : y;
    case Prim::kFmod: return int_remainder(x, y);
    case Prim::kMod: return int_mod(x, y);
    case Prim::kPow: return int_power(x, y);
    case Prim::kAnd: return x & y;
    case Prim::kOr: return x | y;
    case Prim::kXor: return x ^ y;
    case Prim::kShl: return v > 63 ? 0 : int64_t(u << v);
    case Prim::kShr: return x >> (v > 63 ? 63 : v);
    default: unsupported(prim, Kind::kInt);
  }
}

bool int_comparison(Prim prim, int64_t x, int64_t y) {
  if (prim == Prim::kEq) return x == y;
  return prim == Prim::kLt ? x < y : x <= y;
}

// ---- Complex

Z log1p_of(Z z) {
  const std::complex<long double> wide(z);
  return Z(std::log(1.0L + wide));
}

Z expm1_of(Z z) {
  const std::complex<long double> wide(z);
  return Z(std::exp(wide) - 1.0L);
}

Z complex_unary(Prim prim, Z z) {
  switch (prim) {
    case Prim::kNeg: return -z;
    case Prim::kConj: return std::conj(z);
    case Prim::kSign: return z == Z(0) ? Z(0) : z / std::abs(z);
    case Prim::kSqrt: return std::sqrt(z);
    case Prim::kExp: return std::exp(z);
    case Prim::kExp2: return std::exp(z * M_LN2);
    case Prim::kExpm1: return expm1_of(z);
    case Prim::kLog: return std::log(z);
    case Prim::kLog1p: return log1p_of(z);
    case Prim::kLog2: return std::log(z) * M_LOG2E;
    case Prim::kLog10: return std::log10(z);
    case Prim::kSin: return std::sin(z);
    case Prim::kCos: return std::cos(z);
    case Prim::kTan: return std::tan(z);
    case Prim::kSinh: return std::sinh(z);
    case Prim::kCosh: return std::cosh(z);
    case Prim::kTanh: return std::tanh(z);
    case Prim::kAsin: return std::asin(z);
    case Prim::kAcos: return std::acos(z);
    case Prim::kAtan: return std::atan(z);
    case Prim::kAsinh: return std::asinh(z);
    case Prim::kAcosh: return std::acosh(z);
    case Prim::kAtanh: return std::atanh(z);
    default: unsupported(prim, Kind::kComplex);
  }
}

Z complex_power(Z x, Z y) {
  if (y == Z(0)) return 1;
  if (x == Z(0) && y.real() > 0) return 0;
  return std::pow(x, y);
}

Z complex_binary(Prim prim, Z x, Z y) {
  switch (prim) {
    case Prim::kAdd: return x + y;
    case Prim::kSub: return x - y;
    case Prim::kMul: return x * y;
    case Prim::kDiv: return x / y;
    case Prim::kPow: return complex_power(x, y);
    default: unsupported(prim, Kind::kComplex);
  }
}

Value complex_node(Prim prim, const Value& a, const Value& b) {
  const Z x(a.re, a.im);
  switch (prim) {
    case Prim::kAbs: return std::abs(x);
    case Prim::kReal: return a.re;
    case Prim::kImag: return a.im;
    case Prim::kEq: return Value::of_bool(a.re == b.re && a.im == b.im);
    default: break;
  }
  if (arity(prim) == 1) return from_complex(complex_unary(prim, x));
  return from_complex(complex_binary(prim, x, Z(b.re, b.im)));
}

// ---- Nodes

bool bool_binary(Prim prim, bool x, bool y) {
  switch (prim) {
    case Prim::kAnd: return x && y;
    case Prim::kOr: return x || y;
    case Prim::kXor: return x != y;
    case Prim::kEq: return x == y;
    default: unsupported(prim, Kind::kBool);
  }
}

Value operation(const Node& n, const Value& a, const Value& b) {
  const bool unary = arity(n.prim) == 1;
  const bool comparison = n.prim >= Prim::kEq && n.prim <= Prim::kLe;
  switch (a.kind) {
    case Kind::kComplex: return complex_node(n.prim, a, b);
    case Kind::kReal:
      if (unary) return real_unary(n.prim, a.re);
      if (comparison) return Value::of_bool(real_comparison(n.prim, a.re, b.re));
      return real_binary(n.prim, a.re, b.re);
    case Kind::kInt:
      if (unary) return Value::of_int(int_unary(n.prim, a.integer));
      if (comparison) return Value::of_bool(int_comparison(n.prim, a.integer, b.integer));
      return Value::of_int(int_binary(n.prim, a.integer, b.integer));
    case Kind::kBool:
      if (n.prim == Prim::kNot) return Value::of_bool(!truth(a));
      if (unary) unsupported(n.prim, a.kind);
      return Value::of_bool(bool_binary(n.prim, truth(a), truth(b)));
  }
  return {};
}

Value leaf(const Node& n, ArrayRef<Value> inputs) {
  if (n.prim == Prim::kConst) {
    if (n.kind == Kind::kInt) return Value::of_int(n.bits());
    return n.kind == Kind::kBool ? Value::of_bool(n.value != 0) : Value(n.value);
  }
  FX_CHECK(size_t(n.a) < inputs.size(), kIndex, "expr: input ", n.a, " of ", inputs.size(),
           " is not given");
  const Value& v = inputs[n.a];
  if (n.aux == 1) return v.re;
  if (n.aux == 2) return v.im;
  return convert(v, n.kind);
}

Value call_node(const Node& n, const Value& a, const Value& b) {
  const Special& row = special(n.aux);
  if (n.kind == Kind::kInt) return Value::of_int(row.integer_function(a.integer, b.integer));
  return row.function(a.re, b.re);
}

Value node_value(const Node& n, const Value& a, const Value& b, const Value& c) {
  switch (n.prim) {
    case Prim::kWhere: return truth(a) ? b : c;
    case Prim::kCast: return convert(a, n.kind);
    case Prim::kComplex: return {a.re, b.re};
    case Prim::kCall: return call_node(n, a, b);
    default: return operation(n, a, b);
  }
}

}  // namespace

Value eval(Expr root, ArrayRef<Value> inputs) {
  if (root.empty()) return 0.0;
  std::vector<Value> values(size_t(root.id()) + 1);
  for (Expr e : topological_order(root)) {
    const Node& n = e.node();
    if (arity(n.prim) == 0) {
      values[e.id()] = leaf(n, inputs);
      continue;
    }
    const Value none;
    const Value& b = n.b < 0 ? none : values[n.b];
    const Value& c = n.c < 0 ? none : values[n.c];
    values[e.id()] = node_value(n, values[n.a], b, c);
  }
  return values[root.id()];
}

double eval_real(Expr root, ArrayRef<Value> inputs) { return eval(root, inputs).re; }

}  // namespace fornax::expr
