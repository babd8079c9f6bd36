// autograd::Function: libtorch's interface, errors, and the same function under every transform.
#include "fornax/autograd/function.h"
#include "fornax/autograd/forward.h"
#include "fornax/autograd/node.h"
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;
using test::make;
using test::near;
using test::noise;
using test::values;

// y = x * factor + b * b, with a gradient that is recognisably its own: three times the true one.
struct Tripled : autograd::Function<Tripled> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double factor, Tensor b) {
    ctx->saved_data["factor"] = factor;
    ctx->save_for_backward({x, b});
    return x * factor + b * b;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list saved = ctx->get_saved_variables();
    double factor = ctx->saved_data["factor"].toDouble();
    return {grads[0] * (3 * factor), Tensor(), grads[0] * saved[1] * 6};
  }
};

// exp, whose gradient reads the saved result.
struct Exponential : autograd::Function<Exponential> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};

TEST(Function, ValuesAndGradients) {
  Tensor x = make({2}, {1, 2}).requires_grad_(), b = make({2}, {5, 7}).requires_grad_();
  Tensor y = Tripled::apply(x, 2.0, b);
  EXPECT_TRUE(near(y, {27, 53}));
  EXPECT_EQ(y.grad_fn()->custom_name.find("Tripled") == std::string::npos, false);
  y.sum().backward();
  EXPECT_TRUE(near(x.grad(), {6, 6}));
  EXPECT_TRUE(near(b.grad(), {30, 42}));
  EXPECT_FALSE(Tripled::apply(x.detach(), 2.0, b.detach()).requires_grad());
}

TEST(Function, SecondDerivatives) {
  Tensor b = make({2}, {5, 7}).requires_grad_();
  Tensor g = autograd::grad({Tripled::apply(b.detach(), 1.0, b).sum()}, {b}, {}, {}, true)[0];
  EXPECT_TRUE(near(autograd::grad({g.sum()}, {b})[0], {6, 6}));
  Tensor x = make({2}, {0.5, 1}).requires_grad_();
  Tensor h = autograd::grad({Exponential::apply(x).sum()}, {x}, {}, {}, true)[0];
  EXPECT_TRUE(near(autograd::grad({h.sum()}, {x})[0], x.detach().exp()));  // through the result
}

TEST(Function, SavedTensorsAreChecked) {
  Tensor x = make({2}, {1, 2}).requires_grad_();
  Tensor y = Exponential::apply(x);
  y.detach().add_(1);
  EXPECT_ERROR(y.sum().backward(), "modified in place");
  Tensor z = Exponential::apply(x).sum();
  z.backward();
  EXPECT_ERROR(z.backward(), "retain_graph");
  Tensor w = Exponential::apply(x).sum();
  w.backward({}, true);
  w.backward();
}

struct AddInPlace : autograd::Function<AddInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x, Tensor y) {
    x.add_(y);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0], g[0] * 2}; }
};

TEST(Function, DirtyInputs) {
  Tensor x = make({3}, {1, 2, 3}).requires_grad_(), y = make({2}, {10, 20}).requires_grad_();
  Tensor buffer = x * 1, part = buffer.slice(0, 0, 2), other = buffer.slice(0, 1, 3);
  Tensor out = AddInPlace::apply(part, y);
  EXPECT_TRUE(out.is_same(part));
  EXPECT_TRUE(near(buffer, {11, 22, 3}));
  (other * other).sum().backward();
  EXPECT_TRUE(near(x.grad(), {0, 44, 6}));
  EXPECT_TRUE(near(y.grad(), {0, 88}));
  EXPECT_ERROR(AddInPlace::apply(y, y.detach()), "leaf");
}

struct Forgetful : autograd::Function<Forgetful> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.add_(1);
    ctx->mark_dirty({x});
    return x * 2;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return g; }
};
struct WrongCount : autograd::Function<WrongCount> {
  static Tensor forward(AutogradContext*, Tensor x, int64_t) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) { return g; }
};
struct GradientOfInteger : autograd::Function<GradientOfInteger> {
  static Tensor forward(AutogradContext*, Tensor x, int64_t) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0], g[0]}; }
};

