// Optimizer: parameter groups with options of their own, state per parameter, steps over whole
// groups in one call. torch::optim's interface.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fornax/base/function_ref.h"
#include "fornax/nn/options.h"
#include "fornax/nn/ordered_dict.h"

namespace fornax::optim {

// Numbers by name: the options of a group, as they are saved.
using OptionValues = std::vector<std::pair<std::string, double>>;

// What an optimiser kind can be told; one object per group.
class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
  // Every option as a number (flags are 0 and 1).
  virtual OptionValues values() const = 0;
  // Throws Error(kValue) for a name that this kind lacks.
  virtual void set_value(const std::string& name, double value) = 0;
};

// What an optimiser remembers of one parameter: tensors by name. Undefined ones are absent.
class OptimizerParamState {
 public:
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  using Fields = std::vector<std::pair<const char*, Tensor*>>;
  // The tensors themselves, to be read or replaced.
  virtual Fields fields() = 0;
};

// Parameters that share options. Without options it takes the optimiser's defaults.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_), options_(other.options_ ? other.options_->clone() : nullptr) {}
  OptimizerParamGroup& operator=(const OptimizerParamGroup& other) {
    params_ = other.params_;
    options_ = other.options_ ? other.options_->clone() : nullptr;
    return *this;
  }
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() { return checked(); }
  const OptimizerOptions& options() const { return checked(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  OptimizerOptions& checked() const {
    FX_CHECK(options_, kValue, "this parameter group has no options yet");
    return *options_;
  }
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

// An optimiser's memory as plain data, for any file format: tensors "state.GROUP.PLACE.NAME" and
// numbers "group.GROUP.NAME".
struct OptimizerState {
  OrderedDict<std::string, Tensor> tensors{"Tensor"};
  OrderedDict<std::string, double> numbers{"Number"};
};

// Not thread safe. Parameters are shared with the model; their gradients are read in step().
class Optimizer {
 public:
  using LossClosure = FunctionRef<Tensor()>;

  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer();

  // Throws Error(kValue) if a parameter is in a group already, Error(kAutograd) if it is no leaf.
  void add_param_group(const OptimizerParamGroup& group);
  void zero_grad(bool set_to_none = true);

  // Updates every parameter that has a gradient. The closure, if given, computes the loss and its
  // gradients first, with grad mode on; its result is returned.
  Tensor step();
  Tensor step(LossClosure closure);

  OptimizerOptions& defaults() { return *defaults_; }
  const OptimizerOptions& defaults() const { return *defaults_; }
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  // Number of parameters in all groups.
  size_t size() const;
  std::vector<Tensor> parameters() const;
  // Null before the first step that changed the parameter.
  OptimizerParamState* state_of(const Tensor& parameter);

  // The tensors are the optimiser's own.
  OptimizerState state_dict();
  // Copies the values. Groups and parameters must have the same numbers and sizes as in the
  // optimiser that was saved: Error(kValue), Error(kShape), and nothing is changed.
  void load_state_dict(const OptimizerState& state);

 protected:
  Optimizer(std::vector<OptimizerParamGroup> groups, std::unique_ptr<OptimizerOptions> defaults);
  // What the derived constructor calls with the groups it was given.
  void add_groups(const std::vector<OptimizerParamGroup>& groups);

  using States = std::vector<std::unique_ptr<OptimizerParamState>>;
  // Updates the parameters of one group that have gradients; states[k] is parameter k's and may be
  // null. Runs under NoGradGuard.
  virtual void step_group(OptimizerParamGroup& group, States& states) = 0;
  virtual std::unique_ptr<OptimizerParamState> new_state() const = 0;

 private:
  void load_numbers(const OptimizerState& state);

  std::vector<OptimizerParamGroup> groups_;
  std::vector<States> states_;  // per group, per parameter
  std::unique_ptr<OptimizerOptions> defaults_;
};

namespace detail {

// The common part of an options type: D lists its fields by D::visit(options, f).
template <class D>
class OptionsOf : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<D>(static_cast<const D&>(*this));
  }
  double get_lr() const override { return static_cast<const D&>(*this).lr(); }
  void set_lr(double lr) override { static_cast<D&>(*this).lr(lr); }
  OptionValues values() const override {
    OptionValues out;
    D copy = static_cast<const D&>(*this);
    D::visit(copy, [&](const char* name, auto& field) { out.emplace_back(name, double(field)); });
    return out;
  }
  void set_value(const std::string& name, double value) override {
    bool found = false;
    D::visit(static_cast<D&>(*this), [&](const char* field_name, auto& field) {
      if (name != field_name) return;
      field = std::decay_t<decltype(field)>(value);
      found = true;
    });
    FX_CHECK(found, kValue, "optimizer options have no '", name, "'");
  }
};

template <class D>
class StateOf : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<D>(static_cast<const D&>(*this));
  }
};

}  // namespace detail
}  // namespace fornax::optim
