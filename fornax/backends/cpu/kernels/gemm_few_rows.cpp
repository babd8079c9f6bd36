// One to four rows times a matrix: bound by reading B, which is read once, in long contiguous runs.
#include "fornax/backends/cpu/kernels/gemm_parts.h"

namespace fornax::FX_ISA_NS {
namespace {

// out[r][c] = x[r] . B[:, c] for Cols columns; x: A's rows in the compute type.
template <class S, class T, int Rows, int Cols>
FX_INLINE void dot_columns(const T* x, int64_t x_ld, const S* b, int64_t b_col, int64_t k, T* out,
                           int64_t out_ld) {
  using X = Vec<T>;
  typename X::V acc[Rows][Cols];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 8
    for (int c = 0; c < Cols; c++) acc[r][c] = X::zero();
  int64_t p = 0;
  for (; p + X::kLanes <= k; p += X::kLanes) {
    typename X::V xv[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; r++) xv[r] = X::load(x + r * x_ld + p);
#pragma GCC unroll 8
    for (int c = 0; c < Cols; c++) {
      const auto bv = X::load(b + c * b_col + p);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; r++) acc[r][c] = X::fma(xv[r], bv, acc[r][c]);
    }
  }
  if (p < k) {
    const int n = int(k - p);
#pragma GCC unroll 8
    for (int c = 0; c < Cols; c++) {
      const auto bv = X::load(b + c * b_col + p, n);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; r++)
        acc[r][c] = X::fma(X::load(x + r * x_ld + p, n), bv, acc[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 8
    for (int c = 0; c < Cols; c++) out[r * out_ld + c] = X::sum(acc[r][c]);
}

template <class S, class T, int Rows>
void dot_all(const GemmTask& t, const T* x, int64_t x_ld, T* out) {
  // As many columns at once as registers allow: independent sums hide the latency of fma.
  constexpr int kCols = kWide ? (Rows == 1 ? 8 : 4) : (Rows == 1 ? 8 : Rows == 2 ? 4 : 2);
  const S* b = static_cast<const S*>(t.b);
  int64_t j = 0;
  for (; j + kCols <= t.n; j += kCols)
    dot_columns<S, T, Rows, kCols>(x, x_ld, b + j * t.b_col, t.b_col, t.k, out + j, t.n);
  for (; j < t.n; j++)
    dot_columns<S, T, Rows, 1>(x, x_ld, b + j * t.b_col, t.b_col, t.k, out + j, t.n);
}

// out[r][0..n) += sum over Depth rows of B times x[r][p].
template <class S, class T, int Rows, int Depth>
FX_INLINE void add_rows(const T* x, int64_t x_ld, const S* b, int64_t b_row, int64_t n, T* out,
                        int64_t out_ld) {
  using X = Vec<T>;
  typename X::V xv[Rows][Depth];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 8
    for (int p = 0; p < Depth; p++) xv[r][p] = X::set(x[r * x_ld + p]);
  int64_t j = 0;
  for (; j + X::kLanes <= n; j += X::kLanes) {
    typename X::V acc[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; r++) acc[r] = X::load(out + r * out_ld + j);
#pragma GCC unroll 8
    for (int p = 0; p < Depth; p++) {
      const auto bv = X::load(b + p * b_row + j);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; r++) acc[r] = X::fma(xv[r][p], bv, acc[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; r++) X::store(out + r * out_ld + j, acc[r]);
  }
  if (j == n) return;
  const int left = int(n - j);
  for (int r = 0; r < Rows; r++) {
    auto acc = X::load(out + r * out_ld + j, left);
    for (int p = 0; p < Depth; p++) acc = X::fma(xv[r][p], X::load(b + p * b_row + j, left), acc);
    X::store(out + r * out_ld + j, acc, left);
  }
}

template <class S, class T, int Rows>
void sum_all(const GemmTask& t, const T* x, int64_t x_ld, T* out) {
  constexpr int kDepth = kWide ? (Rows <= 2 ? 8 : 4) : (Rows == 1 ? 8 : Rows == 2 ? 4 : 2);
  // Columns whose sums stay in L1 while B's rows stream by.
  constexpr int64_t kStrip = 4096 / Rows;
  const S* b = static_cast<const S*>(t.b);
  for (int64_t j = 0; j < t.n; j += kStrip) {
    const int64_t n = t.n - j < kStrip ? t.n - j : kStrip;
    for (int r = 0; r < Rows; r++)
      for (int64_t i = 0; i < n; i++) out[r * t.n + j + i] = 0;
    int64_t p = 0;
    for (; p + kDepth <= t.k; p += kDepth)
      add_rows<S, T, Rows, kDepth>(x + p, x_ld, b + p * t.b_row + j, t.b_row, n, out + j, t.n);
    for (; p < t.k; p++)
      add_rows<S, T, Rows, 1>(x + p, x_ld, b + p * t.b_row + j, t.b_row, n, out + j, t.n);
  }
}

// C = alpha * out + beta * C + bias.
template <class S, class T>
void finish(const GemmTask& t, const T* out) {
  const T alpha = T(t.alpha), beta = T(t.beta);
  const S* bias = static_cast<const S*>(t.bias);
  for (int64_t i = 0; i < t.m; i++) {
    for (int64_t j = 0; j < t.n; j++) {
      S& c = static_cast<S*>(t.c)[i * t.c_row + j * t.c_col];
      T v = alpha * out[i * t.n + j];
      if (t.beta != 0) v += beta * widen(c);
      if (bias != nullptr) v += widen(bias[i * t.bias_row + j * t.bias_col]);
      c = narrow<S>(v);
    }
  }
}

template <class S, bool Dot>
void few_rows(const GemmTask& t, void* scratch) {
  using T = typename ComputeOf<S>::type;
  T* x = static_cast<T*>(scratch);
  const int64_t x_ld = (t.k + 15) / 16 * 16;
  T* out = x + t.m * x_ld;
  pack(x, x_ld, static_cast<const S*>(t.a), t.m, t.k, t.a_row, t.a_col);
  switch (t.m) {
    case 1: Dot ? dot_all<S, T, 1>(t, x, x_ld, out) : sum_all<S, T, 1>(t, x, x_ld, out); break;
    case 2: Dot ? dot_all<S, T, 2>(t, x, x_ld, out) : sum_all<S, T, 2>(t, x, x_ld, out); break;
    case 3: Dot ? dot_all<S, T, 3>(t, x, x_ld, out) : sum_all<S, T, 3>(t, x, x_ld, out); break;
    case 4: Dot ? dot_all<S, T, 4>(t, x, x_ld, out) : sum_all<S, T, 4>(t, x, x_ld, out); break;
    default: break;
  }
  finish<S>(t, out);
}

}  // namespace

template <class S>
void gemm_few_rows_dot(const GemmTask& t, void* scratch) {
  few_rows<S, true>(t, scratch);
}
template <class S>
void gemm_few_rows_sum(const GemmTask& t, void* scratch) {
  few_rows<S, false>(t, scratch);
}

#define FX_INSTANTIATE(S)                                               \
  template void gemm_few_rows_dot<S>(const GemmTask& t, void* scratch); \
  template void gemm_few_rows_sum<S>(const GemmTask& t, void* scratch);
FX_INSTANTIATE(float)
FX_INSTANTIATE(double)
FX_INSTANTIATE(Bf16)
FX_INSTANTIATE(F16)

}  // namespace fornax::FX_ISA_NS
