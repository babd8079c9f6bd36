// What the matrix-product kernels share: packing with conversion, writing a finished tile.
#pragma once

#include "fornax/backends/cpu/kernels/gemm_kernels.h"
#include "fornax/backends/cpu/kernels/vec.h"

namespace fornax::FX_ISA_NS {

using cpu::GemmTask;

template <class S>
void gemm_small(const GemmTask& t);
template <class S>
void gemm_few_rows_dot(const GemmTask& t, void* scratch);
template <class S>
void gemm_few_rows_sum(const GemmTask& t, void* scratch);
template <class S>
void gemm_packed(const GemmTask& t, void* scratch);
int64_t gemm_packed_scratch(const GemmTask& t);
template <class I>
void gemm_integer(const GemmTask& t);

// Tiles are kTileCols<T> wide: two vectors.
template <class T>
inline constexpr int kTileCols = 2 * Vec<T>::kLanes;
template <class T>
inline constexpr int kTileRows = kWide ? 14 : 6;

namespace {

// C = alpha * tile + beta * C + bias for the rows x cols corner of a tile; (i0, j0) is its place in
// C.
template <class S, class T>
FX_INLINE void store_tile_rows(const GemmTask& t, const T* tile, int64_t i0, int64_t j0,
                               int64_t rows, int64_t cols) {
  using X = Vec<T>;
  const auto alpha = X::set(T(t.alpha)), beta = X::set(T(t.beta));
  const S* bias = static_cast<const S*>(t.bias);
  for (int64_t i = 0; i < rows; i++) {
    S* c = static_cast<S*>(t.c) + (i0 + i) * t.c_row + j0;
    for (int64_t j = 0; j < cols; j += X::kLanes) {
      const int n = cols - j < X::kLanes ? int(cols - j) : X::kLanes;
      auto v = X::load(tile + i * kTileCols<T> + j);
      if (t.alpha != 1) v = X::mul(v, alpha);
      if (t.beta != 0) v = X::fma(X::load(c + j, n), beta, v);
      if (bias != nullptr) {
        v = X::add(v, t.bias_col != 0 ? X::load(bias + j0 + j, n)
                                      : X::set(widen(bias[(i0 + i) * t.bias_row])));
      }
      if (n == X::kLanes)
        X::store(c + j, v);
      else
        X::store(c + j, v, n);
    }
  }
}

template <class S, class T>
void store_tile(const GemmTask& t, const T* tile, int64_t i0, int64_t j0, int64_t rows,
                int64_t cols) {
  if (t.c_col == 1 && t.bias_col <= 1) return store_tile_rows<S>(t, tile, i0, j0, rows, cols);
  const T alpha = T(t.alpha), beta = T(t.beta);
  const S* bias = static_cast<const S*>(t.bias);
  for (int64_t j = 0; j < cols; j++) {
    S* c = static_cast<S*>(t.c) + i0 * t.c_row + (j0 + j) * t.c_col;
    for (int64_t i = 0; i < rows; i++) {
      T v = alpha * tile[i * kTileCols<T> + j];
      if (t.beta != 0) v += beta * widen(c[i * t.c_row]);
      if (bias != nullptr) v += widen(bias[(i0 + i) * t.bias_row + (j0 + j) * t.bias_col]);
      c[i * t.c_row] = narrow<S>(v);
    }
  }
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
