// Shared by the convolution records and their kernels.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

struct ConvParams {
  IntArrayRef stride, padding, dilation, output_padding;  // one value, or one per spatial dimension
  bool transposed = false;
  int64_t groups = 1;
};
// Reads stride, padding, dilation, transposed, output_padding, groups from argument `first` on;
// checks their ranges.
ConvParams conv_params(Args args, size_t first, int64_t spatial);
// Sizes of the result; throws Error(kShape) where the kernel doesn't fit.
Dims conv_output_sizes(const Tensor& input, const Tensor& weight, const ConvParams& params);

}  // namespace fornax
