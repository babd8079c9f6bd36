// Sequential, ModuleList, ModuleDict, parameter containers, AnyModule.
#include <gtest/gtest.h>

#include <sstream>

#include "fornax/fornax.h"
#include "fornax/nn/nn.h"

namespace fornax {
namespace {

struct AddImpl : nn::Cloneable<AddImpl> {
  explicit AddImpl(double n = 1) : amount(n) { AddImpl::reset(); }
  void reset() override { weight = register_parameter("weight", full({1}, amount)); }
  Tensor forward(const Tensor& x) { return x + weight; }
  double amount;
  Tensor weight;
};
FORNAX_MODULE(Add);

struct PairImpl : nn::Module {
  Tensor forward(Tensor a, int64_t times, double plus = 0.5) { return a * times + plus; }
};

struct LengthImpl : nn::Module {
  int64_t forward(const Tensor& x) { return x.numel(); }
};

TEST(Sequential, RunsInOrder) {
  nn::Sequential s(Add(2), nn::ReLU(), nn::Functional([](Tensor x) { return x * 10; }));
  EXPECT_EQ(s->forward(full({2}, -1.0)).sum().item<float>(), 20.0f);
  EXPECT_EQ(s(full({2}, -5.0)).sum().item<float>(), 0.0f);
  EXPECT_EQ(s->size(), 3u);
  s->push_back(Add(1));
  s->push_back("last", Add(1));
  EXPECT_EQ(s(full({1}, 0.0)).item<float>(), 22.0f);
  EXPECT_EQ(s->named_children().keys(), (std::vector<std::string>{"0", "1", "2", "3", "last"}));
  EXPECT_EQ(s->at<AddImpl>(0).amount, 2);
  EXPECT_EQ(s->ptr(3)->parameters().size(), 1u);
  EXPECT_THROW(s->at<nn::ReLUImpl>(0), Error);
  EXPECT_THROW(s->ptr(9), Error);
}

TEST(Sequential, NamedAndNested) {
  nn::Sequential s({{"first", Add(2)}, {"inner", nn::Sequential(Add(3), Add(4))}});
  EXPECT_EQ(s(zeros({1})).item<float>(), 9.0f);
  EXPECT_EQ(s->named_parameters().keys(),
            (std::vector<std::string>{"first.weight", "inner.0.weight", "inner.1.weight"}));
  EXPECT_THROW(nn::Sequential()->forward(zeros({1})), Error);
}

TEST(Sequential, ManyArgumentsAndOtherResults) {
  nn::Sequential s(std::make_shared<PairImpl>(), std::make_shared<LengthImpl>());
  EXPECT_EQ(s->forward<int64_t>(zeros({3}), int64_t(2)), 3);
  EXPECT_THROW(s->forward(zeros({3}), int64_t(2)), Error);    // the result is no tensor
  EXPECT_THROW(s->forward<int64_t>(zeros({3}), 2.0), Error);  // a double for an int64_t
  EXPECT_THROW(s->forward<int64_t>(int64_t(2), zeros({3})), Error);
}

TEST(Sequential, CloneIsDeep) {
  nn::Sequential s({{"x", Add(2)}, {"y", Add(3)}});
  auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(s->clone());
  copy->at<AddImpl>(0).weight.data().fill_(100);
  EXPECT_EQ(copy->forward(zeros({1})).item<float>(), 103.0f);
  EXPECT_EQ(s(zeros({1})).item<float>(), 5.0f);
  EXPECT_EQ(copy->named_parameters().keys(), s->named_parameters().keys());
}

TEST(AnyModule, DefaultsAndTypes) {
  nn::AnyModule any{std::make_shared<PairImpl>()};
  EXPECT_EQ(any.forward(ones({1}), int64_t(3)).item<float>(), 3.5f);
  EXPECT_EQ(any.forward(ones({1}), int64_t(3), 2.0).item<float>(), 5.0f);
  EXPECT_THROW(any.forward(ones({1})), Error);
  EXPECT_THROW(any.forward(ones({1}), int64_t(3), 2.0, 1.0), Error);
  EXPECT_TRUE(any.type_info() == typeid(PairImpl));
  EXPECT_THROW(any.get<AddImpl>(), Error);
  nn::AnyModule holder{Add(3)};
  EXPECT_EQ(holder.get<Add>()->amount, 3);
  EXPECT_THROW(nn::AnyModule().forward(ones({1})), Error);
}

TEST(ModuleList, ByNumber) {
  nn::ModuleList list(Add(1), Add(2));
  list->push_back(Add(3));
  list->insert(0, Add(0));
  Tensor x = zeros({1});
  for (const auto& module : *list) x = module->as<AddImpl>()->forward(x);
  EXPECT_EQ(x.item<float>(), 6.0f);
  EXPECT_EQ(list->size(), 4u);
  EXPECT_EQ(list->at<AddImpl>(3).amount, 3);
  EXPECT_EQ(list->named_parameters().keys().back(), "3.weight");
  EXPECT_THROW(list->ptr(4), Error);
  EXPECT_THROW(list->ptr<nn::ReLUImpl>(0), Error);
}

TEST(ModuleDict, ByName) {
  nn::ModuleDict dict;
  dict->update({{"one", Add(1).ptr()}, {"two", Add(2).ptr()}});
  dict->update({{"one", Add(5).ptr()}});
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(dict->at<AddImpl>("one").amount, 5);
  EXPECT_TRUE(dict->contains("two"));
  EXPECT_EQ(dict->pop("two")->parameters().size(), 1u);
  EXPECT_EQ(dict->size(), 1u);
  EXPECT_THROW((*dict)["two"], Error);
}

TEST(Parameters, ListAndDict) {
  nn::ParameterList list(std::vector<Tensor>{ones({2}).requires_grad_(), zeros({1})});
  EXPECT_EQ(list->size(), 2u);
  EXPECT_TRUE(list->at(0).requires_grad());
  EXPECT_FALSE(list->at(1).requires_grad());
  nn::ParameterDict dict;
  dict->insert("w", ones({3}));
  EXPECT_EQ(dict["w"].numel(), 3);
  EXPECT_EQ(dict->named_parameters().keys(), std::vector<std::string>{"w"});
  auto copy = std::dynamic_pointer_cast<nn::ParameterDictImpl>(dict->clone());
  copy->get("w").fill_(5);
  EXPECT_EQ(dict["w"].sum().item<float>(), 3.0f);
}

template <class M>
std::string text_of(const M& module) {
  std::ostringstream stream;
  stream << module;
  return stream.str();
}

TEST(Text, Tree) {
  nn::Sequential s(nn::Linear(3, 4), nn::Sequential({{"act", nn::ReLU()}}));
  EXPECT_EQ(text_of(s),
            "fornax::nn::Sequential(\n"
            "  (0): fornax::nn::Linear(in_features=3, out_features=4, bias=true)\n"
            "  (1): fornax::nn::Sequential(\n"
            "    (act): fornax::nn::ReLU()\n"
            "  )\n"
            ")");
}

TEST(Text, Layers) {
  using namespace nn;
  EXPECT_EQ(text_of(Linear(LinearOptions(1, 2).bias(false))),
            "fornax::nn::Linear(in_features=1, out_features=2, bias=false)");
  EXPECT_EQ(text_of(Conv1d(3, 4, 5)), "fornax::nn::Conv1d(3, 4, kernel_size=5, stride=1)");
  EXPECT_EQ(text_of(Conv2d(Conv2dOptions(3, 4, 5).stride(2))),
            "fornax::nn::Conv2d(3, 4, kernel_size=[5, 5], stride=[2, 2])");
  EXPECT_EQ(text_of(Conv2d(
                Conv2dOptions(4, 4, {5, 6}).padding({1, 2}).dilation(2).groups(2).bias(false))),
            "fornax::nn::Conv2d(4, 4, kernel_size=[5, 6], stride=[1, 1], padding=[1, 2], "
            "dilation=[2, 2], groups=2, bias=false)");
  EXPECT_EQ(text_of(Conv2d(Conv2dOptions(1, 1, 3).padding(kSame).padding_mode(kCircular))),
            "fornax::nn::Conv2d(1, 1, kernel_size=[3, 3], stride=[1, 1], padding='same', "
            "padding_mode=kCircular)");
  EXPECT_EQ(text_of(BatchNorm2d(BatchNorm2dOptions(4).eps(0.5).momentum(0.1).affine(false))),
            "fornax::nn::BatchNorm2d(4, eps=0.5, momentum=0.1, affine=false, "
            "track_running_stats=true)");
  EXPECT_EQ(text_of(LayerNorm(LayerNormOptions({2, 2}).eps(2e-5))),
            "fornax::nn::LayerNorm([2, 2], eps=2e-05, elementwise_affine=true)");
  EXPECT_EQ(text_of(GroupNorm(2, 4)), "fornax::nn::GroupNorm(2, 4, eps=1e-05, affine=true)");
  EXPECT_EQ(text_of(MaxPool2d(MaxPool2dOptions({5, 6}))),
            "fornax::nn::MaxPool2d(kernel_size=[5, 6], stride=[5, 6], padding=[0, 0], "
            "dilation=[1, 1], ceil_mode=false)");
  EXPECT_EQ(text_of(AvgPool1d(3)), "fornax::nn::AvgPool1d(kernel_size=3, stride=3, padding=0)");
  EXPECT_EQ(text_of(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({5, std::nullopt}))),
            "fornax::nn::AdaptiveAvgPool2d(output_size=[5, None])");
  EXPECT_EQ(text_of(Dropout(0.25)), "fornax::nn::Dropout(p=0.25, inplace=false)");
  EXPECT_EQ(text_of(Embedding(EmbeddingOptions(10, 2).padding_idx(3).max_norm(2))),
            "fornax::nn::Embedding(num_embeddings=10, embedding_dim=2, padding_idx=3, max_norm=2)");
  EXPECT_EQ(text_of(ELU(ELUOptions().alpha(0.5).inplace(true))),
            "fornax::nn::ELU(alpha=0.5, inplace=true)");
  EXPECT_EQ(text_of(SELU(true)), "fornax::nn::SELU(inplace=true)");
  EXPECT_EQ(text_of(Hardshrink(0.5)), "fornax::nn::Hardshrink(0.5)");
  EXPECT_EQ(text_of(Softmax(1)), "fornax::nn::Softmax(dim=1)");
  EXPECT_EQ(text_of(Softplus()), "fornax::nn::Softplus(beta=1, threshold=20)");
  EXPECT_EQ(text_of(Threshold(24, -6)), "fornax::nn::Threshold(threshold=24, value=-6)");
  EXPECT_EQ(text_of(Flatten()), "fornax::nn::Flatten(start_dim=1, end_dim=-1)");
  EXPECT_EQ(text_of(Unflatten(0, std::vector<int64_t>{2, 2})),
            "fornax::nn::Unflatten(dim=0, unflattened_size={2, 2})");
  EXPECT_EQ(text_of(CrossEntropyLoss()), "fornax::nn::CrossEntropyLoss()");
}

}  // namespace
}  // namespace fornax
