// A user's function with a gradient of its own, as interpreters see it.
#pragma once

#include "fornax/autograd/function.h"
#include "fornax/core/op.h"

namespace fornax {

// One application. Every level adds its own view of it: inputs, results and saved tensors of that
// level, and a node if the level records.
struct CustomCall {
  // Which tensor of the call a saved one is; -1 as index: another one.
  struct SavedPlace {
    enum Kind : uint8_t { kInput, kResult, kOther } kind = kOther;
    int index = -1;
    Tensor other;
  };

  const Ref<autograd::CustomFunction>& function;
  Tensors inputs;
  Tensors outs;
  // Filled by the level that runs the user's forward, handed up unchanged.
  Ref<autograd::AutogradContext> context;
  SmallVec<SavedPlace, 2> saved;
  SmallVec<int, 2> out_is_input;  // per result: the input it is (written in place), -1: fresh
  SmallVec<bool, 2> non_differentiable;  // per result
};

// Runs the call on the level that runs now.
void dispatch_custom(CustomCall& call);
// Runs the user's forward right here, without recording; fills everything but a node.
void run_custom_forward(CustomCall& call);
// The saved tensors as tensors of this level.
Tensors saved_tensors(const CustomCall& call);
// Records the call on this level, if it needs a gradient here.
void attach_custom_node(CustomCall& call);

// Results and bookkeeping of a call one level down; wrap(tensor, result) makes fresh results ours.
template <class Wrap>
void take_custom_results(CustomCall& call, CustomCall& inner, Wrap wrap) {
  call.context = inner.context->for_level();
  call.saved = inner.saved;
  call.out_is_input = inner.out_is_input;
  call.non_differentiable = inner.non_differentiable;
  for (size_t i = 0; i < inner.outs.size(); ++i) {
    int input = inner.out_is_input[i];
    if (input < 0) {
      call.outs.push_back(inner.outs[i].defined() ? wrap(inner.outs[i], i) : Tensor());
      continue;
    }
    const Tensor& written = call.inputs[size_t(input)];
    if (!written.is_same(inner.inputs[size_t(input)]))
      written.impl()->version().fetch_add(1, std::memory_order_relaxed);
    call.outs.push_back(written);
  }
}

}  // namespace fornax
