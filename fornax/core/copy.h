// Copies below the operator level: no dispatch, no recording. For run() and kernels.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

// A contiguous tensor of the same elements, conj and neg resolved.
Tensor contiguous_copy(const Tensor& t);
// Writes the elements of `from`, broadcast to the sizes of `to`, into `to`, with conversion.
void copy_elements(const Tensor& to, const Tensor& from);

}  // namespace fornax
