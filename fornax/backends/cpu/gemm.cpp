#include "fornax/backends/cpu/gemm.h"

#include <atomic>
#include <utility>

#include "fornax/backends/cpu/gemm_engines.h"
#include "fornax/backends/cpu/kernels/gemm_kernels.h"
#include "fornax/backends/cpu/onednn.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/error.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

constinit std::atomic<MatmulPrecision> precision{MatmulPrecision::kHighest};
constinit std::atomic<GemmEngine> engine{GemmEngine::kAuto};

const GemmKernels& kernels() {
  static const GemmKernels& table =
      active_isa() == Isa::kV4 ? isa_v4::gemm_kernels : isa_v3::gemm_kernels;
  return table;
}

// Multiply-adds a thread should have at least: some 10 us.
constexpr int64_t kThreadWork = 1 << 18;
// Largest product for the kernel that doesn't pack.
constexpr int64_t kSmallWork = 24 * 24 * 24;
// Smallest f32 product that the library runs faster (by 5 to 15 %) than our packed kernel.
constexpr int64_t kLibraryWork = 48 * 48 * 48;

GemmTask task_of(const Gemm& g) {
  return {.a = g.a,
          .b = g.b,
          .c = g.c,
          .bias = g.bias,
          .m = g.m,
          .n = g.n,
          .k = g.k,
          .a_row = g.a_row,
          .a_col = g.a_col,
          .b_row = g.b_row,
          .b_col = g.b_col,
          .c_row = g.c_row,
          .c_col = g.c_col,
          .bias_row = 0,
          .bias_col = 1,
          .alpha = g.k == 0 ? 1 : g.alpha.re,
          .beta = g.beta.re,
          .alpha_int = g.alpha.integer,
          .beta_int = g.beta.integer};
}

const void* advance(const void* p, int64_t elements, int64_t size) {
  return p == nullptr ? p : static_cast<const char*>(p) + elements * size;
}
void* advance(void* p, int64_t elements, int64_t size) {
  return static_cast<char*>(p) + elements * size;
}

// The same product seen as its transpose: C^T = B^T A^T.
void transpose(GemmTask& t, Gemm& g) {
  std::swap(t.a, t.b);
  std::swap(t.m, t.n);
  std::swap(t.a_row, t.b_col);
  std::swap(t.a_col, t.b_row);
  std::swap(t.c_row, t.c_col);
  std::swap(t.bias_row, t.bias_col);
  std::swap(g.a_batch, g.b_batch);
}

bool small_fits(const GemmTask& t) {
  if (t.k == 0) return true;
  if (t.m * t.n > kSmallWork || t.m * t.n * t.k > kSmallWork) return false;
  return t.b_col == 1 || t.k * ((t.n + 15) / 16 * 16) <= kSmallPanel;
}

// Whether the packed kernel should compute C^T. Packing B from [n, k] transposes it, packing it as
// A copies rows; against that, a transposed tile is stored element by element.
bool prefers_transpose(const GemmTask& t) {
  if (t.c_col != 1) return t.c_row == 1;
  if (t.b_row != 1 || t.b_col == 1 || t.m >= t.n) return false;
  return 4 * t.m <= t.k && t.m <= 256;
}

using TaskFunction = void (*)(const GemmTask&, void*);

struct Choice {
  TaskFunction run;
  int64_t (*scratch)(const GemmTask&);
};

// Picks a kernel for a product that is not small; may turn it into its transpose.
Choice choose(GemmTask& t, Gemm& g) {
  const int d = int(g.dtype);
  if (t.n <= kFewRows && t.m > t.n) transpose(t, g);
  if (t.m <= kFewRows) {
    if (t.b_row == 1 && t.k >= 32) return {kernels().few_rows_dot[d], few_rows_scratch};
    if (t.b_col == 1 && t.n >= 64) return {kernels().few_rows_sum[d], few_rows_scratch};
  }
  if (prefers_transpose(t)) transpose(t, g);
  return {kernels().packed[d], kernels().packed_scratch};
}

