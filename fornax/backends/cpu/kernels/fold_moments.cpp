// Folds to count, mean and sum of squared deviations.
#include "fornax/backends/cpu/kernels/fold_kernels.h"
#include "fornax/backends/cpu/kernels/moments.h"

namespace fornax::FX_ISA_NS {
namespace {

template <class S>
struct MomentFold {
  using V = Value<S>;

  static void start(void* acc, int64_t plane, int64_t n) {
    double* a = static_cast<double*>(acc);
    for (int p = 0; p < 3; ++p)
      for (int64_t i = 0; i < n; ++i) a[p * plane + i] = 0;
  }
  static void merge(void* acc, int64_t plane, const void* later, int64_t later_plane, int64_t n) {
    double* a = static_cast<double*>(acc);
    const double* b = static_cast<const double*>(later);
    for (int64_t i = 0; i < n; ++i) {
      Moments m = {a[i], a[plane + i], a[2 * plane + i]};
      add(m, {b[i], b[later_plane + i], b[2 * later_plane + i]});
      a[i] = m.count;
      a[plane + i] = m.mean;
      a[2 * plane + i] = m.squares;
    }
  }

  static void rows(void* acc, int64_t plane, const void* x_, int64_t count, int64_t row_stride,
                   int64_t n, int64_t stride, int64_t) {
    double* a = static_cast<double*>(acc);
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < count; ++r, x += row_stride) {
      Moments m = {a[r], a[plane + r], a[2 * plane + r]};
      add_row(m, x, n, stride);
      a[r] = m.count;
      a[plane + r] = m.mean;
      a[2 * plane + r] = m.squares;
    }
  }

  static constexpr int64_t kTileRows = 32, kTileCols = 512;

  static void row_sums(V* sums, const S* x, int64_t cols, const V* center, V* squares) {
    constexpr int kN = kWidth<V>;
    int64_t c = 0;
    for (; c + kN <= cols; c += kN) {
      auto d = load_lanes<V, kN>(x + c);
      if (center) d -= load_raw<Vector<V, kN>>(center + c);
      auto s = load_raw<Vector<V, kN>>(sums + c) + d;
      __builtin_memcpy(sums + c, &s, sizeof(s));
      if (!center) continue;
      s = load_raw<Vector<V, kN>>(squares + c) + d * d;
      __builtin_memcpy(squares + c, &s, sizeof(s));
    }
    for (; c < cols; ++c) {
      V d = V(widen(x[c])) - (center ? center[c] : V(0));
      sums[c] += d;
      if (center) squares[c] += d * d;
    }
  }

  static void tile(double* a, int64_t plane, const S* x, int64_t rows, int64_t row_stride,
                   int64_t cols) {
    V center[kTileCols] = {}, sums[kTileCols] = {}, squares[kTileCols] = {};
    for (int64_t r = 0; r < rows; ++r) row_sums(center, x + r * row_stride, cols, nullptr, nullptr);
    const double n = double(rows);
    for (int64_t c = 0; c < cols; ++c) center[c] = V(double(center[c]) / n);
    for (int64_t r = 0; r < rows; ++r) row_sums(sums, x + r * row_stride, cols, center, squares);
    const double old = a[0];  // equal for all columns
    const double weight = n / (old + n), both = old * n / (old + n);
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) {
      double shift = double(sums[c]) / n;
      double rest = double(squares[c]) - double(sums[c]) * shift, mean = double(center[c]) + shift;
      rest = rest < 0 ? 0 : rest;
      double delta = mean - a[plane + c];
      a[plane + c] = old == 0 ? mean : a[plane + c] + delta * weight;
      a[2 * plane + c] = old == 0 ? rest : a[2 * plane + c] + rest + delta * delta * both;
      a[c] = old + n;
    }
  }

  static void columns(void* acc, int64_t plane, const void* x_, int64_t rows, int64_t row_stride,
                      int64_t cols, int64_t) {
    double* a = static_cast<double*>(acc);
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < rows; r += kTileRows)
      for (int64_t c = 0; c < cols; c += kTileCols)
        tile(a + c, plane, x + r * row_stride + c, rows - r < kTileRows ? rows - r : kTileRows,
             row_stride, cols - c < kTileCols ? cols - c : kTileCols);
  }

  static void set(cpu::FoldTable& table) {
    table.loops[int(cpu::FoldKind::kMoments)][int(kStored<S>)] = {3,    false,   start,
                                                                  rows, columns, merge};
  }
};

}  // namespace

void set_moment_folds(cpu::FoldTable& table) {
  MomentFold<float>::set(table);
  MomentFold<double>::set(table);
  MomentFold<BF16>::set(table);
  MomentFold<F16>::set(table);
}

}  // namespace fornax::FX_ISA_NS
