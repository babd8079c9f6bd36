// Products that fit in L1: no packing of A, B straight from memory where its rows are contiguous.
// Also the integer products and the table of all matrix-product kernels.
#include "fornax/backends/cpu/kernels/gemm_parts.h"

namespace fornax::FX_ISA_NS {
namespace {

// Rows x n block of C; B's rows are contiguous (storage type BS: the storage type itself, or the
// compute type after packing).
template <class S, class BS, int Rows, int Vecs>
FX_INLINE void small_tile(const GemmTask& t, const BS* b, int64_t b_row, int64_t i0, int64_t j0,
                          int n) {
  using T = typename ComputeOf<S>::type;
  using X = Vec<T>;
  typename X::V acc[Rows][Vecs];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++) acc[r][v] = X::zero();
  const S* a = static_cast<const S*>(t.a) + i0 * t.a_row;
  const int last = n - (Vecs - 1) * X::kLanes;
  for (int64_t p = 0; p < t.k; p++) {
    typename X::V bv[Vecs];
    const BS* row = b + p * b_row + j0;
    if constexpr (Vecs == 2) bv[0] = X::load(row);
    bv[Vecs - 1] = X::load(row + (Vecs - 1) * X::kLanes, last);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; r++) {
      const auto av = X::set(widen(a[r * t.a_row + p * t.a_col]));
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; v++) acc[r][v] = X::fma(av, bv[v], acc[r][v]);
    }
  }
  alignas(64) T tile[Rows * kTileCols<T>];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++) X::store(tile + r * kTileCols<T> + v * X::kLanes, acc[r][v]);
  store_tile<S>(t, tile, i0, j0, Rows, n);
}

template <class S, class BS, int Vecs>
FX_INLINE void small_columns(const GemmTask& t, const BS* b, int64_t b_row, int64_t j0, int n) {
  int64_t i = 0;
  for (; i + 4 <= t.m; i += 4) small_tile<S, BS, 4, Vecs>(t, b, b_row, i, j0, n);
  switch (t.m - i) {
    case 3: return small_tile<S, BS, 3, Vecs>(t, b, b_row, i, j0, n);
    case 2: return small_tile<S, BS, 2, Vecs>(t, b, b_row, i, j0, n);
    case 1: return small_tile<S, BS, 1, Vecs>(t, b, b_row, i, j0, n);
    default: return;
  }
}

template <class S, class BS>
void small_product(const GemmTask& t, const BS* b, int64_t b_row) {
  using T = typename ComputeOf<S>::type;
  for (int64_t j = 0; j < t.n; j += kTileCols<T>) {
    const int64_t left = t.n - j;
    if (left <= Vec<T>::kLanes)
      small_columns<S, BS, 1>(t, b, b_row, j, int(left));
    else
      small_columns<S, BS, 2>(t, b, b_row, j, left < kTileCols<T> ? int(left) : kTileCols<T>);
  }
}

template <class I>
struct Accumulator {
  using type = uint32_t;
};
template <>
struct Accumulator<int64_t> {
  using type = uint64_t;
};

template <class S>
void widen_all(const void* from, void* to, int64_t n) {
  convert_row(static_cast<float*>(to), static_cast<const S*>(from), n);
}

template <class S>
void narrow_all(const void* from, void* to, int64_t n) {
  narrow_row(static_cast<S*>(to), static_cast<const float*>(from), n);
}

constexpr int64_t kIntegerCols = 256;

// sums[r][j] = A rows i0.. times B columns j0.., modulo 2^bits of the accumulator.
template <class I, class U>
void integer_sums(const GemmTask& t, int64_t i0, int64_t rows, int64_t j0, int64_t cols,
                  U (*sums)[kIntegerCols]) {
  const I* a = static_cast<const I*>(t.a) + i0 * t.a_row;
  const I* b = static_cast<const I*>(t.b) + j0 * t.b_col;
  if (t.b_row == 1 && t.a_col == 1 && t.b_col != 1) {
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t j = 0; j < cols; j++) {
        const I* x = a + r * t.a_row;
        const I* y = b + j * t.b_col;
        U sum = 0;
        for (int64_t p = 0; p < t.k; p++) sum += U(x[p]) * U(y[p]);
        sums[r][j] = sum;
      }
    }
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < cols; j++) sums[r][j] = 0;
  for (int64_t p = 0; p < t.k; p++) {
    const I* y = b + p * t.b_row;
    for (int64_t r = 0; r < rows; r++) {
      const U x = U(a[r * t.a_row + p * t.a_col]);
      if (t.b_col == 1)
        for (int64_t j = 0; j < cols; j++) sums[r][j] += x * U(y[j]);
      else
        for (int64_t j = 0; j < cols; j++) sums[r][j] += x * U(y[j * t.b_col]);
    }
  }
}

}  // namespace

template <class I>
void gemm_integer(const GemmTask& t) {
  using U = typename Accumulator<I>::type;
  constexpr int64_t kRows = 4;
  U sums[kRows][kIntegerCols];
  const U alpha = U(t.alpha_int), beta = U(t.beta_int);
  const I* bias = static_cast<const I*>(t.bias);
  for (int64_t i0 = 0; i0 < t.m; i0 += kRows) {
    const int64_t rows = t.m - i0 < kRows ? t.m - i0 : kRows;
    for (int64_t j0 = 0; j0 < t.n; j0 += kIntegerCols) {
      const int64_t cols = t.n - j0 < kIntegerCols ? t.n - j0 : kIntegerCols;
      integer_sums<I>(t, i0, rows, j0, cols, sums);
      for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < cols; j++) {
          I& c = static_cast<I*>(t.c)[(i0 + r) * t.c_row + (j0 + j) * t.c_col];
          U v = alpha * sums[r][j];
          if (beta != 0) v += beta * U(c);
          if (bias != nullptr) v += U(bias[(i0 + r) * t.bias_row + (j0 + j) * t.bias_col]);
          c = I(v);
        }
      }
    }
  }
}

template <class S>
void gemm_small(const GemmTask& t) {
  using T = typename ComputeOf<S>::type;
  if (t.b_col == 1) return small_product<S>(t, static_cast<const S*>(t.b), t.b_row);
  alignas(64) T panel[cpu::kSmallPanel];
  const int64_t width = (t.n + Vec<T>::kLanes - 1) / Vec<T>::kLanes * Vec<T>::kLanes;
  pack(panel, width, static_cast<const S*>(t.b), t.k, t.n, t.b_row, t.b_col);
  small_product<S>(t, panel, width);
}

#define FX_PER_FLOAT(function)                                                           \
  {                                                                                      \
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, function<F16>, function<Bf16>, \
        function<float>, function<double>, nullptr, nullptr, nullptr                     \
  }

extern constinit const cpu::GemmKernels gemm_kernels = {
    .small = FX_PER_FLOAT(gemm_small),
    .few_rows_dot = FX_PER_FLOAT(gemm_few_rows_dot),
    .few_rows_sum = FX_PER_FLOAT(gemm_few_rows_sum),
    .packed = FX_PER_FLOAT(gemm_packed),
    .packed_scratch = gemm_packed_scratch,
    .widen = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, widen_all<F16>,
              widen_all<Bf16>},
    .narrow = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, narrow_all<F16>,
               narrow_all<Bf16>},
    .integer = {nullptr, gemm_integer<uint8_t>, gemm_integer<int8_t>, gemm_integer<int16_t>,
                gemm_integer<int32_t>, gemm_integer<int64_t>},
};

}  // namespace fornax::FX_ISA_NS
