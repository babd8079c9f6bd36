// Random operators: distributions, reproducibility, errors, dropout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fornax/base/threads.h"
#include "fornax/fornax.h"

namespace fornax {
namespace {

std::vector<double> values(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  const double* p = d.data_ptr<double>();
  return std::vector<double>(p, p + d.numel());
}

struct Moments {
  double mean = 0, std = 0, low = INFINITY, high = -INFINITY;
};
Moments moments(const Tensor& t) {
  Moments m;
  std::vector<double> v = values(t);
  for (double x : v) {
    m.mean += x / double(v.size());
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  for (double x : v) m.std += (x - m.mean) * (x - m.mean) / double(v.size());
  m.std = std::sqrt(m.std);
  return m;
}

constexpr int64_t kMany = 40000;  // standard errors of some 0.005 below

TEST(Random, UniformInEveryFloatingType) {
  for (Dtype d : {kFloat, kDouble, kHalf, kBFloat16}) {
    Moments m = moments(rand({kMany}, d));
    EXPECT_NEAR(m.mean, 0.5, 0.01) << name_of(d);
    EXPECT_NEAR(m.std, std::sqrt(1.0 / 12), 0.01) << name_of(d);
    EXPECT_GE(m.low, 0) << name_of(d);
    EXPECT_LT(m.high, 1) << name_of(d);
  }
  Moments m = moments(empty({kMany}).uniform_(-3, 5));
  EXPECT_NEAR(m.mean, 1, 0.06);
  EXPECT_GE(m.low, -3);
  EXPECT_LT(m.high, 5);
}

TEST(Random, Normal) {
  for (Dtype d : {kFloat, kDouble, kHalf, kBFloat16}) {
    Moments m = moments(randn({kMany}, d));
    EXPECT_NEAR(m.mean, 0, 0.02) << name_of(d);
    EXPECT_NEAR(m.std, 1, 0.02) << name_of(d);
  }
  Moments m = moments(normal(2, 3, {kMany}));
  EXPECT_NEAR(m.mean, 2, 0.06);
  EXPECT_NEAR(m.std, 3, 0.06);
  m = moments(normal(full({kMany}, 5.0), full({1}, 0.5)));
  EXPECT_NEAR(m.mean, 5, 0.01);
  EXPECT_NEAR(m.std, 0.5, 0.01);
  // A complex number of variance 1 has parts of variance one half.
  m = moments(view_as_real(randn({kMany}, kComplexFloat)));
  EXPECT_NEAR(m.std, std::sqrt(0.5), 0.01);
}

TEST(Random, Integers) {
  std::vector<double> v = values(randint(-2, 3, {kMany}));
  std::vector<int> counts(5);
  for (double x : v) {
    ASSERT_GE(x, -2);
    ASSERT_LT(x, 3);
    ++counts[size_t(x + 2)];
  }
  for (int c : counts) EXPECT_NEAR(c, kMany / 5.0, 400);
  EXPECT_EQ(randint(10, {2}).dtype(), kLong);
  EXPECT_EQ(randint(10, {2}, kFloat).dtype(), kFloat);
  Moments m = moments(empty({kMany}, kByte).random_());
  EXPECT_EQ(m.low, 0);
  EXPECT_EQ(m.high, 255);
}

TEST(Random, Permutation) {
  std::vector<double> v = values(randperm(1000));
  EXPECT_NE(v[0] + v[1] + v[2], 0 + 1 + 2);
  std::sort(v.begin(), v.end());
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], double(i));
  EXPECT_EQ(randperm(0).numel(), 0);
}

TEST(Random, OtherDistributions) {
  EXPECT_NEAR(moments(empty({kMany}).exponential_(2)).mean, 0.5, 0.02);
  EXPECT_NEAR(moments(empty({kMany}).geometric_(0.25)).mean, 4, 0.15);
  EXPECT_EQ(moments(empty({kMany}).geometric_(0.25)).low, 1);
  EXPECT_NEAR(moments(empty({kMany}, kDouble).log_normal_(0, 0.5).log()).std, 0.5, 0.02);
  // The middle half of a Cauchy distribution lies within sigma of its median.
  std::vector<double> v = values(empty({kMany}).cauchy_(3, 2));
  int64_t inside = std::count_if(v.begin(), v.end(), [](double x) { return std::abs(x - 3) < 2; });
  EXPECT_NEAR(double(inside), kMany / 2.0, 500);
}

TEST(Random, Bernoulli) {
  EXPECT_NEAR(moments(empty({kMany}).bernoulli_(0.3)).mean, 0.3, 0.02);
  EXPECT_NEAR(moments(empty({kMany}, kLong).bernoulli_(0.3)).mean, 0.3, 0.02);
  EXPECT_NEAR(moments(full({kMany}, 0.7).bernoulli()).mean, 0.7, 0.02);
  Tensor p = tensor({0.0, 1.0}, kDouble);
  std::vector<double> v = values(empty({100, 2}, kHalf).bernoulli_(p));
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], double(i % 2));
}

