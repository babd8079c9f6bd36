// What operator tests compare with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "fornax/fornax.h"

namespace fornax::check {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline std::vector<double> values(const Tensor& t) {
  Tensor d = t.detach().to(kDouble).contiguous();
  const double* p = d.data_ptr<double>();
  return std::vector<double>(p, p + d.numel());
}

// Equal, or within tolerance * max(1, |want|).
inline void expect_values(const Tensor& t, const std::vector<double>& want, double tolerance = 0) {
  std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    else if (std::isinf(want[i]) || tolerance == 0)
      EXPECT_EQ(got[i], want[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << "element " << i;
    if (testing::Test::HasFailure()) return;
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

inline Tensor doubles(std::initializer_list<double> v) { return tensor(v, kDouble); }

// Normal numbers, the same in every run.
inline Tensor random_tensor(IntArrayRef sizes, Dtype dtype) {
  static std::mt19937 engine(20240229);
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  std::vector<double> v(static_cast<size_t>(n));
  for (double& x : v) x = std::normal_distribution<double>()(engine);
  return tensor(v, dtype).reshape(sizes);
}

// Gradient of the sum of weights * f(x) against central differences; then the gradient of a
// function of that gradient, if `twice`.
template <class F>
void expect_gradients(F f, const Tensor& x0, bool twice = true) {
  Tensor weights = random_tensor(f(x0).sizes(), kDouble);
  auto loss = [&](const Tensor& x) { return f(x).mul(weights).sum(); };
  auto gradient = [&](const Tensor& x, bool create_graph) {
    return autograd::grad({loss(x)}, {x}, {}, std::nullopt, create_graph)[0];
  };
  Tensor spread = random_tensor(x0.sizes(), kDouble);
  auto second = [&](const Tensor& x) { return gradient(x, true).mul(spread).sum(); };
  auto compare = [&](auto function, const std::vector<double>& got, const char* what) {
    std::vector<double> v = values(x0);
    constexpr double kStep = 1e-6;
    for (size_t i = 0; i < v.size(); ++i) {
      auto at = [&](double shift) {
        std::vector<double> moved = v;
        moved[i] += shift;
        return function(tensor(moved, kDouble).reshape(x0.sizes()).requires_grad_())
            .template item<double>();
      };
      double want = (at(kStep) - at(-kStep)) / (2 * kStep);
      EXPECT_NEAR(got[i], want, 1e-6 * std::max(1.0, std::abs(want))) << what << ' ' << i;
    }
  };
  Tensor x = x0.detach().clone().requires_grad_();
  compare(loss, values(gradient(x, false)), "gradient");
  if (!twice) return;
  Tensor s = second(x);
  std::vector<double> got(size_t(x.numel()), 0.0);
  if (s.requires_grad()) {
    Tensor g = autograd::grad({s}, {x}, {}, std::nullopt, false, true)[0];
    if (g.defined()) got = values(g);
  }
  compare(second, got, "second gradient");
}

}  // namespace fornax::check
