#include <cblas.h>

#include "fornax/backends/cpu/gemm_engines.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

constexpr int64_t kTinyWork = 512;
constexpr int64_t kThreadWork = 1 << 17;

// OpenBLAS's own threads spin; ours run batches and row ranges instead.
void use_one_thread() {
  static const bool done = (scipy_openblas_set_num_threads(1), true);
  (void)done;
}

void blas(const Complex<float>* alpha, const Complex<float>* a, int lda, CBLAS_TRANSPOSE ta,
          const Complex<float>* b, int ldb, CBLAS_TRANSPOSE tb, const Complex<float>* beta,
          Complex<float>* c, int ldc, int m, int n, int k) {
  scipy_cblas_cgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void blas(const Complex<double>* alpha, const Complex<double>* a, int lda, CBLAS_TRANSPOSE ta,
          const Complex<double>* b, int ldb, CBLAS_TRANSPOSE tb, const Complex<double>* beta,
          Complex<double>* c, int ldc, int m, int n, int k) {
  scipy_cblas_zgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

// An operand as BLAS takes it: row-major with a leading dimension, perhaps (conjugate) transposed.
template <class Z>
struct Operand {
  const Z* data;
  int ld;
  CBLAS_TRANSPOSE op;
};

constexpr int64_t kMaxLd = 1 << 30;

// The operand itself where BLAS can describe it, otherwise a copy in `space` (rows * cols).
template <class Z>
Operand<Z> prepare(const Z* p, int64_t rows, int64_t cols, int64_t row, int64_t col, bool conjugate,
                   Z* space) {
  if ((col == 1 || cols == 1) && !conjugate && (row >= cols || rows == 1) && row < kMaxLd)
    return {p, int(rows == 1 ? cols : row), CblasNoTrans};
  if ((row == 1 || rows == 1) && (col >= rows || cols == 1) && col < kMaxLd)
    return {p, int(cols == 1 ? rows : col), conjugate ? CblasConjTrans : CblasTrans};
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < cols; j++) {
      const Z v = p[i * row + j * col];
      space[i * cols + j] = conjugate ? conj(v) : v;
    }
  }
  return {space, int(cols), CblasNoTrans};
}

// c = beta * c + bias without reading c for beta = 0.
template <class Z>
Z start_value(const Z& c, const Z& beta, bool reads_c, const Z* bias) {
  const Z v = reads_c ? beta * c : Z();
  return bias != nullptr ? v + *bias : v;
}

template <class Z>
struct Product {
  const Gemm& g;
  Z alpha, beta;
  bool reads_c;

  explicit Product(const Gemm& product)
      : g(product),
        alpha(typename Part::type(g.alpha.re), typename Part::type(g.alpha.im)),
        beta(typename Part::type(g.beta.re), typename Part::type(g.beta.im)),
        reads_c(!(beta == Z())) {}

  struct Part {
    using type = decltype(Z().re);
  };

  const Z* bias_at(int64_t j) const {
    return g.bias == nullptr ? nullptr : static_cast<const Z*>(g.bias) + j;
  }

  void tiny(const Z* a, const Z* b, Z* c) const {
    for (int64_t i = 0; i < g.m; i++) {
      for (int64_t j = 0; j < g.n; j++) {
        Z sum;
        for (int64_t p = 0; p < g.k; p++) {
          const Z x = a[i * g.a_row + p * g.a_col], y = b[p * g.b_row + j * g.b_col];
          sum = sum + (g.conj_a ? conj(x) : x) * (g.conj_b ? conj(y) : y);
        }
        Z& out = c[i * g.c_row + j * g.c_col];
        const Z start = start_value(out, beta, reads_c, bias_at(j));
        out = g.k == 0 ? start : alpha * sum + start;
      }
    }
  }

