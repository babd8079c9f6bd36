// Layer and batch normalisation, compiled once per instruction set. Serial.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// x, y, g, gx are of the storage type. Weights, statistics and sums are of the type it is computed
// in: double for f64, else float.
struct NormLoops {
  // Rows of n elements; `rms`: no mean is taken off (mean may be null). weight, bias may be null.
  void (*layer_norm)(void* y, void* mean, void* rstd, const void* x, const void* weight,
                     const void* bias, int64_t rows, int64_t n, double eps, bool rms) = nullptr;
  // Adds to g_weight and g_bias (null: not wanted); gx may be null.
  void (*layer_norm_backward)(void* gx, void* g_weight, void* g_bias, const void* g, const void* x,
                              const void* weight, const void* mean, const void* rstd, int64_t rows,
                              int64_t n, bool rms) = nullptr;
  // y = a (x - mean) + b: a run of n elements, or rows of cols elements with mean, a and b per
  // column.
  void (*affine_run)(void* y, const void* x, int64_t n, double mean, double a, double b) = nullptr;
  void (*affine_columns)(void* y, const void* x, int64_t rows, int64_t cols, const void* mean,
                         const void* a, const void* b) = nullptr;
  // sums[0] += sum g, sums[1] += sum g (x - mean); per column: sums[c], sums[cols + c].
  void (*gradient_sums_run)(double* sums, const void* g, const void* x, int64_t n,
                            double mean) = nullptr;
  void (*gradient_sums_columns)(double* sums, const void* g, const void* x, int64_t rows,
                                int64_t cols, const void* mean) = nullptr;
  // gx = a g + b (x - mean) + c
  void (*combine_run)(void* gx, const void* g, const void* x, int64_t n, double mean, double a,
                      double b, double c) = nullptr;
  void (*combine_columns)(void* gx, const void* g, const void* x, int64_t rows, int64_t cols,
                          const void* mean, const void* a, const void* b, const void* c) = nullptr;
};

struct NormTable {
  NormLoops loops[kDtypeCount];
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
void set_norms(cpu::NormTable& table);
}  // namespace fornax::FX_ISA_NS
#endif
