// The softmax loops of the instruction set in use.
#pragma once

#include "fornax/backends/cpu/kernels/softmax_kernels.h"

namespace fornax::cpu {

// Null functions where a dtype has none.
const SoftmaxLoops& softmax_loops(Dtype dtype);

}  // namespace fornax::cpu