  // Rows [first, first + rows) of one product.
  void rows_of(const Z* a, const Z* b, Z* c, int64_t first, int64_t rows) const {
    a += first * g.a_row;
    c += first * g.c_row;
    Scratch a_copy(rows * g.k * int64_t(sizeof(Z))), b_copy(g.k * g.n * int64_t(sizeof(Z)));
    const auto x = prepare(a, rows, g.k, g.a_row, g.a_col, g.conj_a, a_copy.as<Z>());
    const auto y = prepare(b, g.k, g.n, g.b_row, g.b_col, g.conj_b, b_copy.as<Z>());
    const bool direct =
        (g.c_col == 1 || g.n == 1) && (g.c_row >= g.n || rows == 1) && g.c_row < kMaxLd;
    Scratch c_copy(direct ? 0 : rows * g.n * int64_t(sizeof(Z)));
    Z* out = direct ? c : c_copy.as<Z>();
    const int64_t ld = !direct || rows == 1 ? g.n : g.c_row;
    Z blas_beta = beta;
    if (!direct || g.bias != nullptr) {
      blas_beta = Z(1);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < g.n; j++)
          out[i * ld + j] = start_value(c[i * g.c_row + j * g.c_col], beta, reads_c, bias_at(j));
    }
    blas(&alpha, x.data, x.ld, x.op, y.data, y.ld, y.op, &blas_beta, out, int(ld), int(rows),
         int(g.n), int(g.k));
    if (direct) return;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < g.n; j++) c[i * g.c_row + j * g.c_col] = out[i * ld + j];
  }

  void run() const {
    use_one_thread();
    const int64_t work = g.m * g.n * g.k;
    const int64_t threads = g.batch * work < 2 * kThreadWork ? 1 : get_num_threads();
    const int64_t wanted = g.batch < threads ? (threads + g.batch - 1) / g.batch : 1;
    const int64_t step = ((g.m + wanted - 1) / wanted + 15) / 16 * 16;
    const int64_t cuts = (g.m + step - 1) / step;
    parallel_for(0, g.batch * cuts, threads == 1 ? g.batch * cuts : 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t part = begin; part < end; part++) {
                     const int64_t x = part / cuts, first = part % cuts * step;
                     const Z* a = static_cast<const Z*>(g.a) + x * g.a_batch;
                     const Z* b = static_cast<const Z*>(g.b) + x * g.b_batch;
                     Z* c = static_cast<Z*>(g.c) + x * g.c_batch;
                     if (work <= kTinyWork)
                       tiny(a, b, c);
                     else
                       rows_of(a, b, c, first, first + step < g.m ? step : g.m - first);
                   }
                 });
  }
};

// The transpose of a product whose C is column-major, so that BLAS can write it in place.
Gemm turned(const Gemm& g) {
  Gemm t = g;
  t.m = g.n;
  t.n = g.m;
  t.a = g.b;
  t.a_batch = g.b_batch;
  t.a_row = g.b_col;
  t.a_col = g.b_row;
  t.conj_a = g.conj_b;
  t.b = g.a;
  t.b_batch = g.a_batch;
  t.b_row = g.a_col;
  t.b_col = g.a_row;
  t.conj_b = g.conj_a;
  t.c_row = g.c_col;
  t.c_col = g.c_row;
  return t;
}

// complex32 through complex64, one product of the batch at a time.
void half_product(const Gemm& g) {
  using Z = Complex<float>;
  using H = Complex<Half>;
  Scratch space((g.m * g.k + g.k * g.n + g.m * g.n + g.n) * int64_t(sizeof(Z)));
  Z* a = space.as<Z>();
  Z* b = a + g.m * g.k;
  Z* c = b + g.k * g.n;
  Z* bias = c + g.m * g.n;
  Gemm wide = g;
  wide.dtype = Dtype::kC64;
  wide.batch = 1;
  wide.a = a, wide.a_row = g.k, wide.a_col = 1;
  wide.b = b, wide.b_row = g.n, wide.b_col = 1;
  wide.c = c, wide.c_row = g.n, wide.c_col = 1;
  wide.bias = g.bias == nullptr ? nullptr : bias;
  const bool reads_c = g.beta.re != 0 || g.beta.im != 0;
  const auto widened = [](H v) { return Z(float(v.re), float(v.im)); };
  for (int64_t j = 0; g.bias != nullptr && j < g.n; j++)
    bias[j] = widened(static_cast<const H*>(g.bias)[j]);
  for (int64_t x = 0; x < g.batch; x++) {
    const H* from_a = static_cast<const H*>(g.a) + x * g.a_batch;
    const H* from_b = static_cast<const H*>(g.b) + x * g.b_batch;
    H* to = static_cast<H*>(g.c) + x * g.c_batch;
    for (int64_t i = 0; i < g.m; i++)
      for (int64_t p = 0; p < g.k; p++) a[i * g.k + p] = widened(from_a[i * g.a_row + p * g.a_col]);
    for (int64_t p = 0; p < g.k; p++)
      for (int64_t j = 0; j < g.n; j++) b[p * g.n + j] = widened(from_b[p * g.b_row + j * g.b_col]);
    for (int64_t i = 0; reads_c && i < g.m; i++)
      for (int64_t j = 0; j < g.n; j++) c[i * g.n + j] = widened(to[i * g.c_row + j * g.c_col]);
    gemm_complex(wide);
    for (int64_t i = 0; i < g.m; i++)
      for (int64_t j = 0; j < g.n; j++)
        to[i * g.c_row + j * g.c_col] = H(Half(c[i * g.n + j].re), Half(c[i * g.n + j].im));
  }
}

}  // namespace

void gemm_complex(const Gemm& g) {
  if (g.dtype == Dtype::kC32) return half_product(g);
  // The bias lies along C's rows, so a product with one is never turned.
  const Gemm seen = g.c_row == 1 && g.c_col != 1 && g.bias == nullptr ? turned(g) : g;
  if (g.dtype == Dtype::kC64)
    Product<Complex<float>>(seen).run();
  else
    Product<Complex<double>>(seen).run();
}

}  // namespace fornax::cpu
