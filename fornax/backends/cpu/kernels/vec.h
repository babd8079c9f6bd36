// Vectors of float and double for the matrix and pooling kernels: loads and stores convert from and
// to the storage types, whole or for the first n lanes. Included only by sources compiled per
// instruction set.
#pragma once

// gcc 12 takes the deliberately undefined pass-through operands of its own intrinsics for a
// mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {

// Storage of bfloat16 and half as bits. base/numeric.h is not used here: its inline functions could
// be emitted as shared weak symbols.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

#define FX_INLINE [[gnu::always_inline]] static inline

// The type a storage type is computed in.
template <class S>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};

FX_INLINE float widen(float v) { return v; }
FX_INLINE double widen(double v) { return v; }
FX_INLINE float widen(Bf16 v) {
  uint32_t u = uint32_t(v.bits) << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
FX_INLINE float widen(F16 v) { return _cvtsh_ss(v.bits); }

template <class S>
FX_INLINE S narrow(typename ComputeOf<S>::type v) {
  return v;
}
template <>
inline __attribute__((always_inline)) Bf16 narrow<Bf16>(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {uint16_t((u >> 16) | 0x40u)};
  return {uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}
template <>
inline __attribute__((always_inline)) F16 narrow<F16>(float v) {
  return {uint16_t(_cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
}

template <class T>
struct Vec;

#if defined(__AVX512F__)

inline constexpr bool kWide = true;

template <>
struct Vec<float> {
  using V = __m512;
  static constexpr int kLanes = 16;
  FX_INLINE V zero() { return _mm512_setzero_ps(); }
  FX_INLINE V set(float v) { return _mm512_set1_ps(v); }
  FX_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  FX_INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  FX_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
  FX_INLINE float sum(V a) { return _mm512_reduce_add_ps(a); }
  FX_INLINE __mmask16 mask(int n) { return __mmask16((1u << n) - 1); }

  FX_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
  FX_INLINE V load(const Bf16* p) { return from(p, _mm256_loadu_si256((const __m256i*)p)); }
  FX_INLINE V load(const F16* p) { return from(p, _mm256_loadu_si256((const __m256i*)p)); }
  FX_INLINE V load(const float* p, int n) { return _mm512_maskz_loadu_ps(mask(n), p); }
  FX_INLINE V load(const Bf16* p, int n) {
    return from(p, _mm256_maskz_loadu_epi16(mask(n), (const void*)p));
  }
  FX_INLINE V load(const F16* p, int n) {
    return from(p, _mm256_maskz_loadu_epi16(mask(n), (const void*)p));
  }
  FX_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  FX_INLINE void store(Bf16* p, V v) { _mm256_storeu_si256((__m256i*)p, to(p, v)); }
  FX_INLINE void store(F16* p, V v) { _mm256_storeu_si256((__m256i*)p, to(p, v)); }
  FX_INLINE void store(float* p, V v, int n) { _mm512_mask_storeu_ps(p, mask(n), v); }
  FX_INLINE void store(Bf16* p, V v, int n) { _mm256_mask_storeu_epi16(p, mask(n), to(p, v)); }
  FX_INLINE void store(F16* p, V v, int n) { _mm256_mask_storeu_epi16(p, mask(n), to(p, v)); }

 private:
  FX_INLINE V from(const Bf16*, __m256i raw) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
  }
  FX_INLINE V from(const F16*, __m256i raw) { return _mm512_cvtph_ps(raw); }
  FX_INLINE __m256i to(Bf16*, V v) {
    __m512i u = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  }
  FX_INLINE __m256i to(F16*, V v) {
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

template <>
struct Vec<double> {
  using V = __m512d;
  static constexpr int kLanes = 8;
  FX_INLINE V zero() { return _mm512_setzero_pd(); }
  FX_INLINE V set(double v) { return _mm512_set1_pd(v); }
  FX_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  FX_INLINE V mul(V a, V b) { return _mm512_mul_pd(a, b); }
  FX_INLINE V add(V a, V b) { return _mm512_add_pd(a, b); }
  FX_INLINE double sum(V a) { return _mm512_reduce_add_pd(a); }
  FX_INLINE __mmask8 mask(int n) { return __mmask8((1u << n) - 1); }
  FX_INLINE V load(const double* p) { return _mm512_loadu_pd(p); }
  FX_INLINE V load(const double* p, int n) { return _mm512_maskz_loadu_pd(mask(n), p); }
  FX_INLINE void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  FX_INLINE void store(double* p, V v, int n) { _mm512_mask_storeu_pd(p, mask(n), v); }
};

#else

inline constexpr bool kWide = false;

template <>
struct Vec<float> {
  using V = __m256;
  static constexpr int kLanes = 8;
  FX_INLINE V zero() { return _mm256_setzero_ps(); }
  FX_INLINE V set(float v) { return _mm256_set1_ps(v); }
  FX_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  FX_INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  FX_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
  FX_INLINE float sum(V a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  FX_INLINE __m256i mask(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }

  FX_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
  FX_INLINE V load(const Bf16* p) { return from(p, _mm_loadu_si128((const __m128i*)p)); }
  FX_INLINE V load(const F16* p) { return from(p, _mm_loadu_si128((const __m128i*)p)); }
  FX_INLINE V load(const float* p, int n) { return _mm256_maskload_ps(p, mask(n)); }
  FX_INLINE V load(const Bf16* p, int n) { return from(p, partial(p, n)); }
  FX_INLINE V load(const F16* p, int n) { return from(p, partial(p, n)); }
  FX_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  FX_INLINE void store(Bf16* p, V v) { _mm_storeu_si128((__m128i*)p, to(p, v)); }
  FX_INLINE void store(F16* p, V v) { _mm_storeu_si128((__m128i*)p, to(p, v)); }
  FX_INLINE void store(float* p, V v, int n) { _mm256_maskstore_ps(p, mask(n), v); }
  FX_INLINE void store(Bf16* p, V v, int n) { store_partial(p, to(p, v), n); }
  FX_INLINE void store(F16* p, V v, int n) { store_partial(p, to(p, v), n); }

 private:
  FX_INLINE V from(const Bf16*, __m128i raw) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
  }
  FX_INLINE V from(const F16*, __m128i raw) { return _mm256_cvtph_ps(raw); }
  FX_INLINE __m128i to(Bf16*, V v) {
    __m256i u = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    rounded = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    __m256i packed = _mm256_packus_epi32(rounded, rounded);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
  }
  FX_INLINE __m128i to(F16*, V v) {
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  FX_INLINE __m128i partial(const void* p, int n) {
    __m128i raw = _mm_setzero_si128();
    memcpy(&raw, p, size_t(n) * 2);
    return raw;
  }
  FX_INLINE void store_partial(void* p, __m128i raw, int n) { memcpy(p, &raw, size_t(n) * 2); }
};

template <>
struct Vec<double> {
  using V = __m256d;
  static constexpr int kLanes = 4;
  FX_INLINE V zero() { return _mm256_setzero_pd(); }
  FX_INLINE V set(double v) { return _mm256_set1_pd(v); }
  FX_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  FX_INLINE V mul(V a, V b) { return _mm256_mul_pd(a, b); }
  FX_INLINE V add(V a, V b) { return _mm256_add_pd(a, b); }
  FX_INLINE double sum(V a) {
    __m128d s = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
  FX_INLINE __m256i mask(int n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  FX_INLINE V load(const double* p) { return _mm256_loadu_pd(p); }
  FX_INLINE V load(const double* p, int n) { return _mm256_maskload_pd(p, mask(n)); }
  FX_INLINE void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  FX_INLINE void store(double* p, V v, int n) { _mm256_maskstore_pd(p, mask(n), v); }
};

#endif

// Copies n contiguous elements, converted to the compute type.
template <class T, class S>
FX_INLINE void convert_row(T* dst, const S* src, int64_t n) {
  using X = Vec<T>;
  int64_t i = 0;
  for (; i + X::kLanes <= n; i += X::kLanes) X::store(dst + i, X::load(src + i));
  if (i < n) X::store(dst + i, X::load(src + i, int(n - i)), int(n - i));
}

// Copies n contiguous elements, rounded to the storage type.
template <class S, class T>
FX_INLINE void narrow_row(S* dst, const T* src, int64_t n) {
  using X = Vec<T>;
  int64_t i = 0;
  for (; i + X::kLanes <= n; i += X::kLanes) X::store(dst + i, X::load(src + i));
  if (i < n) X::store(dst + i, X::load(src + i, int(n - i)), int(n - i));
}

// Writes the transpose of an 8 x 8 block: dst[c * dst_ld + r] = src[r * src_ld + c].
template <class S>
FX_INLINE void transpose_8x8(const S* src, int64_t src_ld, float* dst, int64_t dst_ld) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; i++) {
    const S* p = src + i * src_ld;
    if constexpr (sizeof(S) == 4) {
      r[i] = _mm256_loadu_ps((const float*)p);
    } else if constexpr (__is_same(S, F16)) {
      r[i] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
    } else {
      __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
      r[i] = _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
  }
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(dst + i * dst_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(dst + (i + 4) * dst_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

namespace {

// dst[r * dst_ld + c] = src[r * row + c * col], converted. Fast where one of the strides is 1.
template <class T, class S>
void pack(T* dst, int64_t dst_ld, const S* src, int64_t rows, int64_t cols, int64_t row,
          int64_t col) {
  if (col == 1) {
    for (int64_t r = 0; r < rows; r++) convert_row(dst + r * dst_ld, src + r * row, cols);
    return;
  }
  int64_t first_row = 0;
  if constexpr (sizeof(T) == 4) {
    int64_t whole_cols = row == 1 ? cols & ~7 : 0;
    for (; whole_cols != 0 && first_row + 8 <= rows; first_row += 8) {
      for (int64_t c = 0; c < whole_cols; c += 8)
        transpose_8x8(src + first_row + c * col, col, dst + first_row * dst_ld + c, dst_ld);
      for (int64_t c = whole_cols; c < cols; c++)
        for (int64_t r = first_row; r < first_row + 8; r++)
          dst[r * dst_ld + c] = widen(src[r + c * col]);
    }
  }
  for (int64_t c = 0; c < cols; c++)
    for (int64_t r = first_row; r < rows; r++) dst[r * dst_ld + c] = widen(src[r * row + c * col]);
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
