// The interpreters behind vmap and jvp; grad's is GradInterp (fornax/autograd/level.h).
#pragma once

#include "fornax/autograd/level.h"
#include "fornax/transforms/options.h"

namespace fornax {

// Runs a function once on whole batches. A wrapper hides the batch dimension, which is dimension 0
// of its inner tensor (bdim 0), or is the same for all rows (bdim -1). Before a batched value is
// written into an unbatched local, that local gets a batch dimension; its views derive themselves
// anew.
struct VmapInterp final : Interp {
  int64_t size = 0;
  func::Randomness randomness = func::Randomness::kError;

  void process(Call& call) override;
  void process_custom(CustomCall& call) override;
  void sync(const Tensor& t) override { rederive_view(t, level); }
  Tensor lower_for_query(const Tensor& t) override;

 private:
  void widen(std::string_view name, const Tensor& t);
  void widen_targets(const Call& call);
  void check_allowed(const Call& call, bool batched) const;
  void run_rule(Call& call, Tensors& outs, SmallVec<int, 4>& bdims);
  void run_loop(Call& call, Tensors& outs);
};

// Computes tangents beside values. A wrapper holds both; the tangent of a view is a view of the
// base's tangent.
struct ForwardInterp final : Interp {
  void process(Call& call) override;
  void process_custom(CustomCall& call) override;
  void sync(const Tensor& t) override;

  // Undefined = zero. Brings t up to date.
  Tensor tangent(const Tensor& t);

 private:
  void give_tangent(std::string_view name, const Tensor& t);
};

// Moves dimension `from` to `to`, as a view.
Tensor move_dim(const Tensor& t, int64_t from, int64_t to);

}  // namespace fornax
