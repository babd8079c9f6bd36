// Tensors as plain numbers, read and written element by element without any operator.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "fornax/core/tensor.h"

namespace fornax::test {

using Number = std::complex<double>;

struct Numbers {
  Dims sizes;
  std::vector<Number> at;  // row by row
};

// Any strides, offset, conj and neg bits.
Numbers read(const Tensor& t);
// A contiguous tensor of `dtype`; real dtypes take the real parts.
Tensor write(const Numbers& numbers, Dtype dtype);
// Overwrites the elements of `t` where they lie.
void write_into(const Tensor& t, const std::vector<Number>& numbers);

struct Bound {
  double relative, absolute;
};
// What two correct computations in `dtype` may differ by.
Bound bound_of(Dtype dtype);

// Empty if equal within the bound (NaN equals NaN); else the first difference in words.
std::string difference(const Numbers& got, const Numbers& want, Bound bound);
std::string difference(const Tensor& got, const Tensor& want, Bound bound);
inline std::string difference(const Tensor& got, const Tensor& want) {
  return difference(got, want, bound_of(got.dtype()));
}

// Copies with the same values and another layout.
// Every second element of a larger block, dimensions in reverse memory order, offset 3.
Tensor strided_copy(const Tensor& t);
// Along dimension 0 every slice is the first one: stride 0.
Tensor first_slice_repeated(const Tensor& t);
Tensor contiguous_of(const Tensor& t);

}  // namespace fornax::test
