// The module tree: registration, walking, state, clones, hooks, text.
#include <gtest/gtest.h>

#include <sstream>

#include "fornax/fornax.h"
#include "fornax/nn/nn.h"

namespace fornax {
namespace {

// A leaf with a parameter, a frozen one and a buffer.
struct ScaleImpl : nn::Cloneable<ScaleImpl> {
  explicit ScaleImpl(int64_t n, double start = 2) : size(n), first(start) { ScaleImpl::reset(); }
  void reset() override {
    weight = register_parameter("weight", full({size}, first, dtype(kFloat)));
    fixed = register_parameter("fixed", ones({size}), /*requires_grad=*/false);
    count = register_buffer("count", zeros({}, dtype(kLong)));
  }
  Tensor forward(const Tensor& x) { return x * weight; }
  int64_t size;
  double first;
  Tensor weight, fixed, count;
};
FORNAX_MODULE(Scale);

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    a = register_module("a", Scale(3));
    inner = register_module("inner", nn::ModuleDict());
    inner->update({{"b", Scale(2, 5).ptr()}});
    top = register_parameter("top", ones({1}));
  }
  Tensor forward(const Tensor& x) { return a(x) + top; }
  Scale a{nullptr};
  nn::ModuleDict inner{nullptr};
  Tensor top;
};
FORNAX_MODULE(Net);

using Names = std::vector<std::string>;

TEST(Module, NamesInOrderOfRegistration) {
  Net net;
  EXPECT_EQ(net->named_parameters().keys(),
            (Names{"top", "a.weight", "a.fixed", "inner.b.weight", "inner.b.fixed"}));
  EXPECT_EQ(net->named_parameters(/*recurse=*/false).keys(), (Names{"top"}));
  EXPECT_EQ(net->named_buffers().keys(), (Names{"a.count", "inner.b.count"}));
  EXPECT_EQ(net->named_modules().keys(), (Names{"", "a", "inner", "inner.b"}));
  EXPECT_EQ(net->named_modules("net", false).keys(), (Names{"net.a", "net.inner", "net.inner.b"}));
  EXPECT_EQ(net->named_children().keys(), (Names{"a", "inner"}));
  EXPECT_EQ(net->children().size(), 2u);
  EXPECT_EQ(net->modules().size(), 4u);
  EXPECT_EQ(net->parameters().size(), 5u);
  EXPECT_TRUE(net->named_parameters()["a.weight"].requires_grad());
  EXPECT_FALSE(net->named_parameters()["a.fixed"].requires_grad());
  EXPECT_THROW(net->named_parameters()["a.none"], Error);
}

TEST(Module, RegistrationErrors) {
  Net net;
  EXPECT_THROW(net->register_parameter("top", ones({1})), Error);
  EXPECT_THROW(net->register_parameter("with.dot", ones({1})), Error);
  EXPECT_THROW(net->register_buffer("", ones({1})), Error);
  EXPECT_THROW(net->register_module("a", Scale(1)), Error);
  EXPECT_THROW(net->register_parameter("ints", zeros({2}, dtype(kLong))), Error);
  EXPECT_THROW(net->unregister_module("none"), Error);
  Scale empty{nullptr};
  EXPECT_TRUE(empty.is_empty());
  EXPECT_FALSE(bool(empty));
  EXPECT_THROW(empty->forward(ones({1})), Error);
  EXPECT_THROW(net->register_module("empty", empty), Error);
}

TEST(Module, UndefinedParametersAreListedNowhere) {
  nn::Linear linear(nn::LinearOptions(3, 2).bias(false));
  EXPECT_EQ(linear->named_parameters().keys(), Names{"weight"});
  EXPECT_FALSE(linear->bias.defined());
  EXPECT_EQ(linear->state_dict().size(), 1u);
}

TEST(Module, ReplaceAndUnregister) {
  Net net;
  net->replace_module("a", Scale(7));
  EXPECT_EQ(net->named_parameters()["a.weight"].numel(), 7);
  net->unregister_module("inner");
  EXPECT_EQ(net->named_modules().keys(), (Names{"", "a"}));
}

