// Normalisation, softmax and losses against values worked out by hand or in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "fornax/fornax.h"

namespace fornax {
namespace {

using namespace nn;
namespace F = nn::functional;

std::vector<float> values_of(const Tensor& t) {
  Tensor d = t.detach().contiguous();
  return std::vector<float>(d.data_ptr<float>(), d.data_ptr<float>() + d.numel());
}

void expect_close(const Tensor& t, std::vector<double> expected, double tolerance = 1e-5) {
  std::vector<float> got = values_of(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "at " << i;
}

TEST(Norm, BatchStatisticsAndRunningOnes) {
  BatchNorm1d norm(BatchNorm1dOptions(1).momentum(0.5));
  Tensor x = tensor({1.f, 3.f}).view({2, 1});
  expect_close(norm(x), {-1, 1});
  expect_close(norm->running_mean, {1});       // 0.5 * 0 + 0.5 * 2
  expect_close(norm->running_var, {0.5 + 1});  // 0.5 * 1 + 0.5 * 2 (unbiased)
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  norm->eval();
  expect_close(norm(x), {0, 2 / std::sqrt(1.5)});
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  EXPECT_THROW(norm(ones({2})), Error);
  norm->reset_running_stats();
  expect_close(norm->running_var, {1});
}

TEST(Norm, CumulativeAverage) {
  BatchNorm1d norm(BatchNorm1dOptions(1).momentum(std::nullopt));
  norm(tensor({1.f, 3.f}).view({2, 1}));
  norm(tensor({4.f, 8.f}).view({2, 1}));
  expect_close(norm->running_mean, {4});  // (2 + 6) / 2
}

TEST(Norm, BatchNormLearnsItsAffinePart) {
  BatchNorm2d norm(3);
  Tensor x = empty({4, 3, 5, 5}).normal_();
  norm(x).sum().backward();
  expect_close(norm->bias.grad(), {100, 100, 100}, 1e-3);
  expect_close(norm->weight.grad(), {0, 0, 0}, 1e-3);
}

TEST(Norm, LayerGroupInstance) {
  Tensor x = tensor({1.f, 3.f, 10.f, 14.f}).view({1, 2, 2});
  expect_close(LayerNorm(LayerNormOptions({2}))(x), {-1, 1, -1, 1});
  expect_close(GroupNorm(2, 2)(x), {-1, 1, -1, 1});
  expect_close(InstanceNorm1d(2)(x), {-1, 1, -1, 1});
  expect_close(InstanceNorm1d(2)(x.squeeze(0)), {-1, 1, -1, 1});
  double s = std::sqrt(27.5);  // mean 7, variance (36 + 16 + 9 + 49) / 4
  expect_close(GroupNorm(1, 2)(x), {-6 / s, -4 / s, 3 / s, 7 / s});
  expect_close(F::normalize(tensor({3.f, 4.f}).view({1, 2})), {0.6, 0.8});
}

TEST(Softmax, Values) {
  Tensor x = tensor({0.f, std::log(3.f)}).view({1, 2});
  expect_close(Softmax(1)(x), {0.25, 0.75});
  expect_close(LogSoftmax(1)(x), {std::log(0.25), std::log(0.75)});
  expect_close(Softmin(1)(x), {0.75, 0.25});
  expect_close(F::softmax(x, F::SoftmaxFuncOptions(1)), {0.25, 0.75});
  expect_close(GLU(0)(tensor({2.f, 0.f})), {1});
  EXPECT_THROW(GLU(0)(ones({3})), Error);
}

TEST(Loss, CrossEntropy) {
  Tensor logits = tensor({0.f, std::log(3.f), 0.f, 0.f}).view({2, 2});
  Tensor target = tensor(std::vector<int64_t>{1, 0});
  double a = -std::log(0.75), b = std::log(2.0);
  expect_close(CrossEntropyLoss()(logits, target), {(a + b) / 2});
  expect_close(CrossEntropyLoss(CrossEntropyLossOptions().reduction(kNone))(logits, target),
               {a, b});
  expect_close(F::cross_entropy(logits, target, F::CrossEntropyFuncOptions().ignore_index(0)), {a});
  CrossEntropyLoss weighted(CrossEntropyLossOptions().weight(tensor({1.f, 3.f})));
  expect_close(weighted(logits, target), {(3 * a + b) / 4});
  EXPECT_EQ(weighted->named_buffers().size(), 1u);
  // Smoothing mixes in the mean over the classes.
  double c = -(std::log(0.25) + std::log(0.75)) / 2;
  expect_close(CrossEntropyLoss(CrossEntropyLossOptions().label_smoothing(0.2).reduction(kNone))(
                   logits, target),
               {0.8 * a + 0.2 * c, b});
  EXPECT_THROW(CrossEntropyLoss(CrossEntropyLossOptions().reduction(kBatchMean))(logits, target),
               Error);
}

TEST(Loss, Regression) {
  Tensor x = tensor({1.f, 2.f}), y = tensor({1.5f, 5.f});
  expect_close(MSELoss()(x, y), {(0.25 + 9) / 2});
  expect_close(MSELoss(kSum)(x, y), {9.25});
  expect_close(L1Loss(kNone)(x, y), {0.5, 3});
  expect_close(SmoothL1Loss(kNone)(x, y), {0.125, 2.5});
  expect_close(HuberLoss(HuberLossOptions(kNone).delta(2))(x, y), {0.125, 4});
  expect_close(F::mse_loss(x, y), {4.625});
}

TEST(Loss, Classification) {
  Tensor p = tensor({0.25f, 0.75f}), y = tensor({0.f, 1.f});
  expect_close(BCELoss()(p, y), {-std::log(0.75)});
  Tensor logits = tensor({-std::log(3.f), std::log(3.f)});
  expect_close(BCEWithLogitsLoss()(logits, y), {-std::log(0.75)});
  expect_close(
      BCEWithLogitsLoss(BCEWithLogitsLossOptions().pos_weight(tensor({2.f})).reduction(kNone))(
          logits, y),
      {-std::log(0.75), -2 * std::log(0.75)});
  Tensor log_p = p.log().view({1, 2});
  expect_close(NLLLoss()(log_p, tensor(std::vector<int64_t>{1})), {-std::log(0.75)});
  Tensor q = tensor({0.5f, 0.5f}).view({1, 2});
  double kl = 0.5 * (std::log(2.0) + std::log(2.0 / 3));
  expect_close(KLDivLoss(kBatchMean)(log_p, q), {kl});
  expect_close(KLDivLoss(kSum)(log_p, q), {kl});
}

TEST(Loss, Margins) {
  Tensor a = tensor({1.f, 2.f}), b = tensor({2.f, 0.f}), y = tensor({1.f, 1.f});
  expect_close(MarginRankingLoss(MarginRankingLossOptions().margin(0.5))(a, b, y), {0.75});
  expect_close(HingeEmbeddingLoss()(tensor({0.25f, 0.5f}), tensor({1.f, -1.f})), {0.375});
  expect_close(SoftMarginLoss()(tensor({0.f}), tensor({1.f})), {std::log(2.0)});
  Tensor u = tensor({1.f, 0.f}).view({1, 2}), v = tensor({0.f, 1.f}).view({1, 2});
  expect_close(CosineEmbeddingLoss()(u, v, ones({1})), {1});
  expect_close(CosineSimilarity()(u, u), {1});
  expect_close(TripletMarginLoss()(u, u, v), {0}, 1e-4);
  expect_close(PairwiseDistance()(u, v), {std::sqrt(2.0)}, 1e-4);
  expect_close(PoissonNLLLoss()(tensor({0.f}), tensor({2.f})), {1});
}

TEST(Learn, ClassifierOnBlobs) {
  manual_seed(9);
  Sequential net(Linear(2, 16), BatchNorm1d(16), ReLU(), Dropout(0.1), Linear(16, 3));
  CrossEntropyLoss criterion;
  optim::AdamW adamw(net->parameters(), optim::AdamWOptions(0.02));
  Tensor centres = tensor({0.f, 3.f, 3.f, -2.f, -3.f, -2.f}).view({3, 2});
  Tensor labels = empty({300}, kLong).random_(3);
  Tensor x = centres.index_select(0, labels) + empty({300, 2}).normal_(0, 0.7);
  for (int i = 0; i < 100; ++i) {
    adamw.zero_grad();
    criterion(net(x), labels).backward();
    adamw.step();
  }
  net->eval();
  double accuracy = net(x).argmax(1).eq(labels).to(kFloat).mean().item<double>();
  EXPECT_GT(accuracy, 0.97);
}

}  // namespace
}  // namespace fornax
