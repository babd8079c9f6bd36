// vmap alone: dimensions, writes, errors, promotion.
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::make;
using test::near;
using test::noise;
using test::values;

TEST(Vmap, DimensionsInAndOut) {
  Tensor a = noise({2, 3}, 1), b = noise({3}, 2);
  auto add = [](const Tensor& x, const Tensor& y) { return x + y * 2; };
  Tensor got = func::vmap(add, {1, 0})(a, b);  // columns of a, elements of b
  ASSERT_EQ(got.sizes(), IntArrayRef({3, 2}));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(near(got.select(0, i), add(a.select(1, i), b.select(0, i))));
  Tensor turned = func::vmap(add, {1, 0}, 1)(a, b);
  ASSERT_EQ(turned.sizes(), IntArrayRef({2, 3}));
  EXPECT_TRUE(near(turned.permute({1, 0}), got));
  Tensor shared = func::vmap(add, {std::nullopt, 0})(b, b);
  ASSERT_EQ(shared.sizes(), IntArrayRef({3, 3}));
  EXPECT_TRUE(near(shared.select(0, 1), add(b, b.select(0, 1))));
}

TEST(Vmap, StructuredArgumentsAndResults) {
  auto f = [](const std::vector<Tensor>& xs, double factor) {
    return std::tuple(xs[0] * factor, xs[1] + xs[0].sum());
  };
  Tensor a = noise({2, 3}, 1), b = noise({2, 3}, 2);
  auto [x, y] = func::vmap(f)(std::vector<Tensor>{a, b}, 3.0);
  EXPECT_TRUE(near(x, a * 3));
  EXPECT_TRUE(near(y, b + a.sum(Dims{1}, true)));
}

TEST(Vmap, ResultThatDoesNotDependOnTheRow) {
  Tensor a = noise({3, 2}, 1);
  Tensor got = func::vmap([](const Tensor&) { return ones({2}, Dtype::kF64); })(a);
  EXPECT_TRUE(near(got, {1, 1, 1, 1, 1, 1}));
  auto constant = [](const Tensor&) { return full({}, 4.0); };
  EXPECT_TRUE(near(func::vmap(constant, 0, std::nullopt)(a), {4}));
  auto identity = [](const Tensor& x) { return x; };
  EXPECT_ERROR(func::vmap(identity, 0, std::nullopt)(a), "differs from row to row");
}

TEST(Vmap, Chunks) {
  Tensor a = noise({5, 2}, 1);
  auto f = [](const Tensor& x) { return std::pair(x * x, x.sum()); };
  auto [all, sums] = func::vmap(f)(a);
  auto [parts, part_sums] = func::vmap(f, 0, 0, func::Randomness::kError, 2)(a);
  EXPECT_TRUE(near(parts, all));
  EXPECT_TRUE(near(part_sums, sums));
}

TEST(Vmap, PromotionSeesLogicalRanks) {
  // A batched 0-dim f64 does not widen f32 vectors, although it has a dimension in memory.
  Tensor vectors = noise({3, 2}, 1, Dtype::kF32), numbers = noise({3}, 2, Dtype::kF64);
  auto f = [](const Tensor& v, const Tensor& n) { return v * n; };
  Tensor got = func::vmap(f)(vectors, numbers);
  EXPECT_EQ(got.dtype(), Dtype::kF32);
  EXPECT_TRUE(near(got, func::vmap(f)(vectors, numbers.to(Dtype::kF32)), 1e-6));
  Tensor ints = make({3, 2}, {1, 2, 3, 4, 5, 6}, Dtype::kI64);
  EXPECT_EQ(func::vmap(f)(ints, numbers).dtype(), Dtype::kF64);  // a higher category does
}

TEST(Vmap, RankAlignment) {
  // [2] and [3, 2] broadcast from the right whatever the batch is.
  Tensor low = noise({4, 2}, 1), high = noise({4, 3, 2}, 2);
  auto f = [](const Tensor& a, const Tensor& b) { return a + b; };
  Tensor got = func::vmap(f)(low, high);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(near(got.select(0, i), f(low.select(0, i), high.select(0, i))));
}

