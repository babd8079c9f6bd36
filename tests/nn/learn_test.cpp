// Small networks learn what they are shown.
#include <gtest/gtest.h>

#include "fornax/fornax.h"

namespace fornax {
namespace {

using namespace nn;

struct XorNetImpl : Cloneable<XorNetImpl> {
  XorNetImpl() { XorNetImpl::reset(); }
  void reset() override {
    hidden = register_module("hidden", Linear(2, 8));
    output = register_module("output", Linear(8, 1));
  }
  Tensor forward(const Tensor& x) { return output(hidden(x).tanh()); }
  Linear hidden{nullptr}, output{nullptr};
};
FORNAX_MODULE(XorNet);

Tensor xor_inputs() { return tensor({0.f, 0.f, 0.f, 1.f, 1.f, 0.f, 1.f, 1.f}).view({4, 2}); }
Tensor xor_targets() { return tensor({0.f, 1.f, 1.f, 0.f}).view({4, 1}); }

template <class Optimizer>
double train_xor(Optimizer& optimizer, XorNet& net, int steps) {
  Tensor x = xor_inputs(), y = xor_targets();
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    Tensor error = net(x) - y;
    loss = (error * error).mean();
    loss.backward();
    optimizer.step();
  }
  return loss.item<double>();
}

TEST(Learn, XorWithEveryOptimizer) {
  auto start = [] {
    manual_seed(5);
    return XorNet();
  };
  XorNet a = start(), b = start(), c = start(), d = start();
  optim::SGD sgd(a->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  optim::Adam adam(b->parameters(), optim::AdamOptions(0.05));
  optim::AdamW adamw(c->parameters(), optim::AdamWOptions(0.05).weight_decay(1e-4));
  optim::RMSprop rmsprop(d->parameters(), optim::RMSpropOptions(0.01));
  EXPECT_LT(train_xor(sgd, a, 400), 0.01);
  EXPECT_LT(train_xor(adam, b, 200), 0.01);
  EXPECT_LT(train_xor(adamw, c, 200), 0.01);
  EXPECT_LT(train_xor(rmsprop, d, 300), 0.01);
}

TEST(Learn, ConvolutionFindsTheKernel) {
  manual_seed(2);
  Conv2d truth(Conv2dOptions(1, 1, 3).padding(1)), model(Conv2dOptions(1, 1, 3).padding(kSame));
  optim::Adam adam(model->parameters(), optim::AdamOptions(0.05));
  Tensor x = empty({4, 1, 8, 8}).normal_();
  Tensor y = truth(x).detach();
  for (int i = 0; i < 200; ++i) {
    adam.zero_grad();
    Tensor error = model(x) - y;
    (error * error).mean().backward();
    adam.step();
  }
  EXPECT_LT((model->weight - truth->weight).abs().amax().item<double>(), 1e-2);
  EXPECT_LT((model->bias - truth->bias).abs().amax().item<double>(), 1e-2);
}

TEST(Learn, FunctionalFormsAgreeWithModules) {
  manual_seed(4);
  Tensor x = empty({2, 3, 9, 9}).normal_();
  Conv2d conv(Conv2dOptions(3, 4, {2, 3}).padding(kSame).dilation({1, 2}));
  Tensor y = conv(x);
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 4, 9, 9}));
  // One row of zeros below: the first output row needs none, the last does.
  Tensor padded = zeros({2, 3, 10, 9});
  padded.narrow(2, 0, 9).copy_(x);
  Tensor expected = nn::functional::conv2d(
      padded, conv->weight,
      nn::functional::Conv2dFuncOptions().bias(conv->bias).dilation({1, 2}).padding({0, 2}));
  EXPECT_LT((y - expected).abs().amax().item<double>(), 1e-5);
  EXPECT_EQ(MaxPool2d(3)(x).sizes(), IntArrayRef({2, 3, 3, 3}));
  EXPECT_EQ(AdaptiveAvgPool2d(1)(x).sizes(), IntArrayRef({2, 3, 1, 1}));
  EXPECT_EQ(Flatten()(x).sizes(), IntArrayRef({2, 243}));
  EXPECT_EQ(Unflatten(1, std::vector<int64_t>{1, 3})(x).sizes(), IntArrayRef({2, 1, 3, 9, 9}));
}

