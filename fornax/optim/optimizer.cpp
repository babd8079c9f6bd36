#include "fornax/optim/optimizer.h"

#include <algorithm>

#include "fornax/autograd/autograd.h"
#include "fornax/ops/functions.h"

namespace fornax::optim {

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : groups) add_param_group(group);
}
Optimizer::~Optimizer() = default;

void Optimizer::add_param_group(const OptimizerParamGroup& group) {
  std::vector<const TensorImpl*> known;
  for (const OptimizerParamGroup& g : groups_)
    for (const Tensor& p : g.params()) known.push_back(p.impl());
  for (const Tensor& p : group.params()) {
    FX_CHECK(p.defined(), kValue, "add_param_group: a parameter is undefined");
    FX_CHECK(p.is_leaf(), kAutograd, "add_param_group: can't optimize a non-leaf tensor of sizes ",
             p.sizes());
    known.push_back(p.impl());
  }
  std::sort(known.begin(), known.end());
  FX_CHECK(std::adjacent_find(known.begin(), known.end()) == known.end(), kValue,
           "add_param_group: some parameters appear more than once");
  OptimizerParamGroup& added = groups_.emplace_back(group);
  if (!added.has_options()) added.set_options(defaults_->clone());
  states_.emplace_back(added.params().size());
}

void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : groups_) {
    for (Tensor& p : group.params()) {
      if (!p.grad().defined()) continue;
      if (set_to_none) {
        p.mutable_grad().reset();
        continue;
      }
      NoGradGuard no_grad;
      p.mutable_grad() = p.grad().detach().fill_(0);
    }
  }
}

Tensor Optimizer::step() {
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) step_group(groups_[g], states_[g]);
  return {};
}

Tensor Optimizer::step(LossClosure closure) {
  Tensor loss;
  {
    AutoGradMode grad_on(true);
    loss = closure();
  }
  step();
  return loss;
}

size_t Optimizer::size() const {
  size_t n = 0;
  for (const OptimizerParamGroup& group : groups_) n += group.params().size();
  return n;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> out;
  for (const OptimizerParamGroup& group : groups_)
    out.insert(out.end(), group.params().begin(), group.params().end());
  return out;
}

OptimizerParamState* Optimizer::state_of(const Tensor& parameter) {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (size_t k = 0; k < groups_[g].params().size(); ++k)
      if (groups_[g].params()[k].is_same(parameter)) return states_[g][k].get();
  return nullptr;
}

// ---- saving and loading ------------------------------------------------------------------------

namespace {

std::string state_key(size_t group, size_t place) { return str("state.", group, ".", place, "."); }
std::string group_key(size_t group) { return str("group.", group, "."); }

}  // namespace

OptimizerState Optimizer::state_dict() {
  OptimizerState out;
  for (size_t g = 0; g < groups_.size(); ++g) {
    out.numbers.insert(group_key(g) + "params", double(groups_[g].params().size()));
    for (const auto& [name, value] : groups_[g].options().values())
      out.numbers.insert(group_key(g) + name, value);
    for (size_t k = 0; k < states_[g].size(); ++k) {
      if (!states_[g][k]) continue;
      for (const auto& [name, tensor] : states_[g][k]->fields())
        if (tensor->defined()) out.tensors.insert(state_key(g, k) + name, *tensor);
    }
  }
  return out;
}

void Optimizer::load_numbers(const OptimizerState& state) {
  for (size_t g = 0; g < groups_.size(); ++g)
    for (const auto& [name, value] : groups_[g].options().values())
      if (const double* saved = state.numbers.find(group_key(g) + name))
        groups_[g].options().set_value(name, *saved);
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  std::vector<States> fresh;
  size_t used = 0;
  NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<Tensor>& params = groups_[g].params();
    const double* count = state.numbers.find(group_key(g) + "params");
    FX_CHECK(count && size_t(*count) == params.size(), kValue, "load_state_dict: group ", g,
             " has ", params.size(), " parameters, the saved one ", count ? *count : 0.0);
    States& states = fresh.emplace_back(params.size());
    for (size_t k = 0; k < params.size(); ++k) {
      auto loaded = new_state();
      bool any = false;
      for (const auto& [name, tensor] : loaded->fields()) {
        const Tensor* saved = state.tensors.find(state_key(g, k) + name);
        if (!saved) continue;
        FX_CHECK(saved->numel() == 1 || saved->sizes() == params[k].sizes(), kShape,
                 "load_state_dict: ", state_key(g, k), name, " has sizes ", saved->sizes(),
                 ", its parameter ", params[k].sizes());
        *tensor = saved->detach().clone();
        any = true;
        ++used;
      }
      if (any) states[k] = std::move(loaded);
    }
  }
  FX_CHECK(!state.numbers.contains(group_key(groups_.size()) + "params"), kValue,
           "load_state_dict: more than ", groups_.size(), " groups were saved");
  FX_CHECK(used == state.tensors.size(), kValue, "load_state_dict: ", state.tensors.size() - used,
           " saved tensors belong to no state of this optimizer");
  load_numbers(state);
  states_ = std::move(fresh);
}

}  // namespace fornax::optim
