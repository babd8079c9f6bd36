// Vectors of the compiler's own kind for row and column kernels: arithmetic and comparisons by
// operators, loads that widen from the storage types. For kernel sources only.
#pragma once

#include <type_traits>

#include "fornax/base/dtype.h"
#include "fornax/expr/kernels/convert.h"

namespace fornax::FX_ISA_NS {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#else
inline constexpr int kVectorBytes = 32;
#endif

template <class T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T, int N>
using Vector = typename VectorOf<T, N>::type;
// Lanes of T in one register.
template <class T>
inline constexpr int kWidth = kVectorBytes / int(sizeof(T));

// The dtype that lies in memory as S.
template <class S>
inline constexpr Dtype kStored = dtype_of<S>;
template <>
inline constexpr Dtype kStored<BF16> = Dtype::kBF16;
template <>
inline constexpr Dtype kStored<F16> = Dtype::kF16;
template <>
inline constexpr Dtype kStored<Bool8> = Dtype::kBool;

template <class V, class S>
FX_INLINE V load_raw(const S* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

// N elements of storage type S as T.
template <class T, int N, class S>
FX_INLINE Vector<T, N> load_lanes(const S* p) {
  if constexpr (std::is_same_v<S, T>)
    return load_raw<Vector<T, N>>(p);
  else
    return __builtin_convertvector((load_raw<Vector<S, N>>(p)), Vector<T, N>);
}
template <class T, int N>
FX_INLINE Vector<T, N> load_lanes(const Bool8* p) {
  auto set = load_raw<Vector<int8_t, N>>(p) != 0;
  return __builtin_convertvector(set & 1, Vector<T, N>);
}
template <class T, int N>
FX_INLINE Vector<T, N> load_lanes(const BF16* p) {
  auto wide = __builtin_convertvector((load_raw<Vector<uint16_t, N>>(p)), Vector<uint32_t, N>);
  wide <<= 16;
  Vector<float, N> f;
  __builtin_memcpy(&f, &wide, sizeof(f));
  if constexpr (std::is_same_v<T, float>)
    return f;
  else
    return __builtin_convertvector(f, Vector<T, N>);
}
template <class T, int N>
FX_INLINE Vector<T, N> load_lanes(const F16* p) {
  Vector<float, N> f;
#if defined(__AVX512F__)
  if constexpr (N == 16) {
    auto v = _mm512_cvtph_ps(load_raw<__m256i>(p));
    __builtin_memcpy(&f, &v, sizeof(f));
  } else
#endif
      if constexpr (N == 8) {
    auto v = _mm256_cvtph_ps(load_raw<__m128i>(p));
    __builtin_memcpy(&f, &v, sizeof(f));
  } else {
    static_assert(N == 4);
    auto v = _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    __builtin_memcpy(&f, &v, sizeof(f));
  }
  if constexpr (std::is_same_v<T, float>)
    return f;
  else
    return __builtin_convertvector(f, Vector<T, N>);
}

}  // namespace fornax::FX_ISA_NS
