#include "fornax/ops/operators.h"

namespace fornax {

Tensor& Tensor::operator+=(const Tensor& other) const { return add_(other); }
Tensor& Tensor::operator+=(const Scalar& other) const { return add_(other); }
Tensor& Tensor::operator-=(const Tensor& other) const { return sub_(other); }
Tensor& Tensor::operator-=(const Scalar& other) const { return sub_(other); }
Tensor& Tensor::operator*=(const Tensor& other) const { return mul_(other); }
Tensor& Tensor::operator*=(const Scalar& other) const { return mul_(other); }
Tensor& Tensor::operator/=(const Tensor& other) const { return div_(other); }
Tensor& Tensor::operator/=(const Scalar& other) const { return div_(other); }
Tensor Tensor::operator[](int64_t index) const { return select(0, index); }
Tensor Tensor::operator-() const { return neg(); }

}  // namespace fornax
