// Shared by the normalisations.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// a + b, where an undefined one is zero.
Tensor plus(const Tensor& a, const Tensor& b);
// Error(kShape) unless `weight` is undefined or of these sizes.
void check_weight(const Tensor& weight, IntArrayRef sizes, std::string_view call,
                  std::string_view what);

}  // namespace fornax
