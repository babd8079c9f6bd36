// Initial values: bounds, moments and structure.
#include <gtest/gtest.h>

#include <cmath>

#include "fornax/fornax.h"
#include "fornax/nn/nn.h"

namespace fornax {
namespace {

using namespace nn;

std::vector<double> values_of(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  return std::vector<double>(d.data_ptr<double>(), d.data_ptr<double>() + d.numel());
}

struct Moments {
  double mean = 0, std = 0, low = 0, high = 0;
};

Moments moments_of(const Tensor& t) {
  std::vector<double> v = values_of(t);
  Moments m;
  m.low = m.high = v[0];
  for (double x : v) {
    m.mean += x / double(v.size());
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  for (double x : v) m.std += (x - m.mean) * (x - m.mean) / double(v.size());
  m.std = std::sqrt(m.std);
  return m;
}

// U(-bound, bound) from many samples.
void expect_uniform(const Tensor& t, double bound) {
  Moments m = moments_of(t);
  EXPECT_NEAR(m.mean, 0, bound * 0.02);
  EXPECT_NEAR(m.std, bound / std::sqrt(3.0), bound * 0.02);
  EXPECT_LE(m.high, bound);
  EXPECT_GE(m.low, -bound);
  EXPECT_GT(m.high, bound * 0.98);
  EXPECT_LT(m.low, -bound * 0.98);
}

void expect_normal(const Tensor& t, double std) {
  Moments m = moments_of(t);
  EXPECT_NEAR(m.mean, 0, std * 0.02);
  EXPECT_NEAR(m.std, std, std * 0.02);
  EXPECT_GT(m.high, 3 * std);
}

TEST(Init, Gains) {
  EXPECT_EQ(init::calculate_gain(kLinear), 1);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kTanh), 5.0 / 3);
  EXPECT_DOUBLE_EQ(init::calculate_gain(kReLU), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::calculate_gain(kLeakyReLU, 0.2), std::sqrt(2 / 1.04));
  EXPECT_THROW(init::calculate_gain(kMean), Error);
}

TEST(Init, Fans) {
  EXPECT_EQ(init::_calculate_fan_in_and_fan_out(empty({3, 5})), std::make_tuple(5, 3));
  EXPECT_EQ(init::_calculate_fan_in_and_fan_out(empty({3, 5, 2, 4})), std::make_tuple(40, 24));
  EXPECT_THROW(init::_calculate_fan_in_and_fan_out(empty({3})), Error);
}

TEST(Init, Distributions) {
  manual_seed(1);
  expect_uniform(init::kaiming_uniform_(empty({200, 300})), std::sqrt(6.0 / 300));
  expect_uniform(init::kaiming_uniform_(empty({200, 300}), 0, kFanOut, kReLU),
                 std::sqrt(6.0 / 200));
  expect_normal(init::kaiming_normal_(empty({200, 300}), 0, kFanIn, kReLU), std::sqrt(2.0 / 300));
  expect_uniform(init::xavier_uniform_(empty({200, 300}), 2.0), 2 * std::sqrt(6.0 / 500));
  expect_normal(init::xavier_normal_(empty({200, 300})), std::sqrt(2.0 / 500));
  Moments m = moments_of(init::trunc_normal_(empty({300, 300}), 1.0, 2.0, 0.0, 3.0));
  EXPECT_GE(m.low, 0);
  EXPECT_LE(m.high, 3);
  EXPECT_NEAR(m.mean, 1.4133, 0.02);  // N(1, 2) cut to [0, 3]
  m = moments_of(init::uniform_(empty({1000, 100}), 2, 6));
  EXPECT_NEAR(m.mean, 4, 0.02);
}

TEST(Init, Structure) {
  std::vector<double> eye = values_of(init::eye_(empty({2, 3})));
  EXPECT_EQ(eye, (std::vector<double>{1, 0, 0, 0, 1, 0}));
  std::vector<double> dirac = values_of(init::dirac_(empty({2, 2, 3})));
  EXPECT_EQ(dirac, (std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  std::vector<double> sparse = values_of(init::sparse_(empty({10, 4}), 0.25));
  for (int j = 0; j < 4; ++j) {
    int zeros = 0;
    for (int i = 0; i < 10; ++i) zeros += sparse[size_t(i * 4 + j)] == 0;
    EXPECT_EQ(zeros, 3);
  }
  EXPECT_EQ(values_of(init::constant_(empty({2}), 3)), (std::vector<double>{3, 3}));
}

TEST(Init, OrthogonalRowsOrColumns) {
  for (auto [rows, cols] : {std::pair<int, int>{4, 7}, {7, 4}, {5, 5}}) {
    std::vector<double> w = values_of(init::orthogonal_(empty({rows, cols}, dtype(kDouble)), 2.0));
    bool wide = cols > rows;
    int n = wide ? rows : cols, length = wide ? cols : rows;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        double dot = 0;
        for (int k = 0; k < length; ++k)
          dot += wide ? w[size_t(a * cols + k)] * w[size_t(b * cols + k)]
                      : w[size_t(k * cols + a)] * w[size_t(k * cols + b)];
        EXPECT_NEAR(dot, a == b ? 4.0 : 0.0, 1e-12);
      }
    }
  }
}

TEST(Init, Layers) {
  manual_seed(3);
  Linear linear(400, 300);
  expect_uniform(linear->weight, 1 / std::sqrt(400.0));
  Moments m = moments_of(Linear(100, 20000)->bias);
  EXPECT_NEAR(m.high, 0.1, 1e-3);
  EXPECT_NEAR(m.low, -0.1, 1e-3);
  Conv2d conv(Conv2dOptions(32, 64, 5).groups(2));
  EXPECT_EQ(conv->weight.sizes(), IntArrayRef({64, 16, 5, 5}));
  expect_uniform(conv->weight, 1 / std::sqrt(16.0 * 25));
  ConvTranspose2d transpose(ConvTranspose2dOptions(32, 64, 5));
  EXPECT_EQ(transpose->weight.sizes(), IntArrayRef({32, 64, 5, 5}));
  expect_uniform(transpose->weight, 1 / std::sqrt(64.0 * 25));
  Embedding embedding(EmbeddingOptions(500, 200).padding_idx(-1));
  EXPECT_EQ(*embedding->options.padding_idx(), 499);
  EXPECT_EQ(embedding->weight.select(0, 499).abs().sum().item<float>(), 0.0f);
  EXPECT_NEAR(moments_of(embedding->weight).std, 1, 0.02);
  BatchNorm1d norm(5);
  EXPECT_EQ(values_of(norm->weight), std::vector<double>(5, 1.0));
  EXPECT_EQ(values_of(norm->running_var), std::vector<double>(5, 1.0));
  EXPECT_EQ(values_of(norm->bias), std::vector<double>(5, 0.0));
  EXPECT_EQ(norm->num_batches_tracked.dtype(), kLong);
  EXPECT_EQ(values_of(PReLU()->weight), std::vector<double>{0.25});
  EXPECT_THROW(Conv2d(Conv2dOptions(3, 4, 5).groups(2)), Error);
  EXPECT_THROW(Dropout(1.5), Error);
}

TEST(Init, SameSeedSameNetwork) {
  manual_seed(11);
  Linear a(7, 5);
  manual_seed(11);
  Linear b(7, 5);
  EXPECT_EQ(values_of(a->weight), values_of(b->weight));
  EXPECT_EQ(values_of(a->bias), values_of(b->bias));
}

}  // namespace
}  // namespace fornax
