// Forward mode, one call at a time: what the base level's dual tensors and the Forward interpreter
// share.
#pragma once

#include "fornax/base/function_ref.h"
#include "fornax/core/op.h"

namespace fornax {

// The base-level tangent of t in the dual level that is open now, following t's base; undefined if
// there is none.
Tensor tangent_of(const Tensor& t);
void set_tangent(const Tensor& t, const Tensor& tangent);

// A call whose arguments and tangents all live on the level that runs now. In place, argument 0 and
// its tangent (which must be defined) are written; both get copies first, because the level may
// have saved them.
struct ForwardCall {
  const Op& op;
  Form form;
  Args args;
  Tensors tangents;  // per flat tensor argument; undefined = zero
  Tensors outs;
  Tensors out_tangents;  // per result; undefined = zero, or written in place
};
// Rules in order: views and linear operators on the tangents, the record's jvp, reverse mode twice.
// Throws Error(kAutograd) where none applies.
void run_forward(ForwardCall& call);

// Tangents of f at `primals` along `tangents` by running reverse mode twice; f is evaluated once,
// its results go to `outs`.
Tensors jvp_by_vjp_twice(FunctionRef<Tensors(TensorList)> f, TensorList primals,
                         TensorList tangents, Tensors& outs);

// Results of a rule may be their operands; a tangent that is written later must not be shared.
void own_tangents(Tensors& results, TensorList tangents, TensorList primals);

// Forward mode of a user's function, inputs and tangents on the level that runs now; returns the
// results' tangents.
Tensors run_forward_custom(CustomCall& call, TensorList tangents);
// The base level's.
void forward_step_custom(CustomCall& call);

}  // namespace fornax
