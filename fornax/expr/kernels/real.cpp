// Arithmetic, rounding, comparison and selection.
#include "fornax/expr/kernels/loop.h"
#include "fornax/expr/kernels/vector_math.h"

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
FX_UNARY(Abs, abs(a))
FX_UNARY(Sign, a > T(0) ? T(1) : (a < T(0) ? T(-1) : a))
FX_UNARY(Floor, floor(a))
FX_UNARY(Ceil, ceil(a))
FX_UNARY(Round, round(a))
FX_UNARY(Trunc, trunc(a))
FX_UNARY(Sqrt, sqrt(a))
FX_BINARY(Add, a + b)
FX_BINARY(Sub, a - b)
FX_BINARY(Mul, (a * b))
FX_BINARY(Div, a / b)
FX_BINARY(Min, a < b ? a : (a != a ? a : b))
FX_BINARY(Max, a > b ? a : (a != a ? a : b))
FX_BINARY(Copysign, copysign(a, b))
#undef FX_UNARY
#undef FX_BINARY

template <class T>
Loop real_of(Prim prim, int varies) {
  switch (prim) {
    case Prim::kNeg: return unary_loop<T, T, Neg>;
    case Prim::kAbs: return unary_loop<T, T, Abs>;
    case Prim::kSign: return unary_loop<T, T, Sign>;
    case Prim::kFloor: return unary_loop<T, T, Floor>;
    case Prim::kCeil: return unary_loop<T, T, Ceil>;
    case Prim::kRound: return unary_loop<T, T, Round>;
    case Prim::kTrunc: return unary_loop<T, T, Trunc>;
    case Prim::kSqrt: return unary_loop<T, T, Sqrt>;
    case Prim::kAdd: return pick_binary<T, T, Add>(varies);
    case Prim::kSub: return pick_binary<T, T, Sub>(varies);
    case Prim::kMul: return pick_binary<T, T, Mul>(varies);
    case Prim::kDiv: return pick_binary<T, T, Div>(varies);
    case Prim::kMin: return pick_binary<T, T, Min>(varies);
    case Prim::kMax: return pick_binary<T, T, Max>(varies);
    case Prim::kCopysign: return pick_binary<T, T, Copysign>(varies);
    default: return nullptr;
  }
}

template <class M>
struct Eq {
  template <class T>
  static inline M of(T a, T b) {
    return a == b ? M(-1) : M(0);
  }
};
template <class M>
struct Lt {
  template <class T>
  static inline M of(T a, T b) {
    return a < b ? M(-1) : M(0);
  }
};
template <class M>
struct Le {
  template <class T>
  static inline M of(T a, T b) {
    return a <= b ? M(-1) : M(0);
  }
};

template <class T, class M>
Loop compare_of(Prim prim, int varies) {
  switch (prim) {
    case Prim::kEq: return pick_binary<M, T, Eq<M>>(varies);
    case Prim::kLt: return pick_binary<M, T, Lt<M>>(varies);
    case Prim::kLe: return pick_binary<M, T, Le<M>>(varies);
    default: return nullptr;
  }
}

template <class T, class M>
Loop select_of(int varies) {
  switch (varies & 3) {
    case 0: return select_loop<T, M, false, false>;
    case 1: return select_loop<T, M, true, false>;
    case 2: return select_loop<T, M, false, true>;
    default: return select_loop<T, M, true, true>;
  }
}

template <class T>
void fill_loop(void* d_, const void* a_, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T value = *static_cast<const T*>(a_);
  for (int64_t i = 0; i < n; ++i) d[i] = value;
}

// Wide: what the function takes, double or int64_t.
template <class T, class Wide>
void call_loop(void* d_, const void* a_, const void* b_, const void* function_, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  using Function = Wide (*)(Wide, Wide);
  const Function function = *static_cast<const Function*>(function_);
  for (int64_t i = 0; i < n; ++i) d[i] = T(function(Wide(a[i]), Wide(b[i])));
}

}  // namespace

Loop find_real(Prim prim, Lane type, int varies) {
  return type == Lane::kF32 ? real_of<float>(prim, varies) : real_of<double>(prim, varies);
}

Loop find_compare(Prim prim, Lane type, Lane mask, int varies) {
  const bool narrow = mask == Lane::kM32;
  switch (type) {
    case Lane::kF32: return narrow ? compare_of<float, int32_t>(prim, varies) : nullptr;
    case Lane::kF64: return narrow ? nullptr : compare_of<double, int64_t>(prim, varies);
    case Lane::kM32:
    case Lane::kI32:
      return narrow ? compare_of<int32_t, int32_t>(prim, varies)
                    : compare_of<int32_t, int64_t>(prim, varies);
    case Lane::kM64:
    case Lane::kI64:
      return narrow ? compare_of<int64_t, int32_t>(prim, varies)
                    : compare_of<int64_t, int64_t>(prim, varies);
  }
  return nullptr;
}

Loop find_select(int bytes, Lane mask, int varies) {
  if (mask == Lane::kM32)
    return bytes == 4 ? select_of<int32_t, int32_t>(varies) : select_of<int64_t, int32_t>(varies);
  return bytes == 4 ? select_of<int32_t, int64_t>(varies) : select_of<int64_t, int64_t>(varies);
}

Loop find_fill(int bytes) { return bytes == 4 ? fill_loop<uint32_t> : fill_loop<uint64_t>; }

Loop find_call(Lane type) {
  switch (type) {
    case Lane::kF32: return call_loop<float, double>;
    case Lane::kF64: return call_loop<double, double>;
    case Lane::kI32: return call_loop<int32_t, int64_t>;
    case Lane::kI64: return call_loop<int64_t, int64_t>;
    default: return nullptr;
  }
}

}  // namespace fornax::FX_ISA_NS
