// Softmax, its logarithm and cross entropy over rows or columns, compiled once per instruction set.
// Serial.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// Rows of n adjacent elements; columns: n elements `stride` apart, `cols` adjacent columns.
struct SoftmaxLoops {
  void (*rows)(void* y, const void* x, int64_t rows, int64_t n, bool log) = nullptr;
  // From the result y and its gradient g. y may be gx.
  void (*rows_backward)(void* gx, const void* g, const void* y, int64_t rows, int64_t n,
                        bool log) = nullptr;
  // f32 and f64 only.
  void (*columns)(void* y, const void* x, int64_t n, int64_t stride, int64_t cols,
                  bool log) = nullptr;
  void (*columns_backward)(void* gx, const void* g, const void* y, int64_t n, int64_t stride,
                           int64_t cols, bool log) = nullptr;
  // lse[r] = log sum exp of row r, in the type that the dtype is computed in; sums[r] = sum of its
  // elements, if not null.
  void (*log_sum_exp)(double* lse, double* sums, const void* x, int64_t rows, int64_t n) = nullptr;
  // gx[i] = scale * exp(x[i] - lse) - each; one row.
  void (*cross_entropy_backward)(void* gx, const void* x, int64_t n, double lse, double scale,
                                 double each) = nullptr;
};

struct SoftmaxTable {
  SoftmaxLoops loops[kDtypeCount];
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
void set_softmax(cpu::SoftmaxTable& table);
}  // namespace fornax::FX_ISA_NS
#endif