TEST(Module, ApplyVisitsEveryone) {
  Net net;
  Names names;
  int pointers = 0, all = 0;
  net->apply([&](const std::string& name, nn::Module&) { names.push_back(name); }, "n");
  net->apply([&](const std::shared_ptr<nn::Module>&) { ++pointers; });
  net->apply([&](nn::Module& m) { all += int(m.parameters(false).size()); });
  EXPECT_EQ(names, (Names{"n", "n.a", "n.inner", "n.inner.b"}));
  EXPECT_EQ(pointers, 4);
  EXPECT_EQ(all, 5);
}

TEST(Module, TrainAndEval) {
  Net net;
  EXPECT_TRUE(net->a->is_training());
  net->eval();
  EXPECT_FALSE(net->is_training());
  EXPECT_FALSE(net->a->is_training());
  net->train();
  EXPECT_TRUE(net->a->is_training());
}

TEST(Module, ToChangesFloatingTensorsInPlace) {
  Net net;
  Tensor weight = net->a->weight;
  net->to(kDouble);
  EXPECT_EQ(weight.dtype(), kDouble);
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_EQ(weight.sum().item<double>(), 6.0);
  EXPECT_EQ(net->a->count.dtype(), kLong);
  EXPECT_THROW(net->to(kLong), Error);
  (net(ones({3}, dtype(kDouble)))).sum().backward();
  EXPECT_EQ(weight.grad().dtype(), kDouble);
}

TEST(Module, ZeroGrad) {
  Net net;
  net(ones({3})).sum().backward();
  EXPECT_EQ(net->a->weight.grad().sum().item<float>(), 3.0f);
  net->zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(net->a->weight.grad().sum().item<float>(), 0.0f);
  net->zero_grad();
  EXPECT_FALSE(net->a->weight.grad().defined());
}

TEST(Module, StateDictRoundTrip) {
  Net net, other;
  net->a->weight.data().fill_(9);
  net->a->count.fill_(4);
  nn::StateDict state = net->state_dict();
  EXPECT_EQ(state.keys(), (Names{"top", "a.weight", "a.fixed", "a.count", "inner.b.weight",
                                 "inner.b.fixed", "inner.b.count"}));
  EXPECT_FALSE(state["a.weight"].requires_grad());
  nn::LoadResult result = other->load_state_dict(state);
  EXPECT_TRUE(result.missing_keys.empty() && result.unexpected_keys.empty());
  EXPECT_EQ(other->a->weight.sum().item<float>(), 27.0f);
  EXPECT_EQ(other->a->count.item<int64_t>(), 4);
  EXPECT_TRUE(other->a->weight.requires_grad());
  // The dictionary is a view of the module, the copy isn't.
  net->a->weight.data().fill_(1);
  EXPECT_EQ(state["a.weight"].sum().item<float>(), 3.0f);
  EXPECT_EQ(other->a->weight.sum().item<float>(), 27.0f);
}

std::string message_of(nn::Module& module, const nn::StateDict& state) {
  try {
    module.load_state_dict(state);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Module, StrictLoadNamesEveryKey) {
  Net net;
  nn::StateDict state = net->state_dict();
  state.erase("a.weight");
  state.insert("stranger", ones({1}));
  state["top"] = full({1}, 8.0);
  std::string message = message_of(*net, state);
  EXPECT_NE(message.find("missing keys: [a.weight]"), message.npos) << message;
  EXPECT_NE(message.find("unexpected keys: [stranger]"), message.npos) << message;
  EXPECT_EQ(net->top.item<float>(), 1.0f) << "nothing is written";
  nn::LoadResult result = net->load_state_dict(state, /*strict=*/false);
  EXPECT_EQ(result.missing_keys, Names{"a.weight"});
  EXPECT_EQ(result.unexpected_keys, Names{"stranger"});
  EXPECT_EQ(net->top.item<float>(), 8.0f);
}

TEST(Module, LoadRefusesOtherSizes) {
  Net net;
  nn::StateDict state = net->state_dict();
  state["a.weight"] = ones({4});
  std::string message = message_of(*net, state);
  EXPECT_NE(message.find("a.weight has sizes [3], given were [4]"), message.npos) << message;
}

TEST(Module, CloneIsIndependent) {
  Net net;
  net->a->weight.data().fill_(6);
  net->a->eval();
  auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->named_parameters().keys(), net->named_parameters().keys());
  EXPECT_EQ(copy->a->weight.sum().item<float>(), 18.0f);
  EXPECT_TRUE(copy->a->weight.requires_grad());
  EXPECT_FALSE(copy->a->fixed.requires_grad());
  EXPECT_FALSE(copy->a->is_training());
  // Members and registered tensors are the same objects, those of the original are others.
  EXPECT_TRUE(copy->a->weight.is_same(copy->named_parameters()["a.weight"]));
  copy->a->weight.data().fill_(1);
  copy->inner->at<ScaleImpl>("b").weight.data().fill_(1);
  EXPECT_EQ(net->a->weight.sum().item<float>(), 18.0f);
  EXPECT_EQ(net->inner->at<ScaleImpl>("b").weight.sum().item<float>(), 10.0f);
}

