// Reductions and scans: values over every set of dimensions, empty and special inputs, gradients,
// forms, errors, and that results do not depend on the number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "fornax/base/threads.h"
#include "fornax/fornax.h"
#include "tests/ops/check.h"

namespace fornax {
namespace {

using check::doubles;
using check::expect_gradients;
using check::expect_values;
using check::kind_of_error;
using check::kInf;
using check::kNan;
using check::random_tensor;
using check::values;

Tensor example() { return tensor({3.0, 1.0, 2.0, 5.0, -1.0, 4.0}, kDouble).reshape({2, 3}); }

// Sums by plain loops in double, over the dimensions of `mask`.
struct Reference {
  std::vector<double> sum, low, high, squares;
  std::vector<int64_t> place;
  double count = 1;
};
Reference reference(const Tensor& x, unsigned mask) {
  std::vector<double> v = values(x);
  size_t rank = size_t(x.dim());
  std::vector<int64_t> step(rank, 0), index(rank, 0);
  int64_t results = 1;
  Reference r;
  for (size_t d = rank; d-- > 0;) {
    if (mask >> d & 1) {
      r.count *= double(x.size(int64_t(d)));
      continue;
    }
    step[d] = results;
    results *= x.size(int64_t(d));
  }
  size_t n = size_t(results);
  r.sum.assign(n, 0);
  r.squares.assign(n, 0);
  r.low.assign(n, kInf);
  r.high.assign(n, -kInf);
  std::vector<size_t> at(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    size_t o = 0;
    for (size_t d = 0; d < rank; ++d) o += size_t(index[d] * step[d]);
    at[i] = o;
    r.sum[o] += v[i];
    r.low[o] = std::min(r.low[o], v[i]);
    r.high[o] = std::max(r.high[o], v[i]);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < x.size(int64_t(d))) break;
      index[d] = 0;
    }
  }
  for (size_t i = 0; i < v.size(); ++i) {
    double d = v[i] - r.sum[at[i]] / r.count;
    r.squares[at[i]] += d * d;
  }
  return r;
}

void check_all_dimensions(const Tensor& x) {
  for (unsigned mask = 1; mask < 1u << x.dim(); ++mask) {
    Dims dims;
    for (int64_t d = 0; d < x.dim(); ++d)
      if (mask >> d & 1) dims.push_back(d);
    Reference r = reference(x, mask);
    SCOPED_TRACE(str("sizes ", x.sizes(), " strides ", x.strides(), " dims ", dims));
    // Terms cancel: what counts is the error against the sum of their moduli, about 0.8 each.
    expect_values(x.sum(dims), r.sum, 2e-6 + 1e-9 * r.count);
    expect_values(x.amax(dims, true), r.high);
    expect_values(x.amin(dims), r.low);
    std::vector<double> var = r.squares;
    for (double& s : var) s /= r.count;
    expect_values(x.var(dims, Scalar(0)), var, 2e-6);
  }
}

TEST(Reduce, EveryShapeAndOrderOfDimensions) {
  const std::vector<std::vector<int64_t>> shapes = {
      {5},       {70000},   {3, 4, 5},    {1, 1},      {7, 1, 90}, {300, 70},
      {70, 600}, {5000, 3}, {2, 3, 4, 5}, {150000, 2}, {33, 65, 9}};
  for (const auto& sizes : shapes) {
    Tensor x = random_tensor(sizes, kFloat);
    check_all_dimensions(x);
    Dims back;
    for (int64_t d = x.dim(); d-- > 0;) back.push_back(d);
    check_all_dimensions(x.permute(back));
  }
}

