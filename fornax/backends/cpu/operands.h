// What kernels do to their operands below the operator level.
#pragma once

#include "fornax/core/copy.h"
#include "fornax/core/op.h"

namespace fornax::cpu {

// While alive, operators called by a kernel run below every interpreter and without a tape.
struct PlainCalls : StateGuard {
  PlainCalls() {
    thread_state.top = nullptr;
    thread_state.set_grad_mode(false);
  }
};

// x in dtype d: itself, or a contiguous copy.
inline Tensor cast_to(const Tensor& x, Dtype d) {
  if (d == x.dtype()) return x;
  Tensor cast = make_tensor(Meta(d, x.sizes(), x.device()));
  copy_elements(cast, x);
  return cast;
}

// Address of an element of a contiguous tensor; null for an undefined one.
inline char* element_at(const Tensor& t, int64_t element = 0) {
  if (!t.defined()) return nullptr;
  return static_cast<char*>(t.impl()->data()) + element * t.element_size();
}

}  // namespace fornax::cpu
