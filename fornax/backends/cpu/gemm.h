// Matrix products of the CPU backend, on plain pointers: the one place that knows which library or
// kernel runs them.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// A factor of a product. Integer products use `integer` (exact for every int64), the others
// re + i * im; the constructors fill both.
struct GemmScalar {
  double re = 0, im = 0;
  int64_t integer = 0;

  constexpr GemmScalar() = default;
  constexpr GemmScalar(double value)
      : re(value), integer(value > -9e18 && value < 9e18 ? int64_t(value) : 0) {}
  constexpr GemmScalar(int value) : re(value), integer(value) {}
  constexpr GemmScalar(int64_t value) : re(double(value)), integer(value) {}
  constexpr GemmScalar(double real, double imag) : re(real), im(imag) {}
};

// For each x of `batch`: C[x] = alpha * op(A[x]) op(B[x]) + beta * C[x] + bias, with A m x k, B
// k x n and C m x n. op conjugates where conj_a or conj_b says so (complex only).
//
// Strides count elements. Those of A and B may have any value (0 repeats, negative walks back);
// a transposed operand is a swap of its two strides and costs nothing. C must not overlap A, B,
// bias or itself. bias: n contiguous elements added to every row, or null. With beta = 0, C is
// never read. With k = 0, C = beta * C + bias.
//
// dtype (of all operands): u8, i8, i16, i32, i64 wrap; f16, bf16 and c32 sum in f32 and round once;
// f32, f64, c64 and c128 sum in their own type.
struct Gemm {
  Dtype dtype = Dtype::kF32;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t a_batch = 0, a_row = 0, a_col = 1;
  const void* b = nullptr;
  int64_t b_batch = 0, b_row = 0, b_col = 1;
  void* c = nullptr;
  int64_t c_batch = 0, c_row = 0, c_col = 1;
  const void* bias = nullptr;
  GemmScalar alpha = 1, beta = 0;
  bool conj_a = false, conj_b = false;
};

// Runs on up to get_num_threads() threads; the result doesn't depend on their number. Error(kType)
// for a dtype that has no products (bool), Error(kValue) for negative sizes.
void gemm(const Gemm& g);

// torch.set_float32_matmul_precision: kHighest and kHigh compute f32 products in f32; kMedium may
// round the factors to bf16 where the CPU multiplies those faster. Process wide.
enum class MatmulPrecision : uint8_t { kHighest, kHigh, kMedium };
void set_float32_matmul_precision(MatmulPrecision precision);
MatmulPrecision float32_matmul_precision();

// Who computes f32, bf16 and f16 products. kAuto picks by CPU and shape; the others are for tests
// and measurements. kLibrary falls back to kOwn where the library lacks the dtype on this CPU.
enum class GemmEngine : uint8_t { kAuto, kOwn, kLibrary };
void set_gemm_engine(GemmEngine engine);

}  // namespace fornax::cpu
