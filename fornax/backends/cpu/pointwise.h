// The one CPU kernel of all pointwise operators.
#pragma once

#include "fornax/core/op.h"

namespace fornax::cpu {

// Any strides, any dtypes in and out, conj and neg bits on inputs, outputs that are exactly an
// input.
void pointwise_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs);

// The same for div, floor_divide, fmod and remainder.
void division_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs);

}  // namespace fornax::cpu