TEST(Random, SeedsAndGenerators) {
  manual_seed(7);
  Tensor a = rand({100}), b = rand({100});
  manual_seed(7);
  EXPECT_EQ(values(rand({100})), values(a));
  EXPECT_EQ(values(rand({100})), values(b));
  EXPECT_NE(values(a), values(b));
  Generator g = make_generator(3), h = make_generator(3);
  EXPECT_EQ(values(randn({9}, g)), values(randn({9}, h)));
  EXPECT_EQ(values(randperm(50, g)), values(randperm(50, h)));
  Tensor state = g.get_state();
  std::vector<double> next = values(randint(1000, {5}, g));
  g.set_state(state);
  EXPECT_EQ(values(randint(1000, {5}, g)), next);
}

// Short draws one after the other share no numbers.
TEST(Random, ShortDrawsDontOverlap) {
  manual_seed(1);
  std::vector<double> seen;
  for (int i = 0; i < 4000; ++i) seen.push_back(values(randn({1}, kDouble))[0]);
  for (size_t lag : {1, 2, 3, 4, 8, 16}) {
    double product = 0;
    for (size_t i = lag; i < seen.size(); ++i) product += seen[i] * seen[i - lag];
    EXPECT_LT(std::abs(product), 5 * std::sqrt(double(seen.size()))) << "lag " << lag;
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

TEST(Random, SameForAnyNumberOfThreads) {
  int before = get_num_threads();
  std::vector<std::vector<double>> results[2];
  for (int run : {0, 1}) {
    set_num_threads(run == 0 ? 1 : 2);
    manual_seed(11);
    results[run].push_back(values(rand({100001})));
    results[run].push_back(values(randn({100001}, kDouble)));
    results[run].push_back(values(dropout(ones({100001}), 0.4, true)));
    results[run].push_back(values(empty({100001}, kHalf).uniform_(1, 2)));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Random, DropoutAndItsGradient) {
  Tensor x = rand({kMany}, kDouble).add(1).requires_grad_();
  Tensor y = dropout(x, 0.25, true);
  y.sum().backward();
  std::vector<double> in = values(x), out = values(y), grad = values(x.grad());
  int64_t kept = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0) {
      ASSERT_EQ(grad[i], 0);
      continue;
    }
    ++kept;
    ASSERT_NEAR(out[i], in[i] / 0.75, 1e-12);
    ASSERT_NEAR(grad[i], 1 / 0.75, 1e-12);
  }
  EXPECT_NEAR(double(kept), 0.75 * kMany, 500);
  EXPECT_TRUE(dropout(x, 0.25, false).is_same(x));
  EXPECT_EQ(moments(dropout(x, 1, true)).high, 0);
  Tensor z = ones({1000});
  dropout_(z, 0.5, true);
  EXPECT_EQ(moments(z).low, 0);
  EXPECT_EQ(moments(z).high, 2);
}

TEST(Random, FeatureDropoutDropsChannels) {
  std::vector<double> v = values(feature_dropout(ones({8, 16, 5}), 0.5, true));
  for (size_t c = 0; c < 8 * 16; ++c)
    for (size_t i = 1; i < 5; ++i) ASSERT_EQ(v[c * 5 + i], v[c * 5]);
  EXPECT_NE(std::count(v.begin(), v.end(), 0.0), 0);
  EXPECT_NE(std::count(v.begin(), v.end(), 2.0), 0);
  Moments m = moments(alpha_dropout(randn({kMany}), 0.3, true));
  EXPECT_NEAR(m.mean, 0, 0.03);
  EXPECT_NEAR(m.std, 1, 0.03);
}

// What is overwritten by random numbers gets no gradient.
TEST(Random, NoGradientThroughDraws) {
  Tensor x = tensor({1.0, 2.0}, kDouble).requires_grad_();
  Tensor y = x * 1;
  y.normal_();
  (y * 3).sum().backward();
  EXPECT_TRUE(!x.grad().defined() || values(x.grad()) == std::vector<double>({0, 0}));
}

TEST(Random, Errors) {
  EXPECT_THROW(empty({2}).uniform_(1, 0), Error);
  EXPECT_THROW(empty({2}).normal_(0, -1), Error);
  EXPECT_THROW(randint(3, 3, {2}), Error);
  EXPECT_THROW(randperm(-1), Error);
  EXPECT_THROW(randperm(300, kBFloat16), Error);
  EXPECT_THROW(empty({2}).bernoulli_(1.5), Error);
  EXPECT_THROW(empty({2}).exponential_(0), Error);
  EXPECT_THROW(rand({2}, kLong), Error);
  EXPECT_THROW(dropout(ones({2}), 1.5, true), Error);
}

}  // namespace
}  // namespace fornax
