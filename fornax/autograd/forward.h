// Forward mode for programs: tensors that carry a tangent while a dual level is open.
//
//   autograd::forward_ad::dual_level level;
//   Tensor x = autograd::forward_ad::make_dual(primal, tangent);
//   auto [y, dy] = autograd::forward_ad::unpack_dual(f(x));
//
// func::jvp does the same as a function transform, and nests.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax::autograd::forward_ad {

// Tangents live until the level ends. Levels don't nest: opening a second one throws
// Error(kAutograd).
class dual_level {
 public:
  dual_level();
  ~dual_level();
  dual_level(const dual_level&) = delete;
};

// A view of `tensor` that carries `tangent` (same sizes and dtype). Throws Error(kAutograd) where
// no level is open, Error(kShape) or Error(kType) on a tangent that doesn't fit.
Tensor make_dual(const Tensor& tensor, const Tensor& tangent);

// The tangent is undefined where it is zero.
struct UnpackedDual {
  Tensor primal, tangent;
};
UnpackedDual unpack_dual(const Tensor& tensor);

// Whether tangents are computed on this thread.
bool is_fwd_grad_enabled();
void set_fwd_grad_enabled(bool on);

}  // namespace fornax::autograd::forward_ad
