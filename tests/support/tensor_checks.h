// Small tensors in, plain numbers out; comparisons and numeric gradients.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "fornax/autograd/autograd.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::test {

inline Tensor make(IntArrayRef sizes, const std::vector<double>& values,
                   Dtype dtype = Dtype::kF64) {
  return tensor_of(values.data(), Dtype::kF64, sizes, TensorOptions(Dtype::kF64)).to(dtype);
}

// Numbers without a pattern that a test could hit by accident; the same for the same seed.
inline Tensor noise(IntArrayRef sizes, int seed, Dtype dtype = Dtype::kF64) {
  std::vector<double> v(size_t(checked_numel(sizes)));
  for (size_t i = 0; i < v.size(); ++i) {
    double k = double(i);
    v[i] = std::sin(k * 1.7 + seed) + 0.3 * std::cos(k * k + seed);
  }
  return make(sizes, v, dtype);
}

// Elements in row-major order; real parts of complex ones.
inline std::vector<double> values(const Tensor& t) {
  if (!t.defined()) return {};
  Tensor real_part = t.is_complex() ? real(t) : t;
  Tensor flat = real_part.detach().to(Dtype::kF64).contiguous();
  const double* p = static_cast<const double*>(flat.data_ptr());
  return std::vector<double>(p, p + flat.numel());
}

inline ::testing::AssertionResult near(const std::vector<double>& a, const std::vector<double>& b,
                                       double tolerance = 1e-9) {
  auto show = [](const std::vector<double>& v) {
    std::string s = "{";
    for (size_t i = 0; i < v.size() && i < 24; ++i) s += (i ? ", " : "") + std::to_string(v[i]);
    return s + (v.size() > 24 ? ", ...}" : "}");
  };
  bool ok = a.size() == b.size();
  for (size_t i = 0; ok && i < a.size(); ++i) {
    bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    ok = same || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i]));
  }
  if (ok) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << show(a) << " is not near " << show(b);
}
inline ::testing::AssertionResult near(const Tensor& a, const Tensor& b, double tolerance = 1e-9) {
  if (a.sizes() != b.sizes())
    return ::testing::AssertionFailure()
           << str(a.sizes()) << " are other sizes than " << str(b.sizes());
  return near(values(a), values(b), tolerance);
}
inline ::testing::AssertionResult near(const Tensor& a, const std::vector<double>& b,
                                       double tolerance = 1e-9) {
  return near(values(a), b, tolerance);
}

// The message of the Error that `f` throws; "" if it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
#define EXPECT_ERROR(statement, part)                                                 \
  do {                                                                                \
    std::string message = ::fornax::test::error_of([&] { statement; });               \
    EXPECT_NE(message.find(part), std::string::npos) << "got: \"" << message << "\""; \
  } while (0)

using Program = std::function<Tensor(const std::vector<Tensor>&)>;

// Central differences of sum(f(xs)) along every element of xs[k]. xs are f64 and contiguous.
inline std::vector<double> numeric_gradient(const Program& f, const std::vector<Tensor>& xs,
                                            size_t k, double h = 1e-5) {
  std::vector<double> result;
  std::vector<Tensor> plain;
  for (const Tensor& x : xs) plain.push_back(x.detach().clone());
  double* p = static_cast<double*>(plain[k].data_ptr());
  for (int64_t i = 0; i < plain[k].numel(); ++i) {
    double kept = p[i];
    p[i] = kept + h;
    double above = f(plain).sum().item<double>();
    p[i] = kept - h;
    double below = f(plain).sum().item<double>();
    p[i] = kept;
    result.push_back((above - below) / (2 * h));
  }
  return result;
}

// Gradients of sum(f * weights) against differences; with `second`, the gradients' gradients too.
inline ::testing::AssertionResult gradients_match(const Program& f,
                                                  const std::vector<Tensor>& inputs,
                                                  bool second = true, double tolerance = 1e-6) {
  auto weighted = [&f](const std::vector<Tensor>& x) {
    Tensor y = f(x);
    return (y * noise(y.sizes(), 5)).sum();
  };
  std::vector<Tensor> xs;
  for (const Tensor& x : inputs) xs.push_back(x.detach().clone().requires_grad_());
  std::vector<Tensor> g = autograd::grad({weighted(xs)}, xs, {}, {}, second, true);
  for (size_t k = 0; k < xs.size(); ++k) {
    std::vector<double> want = numeric_gradient(weighted, xs, k);
    std::vector<double> got = g[k].defined() ? values(g[k]) : std::vector<double>(want.size(), 0.0);
    auto ok = near(got, want, tolerance);
    if (!ok) return ok << " (gradient of input " << k << (second ? ")" : ", second derivative)");
  }
  if (!second) return ::testing::AssertionSuccess();
  for (size_t k = 0; k < xs.size(); ++k) {
    auto gradient = [&, k](const std::vector<Tensor>& x) {
      std::vector<Tensor> own;
      for (const Tensor& t : x) own.push_back(t.requires_grad() ? t : t.detach().requires_grad_());
      Tensor r = autograd::grad({weighted(own)}, own, {}, {}, true, true)[k];
      // The zero keeps constant gradients (of linear functions) differentiable.
      return r.defined() ? r + own[k] * 0.0 : own[k] * 0.0;
    };
    auto ok = gradients_match(gradient, inputs, false, tolerance);
    if (!ok) return ok;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace fornax::test