TEST(Vmap, WriteIntoAnUnbatchedLocalAndItsViews) {
  Tensor a = noise({3, 2}, 1);
  auto f = [](const Tensor& x) {
    Tensor local = ones({2, 2}, Dtype::kF64).permute({1, 0});
    Tensor before = local.view({2, 2}).select(1, 1);  // made before the write
    local.select(0, 1).mul_(x);
    return local + before;
  };
  Tensor got = func::vmap(f)(a);
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(near(got.select(0, i), f(a.select(0, i))));
}

TEST(Vmap, DetachSharesMemory) {
  Tensor a = noise({3, 2}, 1);
  auto f = [](const Tensor& x) {
    Tensor local = ones({2}, Dtype::kF64);
    local.detach().mul_(x);
    return local * 1;
  };
  EXPECT_TRUE(near(func::vmap(f)(a), a));
}

TEST(Vmap, WriteIntoTheArgument) {
  Tensor a = noise({3, 2}, 1), want = a * 2;
  func::vmap([](const Tensor& x) { return x.mul_(2); })(a);
  EXPECT_TRUE(near(a, want));
}

TEST(Vmap, Errors) {
  Tensor a = noise({3, 2}, 1), outside = zeros({2}, Dtype::kF64), leaked;
  auto write_outside = [&](const Tensor& x) { return outside.add_(x); };
  EXPECT_ERROR(func::vmap(write_outside)(a), "from outside");
  auto write_view = [&](const Tensor& x) { return outside.view({2, 1}).select(1, 0).add_(x); };
  EXPECT_ERROR(func::vmap(write_view)(a), "from outside");
  EXPECT_TRUE(near(outside, {0, 0}));
  func::vmap([&](const Tensor& x) { return leaked = x * 2; })(a);
  EXPECT_ERROR(leaked + 1, "after the transform ended");
  EXPECT_ERROR(leaked.item(), "expected a tensor of one element");
  EXPECT_ERROR(func::vmap([](const Tensor& x) { return x + x.sum().item(); })(a), "value");
  EXPECT_ERROR(func::vmap([](const Tensor& x) { return x; }, std::nullopt)(a), "no argument");
  EXPECT_ERROR(func::vmap([](const Tensor& x, const Tensor&) { return x; })(a, noise({2}, 1)),
               "rows");
  EXPECT_ERROR(func::vmap([](const Tensor& x) { return x; }, 2)(a), "dimension 2");
  auto out = [&](const Tensor& x) { return add_out(outside, x, x); };
  EXPECT_ERROR(func::vmap(out)(a), "out=");
}

TEST(Vmap, OutsideValuesMayBeReadAndWrittenWithConstants) {
  Tensor a = noise({3, 2}, 1), outside = ones({2}, Dtype::kF64);
  Tensor got = func::vmap([&](const Tensor& x) {
    outside.add_(1);
    return x * outside.sum().item();
  })(a);
  EXPECT_TRUE(near(outside, {2, 2}));
  EXPECT_TRUE(near(got, a * 4));
}

TEST(Vmap, EmptyBatch) {
  Tensor got = func::vmap([](const Tensor& x) { return x.sum() * 2; })(zeros({0, 3}));
  EXPECT_EQ(got.sizes(), IntArrayRef({0}));
}

TEST(Vmap, GradModeOfTheCallerCountsBelow) {
  Tensor w = noise({2}, 3).requires_grad_(), a = noise({3, 2}, 1);
  Tensor y = func::vmap([&](const Tensor& x) { return x * w; })(a);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(near(autograd::grad({y.sum()}, {w})[0], a.sum(Dims{0})));
  Tensor z = func::vmap([&](const Tensor& x) {
    NoGradGuard off;
    return x * w;
  })(a);
  EXPECT_FALSE(z.requires_grad());
}

}  // namespace
}  // namespace fornax