TEST(Function, Errors) {
  Tensor x = make({2}, {1, 2}).requires_grad_();
  EXPECT_ERROR(Forgetful::apply(x.detach()), "dirty");
  EXPECT_ERROR(WrongCount::apply(x, int64_t(1)).sum().backward(), "returned 1 gradients");
  EXPECT_ERROR(GradientOfInteger::apply(x, int64_t(1)).sum().backward(), "not a tensor");
  autograd::SavedValue v = 1.5;
  EXPECT_ERROR(v.toTensor(), "expected tensors, got a number");
  EXPECT_ERROR(autograd::SavedData().at("nothing"), "called nothing");
}

struct SplitSign : autograd::Function<SplitSign> {
  static variable_list forward(AutogradContext* ctx, const variable_list& xs, bool materialize) {
    ctx->set_materialize_grads(materialize);
    Tensor mask = xs[0] > 0;
    Tensor constant = xs[0] * 2;
    ctx->mark_non_differentiable({constant});
    return {xs[0] * xs[1], xs[1] * 3, mask, constant};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    seen_undefined = !g[1].defined();
    needs_second = ctx->needs_input_grad(1);
    return {g[0], g[1].defined() ? g[1] * 3 : Tensor(), Tensor()};
  }
  static inline bool seen_undefined = false, needs_second = false;
};

TEST(Function, ListsSeveralResultsAndOptions) {
  Tensor x = make({2}, {1, -2}).requires_grad_(), y = make({2}, {3, 4});
  variable_list out = SplitSign::apply(variable_list{x, y}, true);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[2].requires_grad());
  EXPECT_FALSE(out[3].requires_grad());
  out[0].sum().backward();
  EXPECT_FALSE(SplitSign::seen_undefined);
  EXPECT_FALSE(SplitSign::needs_second);
  y.requires_grad_();
  SplitSign::apply(variable_list{x, y}, false)[0].sum().backward();
  EXPECT_TRUE(SplitSign::seen_undefined);
  EXPECT_TRUE(SplitSign::needs_second);
}

struct HandThrough : autograd::Function<HandThrough> {
  static Tensor forward(AutogradContext*, Tensor x) { return x; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 10}; }
};

TEST(Function, ResultThatIsAnInput) {
  Tensor x = make({2}, {1, 2}).requires_grad_();
  Tensor y = HandThrough::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_EQ(y.data_ptr(), x.data_ptr());
  EXPECT_TRUE(near(autograd::grad({y.sum()}, {x})[0], {10, 10}));
}

// ---- transforms
TEST(FunctionTransforms, GradUsesTheGivenGradientOnEveryLevel) {
  auto f = [](const Tensor& b) { return Tripled::apply(b.detach(), 1.0, b).sum(); };
  Tensor b = make({2}, {5, 7});
  EXPECT_TRUE(near(func::grad(f)(b), {30, 42}));
  auto twice = [&](const Tensor& t) { return func::grad(f)(t).sum(); };
  EXPECT_TRUE(near(func::grad(twice)(b), {6, 6}));
  Tensor leaf = b.clone().requires_grad_();  // the tape below sees the gradient too, not exp's
  Tensor y = func::vmap([](const Tensor& t) { return Exponential::apply(t); })(leaf);
  EXPECT_TRUE(near(autograd::grad({y.sum()}, {leaf})[0], b.exp()));
}

TEST(FunctionTransforms, TapeBelowSeesTheGivenGradient) {
  Tensor w = make({2}, {5, 7}).requires_grad_(), x = make({2}, {1, 1});
  auto f = [&](const Tensor& t) { return Tripled::apply(t, 1.0, w).sum(); };
  auto [g, value] = func::grad_and_value(f)(x);
  EXPECT_TRUE(near(g, {3, 3}));
  EXPECT_TRUE(near(autograd::grad({value}, {w})[0], {30, 42}));  // 3 * 2 w, not 2 w
}