TEST(Reduce, EveryDtype) {
  Tensor x = tensor({3.0, 1.0, 2.0, 5.0, 7.0, 4.0}, kDouble).reshape({2, 3});
  for (Dtype d : {kHalf, kBFloat16, kFloat, kDouble, kByte, kChar, kShort, kInt, kLong}) {
    Tensor t = x.to(d);
    Dtype sum = is_integral(d) ? kLong : d;
    EXPECT_EQ(t.sum(1).dtype(), sum);
    expect_values(t.sum(1), {6, 16});
    expect_values(t.sum(0), {8, 8, 6});
    expect_values(t.prod(1), {6, 140});
    expect_values(t.amax(0), {5, 7, 4});
    EXPECT_EQ(t.amin(1).dtype(), d);
    expect_values(t.amin(1), {1, 4});
    expect_values(t.argmax(1), {0, 1});
    expect_values(t.count_nonzero(1), {3, 3});
    expect_values(t.cumsum(1), {3, 4, 6, 5, 12, 16});
    expect_values(t.sum(0, false, kDouble), {8, 8, 6});
  }
  expect_values(tensor({true, false, true}).sum(), {2});
  Tensor z = tensor({complex128(1, 2), complex128(3, -1)});
  EXPECT_EQ(z.sum().item().to_complex(), complex128(4, 1));
  EXPECT_EQ(z.mean().item().to_complex(), complex128(2, 0.5));
  EXPECT_EQ(z.prod().item().to_complex(), complex128(5, 5));
  EXPECT_NEAR(z.norm().item<double>(), std::sqrt(15.0), 1e-6);
}

TEST(Reduce, SumsOfManyAreExact) {
  // 2^24 ones are past what one f32 counter can hold.
  EXPECT_EQ(ones({(1 << 24) + 5}).sum().item<double>(), (1 << 24) + 4);  // the nearest float
  EXPECT_EQ(ones({(1 << 24) + 5}).sum(0, false, kDouble).item<double>(), (1 << 24) + 5);
  EXPECT_EQ(ones({1 << 20, 3}).sum(0)[1].item<double>(), 1 << 20);
  EXPECT_EQ(ones({40000}, kHalf).mean().item<double>(), 1);
  EXPECT_EQ(full({70000}, 0.5, kBFloat16).sum().item<double>(), 35072);  // 35000 in bfloat16
  Tensor shifted = tensor({1.0, 2.0, 3.0, 4.0}, kDouble).add(1e9);
  EXPECT_EQ(shifted.var(IntArrayRef{0}, true).item<double>(), 5.0 / 3);
}

TEST(Reduce, ResultsDoNotDependOnThreads) {
  Tensor x = random_tensor({1 << 20}, kFloat), y = random_tensor({3000, 300}, kFloat);
  int before = get_num_threads();
  std::vector<std::vector<double>> seen;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<double> all;
    for (const Tensor& t : {x.sum(), x.var(true), x.norm(), y.sum(0), y.sum(1), y.var(0, true),
                            y.softmax(0), y.cumsum(0), y.logsumexp(0)})
      for (double v : values(t)) all.push_back(v);
    seen.push_back(std::move(all));
  }
  set_num_threads(before);
  for (const auto& s : seen) EXPECT_EQ(s, seen[0]);
}

TEST(Reduce, NothingToReduce) {
  Tensor none = zeros({0, 3});
  expect_values(none.sum(0), {0, 0, 0});
  expect_values(none.prod(0), {1, 1, 1});
  expect_values(none.mean(0), {kNan, kNan, kNan});
  expect_values(none.var(0, true), {kNan, kNan, kNan});
  expect_values(none.logsumexp(0), {-kInf, -kInf, -kInf});
  expect_values(none.all(0), {1, 1, 1});
  expect_values(none.any(0), {0, 0, 0});
  EXPECT_EQ(none.sum(1).sizes(), IntArrayRef({0}));
  EXPECT_EQ(none.amax(1).sizes(), IntArrayRef({0}));
  expect_values(ones({1}).var(true), {kNan});
  for (auto* f : {+[](const Tensor& t) { return t.amax(IntArrayRef{0}); },
                  +[](const Tensor& t) { return t.argmin(0); },
                  +[](const Tensor& t) { return std::get<0>(t.max(0)); }})
    EXPECT_EQ(kind_of_error([&] { f(none); }), ErrorKind::kIndex);
}

