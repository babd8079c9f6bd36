// Rows are taken in tiles that stay in the first-level cache, converted to the compute type.
#include "fornax/backends/cpu/kernels/softmax_kernels.h"

#include "fornax/backends/cpu/kernels/tiles.h"

namespace fornax::FX_ISA_NS {
namespace {

template <class S>
struct Rows : Tiles<S> {
  using Base = Tiles<S>;
  using Base::kSame, Base::kTile, Base::widened, Base::target, Base::narrowed;
  using typename Base::V;

  FX_INLINE V max_of(const S* x, int64_t n) { return V(fold_run<Max>(x, n, 1)); }

  // What is subtracted before exp: the maximum, unless it is infinite with a finite limit.
  FX_INLINE V shift_of(V high) { return high == -Fp<V>::kInf ? V(0) : high; }

  // sum exp(x - high), in tiles.
  FX_INLINE double exp_sum(const S* x, int64_t n, V high) {
    V buffer[kTile], terms[kTile];
    double sum = 0;
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      const V* v = widened(x + i, m, buffer);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) terms[k] = exp(v[k] - high);
      sum += fold_run<Sum>(terms, m, 1);
    }
    return sum;
  }

  static void one(S* y, const S* x, int64_t n) {
    const V high = shift_of(max_of(x, n));
    V buffer[kTile], terms[kTile];
    double sum = 0;
    if (n <= kTile) {
      const V* v = widened(x, n, buffer);
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) terms[k] = exp(v[k] - high);
      sum = fold_run<Sum>(terms, n, 1);
      const V scale = V(1 / sum);
      V* out = target(y, terms);
#pragma GCC ivdep
      for (int64_t k = 0; k < n; ++k) out[k] = terms[k] * scale;
      return narrowed(y, out, n);
    }
    if constexpr (kSame) {
      for (int64_t i = 0; i < n; i += kTile) {
        const int64_t m = n - i < kTile ? n - i : kTile;
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) y[i + k] = exp(x[i + k] - high);
        sum += fold_run<Sum>(y + i, m, 1);
      }
      const V scale = V(1 / sum);
      for (int64_t k = 0; k < n; ++k) y[k] *= scale;
    } else {
      const V scale = V(1 / exp_sum(x, n, high));
      for (int64_t i = 0; i < n; i += kTile) {
        const int64_t m = n - i < kTile ? n - i : kTile;
        const V* v = widened(x + i, m, buffer);
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) terms[k] = exp(v[k] - high) * scale;
        narrowed(y + i, terms, m);
      }
    }
  }

  static void one_log(S* y, const S* x, int64_t n) {
    const V high = shift_of(max_of(x, n));
    const V rest = V(log(exp_sum(x, n, high)));
    V buffer[kTile], terms[kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      const V* v = widened(x + i, m, buffer);
      V* out = target(y + i, terms);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) out[k] = v[k] - high - rest;
      narrowed(y + i, out, m);
    }
  }

  static void rows(void* y_, const void* x_, int64_t rows, int64_t n, bool log) {
    S* y = static_cast<S*>(y_);
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < rows; ++r)
      log ? one_log(y + r * n, x + r * n, n) : one(y + r * n, x + r * n, n);
  }

  static void one_backward(S* gx, const S* g, const S* y, int64_t n, bool log) {
    V gs[kTile], ys[kTile], terms[kTile];
    double sum = 0;
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      const V* gv = widened(g + i, m, gs);
      if (log) {
        sum += fold_run<Sum>(gv, m, 1);
        continue;
      }
      const V* yv = widened(y + i, m, ys);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) terms[k] = gv[k] * yv[k];
      sum += fold_run<Sum>(terms, m, 1);
    }
    const V total = V(sum);
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      const V* gv = widened(g + i, m, gs);
      const V* yv = widened(y + i, m, ys);
      V* out = target(gx + i, terms);
      if (log) {
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = gv[k] - exp(yv[k]) * total;
      } else {
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = yv[k] * (gv[k] - total);
      }
      narrowed(gx + i, out, m);
    }
  }
  static void rows_backward(void* gx, const void* g, const void* y, int64_t rows, int64_t n,
                            bool log) {
    for (int64_t r = 0; r < rows; ++r)
      one_backward(static_cast<S*>(gx) + r * n, static_cast<const S*>(g) + r * n,
                   static_cast<const S*>(y) + r * n, n, log);
  }

  static void log_sum_exp(double* lse, double* sums, const void* x_, int64_t rows, int64_t n) {
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < rows; ++r, x += n) {
      const V high = max_of(x, n);
      const bool limit = high == Fp<V>::kInf || high == -Fp<V>::kInf;
      lse[r] = limit ? double(high) : double(high) + log(exp_sum(x, n, high));
      if (sums) sums[r] = fold_run<Sum>(x, n, 1);
    }
  }

  static void cross_entropy_backward(void* gx_, const void* x_, int64_t n, double lse,
                                     double scale_, double each_) {
    S* gx = static_cast<S*>(gx_);
    const S* x = static_cast<const S*>(x_);
    const V shift = V(lse), scale = V(scale_), each = V(each_);
    V buffer[kTile], terms[kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      const V* v = widened(x + i, m, buffer);
      V* out = target(gx + i, terms);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) out[k] = exp(v[k] - shift) * scale - each;
      narrowed(gx + i, out, m);
    }
  }
};

