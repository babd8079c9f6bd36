// Every nesting of two and three transforms, over code that writes through overlapping views.
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::gradients_match;
using test::make;
using test::near;
using test::noise;
using test::values;
using Xs = std::vector<Tensor>;

// A local buffer, a row and a column of it that share an element, both written.
Tensor program(const Xs& x) {
  Tensor buffer = zeros({2, 2}, Dtype::kF64);
  Tensor row = buffer.select(0, 0), column = buffer.select(1, 0);
  row.copy_(x[0]);
  column.mul_(x[1]);
  column.add_(row.clone(), 0.5);
  Tensor square = buffer * buffer;
  return square.sum() + square.tanh().select(0, 0).sum() * 2;
}

Xs rows_of(const Xs& xs, int64_t b) {
  Xs rows;
  for (const Tensor& x : xs) rows.push_back(x.select(0, b).clone());
  return rows;
}

template <class F>
::testing::AssertionResult vmap_is_loop(const F& f, const Xs& xs) {
  std::vector<double> want;
  for (int64_t b = 0; b < xs[0].size(0); ++b)
    for (double v : values(f(rows_of(xs, b)))) want.push_back(v);
  return near(func::vmap(f)(xs), want);
}

// jvp against central differences.
template <class F>
::testing::AssertionResult tangent_matches(const F& f, const Xs& xs, const Xs& along) {
  Tensor got = func::jvp(f, xs, along).second;
  const double h = 1e-5;
  Xs above, below;
  for (size_t i = 0; i < xs.size(); ++i) {
    above.push_back(xs[i] + along[i] * h);
    below.push_back(xs[i] - along[i] * h);
  }
  return near(got, (f(above) - f(below)) / (2 * h), 1e-6);
}

const Xs& batch() {
  static const Xs xs{noise({4, 2}, 1), noise({4, 2}, 2)};
  return xs;
}
const Xs& batch_directions() {
  static const Xs xs{noise({4, 2}, 8), noise({4, 2}, 9)};
  return xs;
}
const Xs& row() {
  static const Xs xs{noise({2}, 1), noise({2}, 2)};
  return xs;
}
const Xs& direction() {
  static const Xs xs{noise({2}, 8), noise({2}, 9)};
  return xs;
}

Tensor grad_first(const Xs& x) { return func::grad(program)(x)[0]; }
Tensor vmapped_grad(const Xs& x) { return func::vmap(grad_first)(x); }

TEST(Nesting, ProgramGradients) { EXPECT_TRUE(gradients_match(program, row())); }

TEST(Nesting, GradIsTheTapesGradient) {
  Xs xs;
  for (const Tensor& t : row()) xs.push_back(t.clone().requires_grad_());
  Xs want = autograd::grad({program(xs)}, xs);
  Xs got = func::grad(program)(row());
  EXPECT_TRUE(near(got[0], want[0]));
  EXPECT_TRUE(near(got[1], want[1]));
}

TEST(Nesting, Vmap) { EXPECT_TRUE(vmap_is_loop(program, batch())); }
TEST(Nesting, VmapOfGrad) { EXPECT_TRUE(vmap_is_loop(grad_first, batch())); }

TEST(Nesting, VmapOfVmap) {
  Xs xs{noise({3, 4, 2}, 1), noise({3, 4, 2}, 2)};
  EXPECT_TRUE(vmap_is_loop([](const Xs& x) { return func::vmap(program)(x); }, xs));
}

TEST(Nesting, GradOfVmap) {
  auto total = [](const Tensor& a) { return func::vmap(program)(Xs{a, batch()[1]}).sum(); };
  EXPECT_TRUE(near(func::grad(total)(batch()[0]), vmapped_grad(batch())));
}

TEST(Nesting, GradOfGrad) {
  auto second = [](const Xs& x) {
    return func::grad([&](const Tensor& y) { return (grad_first({y, x[1]}) * x[1]).sum(); })(x[0]);
  };
  auto directional = [](const Xs& x) { return (grad_first(x) * x[1].detach()).sum(); };
  EXPECT_TRUE(near(values(second(row())), test::numeric_gradient(directional, row(), 0), 1e-6));
  EXPECT_TRUE(vmap_is_loop(second, batch()));
}

TEST(Nesting, TapeUnderVmapOfGrad) { EXPECT_TRUE(gradients_match(vmapped_grad, batch(), false)); }

TEST(Nesting, Jvp) {
  EXPECT_TRUE(tangent_matches(program, row(), direction()));
  auto [y, dy] = func::jvp(program, row(), direction());
  EXPECT_TRUE(near(y, program(row())));
}
TEST(Nesting, JvpOfGrad) { EXPECT_TRUE(tangent_matches(grad_first, row(), direction())); }
TEST(Nesting, JvpOfVmap) {
  auto f = [](const Xs& x) { return func::vmap(program)(x); };
  EXPECT_TRUE(tangent_matches(f, batch(), batch_directions()));
}
TEST(Nesting, JvpOfVmapOfGrad) {
  EXPECT_TRUE(tangent_matches(vmapped_grad, batch(), batch_directions()));
}
TEST(Nesting, JvpOfJvp) {
  auto f = [](const Xs& x) { return func::jvp(program, x, direction()).second; };
  EXPECT_TRUE(tangent_matches(f, row(), direction()));
}
TEST(Nesting, VmapOfJvp) {
  auto f = [](const Xs& x) { return func::jvp(program, x, direction()).second; };
  EXPECT_TRUE(vmap_is_loop(f, batch()));
}
TEST(Nesting, VmapOfJvpOfGrad) {
  auto f = [](const Xs& x) { return func::jvp(grad_first, x, direction()).second; };
  EXPECT_TRUE(vmap_is_loop(f, batch()));
}
TEST(Nesting, ReverseOverForward) {
  auto f = [](const Xs& x) { return func::jvp(program, x, direction()).second; };
  EXPECT_TRUE(gradients_match(f, row(), false));
  EXPECT_TRUE(near(values(func::grad(f)(row())[0]), test::numeric_gradient(f, row(), 0), 1e-6));
}

TEST(Nesting, JacobiansAgree) {
  auto f = [](const Tensor& x) { return x * x.select(0, 1) + x.tanh(); };
  Tensor x = noise({3}, 4), reverse = func::jacrev(f)(x), forward = func::jacfwd(f)(x);
  EXPECT_TRUE(near(reverse, forward));
  for (int64_t i = 0; i < 3; ++i) {
    auto one = [&, i](const Xs& v) { return f(v[0]).select(0, i); };
    EXPECT_TRUE(near(values(reverse.select(0, i)), test::numeric_gradient(one, {x}, 0), 1e-6));
  }
  EXPECT_TRUE(near(func::jacrev(f, 0, 2)(x), reverse));  // in chunks
}

TEST(Nesting, HessianIsSymmetricAndRight) {
  auto f = [](const Tensor& x) { return (x * x * x).sum() + x.select(0, 0) * x.select(0, 1); };
  Tensor h = func::hessian(f)(make({2}, {2, 3}));
  EXPECT_TRUE(near(h, {12, 1, 1, 18}));
}

}  // namespace
}  // namespace fornax
