#include "fornax/serialize/checkpoint.h"

#include <cstring>

#include "fornax/autograd/autograd.h"
#include "fornax/ops/factory.h"

namespace fornax::serialize {
namespace {

constexpr const char* kNumbers = ".numbers.";
constexpr const char* kTensors = ".tensors.";

Tensor from_reals(const std::vector<double>& values) {
  Tensor t = empty({int64_t(values.size())}, TensorOptions(kDouble));
  if (!values.empty()) std::memcpy(t.data_ptr(), values.data(), t.nbytes());
  return t;
}

}  // namespace

Checkpoint Checkpoint::load(const std::string& path) {
  Checkpoint c;
  c.tensors_ = load_safetensors(path);
  return c;
}

void Checkpoint::save(const std::string& path) const {
  save_safetensors(path, tensors_, {{"format", "fornax checkpoint 1"}});
}

const Tensor* Checkpoint::find(const std::string& name) const {
  for (const auto& [n, t] : tensors_)
    if (n == name) return &t;
  return nullptr;
}

Checkpoint& Checkpoint::put(const std::string& name, const Tensor& tensor) {
  FX_CHECK(!has(name), kValue, "checkpoint: '", name, "' is there already");
  tensors_.emplace_back(name, tensor.detach());
  return *this;
}

Checkpoint& Checkpoint::put(const std::string& name, int64_t value) {
  return put(name, full({1}, Scalar(value), TensorOptions(kLong)));
}

Checkpoint& Checkpoint::put(const std::string& name, const std::vector<double>& values) {
  return put(name, from_reals(values));
}

Checkpoint& Checkpoint::put(const std::string& name, const Generator& generator) {
  return put(name, generator.get_state());
}

Checkpoint& Checkpoint::put(const std::string& name, const nn::Module& module) {
  for (const auto& item : module.state_dict()) put(name + "." + item.key(), item.value());
  return *this;
}

Checkpoint& Checkpoint::put(const std::string& name, optim::Optimizer& optimizer) {
  optim::OptimizerState state = optimizer.state_dict();
  for (const auto& item : state.tensors) put(name + kTensors + item.key(), item.value());
  for (const auto& item : state.numbers)
    put(name + kNumbers + item.key(), std::vector<double>{item.value()});
  return *this;
}

Tensor Checkpoint::get_tensor(const std::string& name) const {
  const Tensor* t = find(name);
  FX_CHECK(t, kValue, "checkpoint: there is no '", name, "'");
  return *t;
}

int64_t Checkpoint::get_integer(const std::string& name) const {
  Tensor t = get_tensor(name);
  FX_CHECK(t.dtype() == kLong && t.numel() == 1, kValue, "checkpoint: '", name,
           "' must be one int64, got ", t);
  return t.item<int64_t>();
}

std::vector<double> Checkpoint::get_reals(const std::string& name) const {
  Tensor t = get_tensor(name);
  FX_CHECK(t.dtype() == kDouble && t.dim() == 1, kValue, "checkpoint: '", name,
           "' must be a list of float64, got ", t);
  const double* data = t.data_ptr<double>();
  return std::vector<double>(data, data + t.numel());
}

const Checkpoint& Checkpoint::get(const std::string& name, const Generator& generator) const {
  generator.set_state(get_tensor(name));
  return *this;
}

const Checkpoint& Checkpoint::get(const std::string& name, nn::Module& module) const {
  nn::StateDict dict;
  std::string prefix = name + ".";
  for (const auto& [key, tensor] : tensors_)
    if (key.compare(0, prefix.size(), prefix) == 0) dict.insert(key.substr(prefix.size()), tensor);
  module.load_state_dict(dict);
  return *this;
}

const Checkpoint& Checkpoint::get(const std::string& name, optim::Optimizer& optimizer) const {
  optim::OptimizerState state;
  std::string tensors = name + kTensors, numbers = name + kNumbers;
  for (const auto& [key, tensor] : tensors_) {
    if (key.compare(0, tensors.size(), tensors) == 0)
      state.tensors.insert(key.substr(tensors.size()), tensor);
    if (key.compare(0, numbers.size(), numbers) != 0) continue;
    FX_CHECK(tensor.dtype() == kDouble && tensor.numel() == 1, kValue, "checkpoint: '", key,
             "' must be one float64, got ", tensor);
    state.numbers.insert(key.substr(numbers.size()), tensor.item<double>());
  }
  optimizer.load_state_dict(state);
  return *this;
}

}  // namespace fornax::serialize