TEST(Reduce, NanAndInfinity) {
  Tensor x = doubles({1, kNan, 3, 2, kInf, -kInf}).reshape({3, 2});
  expect_values(x.amax(IntArrayRef{0}), {kInf, kNan});
  expect_values(x.argmax(0), {2, 0});
  expect_values(x.argmin(1), {1, 1, 1});
  expect_values(x.nansum(1), {1, 5, kNan});
  expect_values(x.nanmean(1), {1, 2.5, kNan});
  expect_values(std::get<0>(x.min(1)), {kNan, 2, -kInf});
  expect_values(doubles({-kInf, -kInf}).logsumexp(0), {-kInf});
  expect_values(doubles({kInf, 1}).logsumexp(0), {kInf});
  expect_values(doubles({1000, 1000}).logsumexp(0), {1000 + std::log(2)}, 1e-12);
  expect_values(std::get<0>(doubles({1, kNan, 5}).cummax(0)), {1, kNan, kNan});
  expect_values(doubles({1, kNan, 3}).median(), {kNan});
  expect_values(doubles({1, kNan, 3}).nanmedian(), {1});
}

TEST(Reduce, ExtremaAndPlaces) {
  Tensor x = tensor({2, 7, 7, 1, 7, 1}, kFloat).reshape({2, 3});
  auto [high, at] = x.max(1);
  expect_values(high, {7, 7});
  expect_values(at, {1, 1});
  auto [low, where_low] = x.min(0, true);
  EXPECT_EQ(low.sizes(), IntArrayRef({1, 3}));
  expect_values(where_low, {1, 0, 1});
  expect_values(x.argmax(), {1});
  auto [a, b] = x.aminmax();
  expect_values(a, {1});
  expect_values(b, {7});
  // Long rows and columns, with the extremum anywhere.
  for (int64_t place : {0, 31, 4095, 4096, 9000}) {
    Tensor y = zeros({10000, 2});
    y[place].fill_(1);
    expect_values(y.argmax(0), {double(place), double(place)});
    expect_values(y.t().contiguous().argmax(1), {double(place), double(place)});
    expect_values(y.neg().argmin(0), {double(place), double(place)});
  }
}

TEST(Reduce, Norms) {
  Tensor x = doubles({3, -4, 0});
  expect_values(x.norm(), {5});
  expect_values(linalg_vector_norm(x, 1), {7});
  expect_values(linalg_vector_norm(x, 0), {2});
  expect_values(linalg_vector_norm(x, kInf), {4});
  expect_values(linalg_vector_norm(x, -kInf), {0});
  expect_values(linalg_vector_norm(x, 3), {std::cbrt(91.0)}, 1e-14);
  expect_values(doubles({3e200, 4e200}).norm(), {5e200}, 1e-14);
  expect_values(doubles({3e-200, 4e-200}).norm(), {5e-200}, 1e-14);
  expect_values(tensor({3e30, 4e30}, kFloat).norm(), {5e30}, 1e-6);
  expect_values(doubles({kInf, 1}).norm(), {kInf});
}

TEST(Reduce, OrderStatistics) {
  Tensor x = tensor({5, 1, 4, 2, 3, 3}, kFloat).reshape({2, 3});
  expect_values(std::get<0>(x.median(1)), {4, 3});
  expect_values(x.median(), {3});
  expect_values(std::get<0>(tensor({2, 1, 2, 3, 3}, kFloat).mode()), {2});
  expect_values(doubles({0, 1, 2, 3}).quantile(doubles({0, 0.5, 0.9})), {0, 1.5, 2.7}, 1e-14);
  expect_values(doubles({0, 1, 2, 3}).quantile(0.5, 0, false, "lower"), {1});
  expect_values(doubles({0, kNan, 2}).nanquantile(0.5), {1});
}

