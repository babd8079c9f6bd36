// Pointwise operators: values, dtypes, forms, gradients, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fornax/fornax.h"

namespace fornax {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> values(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  const double* p = d.data_ptr<double>();
  return std::vector<double>(p, p + d.numel());
}

void expect_values(const Tensor& t, const std::vector<double>& want, double tolerance = 0) {
  std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    else if (std::isinf(want[i]) || tolerance == 0)
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
  }
}

template <class F>
ErrorKind kind_of_error(F call) {
  try {
    call();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kInternal;
}

Tensor doubles(std::initializer_list<double> v) { return tensor(v, kDouble); }

TEST(Pointwise, NumbersOnEitherSide) {
  Tensor a = tensor({1.0, -2.0, 4.0});
  expect_values(2 - a, {1, 4, -2});
  expect_values(1 / a, {1, -0.5, 0.25});
  expect_values(a % 3, {1, 1, 1});
  expect_values(7 % tensor({4, -4, 5}), {3, -1, 2});
  expect_values(a.sub(a, 0.5), {0.5, -1, 2});
  expect_values(a.rsub(1, 2), {-1, 5, -7});
  expect_values(1 < a, {0, 0, 1});
  expect_values(!tensor({0, 3}), {1, 0});
  expect_values(~tensor({0, 5}), {-1, -6});
  expect_values(1 << tensor({0, 3}), {1, 8});
  expect_values((tensor({6, 3}) & 2) | 8, {10, 10});
}

TEST(Pointwise, CompoundAssignment) {
  Tensor a = tensor({6, 12});
  a <<= 1;
  a |= 1;
  a &= tensor({9, 31});
  a ^= 3;
  expect_values(a, {(13 & 9) ^ 3, (25 & 31) ^ 3});
  Tensor b = tensor({1.0, 2.0});
  b += 1;
  b *= b;
  b /= 2;
  b -= tensor({1.0, 1.0});
  expect_values(b, {1, 3.5});
}

TEST(Pointwise, Promotion) {
  Tensor i = tensor({1, 2}), b = tensor({true, false}), h = ones({2}, kHalf);
  EXPECT_EQ((i + 1).dtype(), kLong);
  EXPECT_EQ((i + 1.5).dtype(), kFloat);
  EXPECT_EQ((i / i).dtype(), kFloat);
  EXPECT_EQ(i.div(i, "floor").dtype(), kLong);
  EXPECT_EQ((b + b).dtype(), kBool);
  EXPECT_EQ((h + ones({2})).dtype(), kFloat);
  EXPECT_EQ((h + ones({})).dtype(), kHalf);  // a 0-D tensor of the same category
  EXPECT_EQ((h + 1.5).dtype(), kHalf);
  EXPECT_EQ(i.exp().dtype(), kFloat);
  EXPECT_EQ(b.square().dtype(), kLong);
  EXPECT_EQ(i.float_power(2).dtype(), kDouble);
  EXPECT_EQ((h + Scalar(complex128(0, 1))).dtype(), kComplexHalf);
  EXPECT_EQ(polar(ones({2}), ones({2})).dtype(), kComplexFloat);
  EXPECT_EQ(polar(ones({2}), ones({2})).abs().dtype(), kFloat);
  EXPECT_EQ(polar(ones({2}), ones({2})).angle().dtype(), kFloat);
  EXPECT_EQ(i.gt(0.5).dtype(), kBool);
  EXPECT_EQ(where(b, 1, 2.0).dtype(), kFloat);
  EXPECT_EQ(h.masked_fill(b, 3.5).dtype(), kHalf);
}

TEST(Pointwise, FormsAgree) {
  Tensor a = doubles({0.5, 1.5, 2.5}), out = empty({0}, kDouble);
  Tensor want = a.exp();
  exp_out(out, a);
  expect_values(out, values(want));
  Tensor b = a.clone();
  EXPECT_TRUE(b.exp_().is_same(b));
  expect_values(b, values(want));
  Tensor narrow = empty({3}, kFloat);
  exp_out(narrow, a);
  expect_values(narrow, values(want), 1e-6);
  // Composite and 0-D results follow the same rules.
  Tensor p = tensor({-1.0, 2.0});
  expect_values(prelu(p, tensor({0.25})), {-0.25, 2});
}

TEST(Pointwise, RoundingAndRemainders) {
  Tensor a = doubles({-7, 7, -7, 7, 0.5}), b = doubles({3, 3, -3, -3, 0});
  expect_values(a.fmod(b), {-1, 1, -1, 1, kNan});
  expect_values(a.remainder(b), {2, 1, -1, -2, kNan});
  expect_values(a.floor_divide(b), {-3, 2, 2, -3, kInf});
  expect_values(a.div(b, "trunc"), {-2, 2, 2, -2, kInf});
  expect_values(doubles({0.5, 1.5, -2.5, 2.6}).round(), {0, 2, -2, 3});
  expect_values(doubles({1.234, -1.236}).round(2), {1.23, -1.24}, 1e-15);
  expect_values(tensor({-7, 7}).floor_divide(2), {-4, 3});
  expect_values(tensor({-7, 7}).div(2, "trunc"), {-3, 3});
  expect_values(doubles({-1.5, 2.25}).frac(), {-0.5, 0.25});
}

TEST(Pointwise, Powers) {
  Tensor a = doubles({-2, 0, 3});
  expect_values(a.pow(2), {4, 0, 9});
  expect_values(a.pow(3), {-8, 0, 27});
  expect_values(a.pow(-1), {-0.5, kInf, 1.0 / 3});
  expect_values(a.pow(0), {1, 1, 1});
  expect_values(a.pow(2.5), {kNan, 0, std::pow(3, 2.5)}, 1e-14);
  expect_values(pow(Scalar(2), a), {0.25, 1, 8});
  expect_values(tensor({2, -3}).pow(3), {8, -27});
  expect_values(tensor({1, -1, 2}).pow(tensor({-3, -3, -3})), {1, -1, 0});
}

TEST(Pointwise, BoundsAndNan) {
  Tensor a = doubles({-2, 0.5, 3, kNan});
  expect_values(a.clamp(-1, 1), {-1, 0.5, 1, kNan});
  expect_values(a.clamp(std::nullopt, 1), {-2, 0.5, 1, kNan});
  expect_values(a.clamp(2, 1), {1, 1, 1, kNan});  // the upper bound wins
  expect_values(a.clamp_min(kNan), {kNan, kNan, kNan, kNan});
  expect_values(a.clamp_min(doubles({0})), {0, 0.5, 3, kNan});
  expect_values(a.maximum(doubles({0, 0, kNan, 0})), {0, 0.5, kNan, kNan});
  expect_values(a.fmax(doubles({0, 0, kNan, 0})), {0, 0.5, 3, 0});
  expect_values(doubles({kNan, kInf, -kInf, 1}).nan_to_num(7),
                {7, 1.7976931348623157e308, -1.7976931348623157e308, 1});
  expect_values(doubles({kNan, kInf}).nan_to_num(0, 5), {0, 5});
  expect_values(doubles({kNan, kInf, -kInf, 0}).isfinite(), {0, 0, 0, 1});
  expect_values(doubles({1, 1 + 1e-7, 1 + 1e-4, kNan}).isclose(doubles({1, 1, 1, kNan})),
                {1, 1, 0, 0});
  expect_values(doubles({kNan}).isclose(doubles({kNan}), 1e-5, 1e-8, true), {1});
}

TEST(Pointwise, ClampNeedsABound) {
  EXPECT_EQ(kind_of_error([] { ones({2}).clamp(std::optional<Scalar>()); }), ErrorKind::kValue);
}

TEST(Pointwise, Selection) {
  Tensor a = tensor({{1.0, -2.0}, {3.0, -4.0}});
  expect_values(where(a > 0, a, 0), {1, 0, 3, 0});
  expect_values(a.where(a > 0, a * 10), {1, -20, 3, -40});
  expect_values(a.masked_fill(a < 0, 9), {1, 9, 3, 9});
  expect_values(a.masked_fill(tensor({true, false}), tensor(5.0)), {5, -2, 5, -4});
  Tensor c = a.clone();
  c.masked_fill_(c < 0, 0);
  expect_values(c, {1, 0, 3, 0});
  expect_values(a.fill(tensor(2.0)), {2, 2, 2, 2});
  EXPECT_EQ(kind_of_error([&] { where(a, a, a); }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { a.masked_fill(a, 1); }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { a.masked_fill(a > 0, a); }), ErrorKind::kShape);
}

TEST(Pointwise, Activations) {
  Tensor x = doubles({-4, -1, 0, 1, 4});
  expect_values(x.relu(), {0, 0, 0, 1, 4});
  expect_values(relu6(x * 2), {0, 0, 0, 2, 6});
  expect_values(x.leaky_relu(0.1), {-0.4, -0.1, 0, 1, 4}, 1e-15);
  expect_values(x.hardtanh(-2, 2), {-2, -1, 0, 1, 2});
  expect_values(x.hardsigmoid(), {0, 1.0 / 3, 0.5, 2.0 / 3, 1}, 1e-15);
  expect_values(x.hardswish(), {0, -1.0 / 3, 0, 2.0 / 3, 4}, 1e-15);
  expect_values(x.elu(), {std::expm1(-4), std::expm1(-1), 0, 1, 4}, 1e-15);
  expect_values(x.celu(2), {2 * std::expm1(-2), 2 * std::expm1(-0.5), 0, 1, 4}, 1e-15);
  expect_values(
      x.sigmoid(),
      {0.01798620996209156, 0.2689414213699951, 0.5, 0.7310585786300049, 0.9820137900379085},
      1e-15);
  expect_values(
      x.silu(),
      {-0.07194483984836623, -0.2689414213699951, 0, 0.7310585786300049, 3.928055160151634}, 1e-15);
  expect_values(
      x.gelu(),
      {-0.00012668496733247991, -0.15865525393145707, 0, 0.8413447460685429, 3.9998733150326675},
      1e-12);
  expect_values(
      x.gelu("tanh"),
      {-7.024594819227126e-05, -0.15880800939172324, 0, 0.8411919906082768, 3.9999297540518075},
      1e-12);
  expect_values(x.softplus(),
                {std::log1p(std::exp(-4)), std::log1p(std::exp(-1)), std::log(2),
                 std::log1p(std::exp(1)), std::log1p(std::exp(4))},
                1e-14);
  expect_values(doubles({-800, 30}).softplus(), {0, 30});
  expect_values(x.softshrink(1), {-3, 0, 0, 0, 3});
  expect_values(x.hardshrink(1), {-4, 0, 0, 0, 4});
  expect_values(x.threshold(0.5, -7), {-7, -7, -7, 1, 4});
  expect_values(doubles({-800}).log_sigmoid(), {-800});
}

TEST(Pointwise, SpecialFunctions) {
  Tensor x = doubles({0.5, 1.5});
  expect_values(x.lgamma(), {0.5723649429247001, -0.1207822376352452}, 1e-14);
  expect_values(x.digamma(), {-1.9635100260214235, 0.03648997397857652}, 1e-13);
  expect_values(polygamma(1, x), {4.934802200544679, 0.934802200544679}, 1e-13);
  expect_values(x.erfinv(), {0.4769362762044699, kNan}, 1e-14);
  expect_values(special_zeta(2, doubles({1})), {1.6449340668482264}, 1e-13);
  expect_values(x.i0(), {1.0634833707413236, 1.6467231897728904}, 1e-14);
  expect_values(special_chebyshev_polynomial_t(x, 2), {-0.5, 3.5}, 1e-14);
  auto [mantissa, exponent] = doubles({6, -0.3, 0}).frexp();
  expect_values(mantissa, {0.75, -0.6, 0}, 1e-15);
  expect_values(exponent, {3, -1, 0});
  EXPECT_EQ(exponent.dtype(), kInt);
}

TEST(Pointwise, ComplexValues) {
  Tensor z = complex(doubles({3, 0}), doubles({4, -2}));
  expect_values(z.abs(), {5, 2});
  expect_values(view_as_real(z * z), {-7, 24, -4, 0});
  expect_values(view_as_real(z / z), {1, 0, 1, 0}, 1e-15);
  expect_values(view_as_real(z.conj_physical()), {3, -4, 0, 2});
  expect_values(view_as_real(z + 1), {4, 4, 1, -2});
  expect_values(view_as_real(z * doubles({2, 3})), {6, 8, 0, -6});
  Tensor e = complex(doubles({0}), doubles({M_PI})).exp();
  expect_values(view_as_real(e), {-1, 0}, 1e-15);
  EXPECT_EQ(kind_of_error([&] { z.gt(z); }), ErrorKind::kType);
}

TEST(Pointwise, Errors) {
  Tensor i = tensor({1, 2}), b = tensor({true, false}), f = tensor({1.0, 2.0});
  EXPECT_EQ(kind_of_error([&] { b - b; }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { -b; }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { f & 1; }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { i.pow(-1); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { i.add_(1.5); }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { i % 0; }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { i.floor_divide(tensor({1, 0})); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { i.fmod(tensor({{0}})); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { f.div(f, "round"); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { f.gelu("fast"); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { f + ones({3}); }), ErrorKind::kShape);
  EXPECT_EQ(kind_of_error([&] { i.silu(); }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { i.addcdiv(i, i); }), ErrorKind::kType);
}

// d/dx of sum(f(x) * w) against central differences, in double.
template <class F>
void check_gradient(F f, std::initializer_list<double> at, double tolerance = 1e-7) {
  Tensor x = tensor(at, kDouble).requires_grad_();
  Tensor w = arange(1, double(at.size()) + 1, kDouble);
  (f(x) * w).sum().backward();
  std::vector<double> got = values(x.grad());
  for (size_t i = 0; i < at.size(); ++i) {
    Tensor step = zeros({int64_t(at.size())}, kDouble);
    double h = 1e-6;
    step.data_ptr<double>()[i] = h;
    Tensor base = x.detach();
    double up = (f(base + step) * w).sum().item().to_double();
    double down = (f(base - step) * w).sum().item().to_double();
    double want = (up - down) / (2 * h);
    EXPECT_NEAR(got[i], want, tolerance * std::max(1.0, std::abs(want))) << "element " << i;
  }
}

TEST(Pointwise, Gradients) {
  check_gradient([](const Tensor& x) { return x.pow(2.5); }, {0.5, 1.5, 3});
  check_gradient([](const Tensor& x) { return x.pow(-2); }, {0.5, 1.5, -3});
  check_gradient([](const Tensor& x) { return pow(Scalar(2.0), x); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x / (x * x + 1); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x.clamp(-1, 1); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x.gelu() + x.silu() + x.mish(); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x.lgamma() + x.erf(); }, {0.5, 1.5, 3});
  check_gradient([](const Tensor& x) { return x.addcdiv(x, x + 3, 2); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return where(x > 1, x * x, x); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x.masked_fill(x > 1, 7); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return polar(x, x).abs() + polar(x, x).angle(); },
                 {0.5, 1.5, 1.25});
  check_gradient([](const Tensor& x) { return (x * Scalar(complex128(1, 2))).abs(); },
                 {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return std::get<0>(x.frexp()); }, {0.75, 3, -5});
  check_gradient([](const Tensor& x) { return prelu(x, full({1}, 0.3, kDouble)); }, {0.5, -1.5, 3});
  check_gradient([](const Tensor& x) { return x.logaddexp(x * 2).logit(1e-6).nan_to_num(); },
                 {-3.5, -2, -4});
}

TEST(Pointwise, GradientsAtKinks) {
  auto gradient = [](auto f, double at) {
    Tensor x = tensor({at}, kDouble).requires_grad_();
    f(x).sum().backward();
    return values(x.grad())[0];
  };
  EXPECT_EQ(gradient([](const Tensor& x) { return x.relu(); }, 0), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.clamp(-1, 1); }, 1), 1);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.clamp_min(1); }, 1), 1);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.hardtanh(); }, 1), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.maximum(tensor({1.0}, kDouble)); }, 1), 0.5);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.abs(); }, 0), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return x.sigmoid(); }, -800), 0);
}

// In-place activations keep what their gradient reads.
TEST(Pointwise, InPlaceThenBackward) {
  Tensor x = tensor({-1.0, 1.0}, kDouble).requires_grad_();
  Tensor y = x * 3;
  y.sin_();
  y.relu_();
  y.sum().backward();
  expect_values(x.grad(), {0, 3 * std::cos(3.0)}, 1e-15);
  // A result that was saved can't be overwritten.
  Tensor z = (x * 3).relu();
  z.sin_();
  EXPECT_EQ(kind_of_error([&] { z.sum().backward(); }), ErrorKind::kAutograd);
}

TEST(Pointwise, StridesOfOperandsAreKept) {
  Tensor a = arange(6, kDouble).view({2, 3}).permute({1, 0});
  Tensor b = a * 2 + a;
  EXPECT_EQ(b.stride(0), 1);
  expect_values(b, {0, 9, 3, 12, 6, 15});
  Tensor c = zeros({3, 2}, kDouble);
  c.copy_(a);
  expect_values(c, {0, 3, 1, 4, 2, 5});
}

}  // namespace
}  // namespace fornax
