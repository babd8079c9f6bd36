// Loads from and stores to every dtype, and casts between the types that loops compute in.
#include "fornax/expr/kernels/convert.h"

#include "fornax/expr/kernels/loop.h"

namespace fornax::FX_ISA_NS {
namespace {

// ---- Loads. kStep 2: one part of a complex value, kPart 1 for the imaginary one.

template <class S, class T, int kStep, int kPart>
void load_loop(void* d_, const void* a_, const void*, const void*, int64_t n) {
  T* d = static_cast<T*>(d_);
  const S* a = static_cast<const S*>(a_) + kPart;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = Narrow<T>::of(widen(a[i * kStep]));
}

void load_halves(void* d, const void* a, const void*, const void*, int64_t n) {
  halves_to_floats(static_cast<float*>(d), static_cast<const F16*>(a), n);
}

template <class M>
void load_mask(void* d_, const void* a_, const void*, const void*, int64_t n) {
  M* d = static_cast<M*>(d_);
  const uint8_t* a = static_cast<const uint8_t*>(a_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = a[i] != 0 ? M(-1) : M(0);
}

template <class T>
Loop load_number(Dtype from) {
  switch (from) {
    case Dtype::kBool: return load_loop<Bool8, T, 1, 0>;
    case Dtype::kU8: return load_loop<uint8_t, T, 1, 0>;
    case Dtype::kI8: return load_loop<int8_t, T, 1, 0>;
    case Dtype::kI16: return load_loop<int16_t, T, 1, 0>;
    case Dtype::kI32: return load_loop<int32_t, T, 1, 0>;
    case Dtype::kI64: return load_loop<int64_t, T, 1, 0>;
    case Dtype::kBF16: return load_loop<BF16, T, 1, 0>;
    case Dtype::kF32: return load_loop<float, T, 1, 0>;
    case Dtype::kF64: return load_loop<double, T, 1, 0>;
    default: return nullptr;
  }
}

template <class T>
Loop load_part(Dtype from, bool imaginary) {
  switch (from) {
    case Dtype::kC32: return imaginary ? load_loop<F16, T, 2, 1> : load_loop<F16, T, 2, 0>;
    case Dtype::kC64: return imaginary ? load_loop<float, T, 2, 1> : load_loop<float, T, 2, 0>;
    case Dtype::kC128: return imaginary ? load_loop<double, T, 2, 1> : load_loop<double, T, 2, 0>;
    default: return nullptr;
  }
}

// ---- Stores

template <class T, class S>
void store_loop(void* d_, const void* a_, const void*, const void*, int64_t n) {
  S* d = static_cast<S*>(d_);
  const T* a = static_cast<const T*>(a_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = Narrow<S>::of(a[i]);
}

void store_halves(void* d, const void* a, const void*, const void*, int64_t n) {
  floats_to_halves(static_cast<F16*>(d), static_cast<const float*>(a), n);
}

template <class T, class S>
void store_complex(void* d_, const void* a_, const void* b_, const void*, int64_t n) {
  S* d = static_cast<S*>(d_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    d[2 * i] = Narrow<S>::of(a[i]);
    d[2 * i + 1] = Narrow<S>::of(b[i]);
  }
}

template <class T>
void store_bool(void* d_, const void* a_, const void*, const void*, int64_t n) {
  uint8_t* d = static_cast<uint8_t*>(d_);
  const T* a = static_cast<const T*>(a_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = a[i] != T(0) ? 1 : 0;
}

template <class T>
Loop store_number(Dtype to) {
  switch (to) {
    case Dtype::kBool: return store_bool<T>;
    case Dtype::kU8: return store_loop<T, uint8_t>;
    case Dtype::kI8: return store_loop<T, int8_t>;
    case Dtype::kI16: return store_loop<T, int16_t>;
    case Dtype::kI32: return store_loop<T, int32_t>;
    case Dtype::kI64: return store_loop<T, int64_t>;
    case Dtype::kF16: return store_loop<T, F16>;
    case Dtype::kBF16: return store_loop<T, BF16>;
    case Dtype::kF32: return store_loop<T, float>;
    case Dtype::kF64: return store_loop<T, double>;
    case Dtype::kC32: return store_complex<T, F16>;
    case Dtype::kC64: return store_complex<T, float>;
    case Dtype::kC128: return store_complex<T, double>;
    case Dtype::kUndefined: break;
  }
  return nullptr;
}

// ---- Casts

template <class R>
struct Convert {
  template <class T>
  static inline R of(T a) {
    return Narrow<R>::of(a);
  }
};
template <class R>
struct FromMask {
  template <class M>
  static inline R of(M a) {
    return Narrow<R>::of(M(-a));
  }
};
template <class M>
struct ToMask {
  template <class T>
  static inline M of(T a) {
    return a != T(0) ? M(-1) : M(0);
  }
};

template <class T>
Loop cast_number(Lane to) {
  switch (to) {
    case Lane::kM32: return unary_loop<int32_t, T, ToMask<int32_t>>;
    case Lane::kM64: return unary_loop<int64_t, T, ToMask<int64_t>>;
    case Lane::kI32: return unary_loop<int32_t, T, Convert<int32_t>>;
    case Lane::kI64: return unary_loop<int64_t, T, Convert<int64_t>>;
    case Lane::kF32: return unary_loop<float, T, Convert<float>>;
    case Lane::kF64: return unary_loop<double, T, Convert<double>>;
  }
  return nullptr;
}

template <class M>
Loop cast_mask(Lane to) {
  switch (to) {
    case Lane::kI32: return unary_loop<int32_t, M, FromMask<int32_t>>;
    case Lane::kI64: return unary_loop<int64_t, M, FromMask<int64_t>>;
    case Lane::kF32: return unary_loop<float, M, FromMask<float>>;
    case Lane::kF64: return unary_loop<double, M, FromMask<double>>;
    default: return nullptr;
  }
}

}  // namespace

Loop find_load(Dtype from, Lane to, int part) {
  if (to == Lane::kM32) return from == Dtype::kBool ? load_mask<int32_t> : nullptr;
  if (to == Lane::kM64) return from == Dtype::kBool ? load_mask<int64_t> : nullptr;
  if (to == Lane::kI32) return load_number<int32_t>(from);
  if (to == Lane::kI64) return load_number<int64_t>(from);
  if (part != 0)
    return to == Lane::kF32 ? load_part<float>(from, part == 2)
                            : load_part<double>(from, part == 2);
  if (from == Dtype::kF16) return to == Lane::kF32 ? load_halves : load_loop<F16, double, 1, 0>;
  return to == Lane::kF32 ? load_number<float>(from) : load_number<double>(from);
}

Loop find_store(Lane from, Dtype to) {
  switch (from) {
    case Lane::kM32: return to == Dtype::kBool ? store_bool<int32_t> : nullptr;
    case Lane::kM64: return to == Dtype::kBool ? store_bool<int64_t> : nullptr;
    case Lane::kI32: return store_number<int32_t>(to);
    case Lane::kI64: return store_number<int64_t>(to);
    case Lane::kF32: return to == Dtype::kF16 ? store_halves : store_number<float>(to);
    case Lane::kF64: return store_number<double>(to);
  }
  return nullptr;
}

Loop find_cast(Lane from, Lane to) {
  switch (from) {
    case Lane::kM32: return cast_mask<int32_t>(to);
    case Lane::kM64: return cast_mask<int64_t>(to);
    case Lane::kI32: return cast_number<int32_t>(to);
    case Lane::kI64: return cast_number<int64_t>(to);
    case Lane::kF32: return cast_number<float>(to);
    case Lane::kF64: return cast_number<double>(to);
  }
  return nullptr;
}

}  // namespace fornax::FX_ISA_NS
