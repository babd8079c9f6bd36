// Reductions that are compiled once per instruction set. Serial; plans and threads are in
// backends/cpu/fold.cpp.
//
// The state of a fold is one or more planes of 8-byte numbers (double, or int64_t for integers),
// one entry per result: plane p of result i is acc[p * plane + i].
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

enum class FoldKind : uint8_t {
  kSum,
  kNanSum,     // NaN counts as 0
  kAbsSum,     // sum |x|
  kSquareSum,  // sum x^2, in double
  kNonzero,    // number of elements that are not 0; NaN is not
  kProd,
  kMax,  // NaN wins
  kMin,
  kMaxAbs,
  kMinAbs,
  kMoments,  // planes: count, mean, sum of squared deviations
  kArgMax,   // planes: value, index; the first of equal ones wins, a NaN against all numbers
  kArgMin,
};
inline constexpr int kFoldKindCount = 13;

// Strides count elements of x.
struct FoldLoops {
  int planes = 1;
  bool integer = false;
  void (*start)(void* acc, int64_t plane, int64_t n) = nullptr;
  // Folds `count` rows of n elements into entries 0 ... count - 1. `first` is the index of the
  // first element of a row (kArg* only).
  void (*rows)(void* acc, int64_t plane, const void* x, int64_t count, int64_t row_stride,
               int64_t n, int64_t stride, int64_t first) = nullptr;
  // Folds `rows` rows of `cols` adjacent elements, entry c taking column c.
  void (*columns)(void* acc, int64_t plane, const void* x, int64_t rows, int64_t row_stride,
                  int64_t cols, int64_t first) = nullptr;
  // Entries of later elements into entries of earlier ones.
  void (*merge)(void* acc, int64_t plane, const void* later, int64_t later_plane,
                int64_t n) = nullptr;
};

struct FoldTable {
  FoldLoops loops[kFoldKindCount][kDtypeCount];
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
void set_value_folds(cpu::FoldTable& table);
void set_moment_folds(cpu::FoldTable& table);
void set_index_folds(cpu::FoldTable& table);
}  // namespace fornax::FX_ISA_NS
#endif
