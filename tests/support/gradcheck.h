// Derivatives against central differences.
#pragma once

#include <string>
#include <vector>

#include "fornax/base/function_ref.h"
#include "fornax/core/tensor.h"
#include "tests/support/values.h"

namespace fornax::test {

// f maps inputs (float64 or complex128) to results; it is called with changed copies of them.
using DifferentiableFunction = FunctionRef<Tensors(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double step = 1e-6;
  double relative = 2e-5, absolute = 2e-5;
  // The function is linear around every point in steps of `step` at least; false values of it would
  // show as differences.
  bool second = false;  // check the gradient's own gradient instead
};

// Empty if every gradient of Re<w, f(inputs)>, w fixed, agrees with the difference quotient; else
// the first disagreement in words. With `second`, the same for Re<v, gradient>, with respect to
// inputs and w.
std::string gradcheck(DifferentiableFunction f, const std::vector<Tensor>& inputs,
                      GradcheckOptions options = {});
// Whether any result of f needs a gradient when all inputs do.
bool is_differentiable_at(DifferentiableFunction f, const std::vector<Tensor>& inputs);

}  // namespace fornax::test
