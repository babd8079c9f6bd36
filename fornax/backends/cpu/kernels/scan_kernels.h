// Running sums, products and extrema along a dimension, compiled once per instruction set.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

enum class ScanKind : uint8_t {
  kSum,
  kProd,
  kMax,  // with the place of the latest of equal elements; NaN stays
  kMin,
  kLogSumExp,
  kRecurrence,  // y[k] = a[k] y[k - 1] + x[k]
};
inline constexpr int kScanKindCount = 6;

// One block: n steps of `inner` adjacent elements, columns [begin, end) of them; for inner 1, rows
// [begin, end) of n elements. `a` is kRecurrence's factor, `places` kMax's and kMin's second
// result; null otherwise.
using ScanFn = void (*)(void* y, int64_t* places, const void* x, const void* a, int64_t n,
                        int64_t inner, int64_t begin, int64_t end);

struct ScanTable {
  ScanFn rows[kScanKindCount][kDtypeCount];
  ScanFn columns[kScanKindCount][kDtypeCount];
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
void set_scans(cpu::ScanTable& table);
}  // namespace fornax::FX_ISA_NS
#endif
