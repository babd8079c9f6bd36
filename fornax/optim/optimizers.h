// The optimisers: SGD, Adam, AdamW, Adagrad, RMSprop. Options, defaults and formulas are PyTorch's.
#pragma once

#include <tuple>

#include "fornax/optim/optimizer.h"

namespace fornax::optim {

// ---- SGD ---------------------------------------------------------------------------------------

class SGDOptions : public detail::OptionsOf<SGDOptions> {
 public:
  SGDOptions(double lr) : lr_(lr) {}
  FX_ARG(double, lr);
  FX_ARG(double, momentum) = 0;
  FX_ARG(double, dampening) = 0;
  FX_ARG(double, weight_decay) = 0;
  FX_ARG(bool, nesterov) = false;
  FX_ARG(bool, maximize) = false;

 public:
  template <class F>
  static void visit(SGDOptions& o, F f) {
    f("lr", o.lr_);
    f("momentum", o.momentum_);
    f("dampening", o.dampening_);
    f("weight_decay", o.weight_decay_);
    f("nesterov", o.nesterov_);
    f("maximize", o.maximize_);
  }
};

class SGDParamState : public detail::StateOf<SGDParamState> {
  FX_ARG(Tensor, momentum_buffer);

 public:
  Fields fields() override { return {{"momentum_buffer", &momentum_buffer_}}; }
};

class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<OptimizerParamGroup> groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> params, SGDOptions defaults)
      : SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  void step_group(OptimizerParamGroup& group, States& states) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

// ---- Adam --------------------------------------------------------------------------------------

class AdamOptions : public detail::OptionsOf<AdamOptions> {
 public:
  using betas_t = std::tuple<double, double>;
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  FX_ARG(double, lr);
  FX_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  FX_ARG(double, eps) = 1e-8;
  FX_ARG(double, weight_decay) = 0;
  FX_ARG(bool, amsgrad) = false;
  FX_ARG(bool, maximize) = false;

 public:
  template <class F>
  static void visit(AdamOptions& o, F f) {
    f("lr", o.lr_);
    f("beta1", std::get<0>(o.betas_));
    f("beta2", std::get<1>(o.betas_));
    f("eps", o.eps_);
    f("weight_decay", o.weight_decay_);
    f("amsgrad", o.amsgrad_);
    f("maximize", o.maximize_);
  }
};

class AdamWOptions : public detail::OptionsOf<AdamWOptions> {
 public:
  using betas_t = std::tuple<double, double>;
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  FX_ARG(double, lr);
  FX_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  FX_ARG(double, eps) = 1e-8;
  FX_ARG(double, weight_decay) = 1e-2;
  FX_ARG(bool, amsgrad) = false;
  FX_ARG(bool, maximize) = false;

 public:
  template <class F>
  static void visit(AdamWOptions& o, F f) {
    f("lr", o.lr_);
    f("beta1", std::get<0>(o.betas_));
    f("beta2", std::get<1>(o.betas_));
    f("eps", o.eps_);
    f("weight_decay", o.weight_decay_);
    f("amsgrad", o.amsgrad_);
    f("maximize", o.maximize_);
  }
};

// The number of steps is a tensor, so that a captured step counts on.
class AdamParamState : public detail::StateOf<AdamParamState> {
  FX_ARG(Tensor, step_tensor);
  FX_ARG(Tensor, exp_avg);
  FX_ARG(Tensor, exp_avg_sq);
  FX_ARG(Tensor, max_exp_avg_sq);

 public:
  int64_t step() const { return step_tensor_.defined() ? step_tensor_.item<int64_t>() : 0; }
  Fields fields() override {
    return {{"step", &step_tensor_},
            {"exp_avg", &exp_avg_},
            {"exp_avg_sq", &exp_avg_sq_},
            {"max_exp_avg_sq", &max_exp_avg_sq_}};
  }
};
using AdamWParamState = AdamParamState;

class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<OptimizerParamGroup> groups, AdamOptions defaults = {});
  explicit Adam(std::vector<Tensor> params, AdamOptions defaults = {})
      : Adam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  void step_group(OptimizerParamGroup& group, States& states) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<OptimizerParamGroup> groups, AdamWOptions defaults = {});
  explicit AdamW(std::vector<Tensor> params, AdamWOptions defaults = {})
      : AdamW(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  void step_group(OptimizerParamGroup& group, States& states) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

// ---- Adagrad -----------------------------------------------------------------------------------

class AdagradOptions : public detail::OptionsOf<AdagradOptions> {
 public:
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  FX_ARG(double, lr);
  FX_ARG(double, lr_decay) = 0;
  FX_ARG(double, weight_decay) = 0;
  FX_ARG(double, initial_accumulator_value) = 0;
  FX_ARG(double, eps) = 1e-10;
  FX_ARG(bool, maximize) = false;

 public:
  template <class F>
  static void visit(AdagradOptions& o, F f) {
    f("lr", o.lr_);
    f("lr_decay", o.lr_decay_);
    f("weight_decay", o.weight_decay_);
    f("initial_accumulator_value", o.initial_accumulator_value_);
    f("eps", o.eps_);
    f("maximize", o.maximize_);
  }
};

class AdagradParamState : public detail::StateOf<AdagradParamState> {
  FX_ARG(Tensor, step_tensor);
  FX_ARG(Tensor, sum);

 public:
  int64_t step() const { return step_tensor_.defined() ? step_tensor_.item<int64_t>() : 0; }
  Fields fields() override { return {{"step", &step_tensor_}, {"sum", &sum_}}; }
};

class Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<OptimizerParamGroup> groups, AdagradOptions defaults = {});
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
                defaults) {}

 protected:
  void step_group(OptimizerParamGroup& group, States& states) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

// ---- RMSprop -----------------------------------------------------------------------------------

class RMSpropOptions : public detail::OptionsOf<RMSpropOptions> {
 public:
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  FX_ARG(double, lr);
  FX_ARG(double, alpha) = 0.99;
  FX_ARG(double, eps) = 1e-8;
  FX_ARG(double, weight_decay) = 0;
  FX_ARG(double, momentum) = 0;
  FX_ARG(bool, centered) = false;
  FX_ARG(bool, maximize) = false;

 public:
  template <class F>
  static void visit(RMSpropOptions& o, F f) {
    f("lr", o.lr_);
    f("alpha", o.alpha_);
    f("eps", o.eps_);
    f("weight_decay", o.weight_decay_);
    f("momentum", o.momentum_);
    f("centered", o.centered_);
    f("maximize", o.maximize_);
  }
};

class RMSpropParamState : public detail::StateOf<RMSpropParamState> {
  FX_ARG(Tensor, square_avg);
  FX_ARG(Tensor, grad_avg);
  FX_ARG(Tensor, momentum_buffer);

 public:
  Fields fields() override {
    return {{"square_avg", &square_avg_},
            {"grad_avg", &grad_avg_},
            {"momentum_buffer", &momentum_buffer_}};
  }
};

class RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<OptimizerParamGroup> groups, RMSpropOptions defaults = {});
  explicit RMSprop(std::vector<Tensor> params, RMSpropOptions defaults = {})
      : RMSprop(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))},
                defaults) {}

 protected:
  void step_group(OptimizerParamGroup& group, States& states) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace fornax::optim
