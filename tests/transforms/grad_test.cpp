// grad, vjp and jvp alone, and the base level's dual tensors.
#include "fornax/autograd/forward.h"
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::make;
using test::near;
using test::noise;
using test::values;
namespace fwd = autograd::forward_ad;

TEST(Grad, Arguments) {
  auto f = [](const Tensor& a, const Tensor& b) { return (a * a * b).sum(); };
  Tensor a = make({2}, {2, 3}), b = make({2}, {5, 7});
  EXPECT_TRUE(near(func::grad(f)(a, b), {20, 42}));
  EXPECT_TRUE(near(func::grad<1>(f)(a, b), {4, 9}));
  EXPECT_TRUE(near(func::grad(f, 1)(a, b), {4, 9}));
  EXPECT_TRUE(near(func::grad(f, -1)(a, b), {4, 9}));
  auto both = func::grad(f, {0, 1})(a, b);
  EXPECT_TRUE(near(both[0], {20, 42}));
  EXPECT_TRUE(near(both[1], {4, 9}));
  auto [g, y] = func::grad_and_value(f)(a, b);
  EXPECT_TRUE(near(g, {20, 42}));
  EXPECT_TRUE(near(y, {83}));
  EXPECT_ERROR(func::grad(f, 2)(a, b), "argnums");
}

TEST(Grad, UnusedArgumentsHaveZeroGradients) {
  auto f = [](const Tensor& a, const Tensor& b) { return a.sum() + 0 * b.sum(); };
  auto g = [](const Tensor& a, const Tensor&) { return a.sum(); };
  Tensor x = noise({2}, 1);
  EXPECT_TRUE(near(func::grad<1>(f)(x, x), {0, 0}));
  EXPECT_TRUE(near(func::grad<1>(g)(x, x), {0, 0}));
}

TEST(Grad, Errors) {
  Tensor x = noise({2}, 1);
  EXPECT_ERROR(func::grad([](const Tensor& t) { return t * 2; })(x), "0-D");
  EXPECT_ERROR(func::grad([](const Tensor& t) { return t.sum(); })(make({1}, {1}, Dtype::kI64)),
               "floating");
  Tensor outside = zeros({2}, Dtype::kF64);
  EXPECT_ERROR(func::grad([&](const Tensor& t) { return outside.add_(t).sum(); })(x), "outside");
  Tensor leaked;
  func::grad([&](const Tensor& t) { return (leaked = t * t).sum(); })(x);
  EXPECT_ERROR(leaked * 2, "after the transform ended");
  // Leaked into another transform it is not taken for one of that one's.
  EXPECT_ERROR(func::grad([&](const Tensor& t) { return (t * leaked).sum(); })(x),
               "after the transform ended");
}

TEST(Grad, WorksUnderNoGrad) {
  NoGradGuard off;
  EXPECT_TRUE(
      near(func::grad([](const Tensor& x) { return (x * x).sum(); })(make({2}, {1, 3})), {2, 6}));
}

TEST(Grad, NoGradInsideMakesConstants) {
  auto f = [](const Tensor& x) {
    Tensor c;
    {
      NoGradGuard off;
      c = x * x;
    }
    return (x - c).sum();
  };
  EXPECT_TRUE(near(func::grad(f)(make({2}, {1, 3})), {1, 1}));
}

TEST(Grad, CapturedParametersOfTheTape) {
  Tensor w = noise({2}, 7).requires_grad_(), a = noise({4, 2}, 1);
  auto inner = [&](const Tensor& x) { return (x * x * w).sum(); };
  Tensor h = func::vmap(func::grad(inner))(a);  // 2 x w
  Tensor g = autograd::grad({h.sum()}, {w})[0];
  EXPECT_TRUE(near(g, a.sum(Dims{0}) * 2));
}

TEST(Grad, CapturedParameterSavedWhileRulesDontRecord) {
  // The rule of the inner gradient reads w, which belongs to the tape below.
  Tensor w = noise({2}, 7).requires_grad_(), x = noise({2}, 1);
  Tensor g = func::grad([&](const Tensor& t) { return (t * w * w).sum(); })(x);  // w^2
  EXPECT_TRUE(near(autograd::grad({g.sum()}, {w})[0], w.detach() * 2));
}

TEST(Vjp, PullsBackAnyNumberOfTimes) {
  auto f = [](const Tensor& a, const Tensor& b) { return std::pair(a * b, a.sum()); };
  Tensor a = make({2}, {2, 3}), b = make({2}, {5, 7});
  auto [y, pull] = func::vjp(f, a, b);
  EXPECT_TRUE(near(y.first, {10, 21}));
  auto [ga, gb] = pull(std::pair(make({2}, {1, 10}), make({}, {100})));
  EXPECT_TRUE(near(ga, {105, 170}));
  EXPECT_TRUE(near(gb, {2, 30}));
  auto [ga2, gb2] = pull(std::pair(make({2}, {1, 10}), Tensor()));
  EXPECT_TRUE(near(ga2, {5, 70}));
  EXPECT_ERROR(pull(std::pair(make({1}, {1}), Tensor())), "cotangent 0 has sizes [1]");
}

TEST(Vjp, PullbackUnderVmap) {
  auto f = [](const Tensor& a) { return a * a; };
  auto [y, pull] = func::vjp(f, make({2}, {2, 3}));
  auto rows = func::vmap([&](const Tensor& ct) { return pull(ct); })(make({2, 2}, {1, 0, 0, 1}));
  EXPECT_TRUE(near(rows, {4, 0, 0, 6}));
}

