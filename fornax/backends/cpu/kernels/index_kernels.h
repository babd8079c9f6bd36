// The loops of indexing that are compiled once per instruction set. Serial; parallel use is in
// backends/cpu/index_plan.cpp. Indices are valid: checked before.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

enum class Combine : uint8_t { kSum, kProd, kMax, kMin };
inline constexpr int kCombineCount = 4;

// n x q indices into one dimension of a larger tensor: element (k, j) is at
// index[k * q + j] * stride + inner[j]. Visits j in [from, to) where the index is in [low, high).
struct ElementWalk {
  const int64_t* index;
  const int64_t* inner;  // null: inner[j] is j
  int64_t n, q, stride;
  int64_t from, to;
  int64_t low = 0, high = INT64_MAX;
};

// Runs of q elements of a larger tensor: run b starts at places[b]. Visits places in [low, high).
struct RowWalk {
  const int64_t* places;
  int64_t n, q;
  int64_t step;  // from run to run in the smaller tensor, in elements
  int64_t low = 0, high = INT64_MAX;
};

struct IndexKernels {
  // By log2 of the element size. `small` is n x q and contiguous; step 0: one value for all.
  void (*gather[5])(void* small, const void* large, const ElementWalk& walk);
  void (*scatter[5])(void* large, const void* small, int64_t step, const ElementWalk& walk);
  void (*read_rows[5])(void* small, const void* large, const RowWalk& walk);
  // step 0 in the walk and `fill`: the first element of small for all.
  void (*write_rows[5])(void* large, const void* small, bool fill, const RowWalk& walk);
  // By dtype; null for complex kMax, kMin and for f16, bf16, c32, which are widened by the caller.
  void (*combine_elements[kDtypeCount][kCombineCount])(void* large, const void* small, int64_t step,
                                                       const ElementWalk& walk);
  void (*combine_rows[kDtypeCount][kCombineCount])(void* large, const void* small, bool fill,
                                                   const RowWalk& walk);
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
extern const cpu::IndexKernels index_kernels;
}
#endif
