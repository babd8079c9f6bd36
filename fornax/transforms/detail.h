// Function transforms without types: flat lists of tensors. fornax/transforms/transforms.h puts
// programs' own argument and result types around these.
#pragma once

#include <string>

#include "fornax/base/function_ref.h"
#include "fornax/core/tensor.h"
#include "fornax/transforms/options.h"

namespace fornax::func::detail {

// The user's function: flat arguments to flat results.
using Erased = FunctionRef<Tensors(TensorList)>;

Tensors vmap(Erased f, TensorList inputs, ArrayRef<std::optional<int64_t>> in_dims,
             const VmapOptions& options);

// Gradients of f's first result (one element) for the inputs that are wanted, zeros where it
// doesn't depend on one; `outs`: all results of f.
Tensors grad(Erased f, TensorList inputs, ArrayRef<bool> wanted, Tensors& outs);

// The results of f, and what is needed to pull cotangents back through it, any number of times.
class Pullback {
 public:
  Pullback(Erased f, TensorList inputs, ArrayRef<bool> wanted);
  const Tensors& outs() const;
  // Undefined cotangents are zero. Zeros for inputs the results don't depend on.
  Tensors operator()(TensorList cotangents) const;

 private:
  struct State;
  static void drop(State* state);
  struct Handle : RefCounted {
    State* state = nullptr;
    ~Handle();
  };
  Ref<Handle> handle_;
};

// Results and their tangents (zeros where there is none). Undefined tangents are zero.
Tensors jvp(Erased f, TensorList inputs, TensorList tangents, Tensors& outs);

// f with every write replaced: one level down nothing is overwritten until f has returned.
Tensors functionalize(Erased f, TensorList inputs);

// Jacobians of every result by every wanted input: result-major; sizes are the result's, then the
// input's. jacrev runs one backward per element of the results, jacfwd one forward per element of
// the inputs, as one vmap (in chunks of chunk_size).
Tensors jacrev(Erased f, TensorList inputs, ArrayRef<bool> wanted,
               std::optional<int64_t> chunk_size);
Tensors jacfwd(Erased f, TensorList inputs, ArrayRef<bool> wanted, Randomness randomness,
               std::optional<int64_t> chunk_size);

}  // namespace fornax::func::detail
