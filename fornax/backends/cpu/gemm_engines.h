// The libraries behind gemm(); only gemm.cpp includes this.
#pragma once

#include "fornax/backends/cpu/gemm.h"

namespace fornax::cpu {

// Runs g (f32, bf16 or f16; no degenerate sizes) with oneDNN. False, with nothing done, where
// oneDNN doesn't have it: strides it can't describe, a dtype this CPU lacks, alpha != 1.
// fast_f32: factors may be rounded to bf16.
bool gemm_onednn(const Gemm& g, bool fast_f32);

// c32, c64 and c128, any strides, by OpenBLAS; tiny ones by plain loops.
void gemm_complex(const Gemm& g);

}  // namespace fornax::cpu
