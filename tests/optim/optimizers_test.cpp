// Every optimiser against an independent loop in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "fornax/fornax.h"
#include "fornax/ops/optim.h"
#include "fornax/optim/optim.h"

namespace fornax {
namespace {

constexpr int kElements = 37;

// A pseudo-random value in [-1, 1) for (step, parameter, element).
double noise(int step, int param, int64_t i) {
  uint32_t h = uint32_t(i) * 0x9E3779B1u + uint32_t(step * 131 + param * 7 + 1) * 0x85EBCA6Bu;
  h ^= h >> 16;
  h *= 0x21F0AAADu;
  h ^= h >> 15;
  h *= 0x735A2D97u;
  h ^= h >> 15;
  return double(h >> 8) / double(1 << 23) - 1;
}

Tensor parameter(int param, Dtype dtype = Dtype::kF64) {
  std::vector<double> values;
  for (int64_t i = 0; i < kElements; ++i) values.push_back(noise(-1, param, i));
  Tensor t = tensor(values).to(dtype);
  t.requires_grad_();
  return t;
}

void set_grad(const Tensor& p, int step, int param) {
  std::vector<double> values;
  for (int64_t i = 0; i < p.numel(); ++i) values.push_back(noise(step, param, i));
  p.mutable_grad() = tensor(values).to(p.dtype());
}

double element(const Tensor& t, int64_t i) {
  return t.detach().to(Dtype::kF64).contiguous().data_ptr<double>()[i];
}

// Runs `steps` steps and compares every element with p = update(p, g, t, state[4]).
template <class Update>
void compare(optim::Optimizer& optimizer, const std::vector<Tensor>& params, int steps,
             double tolerance, Update update) {
  std::vector<std::vector<double>> expected(params.size());
  for (size_t k = 0; k < params.size(); ++k) {
    for (int64_t i = 0; i < kElements; ++i) {
      double p = element(params[k], i), state[4] = {};
      for (int t = 1; t <= steps; ++t) p = update(p, noise(t, int(k), i), t, state);
      expected[k].push_back(p);
    }
  }
  for (int t = 1; t <= steps; ++t) {
    for (size_t k = 0; k < params.size(); ++k) set_grad(params[k], t, int(k));
    optimizer.step();
  }
  for (size_t k = 0; k < params.size(); ++k)
    for (int64_t i = 0; i < kElements; ++i)
      EXPECT_NEAR(element(params[k], i), expected[k][size_t(i)], tolerance) << k << " at " << i;
}

TEST(Optimizers, SgdPlain) {
  std::vector<Tensor> params = {parameter(0), parameter(1)};
  optim::SGD sgd(params, optim::SGDOptions(0.1));
  compare(sgd, params, 3, 1e-15, [](double p, double g, int, double*) { return p - 0.1 * g; });
}

TEST(Optimizers, SgdMomentumDampeningDecay) {
  std::vector<Tensor> params = {parameter(0), parameter(1)};
  optim::SGD sgd(params, optim::SGDOptions(0.1).momentum(0.9).dampening(0.3).weight_decay(0.01));
  compare(sgd, params, 4, 1e-14, [](double p, double g, int t, double* s) {
    g += 0.01 * p;
    s[0] = t == 1 ? g : 0.9 * s[0] + 0.7 * g;
    return p - 0.1 * s[0];
  });
}

TEST(Optimizers, SgdNesterovMaximize) {
  std::vector<Tensor> params = {parameter(0)};
  optim::SGD sgd(params, optim::SGDOptions(0.05).momentum(0.8).nesterov(true).maximize(true));
  compare(sgd, params, 4, 1e-14, [](double p, double g, int t, double* s) {
    g = -g;
    s[0] = t == 1 ? g : 0.8 * s[0] + g;
    return p - 0.05 * (g + 0.8 * s[0]);
  });
}

double adam(double p, double g, int t, double* s, double lr, double decay, bool amsgrad) {
  g += decay * p;
  s[0] = 0.9 * s[0] + 0.1 * g;
  s[1] = 0.99 * s[1] + 0.01 * g * g;
  s[2] = std::max(s[2], s[1]);
  double m = s[0] / (1 - std::pow(0.9, t));
  double v = (amsgrad ? s[2] : s[1]) / (1 - std::pow(0.99, t));
  return p - lr * m / (std::sqrt(v) + 1e-6);
}

TEST(Optimizers, Adam) {
  std::vector<Tensor> params = {parameter(0), parameter(1)};
  optim::Adam optimizer(params,
                        optim::AdamOptions(0.01).betas({0.9, 0.99}).eps(1e-6).weight_decay(0.1));
  compare(optimizer, params, 5, 1e-13,
          [](double p, double g, int t, double* s) { return adam(p, g, t, s, 0.01, 0.1, false); });
}

TEST(Optimizers, AdamAmsgradMaximize) {
  std::vector<Tensor> params = {parameter(0)};
  optim::Adam optimizer(
      params, optim::AdamOptions(0.01).betas({0.9, 0.99}).eps(1e-6).amsgrad(true).maximize(true));
  compare(optimizer, params, 6, 1e-13,
          [](double p, double g, int t, double* s) { return adam(p, -g, t, s, 0.01, 0, true); });
}

TEST(Optimizers, AdamWDecouplesTheDecay) {
  std::vector<Tensor> params = {parameter(0)};
  optim::AdamW optimizer(params,
                         optim::AdamWOptions(0.01).betas({0.9, 0.99}).eps(1e-6).weight_decay(0.2));
  compare(optimizer, params, 5, 1e-13, [](double p, double g, int t, double* s) {
    return adam(p * (1 - 0.01 * 0.2), g, t, s, 0.01, 0, false);
  });
}

TEST(Optimizers, AdamFirstStepIsTheLearningRate) {
  // With zero state, m / sqrt(v) = sign(g) after bias correction.
  TensorOptions f64(Dtype::kF64);
  Tensor p = tensor({1.0, 2.0}, f64).requires_grad_();
  p.mutable_grad() = tensor({3.0, -0.25}, f64);
  optim::Adam optimizer(std::vector<Tensor>{p}, optim::AdamOptions(0.5).eps(0));
  optimizer.step();
  EXPECT_DOUBLE_EQ(element(p, 0), 0.5);
  EXPECT_DOUBLE_EQ(element(p, 1), 2.5);
}

TEST(Optimizers, Adagrad) {
  std::vector<Tensor> params = {parameter(0)};
  optim::Adagrad optimizer(
      params,
      optim::AdagradOptions(0.1).lr_decay(0.05).weight_decay(0.01).initial_accumulator_value(0.2));
  compare(optimizer, params, 5, 1e-13, [](double p, double g, int t, double* s) {
    if (t == 1) s[0] = 0.2;
    g += 0.01 * p;
    s[0] += g * g;
    return p - 0.1 / (1 + (t - 1) * 0.05) * g / (std::sqrt(s[0]) + 1e-10);
  });
}

TEST(Optimizers, RMSpropVariants) {
  for (bool centered : {false, true}) {
    for (double momentum : {0.0, 0.7}) {
      std::vector<Tensor> params = {parameter(0)};
      optim::RMSprop optimizer(
          params, optim::RMSpropOptions(0.01).alpha(0.9).centered(centered).momentum(momentum));
      compare(optimizer, params, 4, 1e-12, [=](double p, double g, int, double* s) {
        s[0] = 0.9 * s[0] + 0.1 * g * g;
        s[1] = 0.9 * s[1] + 0.1 * g;
        double v = centered ? s[0] - s[1] * s[1] : s[0];
        double step = g / (std::sqrt(v) + 1e-8);
        s[2] = momentum * s[2] + step;
        return p - 0.01 * (momentum > 0 ? s[2] : step);
      });
    }
  }
}

TEST(Optimizers, NarrowTypesComputeInF32) {
  for (Dtype dtype : {Dtype::kF32, Dtype::kBF16, Dtype::kF16}) {
    double unit = dtype == Dtype::kF32 ? 1e-7 : dtype == Dtype::kF16 ? 2e-3 : 1.6e-2;
    std::vector<Tensor> params = {parameter(0, dtype)};
    optim::SGD sgd(params, optim::SGDOptions(0.1));
    compare(sgd, params, 2, 4 * unit, [](double p, double g, int, double*) { return p - 0.1 * g; });
    EXPECT_EQ(params[0].dtype(), dtype);
  }
}

TEST(Optimizers, OtherMemoryOrderAndMixedOrder) {
  // A transposed parameter, with a gradient in the same order and in row-major order.
  for (bool same : {true, false}) {
    Tensor base = zeros({3, 5}, TensorOptions(Dtype::kF64));
    Tensor p = base.permute({1, 0}).detach().requires_grad_();
    Tensor grad = empty({5, 3}, TensorOptions(Dtype::kF64));
    for (int i = 0; i < 15; ++i) grad.data_ptr<double>()[i] = i;
    p.mutable_grad() = same ? grad.permute({1, 0}).contiguous().permute({1, 0}) : grad;
    optim::SGD sgd(std::vector<Tensor>{p}, optim::SGDOptions(1.0));
    sgd.step();
    for (int i = 0; i < 15; ++i) EXPECT_EQ(element(p, i), -i);
  }
}

TEST(Optimizers, ManyParametersInParallel) {
  std::vector<Tensor> params;
  for (int k = 0; k < 50; ++k) {
    params.push_back(zeros({1 + 977 * k}).requires_grad_());
    params.back().mutable_grad() = full({1 + 977 * k}, double(k));
  }
  optim::SGD sgd(params, optim::SGDOptions(1.0));
  sgd.step();
  for (int k = 0; k < 50; ++k)
    for (int64_t i = 0; i < params[size_t(k)].numel(); ++i)
      ASSERT_EQ(params[size_t(k)].data_ptr<float>()[i], float(-k));
}

TEST(Optimizers, ParametersWithoutGradientStay) {
  Tensor a = parameter(0), b = parameter(1);
  double before = element(b, 3);
  optim::Adam adam(std::vector<Tensor>{a, b});
  set_grad(a, 1, 0);
  adam.step();
  EXPECT_EQ(element(b, 3), before);
  EXPECT_EQ(adam.state_of(b), nullptr);
  ASSERT_NE(adam.state_of(a), nullptr);
  EXPECT_EQ(static_cast<optim::AdamParamState*>(adam.state_of(a))->step(), 1);
}

TEST(Optimizers, MomentumOfALateParameterStartsLate) {
  Tensor a = parameter(0), b = parameter(1);
  optim::SGD sgd(std::vector<Tensor>{a, b}, optim::SGDOptions(0.1).momentum(0.5).dampening(0.5));
  set_grad(a, 1, 0);
  sgd.step();
  double p = element(b, 0);
  set_grad(b, 2, 1);
  sgd.step();
  EXPECT_NEAR(element(b, 0), p - 0.1 * noise(2, 1, 0), 1e-15);
}

TEST(Optimizers, GroupsHaveTheirOwnOptions) {
  Tensor a = parameter(0), b = parameter(1);
  double a0 = element(a, 0), b0 = element(b, 0);
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a});
  groups.emplace_back(std::vector<Tensor>{b}, std::make_unique<optim::SGDOptions>(0.5));
  optim::SGD sgd(groups, optim::SGDOptions(0.1));
  set_grad(a, 1, 0);
  set_grad(b, 1, 1);
  sgd.step();
  EXPECT_NEAR(element(a, 0), a0 - 0.1 * noise(1, 0, 0), 1e-15);
  EXPECT_NEAR(element(b, 0), b0 - 0.5 * noise(1, 1, 0), 1e-15);
  static_cast<optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(0);
  sgd.param_groups()[1].options().set_lr(0);
  double still = element(a, 0);
  sgd.step();
  EXPECT_EQ(element(a, 0), still);
  EXPECT_EQ(sgd.size(), 2u);
}

