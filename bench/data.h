// Inputs that every framework can reproduce bit for bit: a hash of the element's number.
#pragma once

#include <cstdint>

#include "fornax/fornax.h"

namespace fornax::bench {

// A 32-bit hash of (i, seed).
uint32_t u32(uint32_t i, uint32_t seed);
// f32 in [low, high), row-major; the product and the sum are rounded separately.
Tensor rnd(IntArrayRef sizes, uint32_t seed = 1, double low = -1, double high = 1);
// int64 in [0, high).
Tensor rint(IntArrayRef sizes, uint32_t high, uint32_t seed = 1);
// complex64: real part rnd(seed), imaginary part rnd(seed + 1).
Tensor crnd(IntArrayRef sizes, uint32_t seed = 1);

}  // namespace fornax::bench
