// Shared by the losses.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

enum class Reduction : int64_t { kNone, kMean, kSum };
// Argument `at` as a reduction. Throws Error(kValue).
Reduction reduction_of(Args args, size_t at, std::string_view call);
Tensor reduced(const Tensor& loss, Reduction reduction);

}  // namespace fornax
