// Factories: values, dtypes, layouts, errors.
#include <gtest/gtest.h>

#include <vector>

#include "fornax/fornax.h"

namespace fornax {
namespace {

std::vector<double> values(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  const double* p = d.data_ptr<double>();
  return std::vector<double>(p, p + d.numel());
}
using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;
Sizes sizes(const Tensor& t) { return Sizes(t.sizes().begin(), t.sizes().end()); }

TEST(Factory, TensorsFromLists) {
  Tensor a = tensor({1, 2, 3});
  EXPECT_EQ(a.dtype(), kLong);
  EXPECT_EQ(values(a), Values({1, 2, 3}));
  Tensor b = tensor({{1.5, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  EXPECT_EQ(b.dtype(), kFloat);
  EXPECT_EQ(sizes(b), Sizes({3, 2}));
  EXPECT_EQ(values(b), Values({1.5, 2, 3, 4, 5, 6}));
  Tensor c = tensor({{{1, 2}}, {{3, 4}}});
  EXPECT_EQ(sizes(c), Sizes({2, 1, 2}));
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor({1.0, 2.0}, kDouble).dtype(), kDouble);
  EXPECT_EQ(tensor(std::vector<float>{1, 2}).dtype(), kFloat);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(tensor(3).dtype(), kLong);
  EXPECT_EQ(tensor(3.5).dtype(), kFloat);
  EXPECT_EQ(tensor(complex128(1, 2)).dtype(), kComplexFloat);
  EXPECT_TRUE(tensor({1.0}, requires_grad()).requires_grad());
  EXPECT_THROW(tensor({{1, 2}, {3}}), Error);
}

TEST(Factory, Arange) {
  EXPECT_EQ(values(arange(4)), Values({0, 1, 2, 3}));
  EXPECT_EQ(arange(4).dtype(), kLong);
  EXPECT_EQ(values(arange(1, 2, 0.25)), Values({1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(arange(1, 2, 0.25).dtype(), kFloat);
  EXPECT_EQ(values(arange(5, 0, -2)), Values({5, 3, 1}));
  EXPECT_EQ(values(arange(3, kHalf)), Values({0, 1, 2}));
  EXPECT_EQ(arange(0).numel(), 0);
  EXPECT_THROW(arange(0, 3, -1), Error);
  EXPECT_THROW(arange(0, 3, 0), Error);
}

TEST(Factory, Spaced) {
  EXPECT_EQ(values(linspace(0, 1, 5)), Values({0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(values(linspace(-3, 9, 1)), Values({-3}));
  EXPECT_EQ(linspace(0, 1, 0).numel(), 0);
  EXPECT_EQ(values(linspace(0, 10, 5, kLong)), Values({0, 2, 5, 7, 10}));
  EXPECT_EQ(values(logspace(0, 4, 3, 2, kDouble)), Values({1, 4, 16}));
  // Both ends are exact, whatever the distance.
  Tensor t = linspace(0.1, 0.7, 7, kDouble);
  EXPECT_EQ(values(t).front(), 0.1);
  EXPECT_EQ(values(t).back(), 0.7);
  EXPECT_THROW(linspace(0, 1, -1), Error);
}

TEST(Factory, EyeAndTriangles) {
  EXPECT_EQ(values(eye(2)), Values({1, 0, 0, 1}));
  EXPECT_EQ(values(eye(2, 3, kLong)), Values({1, 0, 0, 0, 1, 0}));
  Tensor a = arange(1, 10).view({3, 3});
  EXPECT_EQ(values(a.tril()), Values({1, 0, 0, 4, 5, 0, 7, 8, 9}));
  EXPECT_EQ(values(a.triu(1)), Values({0, 2, 3, 0, 0, 6, 0, 0, 0}));
  EXPECT_EQ(values(a.tril(-3)), Values(9, 0));
  EXPECT_EQ(values(a.triu(INT64_MIN / 2)), values(a));
  Tensor b = a.clone();
  b.triu_();
  EXPECT_EQ(values(b), Values({1, 2, 3, 0, 5, 6, 0, 0, 9}));
  EXPECT_EQ(values(tril_indices(2, 3, 1)), Values({0, 0, 1, 1, 1, 0, 1, 0, 1, 2}));
  EXPECT_EQ(values(triu_indices(2, 2)), Values({0, 0, 1, 0, 1, 1}));
  Tensor x = ones({2, 2}, kDouble).requires_grad_();
  (x.tril() * x).sum().backward();
  EXPECT_EQ(values(x.grad()), Values({2, 0, 2, 2}));
  EXPECT_THROW(ones({3}).tril(), Error);
}

TEST(Factory, LikeAndNew) {
  Tensor a = ones({2, 3}, kHalf);
  EXPECT_EQ(zeros_like(a).dtype(), kHalf);
  EXPECT_EQ(full_like(a, 7, kInt).dtype(), kInt);
  EXPECT_EQ(values(full_like(a, 7)), Values(6, 7));
  EXPECT_EQ(a.new_zeros({4}).dtype(), kHalf);
  EXPECT_EQ(values(a.new_full({2}, 5, kLong)), Values({5, 5}));
  EXPECT_EQ(values(a.new_ones({2})), Values({1, 1}));
  Tensor s = empty_strided({2, 2}, {1, 2});
  EXPECT_EQ(s.stride(1), 2);
  Tensor p = empty_permuted({2, 3, 4}, {2, 0, 1});
  EXPECT_EQ(Sizes(p.strides().begin(), p.strides().end()), Sizes({3, 1, 6}));
  EXPECT_EQ(scalar_tensor(3).dtype(), kFloat);
  EXPECT_EQ(full({2}, 3).dtype(), kLong);
  Tensor z = ones({3});
  z.zero_();
  EXPECT_EQ(values(z), Values(3, 0));
}

}  // namespace
}  // namespace fornax