TEST(Jvp, SeveralArguments) {
  auto f = [](const Tensor& a, const Tensor& b) { return a * b; };
  Tensor a = make({2}, {2, 3}), b = make({2}, {5, 7}), da = make({2}, {1, 1}),
         db = make({2}, {0, 2});
  auto [y, dy] = func::jvp(f, std::tuple(a, b), std::tuple(da, db));
  EXPECT_TRUE(near(y, {10, 21}));
  EXPECT_TRUE(near(dy, {5, 13}));
  auto [y2, dy2] = func::jvp(f, std::tuple(a, b), std::tuple(Tensor(), db));
  EXPECT_TRUE(near(dy2, {0, 6}));
}

TEST(Jvp, InPlaceThroughViews) {
  auto f = [](const Tensor& x) {
    Tensor local = ones({2, 2}, Dtype::kF64), early = local.select(1, 0);
    local.select(0, 0).copy_(x);
    local.select(0, 1).mul_(early.clone());
    return local * early;
  };
  Tensor x = make({2}, {2, 3}), dx = make({2}, {1, 10});
  Tensor got = func::jvp(f, x, dx).second;
  const double h = 1e-6;
  EXPECT_TRUE(near(got, (f(x + dx * h) - f(x - dx * h)) / (2 * h), 1e-7));
}

TEST(Jvp, Errors) {
  Tensor x = noise({2}, 1), outside = zeros({2}, Dtype::kF64);
  auto write = [&](const Tensor& t) { return outside.add_(t); };
  EXPECT_ERROR(func::jvp(write, x, x), "from outside");
  auto f = [](const Tensor& t) { return t; };
  EXPECT_ERROR(func::jvp(f, x, noise({3}, 1)), "tangent [3]");
  EXPECT_ERROR(func::jvp(f, x, x.to(Dtype::kF32)), "float32");
}

TEST(Jvp, TangentsOfIdentityRulesAreNotShared) {
  Tensor x = make({2}, {2, 3}), dx = make({2}, {1, 1});
  auto f = [](const Tensor& t) {
    Tensor c = t.clone();
    c.mul_(5);
    return c + t * 0;
  };
  EXPECT_TRUE(near(func::jvp(f, x, dx).second, {5, 5}));
  EXPECT_TRUE(near(dx, {1, 1}));
}

// ---- dual tensors of the base level
TEST(Dual, ValueAndTangent) {
  fwd::dual_level level;
  Tensor x = fwd::make_dual(make({2}, {2, 3}), make({2}, {1, 10}));
  auto [y, dy] = fwd::unpack_dual((x * x).sum());
  EXPECT_TRUE(near(y, {13}));
  EXPECT_TRUE(near(dy, {64}));
  auto [c, dc] = fwd::unpack_dual(make({1}, {1}));
  EXPECT_FALSE(dc.defined());
}

TEST(Dual, TangentsEndWithTheirLevel) {
  Tensor x;
  {
    fwd::dual_level level;
    x = fwd::make_dual(make({2}, {2, 3}), make({2}, {1, 10}));
    EXPECT_ERROR(fwd::dual_level(), "open already");
  }
  EXPECT_ERROR(fwd::make_dual(x, x), "no dual level");
  fwd::dual_level level;
  EXPECT_FALSE(fwd::unpack_dual(x * x).tangent.defined());
}

TEST(Dual, WritesThroughSiblingViews) {
  fwd::dual_level level;
  Tensor x = fwd::make_dual(make({2}, {2, 3}), make({2}, {1, 10}));
  Tensor local = ones({2, 2}, Dtype::kF64), early = local.select(1, 0);
  Tensor silent;
  {
    NoGradGuard off;
    silent = local.select(1, 1);
  }
  local.select(0, 0).copy_(x);
  EXPECT_TRUE(near(fwd::unpack_dual(early * early).tangent, {4, 0}));
  EXPECT_TRUE(near(fwd::unpack_dual(silent * 2).tangent, {20, 0}));
  EXPECT_TRUE(near(fwd::unpack_dual(local).tangent, {1, 10, 0, 0}));
}

TEST(Dual, ReverseOverForwardAndForwardOverReverse) {
  fwd::dual_level level;
  Tensor x = make({2}, {2, 3}).requires_grad_(), dx = make({2}, {1, 10});
  Tensor dual = fwd::make_dual(x, dx);
  Tensor y = (dual * dual * dual).sum();
  Tensor dy = fwd::unpack_dual(y).tangent;  // 3 x^2 dx
  EXPECT_TRUE(near(dy, {282}));
  EXPECT_TRUE(near(autograd::grad({dy}, {x}, {}, true)[0], {12, 180}));  // 6 x dx
  Tensor g = autograd::grad({y}, {x})[0];                                // 3 x^2
  EXPECT_TRUE(near(g, {12, 27}));
  EXPECT_TRUE(near(fwd::unpack_dual(g).tangent, {12, 180}));
}

TEST(Dual, SavedResultsHaveTangents) {
  fwd::dual_level level;
  Tensor x = make({2}, {0.2, 0.3}).requires_grad_();
  Tensor y = fwd::make_dual(x, ones({2}, Dtype::kF64)).tanh();
  Tensor g = autograd::grad({y.sum()}, {x})[0];  // 1 - tanh^2, from the saved result
  Tensor t = x.detach().tanh();
  EXPECT_TRUE(near(fwd::unpack_dual(g).tangent, t * (t * t - 1) * 2));
}

}  // namespace
}  // namespace fornax
