#include "fornax/optim/lr_scheduler.h"

#include <cmath>

namespace fornax::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  base_lrs_ = get_current_lrs();
}

std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> rates;
  for (const OptimizerParamGroup& group : optimizer_.param_groups())
    rates.push_back(group.options().get_lr());
  return rates;
}

void LRScheduler::step() {
  ++step_count_;
  std::vector<double> rates = get_lrs();
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size() && i < rates.size(); ++i)
    groups[i].options().set_lr(rates[i]);
}

StepLR::StepLR(Optimizer& optimizer, unsigned step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  FX_CHECK(step_size > 0, kValue, "StepLR: step_size must be positive");
}

std::vector<double> StepLR::get_lrs() {
  std::vector<double> rates = get_current_lrs();
  if (step_count_ % step_size_ == 0)
    for (double& rate : rates) rate *= gamma_;
  return rates;
}

std::vector<double> ExponentialLR::get_lrs() {
  std::vector<double> rates = get_current_lrs();
  for (double& rate : rates) rate *= gamma_;
  return rates;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, unsigned t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  FX_CHECK(t_max > 0, kValue, "CosineAnnealingLR: t_max must be positive");
}

std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> rates = base_lrs();
  double share = (1 + std::cos(M_PI * double(step_count_) / double(t_max_))) / 2;
  for (double& rate : rates) rate = eta_min_ + (rate - eta_min_) * share;
  return rates;
}

std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> rates = base_lrs();
  double factor = factor_(step_count_);
  for (double& rate : rates) rate *= factor;
  return rates;
}

}  // namespace fornax::optim
