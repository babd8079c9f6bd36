// Tensors from nothing: empty, zeros, ones, full and their _like forms.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

// Uninitialised memory.
Tensor empty(IntArrayRef size, const TensorOptions& options = {});
Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
Tensor ones(IntArrayRef size, const TensorOptions& options = {});
// dtype follows the value (bool, int64, default floating, complex) unless options name one.
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options = {});

// Sizes of `self`; dtype, device and memory format too, unless options say otherwise.
Tensor empty_like(const Tensor& self, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& self, const TensorOptions& options = {});
Tensor ones_like(const Tensor& self, const TensorOptions& options = {});
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options = {});

// A 0-dim tensor.
Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});
// From values: tensor(3.5), tensor({1, 2, 3}). dtype follows the C++ type unless options name one.
Tensor tensor_of(const void* data, Dtype dtype, IntArrayRef size, const TensorOptions& options);
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  Dtype dtype = std::is_same_v<T, double> ? Dtype::kF64 : dtype_of<T>;
  return tensor_of(values.begin(), dtype, {int64_t(values.size())}, options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor_of(values.data(), dtype_of<T>, {int64_t(values.size())}, options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return scalar_tensor(Scalar(value), options);
}

}  // namespace fornax
