// Shared by reductions: dimensions, shapes, expanding gradients back.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// Dimensions of a reduction as a mask; absent or empty means all. Throws on repeated or wrong ones.
uint64_t dim_mask(Args args, size_t at, int64_t rank, std::string_view call);
// Sizes after reducing `mask`.
Dims reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim);
// Elements that one result of reducing `mask` is made of.
int64_t reduced_count(IntArrayRef sizes, uint64_t mask);
// The batching rule of reductions whose argument 1 holds the dimensions.
void reduction_vmap(Vmapped& v);
// Puts the reduced dimensions back as size 1 where keepdim dropped them.
Tensor restore_dims(const Tensor& reduced, uint64_t mask, int64_t rank, bool keepdim);

}  // namespace fornax
