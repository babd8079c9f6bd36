// Tiles of a row in the compute type, for kernels whose loops are plain code over floats or
// doubles. For kernel sources only.
#pragma once

#include "fornax/backends/cpu/kernels/fold_lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

template <class S>
struct Tiles {
  using V = Value<S>;
  static constexpr bool kSame = std::is_same_v<S, V>;
  static constexpr int64_t kTile = 2048;

  // x itself, or x converted into `buffer`.
  FX_INLINE const V* widened(const S* x, int64_t n, V* buffer) {
    if constexpr (kSame) {
      return x;
    } else if constexpr (std::is_same_v<S, F16>) {
      halves_to_floats(buffer, x, n);
      return buffer;
    } else {
      for (int64_t i = 0; i < n; ++i) buffer[i] = widen(x[i]);
      return buffer;
    }
  }
  // Where the results for y are to be written: y itself, or `buffer`; then narrowed() stores them.
  FX_INLINE V* target(S* y, V* buffer) {
    if constexpr (kSame)
      return y;
    else
      return buffer;
  }
  FX_INLINE void narrowed(S* y, const V* values, int64_t n) {
    if constexpr (std::is_same_v<S, F16>)
      floats_to_halves(y, values, n);
    else if constexpr (!kSame)
      for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(values[i]);
  }
  // each(first, count) for the tiles of n elements.
  template <class F>
  FX_INLINE void for_tiles(int64_t n, F each) {
    for (int64_t i = 0; i < n; i += kTile) each(i, n - i < kTile ? n - i : kTile);
  }
};

}  // namespace
}  // namespace fornax::FX_ISA_NS