TEST(Module, CloneDrawsNoRandomNumbers) {
  nn::Linear linear(4, 4);
  manual_seed(7);
  Tensor expected = empty({3}).uniform_();
  manual_seed(7);
  auto copy = linear->clone();
  Tensor drawn = empty({3}).uniform_();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(drawn.data_ptr<float>()[i], expected.data_ptr<float>()[i]);
}

struct PlainImpl : nn::Module {
  Tensor forward(const Tensor& x) { return x; }
};

TEST(Module, CloneNeedsCloneable) { EXPECT_THROW(PlainImpl().clone(), Error); }

TEST(Module, Hooks) {
  Scale scale(2);
  int64_t pre = scale->register_forward_pre_hook(
      [](nn::Module&, Tensors& inputs) { inputs[0] = inputs[0] + 1; });
  int64_t post = scale->register_forward_hook(
      [](nn::Module&, const Tensors& inputs, Tensor& output) { output = output - inputs[0]; });
  // (1 + 1) * 2 - (1 + 1)
  EXPECT_EQ(scale(ones({2})).sum().item<float>(), 4.0f);
  nn::Sequential sequential(scale);
  EXPECT_EQ(sequential->forward(ones({2})).sum().item<float>(), 4.0f);
  scale->remove_forward_hook(pre);
  EXPECT_EQ(scale(ones({2})).sum().item<float>(), 2.0f);
  scale->remove_forward_hook(post);
  EXPECT_FALSE(scale->has_forward_hooks());
  EXPECT_EQ(scale(ones({2})).sum().item<float>(), 4.0f);
}

template <class M>
std::string text_of(const M& module) {
  std::ostringstream stream;
  stream << module;
  return stream.str();
}

TEST(Module, Names) {
  EXPECT_EQ(PlainImpl().name(), "fornax::(anonymous namespace)::PlainImpl");
  EXPECT_EQ(nn::Linear(1, 1)->name(), "fornax::nn::LinearImpl");
  EXPECT_EQ(text_of(PlainImpl()), "fornax::(anonymous namespace)::PlainImpl");
}

TEST(OrderedDict, KeepsOrderAndFindsMany) {
  OrderedDict<std::string, int> dict;
  for (int i = 0; i < 200; ++i) dict.insert("k" + std::to_string(i * 7919 % 1000), i);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(dict["k" + std::to_string(i * 7919 % 1000)], i);
  EXPECT_EQ(dict[size_t(3)].value(), 3);
  EXPECT_THROW(dict.insert("k0", 1), Error);
  dict.erase("k0");
  EXPECT_FALSE(dict.contains("k0"));
  EXPECT_EQ(dict.front().value(), 1);
  EXPECT_EQ(dict["k" + std::to_string(199 * 7919 % 1000)], 199);
  OrderedDict<std::string, int> small = {{"a", 1}, {"b", 2}};
  EXPECT_EQ(small.keys(), (Names{"a", "b"}));
  EXPECT_EQ(small.values(), (std::vector<int>{1, 2}));
  small.update({{"c", 3}});
  EXPECT_EQ(small.back().key(), "c");
  EXPECT_EQ(small.find("d"), nullptr);
}

}  // namespace
}  // namespace fornax
