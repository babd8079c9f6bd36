// Checkpoints: everything a training run needs to go on, in one safetensors file.
#pragma once

#include <string>
#include <vector>

#include "fornax/core/generator.h"
#include "fornax/nn/module.h"
#include "fornax/optim/optimizer.h"
#include "fornax/serialize/tensors.h"

namespace fornax::serialize {

// Named parts. save() writes aside and renames, so a file is whole or absent; load() runs nothing
// from the file and checks every part against what it goes into.
class Checkpoint {
 public:
  Checkpoint() = default;
  // Throws Error(kIo) naming the file for anything damaged or missing.
  static Checkpoint load(const std::string& path);
  // Throws Error(kIo); the old file stays as it was.
  void save(const std::string& path) const;

  Checkpoint& put(const std::string& name, const Tensor& tensor);
  Checkpoint& put(const std::string& name, const nn::Module& module);
  Checkpoint& put(const std::string& name, optim::Optimizer& optimizer);
  Checkpoint& put(const std::string& name, const Generator& generator);
  Checkpoint& put(const std::string& name, int64_t value);
  Checkpoint& put(const std::string& name, const std::vector<double>& values);
  // A data::SamplerState.
  template <class S>
  requires requires(const S& s) { s.order, s.position; }
  Checkpoint& put(const std::string& name, const S& state) {
    if (state.order.defined()) put(name + ".order", state.order);
    return put(name + ".position", int64_t(state.position));
  }

  bool has(const std::string& name) const { return find(name) != nullptr; }
  // Throw Error(kValue) naming the part that is missing or does not fit.
  Tensor get_tensor(const std::string& name) const;
  int64_t get_integer(const std::string& name) const;
  std::vector<double> get_reals(const std::string& name) const;
  const Checkpoint& get(const std::string& name, nn::Module& module) const;
  const Checkpoint& get(const std::string& name, optim::Optimizer& optimizer) const;
  const Checkpoint& get(const std::string& name, const Generator& generator) const;
  template <class S>
  requires requires(S& s) { s.order, s.position; }
  const Checkpoint& get(const std::string& name, S& state) const {
    state.order = has(name + ".order") ? get_tensor(name + ".order") : Tensor();
    int64_t position = get_integer(name + ".position");
    FX_CHECK(position >= 0, kValue, "checkpoint: '", name, ".position' is negative: ", position);
    state.position = size_t(position);
    return *this;
  }

 private:
  const Tensor* find(const std::string& name) const;
  NamedTensors tensors_;
};

}  // namespace fornax::serialize
