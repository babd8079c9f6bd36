// Shared by indexing operators and their kernels.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

enum class ScatterReduce : uint8_t { kAssign, kSum, kProd, kMean, kMax, kMin };
// "sum", "prod", "mean", "amax", "amin", and "add", "multiply" of scatter(). Throws Error(kValue).
ScatterReduce scatter_reduce_of(std::string_view text, std::string_view call);
// Throws Error(kType) unless indices are integers.
void check_index_dtype(const Tensor& index, std::string_view call);
// Throws Error(kIndex) naming index, dimension and size.
[[noreturn]] void index_out_of_range(std::string_view call, int64_t index, int64_t dim,
                                     int64_t size);
// zeros(sizes) with `g` added at `index` along `dim`: the gradient of picking elements.
Tensor scatter_into_zeros(const Tensor& g, IntArrayRef sizes, int64_t dim, const Tensor& index);
// zeros(sizes) with `g` added at the places index(..., indices) reads.
Tensor put_into_zeros(const Tensor& g, IntArrayRef sizes, TensorList indices);
// The argument tensors of a rule on dimension argument 1, with the batch dimension in front; those
// of logical rank 0 get a dimension of size 1. The results are of self's rank.
void run_along_dim(Vmapped& v, std::initializer_list<int> tensors);

// The sizes of index(self, indices) for integer indices, and where the indices' own sizes stand.
struct IndexShape {
  Dims broadcast;  // common sizes of the indices
  Dims result;
  int64_t place = 0;  // dimension of the result where `broadcast` begins
};
IndexShape index_shape(IntArrayRef self, ArrayRef<Dims> index_sizes, ArrayRef<bool> given);
// Whether an index selects by truth value: its result's sizes depend on values.
inline bool is_mask(const Tensor& t) {
  return t.defined() && (t.dtype() == Dtype::kBool || t.dtype() == Dtype::kU8);
}

}  // namespace fornax