TEST(Optimizers, Errors) {
  Tensor a = parameter(0);
  EXPECT_THROW(optim::SGD({a, a}, optim::SGDOptions(0.1)), Error);
  EXPECT_THROW(optim::SGD(std::vector<Tensor>{a}, optim::SGDOptions(-1)), Error);
  EXPECT_THROW(optim::SGD(std::vector<Tensor>{a}, optim::SGDOptions(1).nesterov(true)), Error);
  EXPECT_THROW(optim::Adam(std::vector<Tensor>{a}, optim::AdamOptions(1).betas({1.0, 0.9})), Error);
  EXPECT_THROW(optim::SGD(std::vector<Tensor>{a * 2}, optim::SGDOptions(1)), Error);
  optim::SGD sgd(std::vector<Tensor>{a}, optim::SGDOptions(0.1));
  EXPECT_THROW(sgd.add_param_group(optim::OptimizerParamGroup({a})), Error);
  a.mutable_grad() = zeros({kElements});  // f32 for an f64 parameter
  EXPECT_THROW(sgd.step(), Error);
}

TEST(Optimizers, ClosureRunsWithGradients) {
  Tensor p = tensor({3.0}, TensorOptions(Dtype::kF64)).requires_grad_();
  optim::SGD sgd(std::vector<Tensor>{p}, optim::SGDOptions(0.1));
  NoGradGuard no_grad;
  Tensor loss = sgd.step([&] {
    sgd.zero_grad();
    Tensor value = (p * p).sum();
    value.backward();
    return value;
  });
  EXPECT_DOUBLE_EQ(loss.item<double>(), 9.0);
  EXPECT_NEAR(element(p, 0), 3.0 - 0.1 * 6.0, 1e-15);
}

