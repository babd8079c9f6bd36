#include "fornax/optim/optimizers.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/optim.h"

namespace fornax::optim {
namespace {

void check_rate(const char* optimizer, double lr) {
  FX_CHECK(lr >= 0, kValue, optimizer, ": the learning rate must not be negative, got ", lr);
}
void check_decay(const char* optimizer, double decay) {
  FX_CHECK(decay >= 0, kValue, optimizer, ": weight_decay must not be negative, got ", decay);
}

// The same geometry as the parameter, so that a step walks all of them alike.
Tensor zeros_for(const Tensor& parameter) { return zeros_like(parameter.detach()); }
Tensor step_for(const Tensor& parameter) {
  return zeros({}, TensorOptions(Dtype::kF32).device(parameter.device()));
}

template <class State>
State& filled(std::unique_ptr<OptimizerParamState>& slot) {
  if (!slot) slot = std::make_unique<State>();
  return static_cast<State&>(*slot);
}

}  // namespace

// ---- SGD ---------------------------------------------------------------------------------------

SGD::SGD(std::vector<OptimizerParamGroup> groups, SGDOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_rate("SGD", defaults.lr());
  check_decay("SGD", defaults.weight_decay());
  FX_CHECK(defaults.momentum() >= 0, kValue, "SGD: momentum must not be negative, got ",
           defaults.momentum());
  FX_CHECK(!defaults.nesterov() || (defaults.momentum() > 0 && defaults.dampening() == 0), kValue,
           "SGD: nesterov needs a momentum and no dampening, got momentum=", defaults.momentum(),
           ", dampening=", defaults.dampening());
}

std::unique_ptr<OptimizerParamState> SGD::new_state() const {
  return std::make_unique<SGDParamState>();
}

void SGD::step_group(OptimizerParamGroup& group, States& states) {
  auto& o = static_cast<SGDOptions&>(group.options());
  // A first step sets the buffers, later ones read them: each kind is one call.
  Tensors params[2], grads[2], buffers[2];
  for (size_t k = 0; k < group.params().size(); ++k) {
    const Tensor& p = group.params()[k];
    const Tensor& grad = p.grad();
    if (!grad.defined()) continue;
    int first = 0;
    if (o.momentum() != 0) {
      Tensor& buffer = filled<SGDParamState>(states[k]).momentum_buffer();
      first = !buffer.defined();
      if (first) buffer = empty_like(p.detach());
      buffers[first].push_back(buffer);
    }
    params[first].push_back(p);
    grads[first].push_back(grad);
  }
  for (int first : {1, 0})
    if (!params[first].empty())
      _fused_sgd_(params[first], grads[first], buffers[first], o.weight_decay(), o.momentum(),
                  o.lr(), o.dampening(), o.nesterov(), o.maximize(), first == 1);
}

// ---- Adam --------------------------------------------------------------------------------------

namespace {

template <class Options>
void check_adam(const char* name, const Options& o) {
  auto [beta1, beta2] = o.betas();
  check_rate(name, o.lr());
  check_decay(name, o.weight_decay());
  FX_CHECK(o.eps() >= 0, kValue, name, ": eps must not be negative, got ", o.eps());
  FX_CHECK(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, kValue, name,
           ": betas must be in [0, 1), got ", beta1, " and ", beta2);
}

template <class Options, class States, class Step>
void step_adam(OptimizerParamGroup& group, States& states, Step step) {
  auto& o = static_cast<Options&>(group.options());
  Tensors params, grads, averages, squares, largest, counts;
  for (size_t k = 0; k < group.params().size(); ++k) {
    const Tensor& p = group.params()[k];
    const Tensor& grad = p.grad();
    if (!grad.defined()) continue;
    auto& state = filled<AdamParamState>(states[k]);
    if (!state.step_tensor().defined()) {
      state.step_tensor(step_for(p));
      state.exp_avg(zeros_for(p));
      state.exp_avg_sq(zeros_for(p));
    }
    if (o.amsgrad()) {
      if (!state.max_exp_avg_sq().defined()) state.max_exp_avg_sq(zeros_for(p));
      largest.push_back(state.max_exp_avg_sq());
    }
    params.push_back(p);
    grads.push_back(grad);
    averages.push_back(state.exp_avg());
    squares.push_back(state.exp_avg_sq());
    counts.push_back(state.step_tensor());
  }
  if (params.empty()) return;
  _foreach_add_(counts, 1.0);
  auto [beta1, beta2] = o.betas();
  step(params, grads, averages, squares, largest, counts, o.lr(), beta1, beta2, o.weight_decay(),
       o.eps(), o.amsgrad(), o.maximize(), Tensor(), Tensor());
}

}  // namespace

Adam::Adam(std::vector<OptimizerParamGroup> groups, AdamOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_adam("Adam", defaults);
}
std::unique_ptr<OptimizerParamState> Adam::new_state() const {
  return std::make_unique<AdamParamState>();
}
void Adam::step_group(OptimizerParamGroup& group, States& states) {
  step_adam<AdamOptions>(group, states, _fused_adam_);
}

AdamW::AdamW(std::vector<OptimizerParamGroup> groups, AdamWOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_adam("AdamW", defaults);
}
std::unique_ptr<OptimizerParamState> AdamW::new_state() const {
  return std::make_unique<AdamParamState>();
}
void AdamW::step_group(OptimizerParamGroup& group, States& states) {
  step_adam<AdamWOptions>(group, states, _fused_adamw_);
}

// ---- Adagrad -----------------------------------------------------------------------------------

Adagrad::Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_rate("Adagrad", defaults.lr());
  check_decay("Adagrad", defaults.weight_decay());
  FX_CHECK(
      defaults.lr_decay() >= 0 && defaults.eps() >= 0 && defaults.initial_accumulator_value() >= 0,
      kValue, "Adagrad: lr_decay, eps and initial_accumulator_value must not be negative");
}