// Columns: a tile of them at a time, so that three passes read it from the second-level cache.
template <class V>
struct Columns {
  static constexpr int64_t kMost = 512;
  FX_INLINE int64_t tile_of(int64_t n, int64_t cols) {
    int64_t fit = int64_t(1 << 19) / int64_t(sizeof(V)) / (n > 0 ? n : 1);
    fit = fit < 32 ? 32 : fit > kMost ? kMost : fit / 16 * 16;
    return fit < cols ? fit : cols;
  }

  static void tile(V* y, const V* x, int64_t n, int64_t stride, int64_t cols, bool logarithm) {
    V high[kMost], sum[kMost], low[kMost];
    for (int64_t c = 0; c < cols; ++c) {
      high[c] = x[c];
      sum[c] = low[c] = 0;
    }
    for (int64_t k = 1; k < n; ++k) {
      const V* p = x + k * stride;
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) high[c] = Max::combine(high[c], p[c]);
    }
    for (int64_t c = 0; c < cols; ++c) high[c] = high[c] == -Fp<V>::kInf ? V(0) : high[c];
    for (int64_t k = 0; k < n; ++k) {
      const V* p = x + k * stride;
      V* q = y + k * stride;
#pragma GCC ivdep
      for (int64_t c = 0; c < cols; ++c) {  // compensated: n may be large
        const V e = exp(p[c] - high[c]);
        if (!logarithm) q[c] = e;
        const V t = e - low[c], s = sum[c] + t;
        low[c] = (s - sum[c]) - t;
        sum[c] = s;
      }
    }
    for (int64_t c = 0; c < cols; ++c) sum[c] = logarithm ? log(sum[c]) : V(1) / sum[c];
    for (int64_t k = 0; k < n; ++k) {
      const V* p = x + k * stride;
      V* q = y + k * stride;
      if (logarithm) {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) q[c] = p[c] - high[c] - sum[c];
      } else {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) q[c] *= sum[c];
      }
    }
  }
  static void columns(void* y, const void* x, int64_t n, int64_t stride, int64_t cols, bool log) {
    const int64_t width = tile_of(n, cols);
    for (int64_t c = 0; c < cols; c += width)
      tile(static_cast<V*>(y) + c, static_cast<const V*>(x) + c, n, stride,
           cols - c < width ? cols - c : width, log);
  }

  static void tile_backward(V* gx, const V* g, const V* y, int64_t n, int64_t stride, int64_t cols,
                            bool log) {
    double sum[kMost] = {};
    for (int64_t k = 0; k < n; ++k) {
      const V *p = g + k * stride, *q = y + k * stride;
      if (log) {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) sum[c] += double(p[c]);
      } else {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) sum[c] += double(p[c] * q[c]);
      }
    }
    V total[kMost];
    for (int64_t c = 0; c < cols; ++c) total[c] = V(sum[c]);
    for (int64_t k = 0; k < n; ++k) {
      const V *p = g + k * stride, *q = y + k * stride;
      V* out = gx + k * stride;
      if (log) {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) out[c] = p[c] - exp(q[c]) * total[c];
      } else {
#pragma GCC ivdep
        for (int64_t c = 0; c < cols; ++c) out[c] = q[c] * (p[c] - total[c]);
      }
    }
  }
  static void columns_backward(void* gx, const void* g, const void* y, int64_t n, int64_t stride,
                               int64_t cols, bool log) {
    const int64_t width = tile_of(2 * n, cols);
    for (int64_t c = 0; c < cols; c += width)
      tile_backward(static_cast<V*>(gx) + c, static_cast<const V*>(g) + c,
                    static_cast<const V*>(y) + c, n, stride, cols - c < width ? cols - c : width,
                    log);
  }
};

template <class S>
cpu::SoftmaxLoops row_loops() {
  cpu::SoftmaxLoops loops;
  loops.rows = Rows<S>::rows;
  loops.rows_backward = Rows<S>::rows_backward;
  loops.log_sum_exp = Rows<S>::log_sum_exp;
  loops.cross_entropy_backward = Rows<S>::cross_entropy_backward;
  return loops;
}
template <class V>
void add_columns(cpu::SoftmaxLoops& loops) {
  loops.columns = Columns<V>::columns;
  loops.columns_backward = Columns<V>::columns_backward;
}

}  // namespace

void set_softmax(cpu::SoftmaxTable& table) {
  table.loops[int(Dtype::kF32)] = row_loops<float>();
  table.loops[int(Dtype::kF64)] = row_loops<double>();
  table.loops[int(Dtype::kBF16)] = row_loops<BF16>();
  table.loops[int(Dtype::kF16)] = row_loops<F16>();
  add_columns<float>(table.loops[int(Dtype::kF32)]);
  add_columns<double>(table.loops[int(Dtype::kF64)]);
}

}  // namespace fornax::FX_ISA_NS