TEST(Optimizers, WritesCountAsVersions) {
  Tensor p = tensor({3.0}).requires_grad_();
  Tensor y = (p * p).sum();  // needs p for its gradient
  p.mutable_grad() = tensor({1.0});
  optim::SGD(std::vector<Tensor>{p}, optim::SGDOptions(0.1)).step();
  EXPECT_THROW(y.backward(), Error);
}

TEST(Optimizers, ZeroGrad) {
  Tensor p = tensor({3.0}).requires_grad_();
  p.mutable_grad() = tensor({1.0});
  optim::SGD sgd(std::vector<Tensor>{p}, optim::SGDOptions(0.1));
  sgd.zero_grad(false);
  EXPECT_EQ(p.grad().item<double>(), 0.0);
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

template <class Optimizer, class Options>
void continues_bit_equal(Options options) {
  Tensor a = parameter(0, Dtype::kF32), b = parameter(1, Dtype::kF32);
  Optimizer first(std::vector<Tensor>{a, b}, options);
  auto run = [](Optimizer& optimizer, int from, int to) {
    for (int t = from; t < to; ++t) {
      int k = 0;
      for (Tensor& p : optimizer.param_groups()[0].params()) set_grad(p, t, k++);
      optimizer.step();
    }
  };
  run(first, 0, 3);
  first.param_groups()[0].options().set_lr(0.125);
  optim::OptimizerState saved = first.state_dict();
  Tensor c = a.detach().clone().requires_grad_(), d = b.detach().clone().requires_grad_();
  Optimizer second(std::vector<Tensor>{c, d}, Options(0.5));
  second.load_state_dict(saved);
  EXPECT_EQ(second.param_groups()[0].options().get_lr(), 0.125);
  run(first, 3, 6);
  run(second, 3, 6);
  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(element(a, i), element(c, i));
    ASSERT_EQ(element(b, i), element(d, i));
  }
}

