#include <cstring>

#include "fornax/backends/cpu/kernels/index_kernels.h"

namespace fornax::FX_ISA_NS {
namespace {

using cpu::Combine;
using cpu::ElementWalk;
using cpu::RowWalk;

struct Wide {
  uint64_t a, b;
};
struct Complex32 {
  float re, im;
};
struct Complex64 {
  double re, im;
};

template <class T>
void gather(void* small, const void* large, const ElementWalk& w) {
  const T* in = static_cast<const T*>(large);
  for (int64_t k = 0; k < w.n; ++k) {
    const int64_t* index = w.index + k * w.q;
    T* out = static_cast<T*>(small) + k * w.q;
    if (w.inner) {
      for (int64_t j = w.from; j < w.to; ++j) out[j] = in[index[j] * w.stride + w.inner[j]];
    } else {
      for (int64_t j = w.from; j < w.to; ++j) out[j] = in[index[j] * w.stride + j];
    }
  }
}

// Calls put(element of large, element of small) for every visited element.
template <class T, class Put>
inline void for_elements(void* large, const void* small, int64_t step, const ElementWalk& w,
                         Put put) {
  T* out = static_cast<T*>(large);
  const T* in = static_cast<const T*>(small);
  for (int64_t k = 0; k < w.n; ++k) {
    const int64_t* index = w.index + k * w.q;
    for (int64_t j = w.from; j < w.to; ++j) {
      int64_t i = index[j];
      if (i < w.low || i >= w.high) continue;
      put(out[i * w.stride + (w.inner ? w.inner[j] : j)], in[(k * w.q + j) * step]);
    }
  }
}

template <class T>
void scatter(void* large, const void* small, int64_t step, const ElementWalk& w) {
  for_elements<T>(large, small, step, w, [](T& to, const T& from) { to = from; });
}

template <class T>
void read_rows(void* small, const void* large, const RowWalk& w) {
  const T* in = static_cast<const T*>(large);
  T* out = static_cast<T*>(small);
  if (w.q == 1) {
    for (int64_t b = 0; b < w.n; ++b) out[b * w.step] = in[w.places[b]];
    return;
  }
  for (int64_t b = 0; b < w.n; ++b)
    std::memcpy(out + b * w.step, in + w.places[b], size_t(w.q) * sizeof(T));
}

template <class T>
void write_rows(void* large, const void* small, bool fill, const RowWalk& w) {
  T* out = static_cast<T*>(large);
  const T* in = static_cast<const T*>(small);
  for (int64_t b = 0; b < w.n; ++b) {
    int64_t place = w.places[b];
    if (place < w.low || place >= w.high) continue;
    if (fill) {
      const T value = in[0];
      for (int64_t j = 0; j < w.q; ++j) out[place + j] = value;
    } else if (w.q == 1) {
      out[place] = in[b * w.step];
    } else {
      std::memcpy(out + place, in + b * w.step, size_t(w.q) * sizeof(T));
    }
  }
}

// ---- combining
template <Combine C, class T>
inline T combined(T a, T b) {
  if constexpr (C == Combine::kSum) return T(a + b);
  if constexpr (C == Combine::kProd) return T(a * b);
  // NaN wins.
  if constexpr (C == Combine::kMax) return a >= b || a != a ? a : b;
  if constexpr (C == Combine::kMin) return a <= b || a != a ? a : b;
}

template <Combine C, class T>
inline T combined_complex(T a, T b) {
  if constexpr (C == Combine::kSum) return {a.re + b.re, a.im + b.im};
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

template <Combine C, class T>
inline T combine(T a, T b) {
  if constexpr (requires { a.im; })
    return combined_complex<C>(a, b);
  else
    return combined<C>(a, b);
}

template <class T, Combine C>
void combine_elements(void* large, const void* small, int64_t step, const ElementWalk& w) {
  for_elements<T>(large, small, step, w, [](T& to, const T& from) { to = combine<C>(to, from); });
}

template <class T, Combine C>
void combine_rows(void* large, const void* small, bool fill, const RowWalk& w) {
  T* out = static_cast<T*>(large);
  const T* in = static_cast<const T*>(small);
  for (int64_t b = 0; b < w.n; ++b) {
    int64_t place = w.places[b];
    if (place < w.low || place >= w.high) continue;
    T* __restrict to = out + place;
    const T* __restrict from = in + b * w.step;
    if (fill) {
      const T value = in[0];
      for (int64_t j = 0; j < w.q; ++j) to[j] = combine<C>(to[j], value);
    } else {
      for (int64_t j = 0; j < w.q; ++j) to[j] = combine<C>(to[j], from[j]);
    }
  }
}

template <class T>
constexpr void set_combines(cpu::IndexKernels& k, Dtype d) {
  auto* elements = k.combine_elements[int(d)];
  auto* rows = k.combine_rows[int(d)];
  elements[int(Combine::kSum)] = combine_elements<T, Combine::kSum>;
  elements[int(Combine::kProd)] = combine_elements<T, Combine::kProd>;
  rows[int(Combine::kSum)] = combine_rows<T, Combine::kSum>;
  rows[int(Combine::kProd)] = combine_rows<T, Combine::kProd>;
  if constexpr (!requires(T t) { t.im; }) {
    elements[int(Combine::kMax)] = combine_elements<T, Combine::kMax>;
    elements[int(Combine::kMin)] = combine_elements<T, Combine::kMin>;
    rows[int(Combine::kMax)] = combine_rows<T, Combine::kMax>;
    rows[int(Combine::kMin)] = combine_rows<T, Combine::kMin>;
  }
}

constexpr cpu::IndexKernels make_kernels() {
  cpu::IndexKernels k{
      {gather<uint8_t>, gather<uint16_t>, gather<uint32_t>, gather<uint64_t>, gather<Wide>},
      {scatter<uint8_t>, scatter<uint16_t>, scatter<uint32_t>, scatter<uint64_t>, scatter<Wide>},
      {read_rows<uint8_t>, read_rows<uint16_t>, read_rows<uint32_t>, read_rows<uint64_t>,
       read_rows<Wide>},
      {write_rows<uint8_t>, write_rows<uint16_t>, write_rows<uint32_t>, write_rows<uint64_t>,
       write_rows<Wide>},
      {},
      {}};
  set_combines<uint8_t>(k, Dtype::kU8);
  set_combines<int8_t>(k, Dtype::kI8);
  set_combines<int16_t>(k, Dtype::kI16);
  set_combines<int32_t>(k, Dtype::kI32);
  set_combines<int64_t>(k, Dtype::kI64);
  set_combines<float>(k, Dtype::kF32);
  set_combines<double>(k, Dtype::kF64);
  set_combines<Complex32>(k, Dtype::kC64);
  set_combines<Complex64>(k, Dtype::kC128);
  // Truth values: the sum is or, the product and.
  for (int c = 0; c < cpu::kCombineCount; ++c) {
    bool larger = c == int(Combine::kSum) || c == int(Combine::kMax);
    int as = int(larger ? Combine::kMax : Combine::kMin);
    k.combine_elements[int(Dtype::kBool)][c] = k.combine_elements[int(Dtype::kU8)][as];
    k.combine_rows[int(Dtype::kBool)][c] = k.combine_rows[int(Dtype::kU8)][as];
  }
  return k;
}

}  // namespace

constinit const cpu::IndexKernels index_kernels = make_kernels();

}  // namespace fornax::FX_ISA_NS
