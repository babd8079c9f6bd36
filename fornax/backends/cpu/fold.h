// Plans of reductions: any strides, any set of dimensions, on several threads.
//
// Results do not depend on the number of threads: a long reduction is cut into pieces whose length
// follows from the sizes alone, and the pieces are merged pairwise.
#pragma once

#include "fornax/backends/cpu/kernels/fold_kernels.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/core/tensor.h"

namespace fornax::cpu {

// The state of a finished fold: entry i of plane p at data()[p * count + i] in the order of `sizes`
// and `strides` (in entries) over the kept dimensions.
struct Folded {
  Scratch memory;
  int64_t count;
  bool integer;
  bool ordered;  // entries lie in row-major order of the kept dimensions
  Dims sizes, strides;

  const double* reals(int plane = 0) const { return memory.as<double>() + plane * count; }
  const int64_t* integers(int plane = 0) const { return memory.as<int64_t>() + plane * count; }
};

// Whether `kind` reads elements of `dtype` as they are; others must be cast first (floats to f32,
// integers to i64).
bool has_fold(FoldKind kind, Dtype dtype);
// Folds the dimensions of `mask`. A complex x (kSum, kNanSum only) is folded as pairs: one more
// kept dimension of size 2. kArg*: one dimension, and the index counts along it.
Folded fold(FoldKind kind, const Tensor& x, uint64_t mask);

// Writes f(entry) for every entry into `out`, converted to its dtype; sizes as Folded's.
void store_reals(const Folded& folded, const double* values, const Tensor& out);
void store_integers(const Folded& folded, const int64_t* values, const Tensor& out);

}  // namespace fornax::cpu