TEST(FunctionTransforms, Vmap) {
  Tensor xs = noise({3, 2}, 1), b = noise({2}, 2);
  auto f = [](const Tensor& x, const Tensor& c) { return Tripled::apply(x, 2.0, c); };
  Tensor got = func::vmap(f, {0, std::nullopt})(xs, b);
  EXPECT_TRUE(near(got, xs * 2 + b * b));
  auto loss = [&](const Tensor& x, const Tensor& c) { return f(x, c).sum(); };
  Tensor g = func::vmap(func::grad<1>(loss), {0, std::nullopt})(xs, b);
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(near(g.select(0, i), b * 6));
  // grad of vmap: the gradient of the shared argument sums over rows.
  auto total = [&](const Tensor& c) { return func::vmap(f, {0, std::nullopt})(xs, c).sum(); };
  EXPECT_TRUE(near(func::grad(total)(b), b * 18));
  auto mapped = [](const Tensor& x) { return Exponential::apply(x); };
  auto rows = [&](const Tensor& x) { return func::vmap(mapped)(x).sum(); };
  EXPECT_TRUE(near(func::grad(rows)(xs), xs.exp()));
}

TEST(FunctionTransforms, VmapOfDirtyInputs) {
  Tensor xs = noise({3, 2}, 1), y = noise({2}, 2);
  auto f = [&](const Tensor& x) {
    Tensor local = x * 1;
    AddInPlace::apply(local, y);
    return local;
  };
  EXPECT_TRUE(near(func::vmap(f)(xs), xs + y));
}

TEST(FunctionTransforms, JvpRunsBackwardTwice) {
  Tensor x = make({2}, {0.5, 1}), d = make({2}, {1, 10});
  auto f = [](const Tensor& t) { return Exponential::apply(t); };
  auto [y, dy] = func::jvp(f, x, d);
  EXPECT_TRUE(near(y, x.exp()));
  EXPECT_TRUE(near(dy, x.exp() * d));
  auto g = [](const Tensor& t) { return Tripled::apply(t, 2.0, t.detach()); };
  EXPECT_TRUE(near(func::jvp(g, x, d).second, d * 6));
  auto rows = [&](const Tensor& t) { return func::jvp(f, t, d).second; };
  Tensor xs = noise({3, 2}, 1);
  EXPECT_TRUE(near(func::vmap(rows)(xs), xs.exp() * d));
}

struct WithRules : autograd::Function<WithRules> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * ctx->get_saved_variables()[0] * 2};
  }
  static variable_list jvp(AutogradContext* ctx, variable_list tangents) {
    return {tangents[0] * ctx->get_saved_variables()[0] * 200};
  }
  static autograd::VmapResult vmap(const autograd::VmapInfo& info,
                                   const std::vector<std::optional<int64_t>>& in_dims, Tensor x) {
    batch = info.batch_size;
    return {{WithRules::apply(x) * 100}, {in_dims[0]}};
  }
  static inline int64_t batch = 0;
};

TEST(FunctionTransforms, OwnRules) {
  Tensor x = make({2}, {3, 4});
  auto f = [](const Tensor& t) { return WithRules::apply(t); };
  EXPECT_TRUE(near(func::jvp(f, x, make({2}, {1, 1})).second, {600, 800}));
  EXPECT_TRUE(near(func::vmap(f)(x), {900, 1600}));
  EXPECT_EQ(WithRules::batch, 2);
  autograd::forward_ad::dual_level level;
  Tensor dual = autograd::forward_ad::make_dual(x, make({2}, {1, 1}));
  EXPECT_TRUE(near(autograd::forward_ad::unpack_dual(f(dual)).tangent, {600, 800}));
}

TEST(FunctionTransforms, Dual) {
  autograd::forward_ad::dual_level level;
  Tensor x = make({2}, {0.5, 1}), d = make({2}, {1, 10});
  Tensor dual = autograd::forward_ad::make_dual(x, d);
  EXPECT_TRUE(
      near(autograd::forward_ad::unpack_dual(Exponential::apply(dual)).tangent, x.exp() * d));
}

}  // namespace
}  // namespace fornax
