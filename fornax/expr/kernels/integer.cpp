// Integers (exact modulo their width, no traps) and masks.
#include "fornax/expr/kernels/loop.h"

namespace fornax::FX_ISA_NS {
namespace {

#define FX_UNARY(name, expression) \
  struct name {                    \
    template <class T>             \
    static inline T of(T a) {      \
      return expression;           \
    }                              \
  };
#define FX_BINARY(name, expression) \
  struct name {                     \
    template <class T>              \
    static inline T of(T a, T b) {  \
      return expression;            \
    }                               \
  };
FX_UNARY(Neg, -a)
FX_UNARY(Abs, a < 0 ? -a : a)
FX_UNARY(Sign, T(a > 0) - T(a < 0))
FX_UNARY(Not, ~a)
FX_BINARY(Add, a + b)
FX_BINARY(Sub, a - b)
FX_BINARY(Mul, (a * b))
FX_BINARY(Min, a < b ? a : b)
FX_BINARY(Max, a > b ? a : b)
FX_BINARY(And, (a & b))
FX_BINARY(Or, a | b)
FX_BINARY(Xor, a ^ b)
// x / 0 = x fmod 0 = x mod 0 = 0, and the smallest number / -1 is itself.
FX_BINARY(Div, b == 0 ? 0 : (b == -1 ? -a : a / b))
FX_BINARY(Fmod, b == 0 || b == -1 ? 0 : a % b)
#undef FX_UNARY
#undef FX_BINARY

struct Mod {
  template <class T>
  static inline T of(T a, T b) {
    T r = Fmod::of(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

// A negative exponent gives what the exact power truncates to.
struct Pow {
  template <class T>
  static inline T of(T a, T b) {
    if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 != 0 ? -1 : 1) : 0);
    T result = 1;
    for (; b != 0; b >>= 1) {
      if (b & 1) result *= a;
      a *= a;
    }
    return result;
  }
};

struct Shl {
  template <class T>
  static inline T of(T a, T b) {
    constexpr T kBits = T(sizeof(T) * 8);
    return b < 0 || b >= kBits ? T(0) : T(a << (b & (kBits - 1)));
  }
};
struct Shr {
  template <class T>
  static inline T of(T a, T b) {
    constexpr T kTop = T(sizeof(T) * 8 - 1);
    return a >> (b < 0 || b > kTop ? kTop : b);
  }
};

template <class T>
Loop integer_of(Prim prim, int varies) {
  switch (prim) {
    case Prim::kNeg: return unary_loop<T, T, Neg>;
    case Prim::kAbs: return unary_loop<T, T, Abs>;
    case Prim::kSign: return unary_loop<T, T, Sign>;
    case Prim::kNot: return unary_loop<T, T, Not>;
    case Prim::kAdd: return pick_binary<T, T, Add>(varies);
    case Prim::kSub: return pick_binary<T, T, Sub>(varies);
    case Prim::kMul: return pick_binary<T, T, Mul>(varies);
    case Prim::kDiv: return pick_binary<T, T, Div>(varies);
    case Prim::kMin: return pick_binary<T, T, Min>(varies);
    case Prim::kMax: return pick_binary<T, T, Max>(varies);
    case Prim::kFmod: return pick_binary<T, T, Fmod>(varies);
    case Prim::kMod: return pick_binary<T, T, Mod>(varies);
    case Prim::kPow: return pick_binary<T, T, Pow>(varies);
    case Prim::kAnd: return pick_binary<T, T, And>(varies);
    case Prim::kOr: return pick_binary<T, T, Or>(varies);
    case Prim::kXor: return pick_binary<T, T, Xor>(varies);
    case Prim::kShl: return pick_binary<T, T, Shl>(varies);
    case Prim::kShr: return pick_binary<T, T, Shr>(varies);
    default: return nullptr;
  }
}

template <class M>
Loop mask_of(Prim prim, int varies) {
  switch (prim) {
    case Prim::kNot: return unary_loop<M, M, Not>;
    case Prim::kMin:
    case Prim::kMul:
    case Prim::kAnd: return pick_binary<M, M, And>(varies);
    case Prim::kMax:
    case Prim::kAdd:
    case Prim::kOr: return pick_binary<M, M, Or>(varies);
    case Prim::kXor: return pick_binary<M, M, Xor>(varies);
    default: return nullptr;
  }
}

}  // namespace

Loop find_integer(Prim prim, Lane type, int varies) {
  switch (type) {
    case Lane::kI32: return integer_of<int32_t>(prim, varies);
    case Lane::kI64: return integer_of<int64_t>(prim, varies);
    case Lane::kM32: return mask_of<int32_t>(prim, varies);
    case Lane::kM64: return mask_of<int64_t>(prim, varies);
    default: return nullptr;
  }
}

}  // namespace fornax::FX_ISA_NS
