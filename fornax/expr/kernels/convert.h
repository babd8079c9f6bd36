// Conversions between storage types and the types that loops compute in. For kernel sources only.
#pragma once

#include <immintrin.h>

#include "fornax/base/numeric.h"
#include "fornax/expr/kernels/vector_math.h"

namespace fornax::FX_ISA_NS {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool8 {
  uint8_t byte;
};

FX_INLINE float widen(F16 x) { return _cvtsh_ss(x.bits); }
FX_INLINE float widen(BF16 x) { return __builtin_bit_cast(float, uint32_t(x.bits) << 16); }
FX_INLINE int32_t widen(Bool8 x) { return x.byte != 0; }
template <class T>
FX_INLINE T widen(T x) {
  return x;
}

// Truncates; NaN and what does not fit give the smallest number, then narrow integers wrap.
FX_INLINE int32_t to_int32(float x) {
  return x >= -0x1p31f && x < 0x1p31f ? int32_t(x) : INT32_MIN;
}
FX_INLINE int32_t to_int32(double x) {
  return x > -0x1.00000002p31 && x < 0x1p31 ? int32_t(x) : INT32_MIN;
}
FX_INLINE int64_t to_int64(float x) {
  return x >= -0x1p63f && x < 0x1p63f ? int64_t(x) : INT64_MIN;
}
FX_INLINE int64_t to_int64(double x) { return x >= -0x1p63 && x < 0x1p63 ? int64_t(x) : INT64_MIN; }

FX_INLINE BF16 to_bf16(float x) {
  const uint32_t u = to_bits(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet = (u >> 16) | 0x40u;
  return {uint16_t(x != x ? quiet : rounded)};
}
FX_INLINE F16 to_f16(float x) { return {uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))}; }

// Narrow<S>::of(x): a computed value as it is stored.
template <class S>
struct Narrow {
  FX_INLINE S of(float x) { return S(x); }
  FX_INLINE S of(double x) { return S(x); }
  FX_INLINE S of(int32_t x) { return S(x); }
  FX_INLINE S of(int64_t x) { return S(x); }
};
#define FX_NARROW_INTEGER(S, convert)                  \
  template <>                                          \
  struct Narrow<S> {                                   \
    FX_INLINE S of(float x) { return S(convert(x)); }  \
    FX_INLINE S of(double x) { return S(convert(x)); } \
    FX_INLINE S of(int32_t x) { return S(x); }         \
    FX_INLINE S of(int64_t x) { return S(x); }         \
  };
FX_NARROW_INTEGER(uint8_t, to_int32)
FX_NARROW_INTEGER(int8_t, to_int32)
FX_NARROW_INTEGER(int16_t, to_int32)
FX_NARROW_INTEGER(int32_t, to_int32)
FX_NARROW_INTEGER(int64_t, to_int64)
#undef FX_NARROW_INTEGER
template <>
struct Narrow<BF16> {
  template <class T>
  FX_INLINE BF16 of(T x) {
    return to_bf16(float(x));
  }
};
template <>
struct Narrow<F16> {
  template <class T>
  FX_INLINE F16 of(T x) {
    return to_f16(float(x));
  }
};

// Eight halves at a time: the compiler does not vectorise the conversion instructions itself.
FX_INLINE void halves_to_floats(float* d, const F16* a, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i));
    _mm256_storeu_ps(d + i, _mm256_cvtph_ps(h));
  }
  for (; i < n; ++i) d[i] = widen(a[i]);
}
FX_INLINE void floats_to_halves(F16* d, const float* a, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i), h);
  }
  for (; i < n; ++i) d[i] = to_f16(a[i]);
}

}  // namespace fornax::FX_ISA_NS
