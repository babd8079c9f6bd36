// The hottest pointwise loops by name, for operators that would rather not pay for a Program. All
// operands are contiguous; d may be a or b, exactly. Single-threaded: split with parallel_for.
#pragma once

#include <cstdint>

#include "fornax/base/numeric.h"

namespace fornax::expr {

// Results of this size and more are written past the caches: reading them back from memory costs
// less than fetching the lines before they are overwritten (measured 30% of a + b at 16 MiB).
inline constexpr int64_t kStreamBytes = int64_t(8) << 20;

template <class T>
struct ArithmeticLoops {
  using Binary = void (*)(T* d, const T* a, const T* b, int64_t n);
  using BinaryScaled = void (*)(T* d, const T* a, const T* b, T alpha, int64_t n);
  using Scalar = void (*)(T* d, const T* a, T value, int64_t n);
  using Unary = void (*)(T* d, const T* a, int64_t n);

  Binary add;
  Binary sub;
  Binary mul;
  Binary div;
  BinaryScaled add_scaled;  // a + alpha * b, rounded twice
  Scalar add_scalar;        // a + value
  Scalar mul_scalar;        // a * value
  Unary neg;
  Unary relu;  // x <= 0 ? 0 : x, so NaN stays
};

struct DirectLoops {
  ArithmeticLoops<float> f32;
  ArithmeticLoops<double> f64;

  void (*bf16_to_f32)(float* d, const BFloat16* a, int64_t n);
  void (*f32_to_bf16)(BFloat16* d, const float* a, int64_t n);  // to nearest even
  void (*f16_to_f32)(float* d, const Half* a, int64_t n);
  void (*f32_to_f16)(Half* d, const float* a, int64_t n);  // to nearest even

  // n elements of `size` bytes: 1, 2, 4, 8 or 16.
  void (*copy)(void* d, const void* a, int64_t n, int size);
  void (*fill)(void* d, const void* value, int64_t n, int size);
  // Copies past the caches; d starts a cache line. Before another thread may look: stream_end().
  void (*stream)(void* d, const void* a, int64_t bytes);
  void (*stream_end)();
  // d[i][j] = a[i][j] for rows x cols elements; strides in bytes, any values. A transposed source
  // or target is moved in square blocks.
  void (*copy_2d)(void* d, int64_t d_row, int64_t d_col, const void* a, int64_t a_row,
                  int64_t a_col, int64_t rows, int64_t cols, int size);
};

// Those of active_isa().
const DirectLoops& direct_loops();

}  // namespace fornax::expr
