// Loops over vector_math.h, included by one source per type.
#pragma once

#include <math.h>

#include "fornax/expr/kernels/loop.h"
#include "fornax/expr/kernels/vector_math.h"

namespace fornax::FX_ISA_NS {
namespace {

// clang-format off
#define FX_MATH(X)                                                                      \
  X(Exp, exp) X(Exp2, exp2) X(Expm1, expm1) X(Log, log) X(Log1p, log1p) X(Log2, log2)   \
  X(Log10, log10) X(Sinh, sinh) X(Cosh, cosh) X(Tanh, tanh) X(Asin, asin) X(Acos, acos) \
  X(Atan, atan) X(Asinh, asinh) X(Acosh, acosh) X(Atanh, atanh) X(Erf, erf) X(Erfc, erfc)
// clang-format on
#define FX_STRUCT(name, function)       \
  struct name {                         \
    template <class T>                  \
    static FX_INLINE_MEMBER T of(T a) { \
      return function(a);               \
    }                                   \
  };
#define FX_INLINE_MEMBER inline __attribute__((always_inline))
FX_MATH(FX_STRUCT)
#undef FX_STRUCT

struct Pow {
  template <class T>
  static FX_INLINE_MEMBER T of(T a, T b) {
    return pow(a, b);
  }
};
struct Atan2 {
  template <class T>
  static FX_INLINE_MEMBER T of(T a, T b) {
    return atan2(a, b);
  }
};
struct Hypot {
  template <class T>
  static FX_INLINE_MEMBER T of(T a, T b) {
    return hypot(a, b);
  }
};

// Functions whose fast form holds in a range only: `fast`, `is_slow`, and the C library's `slow`.
struct Sin {
  static FX_INLINE_MEMBER float slow(float a) { return ::sinf(a); }
  static FX_INLINE_MEMBER double slow(double a) { return ::sin(a); }
  template <class T>
  static FX_INLINE_MEMBER T fast(T a) {
    return sin(a);
  }
};
struct Cos {
  static FX_INLINE_MEMBER float slow(float a) { return ::cosf(a); }
  static FX_INLINE_MEMBER double slow(double a) { return ::cos(a); }
  template <class T>
  static FX_INLINE_MEMBER T fast(T a) {
    return cos(a);
  }
};
struct Tan {
  static FX_INLINE_MEMBER float slow(float a) { return ::tanf(a); }
  static FX_INLINE_MEMBER double slow(double a) { return ::tan(a); }
  template <class T>
  static FX_INLINE_MEMBER T fast(T a) {
    return tan(a);
  }
};

inline constexpr int64_t kBlock = 256;

// The top bit of `limit - |x|` as integers tells whether |x| is above the limit (or NaN).
template <class T>
FX_INLINE bool any_above(const T* a, int64_t n, T limit) {
  using Bits = BitsOf<T>;
  const Bits most = to_bits(limit);
  Bits over = 0;
  for (int64_t i = 0; i < n; ++i) over |= most - (to_bits(a[i]) & ~Fp<T>::kSignBit);
  return (over & Fp<T>::kSignBit) != 0;
}

template <class T, class F>
void trig_loop(void* d_, const void* a_, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T* a = static_cast<const T*>(a_);
  const T limit = Fp<T>::kTrigLimit;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t m = n - from < kBlock ? n - from : kBlock;
    const bool large = any_above(a + from, m, limit);
    T saved[kBlock];
    if (large) __builtin_memcpy(saved, a + from, size_t(m) * sizeof(T));
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) d[from + i] = F::fast(a[from + i]);
    if (!large) continue;
    for (int64_t i = 0; i < m; ++i)
      if (abs(saved[i]) > limit) d[from + i] = F::slow(saved[i]);
  }
}

FX_INLINE float fmod_slow(float a, float b) { return ::fmodf(a, b); }
FX_INLINE double fmod_slow(double a, double b) { return ::fmod(a, b); }

// kFloor: the remainder has the sign of the divisor.
template <class T, bool kFloor, bool kA, bool kB>
void remainder_loop(void* d_, const void* a_, const void* b_, const void*, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  const T a0 = a[0], b0 = b[0];
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t m = n - from < kBlock ? n - from : kBlock;
    T out[kBlock], quotient[kBlock];
    for (int64_t i = 0; i < m; ++i) {
      const T x = kA ? a[from + i] : a0, y = kB ? b[from + i] : b0;
      quotient[i] = x / y;
      const T r = fmod(x, y);
      out[i] = kFloor ? floor_mod(r, y) : r;
    }
    if (any_above(quotient, m, Fp<T>::kRemainderLimit)) {
      for (int64_t i = 0; i < m; ++i) {
        if (!(abs(quotient[i]) > Fp<T>::kRemainderLimit)) continue;
        const T x = kA ? a[from + i] : a0, y = kB ? b[from + i] : b0;
        const T r = fmod_slow(x, y);
        out[i] = kFloor ? floor_mod(r, y) : r;
      }
    }
    __builtin_memcpy(d + from, out, size_t(m) * sizeof(T));
  }
}

template <class T, bool kFloor>
Loop pick_remainder(int varies) {
  if (varies == 1) return remainder_loop<T, kFloor, true, false>;
  if (varies == 2) return remainder_loop<T, kFloor, false, true>;
  return remainder_loop<T, kFloor, true, true>;
}

template <class T>
Loop math_of(Prim prim, int varies) {
  switch (prim) {
#define FX_CASE(name, function) \
  case Prim::k##name: return unary_loop<T, T, name>;
    FX_MATH(FX_CASE)
#undef FX_CASE
    case Prim::kSin: return trig_loop<T, Sin>;
    case Prim::kCos: return trig_loop<T, Cos>;
    case Prim::kTan: return trig_loop<T, Tan>;
    case Prim::kPow: return pick_binary<T, T, Pow>(varies);
    case Prim::kAtan2: return pick_binary<T, T, Atan2>(varies);
    case Prim::kHypot: return pick_binary<T, T, Hypot>(varies);
    case Prim::kFmod: return pick_remainder<T, false>(varies);
    case Prim::kMod: return pick_remainder<T, true>(varies);
    default: return nullptr;
  }
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