TEST(Learn, PaddingModes) {
  Tensor x = tensor({1.f, 2.f, 3.f, 4.f}).view({1, 1, 4});
  auto sums = [&](Choice mode) {
    Conv1d conv(Conv1dOptions(1, 1, 3).padding(1).padding_mode(mode).bias(false));
    init::ones_(conv->weight);
    Tensor y = conv(x).detach().contiguous();
    return std::vector<float>(y.data_ptr<float>(), y.data_ptr<float>() + 4);
  };
  EXPECT_EQ(sums(kZeros), (std::vector<float>{3, 6, 9, 7}));
  EXPECT_EQ(sums(kReflect), (std::vector<float>{5, 6, 9, 10}));
  EXPECT_EQ(sums(kReplicate), (std::vector<float>{4, 6, 9, 11}));
  EXPECT_EQ(sums(kCircular), (std::vector<float>{7, 6, 9, 8}));
}

TEST(Learn, BilinearByHand) {
  Bilinear layer(2, 3, 1);
  Tensor a = tensor({1.f, 2.f}).view({1, 2}), b = tensor({3.f, 4.f, 5.f}).view({1, 3});
  init::constant_(layer->bias, 0.5);
  init::ones_(layer->weight);
  EXPECT_FLOAT_EQ(layer(a, b).item<float>(), 3 * 12 + 0.5f);
}

TEST(Learn, EmbeddingRows) {
  Embedding table = Embedding::from_pretrained(tensor({1.f, 2.f, 3.f, 4.f, 0.f, 9.f}).view({3, 2}));
  EXPECT_FALSE(table->weight.requires_grad());
  Tensor rows = table(tensor(std::vector<int64_t>{2, 0}));
  EXPECT_EQ(rows.sizes(), IntArrayRef({2, 2}));
  EXPECT_FLOAT_EQ(rows.sum().item<float>(), 12);
  Embedding padded(EmbeddingOptions(4, 2).padding_idx(1));
  padded(tensor(std::vector<int64_t>{1, 2})).sum().backward();
  EXPECT_EQ(padded->weight.grad().select(0, 1).sum().item<float>(), 0.0f);
  EXPECT_EQ(padded->weight.grad().select(0, 2).sum().item<float>(), 2.0f);
  Embedding bounded(EmbeddingOptions(2, 2).max_norm(1.0));
  init::constant_(bounded->weight, 3.0);
  EXPECT_NEAR(bounded(tensor(std::vector<int64_t>{0})).norm().item<double>(), 1, 1e-5);
  EXPECT_FLOAT_EQ(bounded->weight.select(0, 1).sum().item<float>(), 6);
}

TEST(Learn, DropoutOnlyWhileTraining) {
  Dropout drop(0.25);
  Tensor x = ones({10000});
  Tensor y = drop(x);
  double kept = y.gt(0).to(kFloat).mean().item<double>();
  EXPECT_NEAR(kept, 0.75, 0.03);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.04);
  drop->eval();
  EXPECT_EQ(drop(x).sum().item<double>(), 10000.0);
}

TEST(Learn, ClipGradients) {
  Tensor a = zeros({2}).requires_grad_(), b = zeros({1}).requires_grad_();
  a.mutable_grad() = tensor({3.f, 0.f});
  b.mutable_grad() = tensor({4.f});
  EXPECT_NEAR(utils::clip_grad_norm_({a, b}, 1.0), 5.0, 1e-6);
  EXPECT_NEAR(a.grad().norm().item<double>(), 0.6, 1e-5);
  utils::clip_grad_value_({a, b}, 0.1);
  EXPECT_FLOAT_EQ(b.grad().item<float>(), 0.1f);
  Tensor v = utils::parameters_to_vector({a, b});
  EXPECT_EQ(v.numel(), 3);
  utils::vector_to_parameters(tensor({1.f, 2.f, 3.f}), {a, b});
  EXPECT_FLOAT_EQ(a.sum().item<float>(), 3);
  EXPECT_FLOAT_EQ(b.item<float>(), 3);
}

}  // namespace
}  // namespace fornax
