// The C++ operators on tensors.
#pragma once

#include "fornax/ops/functions.h"

namespace fornax {

// clang-format off
#define FX_OPERATOR(symbol, name)                                                                          \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.name(b); }                    \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.name(b); }
FX_OPERATOR(+, add)
FX_OPERATOR(-, sub)
FX_OPERATOR(*, mul)
FX_OPERATOR(/, div)
FX_OPERATOR(>, gt)
#undef FX_OPERATOR
// clang-format on
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }

}  // namespace fornax
