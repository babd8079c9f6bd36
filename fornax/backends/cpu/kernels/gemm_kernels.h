// The matrix-product kernels that are compiled once per instruction set, and how they are called.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// C = alpha * A B + beta * C + bias for one real matrix product; every stride counts elements and
// may be anything. bias element (i, j) is bias[i * bias_row + j * bias_col]. beta = 0 never reads
// C.
struct GemmTask {
  const void* a;
  const void* b;
  void* c;
  const void* bias;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col, bias_row, bias_col;
  double alpha, beta;
  int64_t alpha_int, beta_int;  // used by the integer kernels, exact for every int64
};

// Entries are indexed by Dtype and null where a dtype has no such kernel. No kernel throws, starts
// threads or allocates; `scratch` is 64-byte aligned.
struct GemmKernels {
  // No packing: for products that fit in L1. Limits: small_fits().
  void (*small[kDtypeCount])(const GemmTask&);
  // m <= kFewRows, b_row == 1: dot products along k, one pass over B. Scratch: few_rows_scratch().
  void (*few_rows_dot[kDtypeCount])(const GemmTask&, void* scratch);
  // m <= kFewRows, b_col == 1: sums of B's rows, one pass over B. Scratch: few_rows_scratch().
  void (*few_rows_sum[kDtypeCount])(const GemmTask&, void* scratch);
  // Everything: packs both operands (converting them to the compute type) in cache-sized blocks.
  void (*packed[kDtypeCount])(const GemmTask&, void* scratch);
  int64_t (*packed_scratch)(const GemmTask&);
  // n contiguous elements of bf16 or f16 to float, and rounded from float.
  void (*widen[kDtypeCount])(const void* from, void* to, int64_t n);
  void (*narrow[kDtypeCount])(const void* from, void* to, int64_t n);
  // Exact arithmetic modulo 2^bits.
  void (*integer[kDtypeCount])(const GemmTask&);
};

inline constexpr int64_t kFewRows = 4;
inline constexpr int64_t kSmallPanel = 4096;  // elements of B that the small kernel keeps on stack
inline int64_t few_rows_scratch(const GemmTask& t) { return t.m * (t.k + t.n + 64) * 8; }

}  // namespace fornax::cpu

namespace fornax::isa_v3 {
extern const cpu::GemmKernels gemm_kernels;
}
namespace fornax::isa_v4 {
extern const cpu::GemmKernels gemm_kernels;
}
