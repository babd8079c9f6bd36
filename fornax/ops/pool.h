// Geometry of pooling calls, shared by the shape rules and the kernels.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// Windows of one pooling call over [(batch,) channels, spatial ...]. Lists have one value per
// spatial dimension.
struct PoolParams {
  int64_t spatial = 0;
  Dims kernel, stride, padding, dilation, output;  // output: sizes of adaptive windows, else empty
  bool ceil_mode = false, count_include_pad = true;
  int64_t divisor = 0;
  bool adaptive() const { return !output.empty(); }
};
// pool_max(self, kernel, stride, padding, dilation, ceil_mode, output_size)
PoolParams max_pool_params(Args args);
// pool_average(self, kernel, stride, padding, ceil_mode, count_include_pad, divisor, output_size);
// the backward record has the input's sizes between self and kernel, so its parameters start one
// later.
PoolParams average_pool_params(Args args, size_t first);
// Sizes of the result; throws Error(kShape) where windows don't fit.
Dims pooled_sizes(IntArrayRef input, const PoolParams& p, std::string_view name);

}  // namespace fornax