TEST(Scan, Values) {
  Tensor x = example();
  expect_values(x.cumsum(0), {3, 1, 2, 8, 0, 6});
  expect_values(x.cumprod(1), {3, 3, 6, 5, -5, -20});
  auto [high, at] = x.cummax(1);
  expect_values(high, {3, 3, 3, 5, 5, 5});
  expect_values(at, {0, 0, 0, 0, 0, 0});
  expect_values(std::get<1>(tensor({1, 1, 0, 1}).cummax(0)), {0, 1, 1, 3});
  expect_values(doubles({0, 0, -kInf, kInf}).logcumsumexp(0), {0, std::log(2), std::log(2), kInf},
                1e-15);
  Tensor y = random_tensor({50, 700}, kFloat);
  expect_values(y.t().cumsum(0), values(y.cumsum(1).t()), 1e-6);
  expect_values(y.permute({1, 0}).contiguous().cumsum(0), values(y.cumsum(1).t()), 0);
}

TEST(Reduce, Gradients) {
  Tensor x = random_tensor({3, 4}, kDouble);
  using Fn = Tensor (*)(const Tensor&);
  const Fn functions[] = {
      [](const Tensor& t) { return t.sum(0); },
      [](const Tensor& t) { return t.mean(1, true); },
      [](const Tensor& t) { return t.prod(1); },
      [](const Tensor& t) { return t.prod(); },
      [](const Tensor& t) { return t.var(0, true); },
      [](const Tensor& t) { return t.std(1, false); },
      [](const Tensor& t) { return std::get<1>(var_mean(t, IntArrayRef{1})); },
      [](const Tensor& t) { return t.amax(IntArrayRef{1}); },
      [](const Tensor& t) { return std::get<0>(t.max(0)); },
      [](const Tensor& t) { return std::get<0>(t.median(1)); },
      [](const Tensor& t) { return t.norm(); },
      [](const Tensor& t) { return linalg_vector_norm(t, 3, IntArrayRef{0}); },
      [](const Tensor& t) { return linalg_vector_norm(t, 1, IntArrayRef{1}); },
      [](const Tensor& t) { return linalg_vector_norm(t, kInf, IntArrayRef{1}); },
      [](const Tensor& t) { return t.logsumexp(1); },
      [](const Tensor& t) { return t.cumsum(0); },
      [](const Tensor& t) { return t.cumprod(1); },
      [](const Tensor& t) { return t.logcumsumexp(1); },
      [](const Tensor& t) { return std::get<0>(t.cummin(1)); },
      [](const Tensor& t) { return t.quantile(0.3, 1); },
  };
  int number = 0;
  for (Fn f : functions) {
    SCOPED_TRACE(str("function ", number++));
    expect_gradients(f, x);
  }
}

TEST(Reduce, ProductsWithZerosHaveGradients) {
  for (std::initializer_list<double> v :
       {std::initializer_list<double>{2, 0, 3}, std::initializer_list<double>{0, 5, 0}}) {
    expect_gradients([](const Tensor& t) { return t.prod(0); }, doubles(v));
    expect_gradients([](const Tensor& t) { return t.cumprod(0); }, doubles(v));
  }
}

TEST(Reduce, TiesShareTheGradient) {
  Tensor x = doubles({2, 2, 1}).requires_grad_();
  x.amax().backward();
  expect_values(x.grad(), {0.5, 0.5, 0});
  x.mutable_grad().reset();
  std::get<0>(x.max(0)).backward();
  expect_values(x.grad(), {1, 0, 0});
}

TEST(Reduce, FormsAndErrors) {
  Tensor x = example(), out = empty({0}, kDouble);
  sum_out(out, x, IntArrayRef{1});
  expect_values(out, {6, 8});
  Tensor y = x.clone();
  y.cumsum_(1);
  expect_values(y, {3, 4, 6, 5, 4, 8});
  EXPECT_EQ(x.sum(IntArrayRef{0, 1}, true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(kind_of_error([&] { x.sum(2); }), ErrorKind::kIndex);
  EXPECT_EQ(kind_of_error([&] { x.sum(IntArrayRef{0, 0}); }), ErrorKind::kValue);
  EXPECT_EQ(kind_of_error([&] { x.to(kLong).mean(); }), ErrorKind::kType);
  EXPECT_EQ(kind_of_error([&] { tensor({complex64(1)}).amax(); }), ErrorKind::kType);
}

}  // namespace
}  // namespace fornax
