#include "fornax/backends/cpu/kernels/norm_kernels.h"

#include "fornax/backends/cpu/kernels/moments.h"
#include "fornax/backends/cpu/kernels/tiles.h"

namespace fornax::FX_ISA_NS {
namespace {

template <class S>
struct Norm : Tiles<S> {
  using Base = Tiles<S>;
  using Base::kTile, Base::widened, Base::target, Base::narrowed, Base::for_tiles;
  using typename Base::V;

  // y = (x - mean) * rstd * weight + bias
  static void normalise(S* y, const S* x, const V* weight, const V* bias, int64_t n, V mean,
                        V rstd) {
    V in[kTile], buffer[kTile];
    for_tiles(n, [&](int64_t i, int64_t m) {
      const V* v = widened(x + i, m, in);
      V* out = target(y + i, buffer);
      const V *w = weight + i, *b = bias + i;
      if (weight && bias) {
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = (v[k] - mean) * rstd * w[k] + b[k];
      } else if (weight) {
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = (v[k] - mean) * rstd * w[k];
      } else {
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = (v[k] - mean) * rstd + (bias ? b[k] : V(0));
      }
      narrowed(y + i, out, m);
    });
  }

  static void layer_norm(void* y_, void* mean_, void* rstd_, const void* x_, const void* weight,
                         const void* bias, int64_t rows, int64_t n, double eps, bool rms) {
    S* y = static_cast<S*>(y_);
    const S* x = static_cast<const S*>(x_);
    V *mean = static_cast<V*>(mean_), *rstd = static_cast<V*>(rstd_);
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      double center = 0, variance;
      if (rms) {
        variance = fold_run<SquareSum>(x, n, 1) / double(n);
      } else {
        Moments moments = {};
        add_row(moments, x, n, 1);
        center = moments.mean;
        variance = moments.squares / double(n);
        mean[r] = V(center);
      }
      rstd[r] = V(1 / __builtin_sqrt(variance + eps));
      normalise(y, x, static_cast<const V*>(weight), static_cast<const V*>(bias), n, V(center),
                rstd[r]);
    }
  }

  // Sums over one row of g w and g w xhat.
  static void row_sums(double* sums, const S* g, const S* x, const V* weight, int64_t n, V mean,
                       V rstd) {
    V in[kTile], gs[kTile], a[kTile], b[kTile];
    for_tiles(n, [&](int64_t i, int64_t m) {
      const V *v = widened(x + i, m, in), *u = widened(g + i, m, gs);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) {
        a[k] = weight ? u[k] * weight[i + k] : u[k];
        b[k] = a[k] * ((v[k] - mean) * rstd);
      }
      sums[0] += fold_run<Sum>(a, m, 1);
      sums[1] += fold_run<Sum>(b, m, 1);
    });
  }