// Cuts [0, batch) x rows or columns into about as many parts as there are threads and calls
// body(task) for every part. Cuts fall on multiples of 64, so no element's sum depends on them.
template <class Body>
void for_parts(const GemmTask& t, const Gemm& g, Body body) {
  const int64_t size = size_of(g.dtype);
  const int64_t work = g.batch * t.m * t.n * t.k;
  const int64_t threads = work < 2 * kThreadWork ? 1 : get_num_threads();
  int64_t cuts = 1;
  const bool by_rows = t.m >= t.n;
  const int64_t length = by_rows ? t.m : t.n;
  if (g.batch < threads) cuts = (threads + g.batch - 1) / g.batch;
  const int64_t step = ((length + cuts - 1) / cuts + 63) / 64 * 64;
  cuts = (length + step - 1) / step;
  const int64_t parts = g.batch * cuts;
  const int64_t grain = threads == 1 ? parts : (kThreadWork * parts + work - 1) / work;
  parallel_for(0, parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) {
      GemmTask sub = t;
      const int64_t x = part / cuts, first = part % cuts * step;
      const int64_t count = first + step < length ? step : length - first;
      (by_rows ? sub.m : sub.n) = count;
      const int64_t row = by_rows ? first : 0, col = by_rows ? 0 : first;
      sub.a = advance(t.a, x * g.a_batch + row * t.a_row, size);
      sub.b = advance(t.b, x * g.b_batch + col * t.b_col, size);
      sub.c = advance(t.c, x * g.c_batch + row * t.c_row + col * t.c_col, size);
      sub.bias = advance(t.bias, row * t.bias_row + col * t.bias_col, size);
      body(sub);
    }
  });
}

bool library_is_faster(const Gemm& g) {
  const GemmEngine wanted = engine.load(std::memory_order_relaxed);
  if (wanted != GemmEngine::kAuto) return wanted == GemmEngine::kLibrary;
  // Few rows are bound by memory, small products by fixed costs.
  if (g.m <= kFewRows || g.n <= kFewRows || g.m * g.n * g.k < kLibraryWork) return false;
  switch (g.dtype) {
    case Dtype::kBF16: return onednn_support().amx_bf16;
    case Dtype::kF16: return onednn_support().amx_f16;
    case Dtype::kF32: return true;
    default: return false;
  }
}

void gemm_real(const Gemm& g) {
  GemmTask t = task_of(g);
  if (small_fits(t)) {
    const auto run = kernels().small[int(g.dtype)];
    if (g.batch == 1) return run(t);
    return for_parts(t, g, run);
  }
  if (g.dtype != Dtype::kF64 && library_is_faster(g)) {
    if (gemm_onednn(g, float32_matmul_precision() == MatmulPrecision::kMedium)) return;
  }
  Gemm seen = g;
  const Choice choice = choose(t, seen);
  for_parts(t, seen, [&choice](const GemmTask& part) {
    Scratch scratch(choice.scratch(part));
    choice.run(part, scratch.data());
  });
}

}  // namespace

void set_float32_matmul_precision(MatmulPrecision p) { precision = p; }
MatmulPrecision float32_matmul_precision() { return precision.load(std::memory_order_relaxed); }
void set_gemm_engine(GemmEngine e) { engine = e; }

void gemm(const Gemm& g) {
  FX_CHECK(g.batch >= 0 && g.m >= 0 && g.n >= 0 && g.k >= 0, kValue,
           "matrix product with a negative size: batch ", g.batch, ", m ", g.m, ", n ", g.n, ", k ",
           g.k);
  FX_CHECK(g.dtype != Dtype::kBool && g.dtype < Dtype::kUndefined, kType,
           "matrix products are not defined for ", name_of(g.dtype));
  if (g.batch == 0 || g.m == 0 || g.n == 0) return;
  if (is_float(g.dtype)) return gemm_real(g);
  if (is_complex(g.dtype)) return gemm_complex(g);
  const GemmTask t = task_of(g);
  for_parts(t, g, kernels().integer[int(g.dtype)]);
}

}  // namespace fornax::cpu
