// Learning rates that follow the number of epochs: torch::optim's schedulers.
#pragma once

#include "fornax/optim/optimizer.h"

namespace fornax::optim {

// step() is called once an epoch, after the optimiser's. The optimiser outlives the scheduler.
class LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler() = default;
  void step();
  std::vector<double> get_current_lrs() const;

 protected:
  // The rates of all groups for step_count_.
  virtual std::vector<double> get_lrs() = 0;
  unsigned step_count_ = 0;
  const std::vector<double>& base_lrs() const { return base_lrs_; }

 private:
  Optimizer& optimizer_;
  std::vector<double> base_lrs_;
};

// Multiplies the rates by gamma every step_size steps.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  unsigned step_size_;
  double gamma_;
};

// Multiplies the rates by gamma every step.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override;
  double gamma_;
};

// Half a cosine from the initial rates down to eta_min in t_max steps.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, unsigned t_max, double eta_min = 0);

 private:
  std::vector<double> get_lrs() override;
  unsigned t_max_;
  double eta_min_;
};

// The initial rates times factor(step).
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, Function<double(unsigned)> factor)
      : LRScheduler(optimizer), factor_(std::move(factor)) {}

 private:
  std::vector<double> get_lrs() override;
  Function<double(unsigned)> factor_;
};

}  // namespace fornax::optim
