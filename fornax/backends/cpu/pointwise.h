// The one CPU kernel of all pointwise operators.
#pragma once

#include "fornax/core/op.h"

namespace fornax::expr {
struct Program;
}

namespace fornax::cpu {

// Any strides, any dtypes in and out, conj and neg bits on inputs, outputs that are exactly an
// input.
void pointwise_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs);

// The same for div, floor_divide, fmod and remainder.
void division_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs);

// The program of a call whose results are stored as `outs`; made once, lives for ever.
const expr::Program& pointwise_program(const Op& op, Args args, ArrayRef<Dtype> outs, Dtype common);
// Whether the argument is an input of the program.
inline bool is_operand(const Arg& a) { return a.tag == Tag::kTensor || a.is_number(); }
// Calls whose tensors are all contiguous and of one shape, with one result.
bool pointwise_short_call(Call& call);

}  // namespace fornax::cpu
