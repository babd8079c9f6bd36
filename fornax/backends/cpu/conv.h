// Convolutions of the CPU backend, on plain pointers: forward and both gradients in one to three
// spatial dimensions.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// Order of a dense tensor's dimensions in memory, outermost first.
enum class ConvLayout : uint8_t {
  kContiguous,    // N C (D) (H) W; weights: O I (D) (H) W
  kChannelsLast,  // N (D) (H) W C; weights: O (D) (H) W I
};

// One convolution: input [batch, in_channels, in_size...], weight [out_channels,
// in_channels / groups, kernel...], output [batch, out_channels, out_size...]. The first `spatial`
// entries of the arrays count, outermost dimension first. Holds for each dimension:
//   out_size = (in_size + pad + pad_right - dilation * (kernel - 1) - 1) / stride + 1, rounded
//   down.
//
// dtype (of all operands): f32, f64, c64, c128 and the integers (which wrap) sum in their own type;
// bf16 and f16 sum in f32 and round once. Nothing is conjugated. The last bits of an f32, bf16 or
// f16 result may depend on the number of threads: seldom forward and for the data, often for the
// weights, where oneDNN's threads share out the batch. Those of the other dtypes don't.
//
// A transposed convolution (its weight is [its input's channels, its output's channels / groups,
// kernel...]) is the same object with the roles swapped: fill `in_*` with what the transposed
// convolution produces and `out_*` with what it takes; then
//   its forward           = conv_backward_data(c, its input, weight, its bias, its output)
//   its gradient to input = conv_forward(c, its output's gradient, weight, null, result)
//   its gradient to weight = conv_backward_weights(c, its output's gradient, its input, result,
//   null)
// (the gradient to its bias is a sum over its output's gradient).
struct Conv {
  Dtype dtype = Dtype::kF32;
  ConvLayout in_layout = ConvLayout::kContiguous;
  ConvLayout out_layout = ConvLayout::kContiguous;
  ConvLayout weight_layout = ConvLayout::kContiguous;
  int spatial = 2;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  int64_t in_size[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out_size[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, pad_right[3] = {0, 0, 0};
  int64_t dilation[3] = {1, 1, 1};
};

// out = in * weight + bias; bias: out_channels elements or null. All three run on up to
// get_num_threads() threads and throw Error(kType) for other dtypes, Error(kShape) for sizes that
// don't agree.
void conv_forward(const Conv& c, const void* in, const void* weight, const void* bias, void* out);

// grad_in = gradient to the input, plus bias (in_channels elements or null; for transposed
// convolutions).
void conv_backward_data(const Conv& c, const void* grad_out, const void* weight, const void* bias,
                        void* grad_in);

// grad_weight, laid out as weight_layout says; grad_bias (out_channels elements) too unless null.
void conv_backward_weights(const Conv& c, const void* in, const void* grad_out, void* grad_weight,
                           void* grad_bias);

// Who computes f32, bf16 and f16 convolutions; for tests. kOwn: the im2col code. kLibrary: oneDNN
// in the dtype itself wherever it can.
enum class ConvEngine : uint8_t { kAuto, kOwn, kLibrary };
void set_conv_engine(ConvEngine engine);

}  // namespace fornax::cpu