TEST(Optimizers, SavedStateContinuesBitEqual) {
  continues_bit_equal<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9).dampening(0.1));
  continues_bit_equal<optim::Adam>(optim::AdamOptions(0.1).amsgrad(true).betas({0.8, 0.9}));
  continues_bit_equal<optim::AdamW>(optim::AdamWOptions(0.1));
  continues_bit_equal<optim::Adagrad>(optim::AdagradOptions(0.1).lr_decay(0.1));
  continues_bit_equal<optim::RMSprop>(optim::RMSpropOptions(0.1).centered(true).momentum(0.5));
}

TEST(Optimizers, LoadRefusesWhatDoesNotFit) {
  Tensor a = parameter(0), b = parameter(1);
  optim::Adam two(std::vector<Tensor>{a, b}), one(std::vector<Tensor>{a});
  set_grad(a, 0, 0);
  two.step();
  EXPECT_THROW(one.load_state_dict(two.state_dict()), Error);
  optim::SGD other(std::vector<Tensor>{a, b}, optim::SGDOptions(0.1));
  EXPECT_THROW(other.load_state_dict(two.state_dict()), Error);
  Tensor small = tensor({1.0}).requires_grad_(), same = parameter(1);
  optim::Adam sizes(std::vector<Tensor>{small, same});
  EXPECT_THROW(sizes.load_state_dict(two.state_dict()), Error);
}

