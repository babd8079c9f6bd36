// The pooling kernels that are compiled once per instruction set, and how they are called.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"

namespace fornax::cpu {

// One dimension: output o covers start[o] + step * (0 ... count[o] - 1), all inside the input;
// full[o] is its size as count_include_pad counts it.
struct PoolAxis {
  int64_t in, out, step, stride, pad, kernel;
  const int32_t* start;
  const int32_t* count;
  const int32_t* full;
};

// Always three dimensions. `source` and `target` are what a pass reads and writes: in and out
// forward, grad_out and grad_in backward.
struct PoolTask {
  const void* source;
  void* target;
  int64_t* indices;  // null: not wanted
  int64_t batch, channels;
  PoolAxis axis[3];
  int64_t divisor;
  bool include_pad, regular;

  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
};

// Each call does units [first, last). The units of a forward pass are output rows ([batch,
// channels, out0, out1] of them when channels are planes, [batch, out0, out1] when they are last),
// those of a backward pass planes or (image, channel block) pairs. No kernel throws or allocates.
// scratch: pool_scratch() bytes.
using PoolFunction = void (*)(const PoolTask& t, int64_t first, int64_t last, void* scratch);

struct PoolKernels {
  // [channels last?][dtype]; null where a dtype has no such kernel.
  PoolFunction max_forward[2][kDtypeCount], avg_forward[2][kDtypeCount];
  PoolFunction max_backward[2][kDtypeCount], avg_backward[2][kDtypeCount];
};

inline constexpr int64_t kPoolChannels = 64;  // channels of a block
inline int64_t channel_blocks(const PoolTask& t) {
  return (t.channels + kPoolChannels - 1) / kPoolChannels;
}
inline constexpr int64_t kPoolPlanes = 16;  // planes that are pooled together, interleaved
// Whether that many planes fit into L2 and windows are those of max pooling in f32 or less.
inline bool planes_fit(const PoolTask& t) {
  return (t.in_plane() + 2 * t.out_plane()) * kPoolPlanes * 4 <= (int64_t(3) << 18);
}
// Room for one converted row or plane (of a block of channels), and a row of outputs.
inline int64_t pool_scratch(const PoolTask& t, bool last, bool backward) {
  const int64_t row = (t.axis[2].in + t.axis[2].out + 64) * 8;
  if (backward) return row + t.in_plane() * (last ? kPoolChannels : 1) * 4;
  if (last || !planes_fit(t)) return row;
  return row + (t.in_plane() + 2 * t.out_plane()) * kPoolPlanes * 4;
}

}  // namespace fornax::cpu

namespace fornax::isa_v3 {
extern const cpu::PoolKernels pool_kernels;
}
namespace fornax::isa_v4 {
extern const cpu::PoolKernels pool_kernels;
}
