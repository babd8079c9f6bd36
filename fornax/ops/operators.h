// The C++ operators on tensors, with numbers on either side. All broadcast and promote as the named
// operators do.
#pragma once

#include "fornax/ops/functions.h"

namespace fornax {

// clang-format off
#define FX_OPERATOR(symbol, name)                                                                  \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.name(b); }            \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.name(b); }
FX_OPERATOR(+, add)
FX_OPERATOR(-, sub)
FX_OPERATOR(*, mul)
FX_OPERATOR(/, div)
FX_OPERATOR(%, remainder)
FX_OPERATOR(==, eq)
FX_OPERATOR(!=, ne)
FX_OPERATOR(<, lt)
FX_OPERATOR(<=, le)
FX_OPERATOR(>, gt)
FX_OPERATOR(>=, ge)
FX_OPERATOR(&, bitwise_and)
FX_OPERATOR(|, bitwise_or)
FX_OPERATOR(^, bitwise_xor)
FX_OPERATOR(<<, bitwise_left_shift)
FX_OPERATOR(>>, bitwise_right_shift)
#undef FX_OPERATOR
// clang-format on

inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return b.rsub(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
Tensor operator/(const Scalar& a, const Tensor& b);
inline Tensor operator%(const Scalar& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator<(const Scalar& a, const Tensor& b) { return b.gt(a); }
inline Tensor operator<=(const Scalar& a, const Tensor& b) { return b.ge(a); }
inline Tensor operator>(const Scalar& a, const Tensor& b) { return b.lt(a); }
inline Tensor operator>=(const Scalar& a, const Tensor& b) { return b.le(a); }
inline Tensor operator&(const Scalar& a, const Tensor& b) { return b.bitwise_and(a); }
inline Tensor operator|(const Scalar& a, const Tensor& b) { return b.bitwise_or(a); }
inline Tensor operator^(const Scalar& a, const Tensor& b) { return b.bitwise_xor(a); }
inline Tensor operator<<(const Scalar& a, const Tensor& b) { return bitwise_left_shift(a, b); }
inline Tensor operator>>(const Scalar& a, const Tensor& b) { return bitwise_right_shift(a, b); }
inline Tensor operator!(const Tensor& a) { return a.logical_not(); }

}  // namespace fornax
