// Pooling of the CPU backend, on plain pointers: maxima and averages over regular or adaptive
// windows in one to three spatial dimensions, with gradients.
#pragma once

#include <cstdint>

#include "fornax/backends/cpu/conv.h"

namespace fornax::cpu {

// Pools [batch, channels, in_size...] to [batch, channels, out_size...], both dense in `layout`.
// The first `spatial` entries of the arrays count, outermost dimension first.
//
// Regular windows: output o covers o * stride - pad + dilation * (0 ... kernel - 1), as far as that
// lies in the input; out_size is the caller's (ceil_mode needs nothing here). Adaptive windows:
// output o covers floor(o * in / out) to ceil((o + 1) * in / out); kernel, stride, pad and dilation
// are ignored.
//
// Averages divide by divisor if that is not 0, else by the window's size, which with
// count_include_pad counts padding, though nothing beyond it; they have no dilation.
//
// dtypes: f16, bf16, f32, f64; maxima also every integer type, averages also i64. bf16 and f16 sum
// in f32 and round once. A NaN in a window makes its maximum NaN.
struct Pool {
  Dtype dtype = Dtype::kF32;
  ConvLayout layout = ConvLayout::kContiguous;
  int spatial = 2;
  bool adaptive = false;
  int64_t batch = 0, channels = 0;
  int64_t in_size[3] = {1, 1, 1}, out_size[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  bool count_include_pad = true;
  int64_t divisor = 0;
};

// indices: where each maximum was found, as a flat index into its input plane (the last NaN, else
// the first maximum); laid out like out. May be null. All of these run on up to get_num_threads()
// threads with results that don't depend on their number, and throw Error(kType) for other dtypes,
// Error(kShape) for sizes that make no sense, a plane of 2^31 elements or more included.
void max_pool_forward(const Pool& p, const void* in, void* out, int64_t* indices);
// grad_in = 0, then grad_in[indices] += grad_out. Error(kIndex) for an index outside the plane.
void max_pool_backward(const Pool& p, const void* grad_out, const int64_t* indices, void* grad_in);

void avg_pool_forward(const Pool& p, const void* in, void* out);
void avg_pool_backward(const Pool& p, const void* grad_out, void* grad_in);

}  // namespace fornax::cpu
