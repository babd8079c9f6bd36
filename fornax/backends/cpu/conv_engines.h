// What runs behind conv_*(); only conv.cpp includes this.
#pragma once

#include "fornax/backends/cpu/conv.h"

namespace fornax::cpu {

enum class ConvPass : uint8_t { kForward, kBackwardData, kBackwardWeights };

// The three tensors of a pass (two are read, one is written) and the bias vector, which
// kBackwardWeights writes and the others add; null: none.
struct ConvArgs {
  void* in;
  void* weight;
  void* out;
  void* bias;
};

// Runs one pass (no sizes of 0) with oneDNN. False, with nothing done, where it has no fast
// implementation for it on this CPU.
bool conv_onednn(const Conv& c, ConvPass pass, const ConvArgs& args);

// Any dtype with products: copies patches into matrices and multiplies.
void conv_own(const Conv& c, ConvPass pass, const ConvArgs& args);

// Adds one value per channel, or sums over everything but channels, in the tensor's dtype.
void add_channel_bias(Dtype dtype, ConvLayout layout, int64_t batch, int64_t channels,
                      int64_t positions, const void* bias, void* tensor);
void sum_per_channel(Dtype dtype, ConvLayout layout, int64_t batch, int64_t channels,
                     int64_t positions, const void* tensor, void* sums);

}  // namespace fornax::cpu
