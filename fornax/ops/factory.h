// Tensors from nothing: empty, zeros, ones, full, their _like forms, sequences, and from values.
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

// A 0-D tensor, of the default dtype unless options name one.
Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

// Uninitialised memory under given strides, or dense in the order of dimensions that
// `physical_layout` lists from the outermost in.
Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& options = {});
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout,
                      const TensorOptions& options = {});

// start, start + step, ... before end: int64 if all are integers, else the default dtype.
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const TensorOptions& options = {});
// `steps` numbers at equal distances, both ends included; logspace: base to their powers.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                const TensorOptions& options = {});
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10,
                const TensorOptions& options = {});
// n x n or n x m with ones on the diagonal.
Tensor eye(int64_t n, const TensorOptions& options = {});
Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});
// Rows and columns [2, count] of a triangle's elements, row by row.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                    const TensorOptions& options = Dtype::kI64);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                    const TensorOptions& options = Dtype::kI64);

// From values: tensor(3.5), tensor({1, 2, 3}), tensor({{1.0, 2.0}, {3.0, 4.0}}), up to three levels
// of lists, and tensor(std::vector<float>{...}). Unless options name a dtype, real literals become
// the default dtype and int becomes int64. Throws Error(kShape) for rows of different lengths.
Tensor tensor_of(const void* data, Dtype dtype, IntArrayRef size, const TensorOptions& options);
namespace detail {
void check_row(size_t expected, size_t got);
template <class T>
using List = std::initializer_list<T>;
// The dtype whose elements have T's bytes: also for long long and the like.
template <class T>
constexpr Dtype literal_type() {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) == 8)
    return Dtype::kI64;
  else
    return dtype_of<T>;
}
}  // namespace detail
template <class T>
Tensor tensor(detail::List<T> values, const TensorOptions& options = {}) {
  return tensor_of(values.begin(), detail::literal_type<T>(), {int64_t(values.size())}, options);
}
template <class T>
Tensor tensor(detail::List<detail::List<T>> rows, const TensorOptions& options = {}) {
  SmallVec<T, 32> flat;
  size_t columns = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    detail::check_row(columns, row.size());
    flat.append(row.begin(), row.end());
  }
  return tensor_of(flat.data(), detail::literal_type<T>(), {int64_t(rows.size()), int64_t(columns)},
                   options);
}
template <class T>
Tensor tensor(detail::List<detail::List<detail::List<T>>> blocks,
              const TensorOptions& options = {}) {
  SmallVec<T, 64> flat;
  size_t rows = blocks.size() ? blocks.begin()->size() : 0;
  size_t columns = rows ? blocks.begin()->begin()->size() : 0;
  for (const auto& block : blocks) {
    detail::check_row(rows, block.size());
    for (const auto& row : block) {
      detail::check_row(columns, row.size());
      flat.append(row.begin(), row.end());
    }
  }
  return tensor_of(flat.data(), detail::literal_type<T>(),
                   {int64_t(blocks.size()), int64_t(rows), int64_t(columns)}, options);
}
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return tensor_of(values.data(), detail::literal_type<T>(), {int64_t(values.size())}, options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to read");
  return tensor_of(values.data(), detail::literal_type<T>(), {int64_t(values.size())}, options);
}
template <class T, class = decltype(detail::literal_type<T>())>
requires(std::is_arithmetic_v<T> || requires(T v) { v.im; } || std::is_same_v<T, BFloat16> ||
         std::is_same_v<T, Half>) Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor_of(&value, detail::literal_type<T>(), {}, options);
}

}  // namespace fornax
