// Whether tensors share memory places.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

// Two indices of t may name one place (expand). Conservative for odd strides: true only where it is
// certain.
bool has_internal_overlap(const Tensor& t);
// Their byte ranges meet (conservative for interleaved views). Both on the same storage.
bool may_overlap(const Tensor& a, const Tensor& b);
// Same elements in the same order.
bool same_elements(const Tensor& a, const Tensor& b);

}  // namespace fornax