  static void layer_norm_backward(void* gx_, void* g_weight_, void* g_bias_, const void* g_,
                                  const void* x_, const void* weight_, const void* mean_,
                                  const void* rstd_, int64_t rows, int64_t n, bool rms) {
    S* gx = static_cast<S*>(gx_);
    const S *g = static_cast<const S*>(g_), *x = static_cast<const S*>(x_);
    const V* weight = static_cast<const V*>(weight_);
    V *g_weight = static_cast<V*>(g_weight_), *g_bias = static_cast<V*>(g_bias_);
    V in[kTile], gs[kTile], buffer[kTile];
    for (int64_t r = 0; r < rows; ++r, g += n, x += n) {
      const V mean = rms ? V(0) : static_cast<const V*>(mean_)[r];
      const V rstd = static_cast<const V*>(rstd_)[r];
      double sums[2] = {};
      if (gx) row_sums(sums, g, x, weight, n, mean, rstd);
      const V first = rms ? V(0) : V(sums[0] / double(n)), second = V(sums[1] / double(n));
      for_tiles(n, [&](int64_t i, int64_t m) {
        const V *v = widened(x + i, m, in), *u = widened(g + i, m, gs);
        if (g_weight) {
          V* to = g_weight + i;
#pragma GCC ivdep
          for (int64_t k = 0; k < m; ++k) to[k] += u[k] * ((v[k] - mean) * rstd);
        }
        if (g_bias) {
          V* to = g_bias + i;
#pragma GCC ivdep
          for (int64_t k = 0; k < m; ++k) to[k] += u[k];
        }
        if (!gx) return;
        V* out = target(gx + r * n + i, buffer);
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) {
          const V gw = weight ? u[k] * weight[i + k] : u[k];
          out[k] = (gw - first - (v[k] - mean) * rstd * second) * rstd;
        }
        narrowed(gx + r * n + i, out, m);
      });
    }
  }

  static void affine_run(void* y_, const void* x_, int64_t n, double mean_, double a_, double b_) {
    S* y = static_cast<S*>(y_);
    const S* x = static_cast<const S*>(x_);
    const V mean = V(mean_), a = V(a_), b = V(b_);
    V in[kTile], buffer[kTile];
    for_tiles(n, [&](int64_t i, int64_t m) {
      const V* v = widened(x + i, m, in);
      V* out = target(y + i, buffer);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) out[k] = (v[k] - mean) * a + b;
      narrowed(y + i, out, m);
    });
  }
  static void affine_columns(void* y_, const void* x_, int64_t rows, int64_t cols,
                             const void* mean_, const void* a_, const void* b_) {
    S* y = static_cast<S*>(y_);
    const S* x = static_cast<const S*>(x_);
    const V *a = static_cast<const V*>(a_), *b = static_cast<const V*>(b_),
            *mean = static_cast<const V*>(mean_);
    V in[kTile], buffer[kTile];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols)
      for_tiles(cols, [&](int64_t i, int64_t m) {
        const V *v = widened(x + i, m, in), *p = a + i, *q = b + i, *c = mean + i;
        V* out = target(y + i, buffer);
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) out[k] = (v[k] - c[k]) * p[k] + q[k];
        narrowed(y + i, out, m);
      });
  }

  static void gradient_sums_run(double* sums, const void* g, const void* x, int64_t n,
                                double mean) {
    row_sums(sums, static_cast<const S*>(g), static_cast<const S*>(x), nullptr, n, V(mean), V(1));
  }
  static void gradient_sums_columns(double* sums, const void* g_, const void* x_, int64_t rows,
                                    int64_t cols, const void* mean_) {
    const S *g = static_cast<const S*>(g_), *x = static_cast<const S*>(x_);
    const V* mean = static_cast<const V*>(mean_);
    V in[kTile], gs[kTile];
    for (int64_t r = 0; r < rows; ++r, x += cols, g += cols)
      for_tiles(cols, [&](int64_t i, int64_t m) {
        const V *v = widened(x + i, m, in), *u = widened(g + i, m, gs), *c = mean + i;
        double *p = sums + i, *q = sums + cols + i;
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k) {
          p[k] += double(u[k]);
          q[k] += double(u[k]) * double(v[k] - c[k]);
        }
      });
  }

  static void combine_run(void* gx_, const void* g_, const void* x_, int64_t n, double mean_,
                          double a_, double b_, double c_) {
    S* gx = static_cast<S*>(gx_);
    const S *g = static_cast<const S*>(g_), *x = static_cast<const S*>(x_);
    const V mean = V(mean_), a = V(a_), b = V(b_), c = V(c_);
    V in[kTile], gs[kTile], buffer[kTile];
    for_tiles(n, [&](int64_t i, int64_t m) {
      const V *v = widened(x + i, m, in), *u = widened(g + i, m, gs);
      V* out = target(gx + i, buffer);
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) out[k] = u[k] * a + (v[k] - mean) * b + c;
      narrowed(gx + i, out, m);
    });
  }
  static void combine_columns(void* gx_, const void* g_, const void* x_, int64_t rows, int64_t cols,
                              const void* mean_, const void* a_, const void* b_, const void* c_) {
    S* gx = static_cast<S*>(gx_);
    const S *g = static_cast<const S*>(g_), *x = static_cast<const S*>(x_);
    const V *a = static_cast<const V*>(a_), *b = static_cast<const V*>(b_),
            *c = static_cast<const V*>(c_), *mean = static_cast<const V*>(mean_);
    V in[kTile], gs[kTile], buffer[kTile];
    for (int64_t r = 0; r < rows; ++r, x += cols, g += cols, gx += cols)
      for_tiles(cols, [&](int64_t i, int64_t m) {
        const V *v = widened(x + i, m, in), *u = widened(g + i, m, gs);
        V* out = target(gx + i, buffer);
#pragma GCC ivdep
        for (int64_t k = 0; k < m; ++k)
          out[k] = u[k] * a[i + k] + (v[k] - mean[i + k]) * b[i + k] + c[i + k];
        narrowed(gx + i, out, m);
      });
  }

  static void set(cpu::NormTable& table) {
    table.loops[int(kStored<S>)] = {layer_norm,     layer_norm_backward, affine_run,
                                    affine_columns, gradient_sums_run,   gradient_sums_columns,
                                    combine_run,    combine_columns};
  }
};

}  // namespace

void set_norms(cpu::NormTable& table) {
  Norm<float>::set(table);
  Norm<double>::set(table);
  Norm<BF16>::set(table);
  Norm<F16>::set(table);
}

}  // namespace fornax::FX_ISA_NS