TEST(Schedulers, RatesOverTime) {
  Tensor a = parameter(0);
  optim::SGD sgd(std::vector<Tensor>{a}, optim::SGDOptions(1.0));
  auto rate = [&] { return sgd.param_groups()[0].options().get_lr(); };
  optim::StepLR step(sgd, 2, 0.1);
  std::vector<double> expected = {1.0, 0.1, 0.1, 0.01};
  for (double e : expected) {
    step.step();
    EXPECT_NEAR(rate(), e, 1e-15);
  }
  sgd.param_groups()[0].options().set_lr(2.0);
  optim::CosineAnnealingLR cosine(sgd, 4, 0.0);
  for (double e : {2 * 0.8535533905932737, 1.0, 2 * 0.14644660940672624, 0.0}) {
    cosine.step();
    EXPECT_NEAR(rate(), e, 1e-14);
  }
  sgd.param_groups()[0].options().set_lr(3.0);
  optim::LambdaLR lambda(sgd, [](unsigned t) { return 1.0 / (1 + t); });
  lambda.step();
  lambda.step();
  EXPECT_DOUBLE_EQ(rate(), 1.0);
  optim::ExponentialLR exponential(sgd, 0.5);
  exponential.step();
  exponential.step();
  EXPECT_DOUBLE_EQ(rate(), 0.25);
}

TEST(Optimizers, LossScaleAndOverflow) {
  Tensor p = tensor({1.0f}), g = tensor({8.0f}), scale = tensor({4.0f}), inf = tensor({0.0f});
  _fused_sgd_(p, g, TensorList(), 0, 0, 0.5, 0, false, false, false, scale, inf);
  EXPECT_FLOAT_EQ(p.item<float>(), 0.0f);
  inf.fill_(1);
  _fused_sgd_(p, g, TensorList(), 0, 0, 0.5, 0, false, false, false, scale, inf);
  EXPECT_FLOAT_EQ(p.item<float>(), 0.0f);
}

TEST(Optimizers, GradModeRefusesTheKernelOnParameters) {
  Tensor p = tensor({1.0f}).requires_grad_(), g = tensor({8.0f});
  EXPECT_THROW(_fused_sgd_(p, g, TensorList(), 0, 0, 0.5, 0, false, false, false), Error);
}

}  // namespace
}  // namespace fornax
