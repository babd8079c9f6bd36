#include "fornax/ops/operators.h"

#include "fornax/ops/records.h"

namespace fornax {

Tensor& Tensor::operator+=(const Tensor& other) const { return add_(other); }
Tensor& Tensor::operator+=(const Scalar& other) const { return add_(other); }
Tensor& Tensor::operator-=(const Tensor& other) const { return sub_(other); }
Tensor& Tensor::operator-=(const Scalar& other) const { return sub_(other); }
Tensor& Tensor::operator*=(const Tensor& other) const { return mul_(other); }
Tensor& Tensor::operator*=(const Scalar& other) const { return mul_(other); }
Tensor& Tensor::operator/=(const Tensor& other) const { return div_(other); }
Tensor& Tensor::operator/=(const Scalar& other) const { return div_(other); }
Tensor& Tensor::operator&=(const Tensor& other) const { return bitwise_and_(other); }
Tensor& Tensor::operator&=(const Scalar& other) const { return bitwise_and_(other); }
Tensor& Tensor::operator|=(const Tensor& other) const { return bitwise_or_(other); }
Tensor& Tensor::operator|=(const Scalar& other) const { return bitwise_or_(other); }
Tensor& Tensor::operator^=(const Tensor& other) const { return bitwise_xor_(other); }
Tensor& Tensor::operator^=(const Scalar& other) const { return bitwise_xor_(other); }
Tensor& Tensor::operator<<=(const Tensor& other) const { return bitwise_left_shift_(other); }
Tensor& Tensor::operator<<=(const Scalar& other) const { return bitwise_left_shift_(other); }
Tensor& Tensor::operator>>=(const Tensor& other) const { return bitwise_right_shift_(other); }
Tensor& Tensor::operator>>=(const Scalar& other) const { return bitwise_right_shift_(other); }
Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator~() const { return bitwise_not(); }

Tensor operator/(const Scalar& a, const Tensor& b) { return call1(div_op, {a, b}); }

}  // namespace fornax
