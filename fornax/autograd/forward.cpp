#include "fornax/core/core_hooks.h"

namespace fornax {
bool forward_step(Call&) { return false; }

const Tensor& Jvp::primal(int arg, int k) const { return primals[size_t(first[size_t(arg)] + k)]; }
const Tensor& Jvp::tangent(int arg, int k) const {
  static constinit Tensor none;
  int at = first[size_t(arg)];
  return at < 0 ? none : tangents[size_t(at + k)];
}
}  // namespace fornax