std::unique_ptr<OptimizerParamState> Adagrad::new_state() const {
  return std::make_unique<AdagradParamState>();
}

void Adagrad::step_group(OptimizerParamGroup& group, States& states) {
  auto& o = static_cast<AdagradOptions&>(group.options());
  Tensors params, grads, sums, counts;
  for (size_t k = 0; k < group.params().size(); ++k) {
    const Tensor& p = group.params()[k];
    const Tensor& grad = p.grad();
    if (!grad.defined()) continue;
    auto& state = filled<AdagradParamState>(states[k]);
    if (!state.sum().defined()) {
      state.step_tensor(step_for(p));
      state.sum(full_like(p.detach(), o.initial_accumulator_value()));
    }
    params.push_back(p);
    grads.push_back(grad);
    sums.push_back(state.sum());
    counts.push_back(state.step_tensor());
  }
  if (params.empty()) return;
  _foreach_add_(counts, 1.0);
  _fused_adagrad_(params, grads, sums, counts, o.lr(), o.lr_decay(), o.weight_decay(), o.eps(),
                  o.maximize());
}

// ---- RMSprop -----------------------------------------------------------------------------------

RMSprop::RMSprop(std::vector<OptimizerParamGroup> groups, RMSpropOptions defaults)
    : Optimizer(std::move(groups), defaults.clone()) {
  check_rate("RMSprop", defaults.lr());
  check_decay("RMSprop", defaults.weight_decay());
  FX_CHECK(defaults.eps() >= 0 && defaults.momentum() >= 0 && defaults.alpha() >= 0, kValue,
           "RMSprop: eps, momentum and alpha must not be negative");
}

std::unique_ptr<OptimizerParamState> RMSprop::new_state() const {
  return std::make_unique<RMSpropParamState>();
}

void RMSprop::step_group(OptimizerParamGroup& group, States& states) {
  auto& o = static_cast<RMSpropOptions&>(group.options());
  Tensors params, grads, squares, averages, buffers;
  for (size_t k = 0; k < group.params().size(); ++k) {
    const Tensor& p = group.params()[k];
    const Tensor& grad = p.grad();
    if (!grad.defined()) continue;
    auto& state = filled<RMSpropParamState>(states[k]);
    if (!state.square_avg().defined()) state.square_avg(zeros_for(p));
    if (o.momentum() > 0 && !state.momentum_buffer().defined()) state.momentum_buffer(zeros_for(p));
    if (o.centered() && !state.grad_avg().defined()) state.grad_avg(zeros_for(p));
    params.push_back(p);
    grads.push_back(grad);
    squares.push_back(state.square_avg());
    if (o.centered()) averages.push_back(state.grad_avg());
    if (o.momentum() > 0) buffers.push_back(state.momentum_buffer());
  }
  if (params.empty()) return;
  _fused_rmsprop_(params, grads, squares, averages, buffers, o.lr(), o.alpha(), o.eps(),
                  o.weight_decay(), o.momentum(), o.maximize());
}

}  // namespace fornax::optim
