// Real derivatives: against central differences of the reference interpreter, and against exact
// values at kinks, ties, bounds and limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fornax/base/error.h"
#include "fornax/expr/functions.h"
#include "fornax/expr/interpret.h"

namespace fornax::expr {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Inputs = std::vector<Expr>;
using Body = Expr (*)(const Inputs& x);
using Point = std::vector<double>;

double value_at(Expr e, const Point& point) {
  const std::vector<Value> values(point.begin(), point.end());
  return eval_real(e, values);
}

// Richardson's extrapolation of two central differences: error O(h^4).
double difference(Expr e, Point point, size_t i) {
  const double x = point[i];
  const double h = 1e-3 * std::max(0.1, std::fabs(x));
  const auto central = [&](double step) {
    point[i] = x + step;
    const double above = value_at(e, point);
    point[i] = x - step;
    return (above - value_at(e, point)) / (2 * step);
  };
  return (4 * central(h / 2) - central(h)) / 3;
}

Inputs real_inputs(size_t count) {
  Inputs x;
  for (size_t i = 0; i < count; ++i) x.push_back(input(int(i), Kind::kReal));
  return x;
}

// The largest error, relative to 1 + |value|, of the derivatives of `e` by every input.
double worst_error(Expr e, const Inputs& x, const Point& point) {
  double worst = 0;
  const std::vector<Expr> gradient = vjp({e}, {constant(1.0)}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = difference(e, point, i);
    const double got = value_at(gradient[i], point);
    const double error = std::fabs(got - expected) / (1 + std::fabs(expected));
    worst = std::isnan(error) ? kInfinity : std::max(worst, error);
  }
  return worst;
}

struct Errors {
  double first = 0;
  double second = 0;
};

Errors errors_of(Body body, const Point& point) {
  Arena arena;
  Scope scope(arena);
  const Inputs x = real_inputs(point.size());
  const Expr e = body(x);
  Errors errors;
  errors.first = worst_error(e, x, point);
  for (Expr g : vjp({e}, {constant(1.0)}, x)) {
    if (!g.empty()) errors.second = std::max(errors.second, worst_error(g, x, point));
  }
  return errors;
}

constexpr double kTolerance = 1e-8;

struct Smooth {
  const char* name;
  Body body;
  std::vector<Point> points;
};

#define FX_BODY(...) [](const Inputs& x) -> Expr { return __VA_ARGS__; }

const std::vector<Smooth>& smooth_bodies() {
  static const std::vector<Smooth> bodies = {
      {"add", FX_BODY(x[0] + x[1]), {{1.5, -2}}},
      {"sub", FX_BODY(x[0] - x[1]), {{1.5, -2}}},
      {"mul", FX_BODY(x[0] * x[1]), {{1.5, -2}, {0, 3}}},
      {"div", FX_BODY(x[0] / x[1]), {{1.5, -2}, {0, 3}}},
      {"neg", FX_BODY(-x[0]), {{1.5}}},
      {"abs", FX_BODY(abs(x[0]) * x[0]), {{1.5}, {-0.3}}},
      {"sign", FX_BODY(sign(x[0]) * x[0]), {{1.5}, {-0.3}}},
      {"min", FX_BODY(min(x[0] * x[0], x[1])), {{1.5, 2}, {1, 2}}},
      {"max", FX_BODY(max(x[0] * x[0], x[1])), {{1.5, 2}, {1, 2}}},
      {"fmod", FX_BODY(fmod(x[0], x[1])), {{7.3, 2.1}, {-7.3, 2.1}}},
      {"mod", FX_BODY(mod(x[0], x[1])), {{7.3, 2.1}, {-7.3, 2.1}, {7.3, -2.1}}},
      {"floor", FX_BODY(floor(x[0]) * x[0]), {{1.5}, {-0.3}}},
      {"ceil", FX_BODY(ceil(x[0]) * x[0]), {{1.4}, {-0.3}}},
      {"round", FX_BODY(round(x[0]) * x[0]), {{1.4}, {-0.7}}},
      {"trunc", FX_BODY(trunc(x[0]) * x[0]), {{1.4}, {-1.7}}},
      {"pow", FX_BODY(pow(x[0], x[1])), {{1.5, -2}, {0.3, 2.5}, {2, 0}, {1, 1}}},
      {"pow3", FX_BODY(pow(x[0], 3.0)), {{1.5}, {-2}}},
      {"pow2.5", FX_BODY(pow(x[0], 2.5)), {{1.5}}},
      {"sqrt", FX_BODY(sqrt(x[0])), {{0.7}, {30}}},
      {"exp", FX_BODY(exp(x[0])), {{0.7}, {-3}}},
      {"exp2", FX_BODY(exp2(x[0])), {{0.7}, {-3}}},
      {"expm1", FX_BODY(expm1(x[0])), {{0.7}, {0}, {-3}}},
      {"log", FX_BODY(log(x[0])), {{0.7}, {30}}},
      {"log1p", FX_BODY(log1p(x[0])), {{0.7}, {0}, {-0.5}}},
      {"log2", FX_BODY(log2(x[0])), {{0.7}, {30}}},
      {"log10", FX_BODY(log10(x[0])), {{0.7}, {30}}},
      {"sin", FX_BODY(sin(x[0])), {{0.7}, {-4}}},
      {"cos", FX_BODY(cos(x[0])), {{0.7}, {-4}}},
      {"tan", FX_BODY(tan(x[0])), {{0.7}, {-4}}},
      {"sinh", FX_BODY(sinh(x[0])), {{0.7}, {-4}}},
      {"cosh", FX_BODY(cosh(x[0])), {{0.7}, {-4}}},
      {"tanh", FX_BODY(tanh(x[0])), {{0.7}, {-2}}},
      {"asin", FX_BODY(asin(x[0])), {{0.7}, {-0.2}}},
      {"acos", FX_BODY(acos(x[0])), {{0.7}, {-0.2}}},
      {"atan", FX_BODY(atan(x[0])), {{0.7}, {-4}}},
      {"asinh", FX_BODY(asinh(x[0])), {{0.7}, {-4}}},
      {"acosh", FX_BODY(acosh(x[0])), {{1.7}, {4}}},
      {"atanh", FX_BODY(atanh(x[0])), {{0.7}, {-0.2}}},
      {"atan2", FX_BODY(atan2(x[0], x[1])), {{0.7, 1.2}, {-0.7, -1.2}, {2, 0}}},
      {"hypot", FX_BODY(hypot(x[0], x[1])), {{0.7, 1.2}, {-0.7, 0}}},
      {"erf", FX_BODY(erf(x[0])), {{0.7}, {-1.4}}},
      {"erfc", FX_BODY(erfc(x[0])), {{0.7}, {-1.4}}},
      {"copysign", FX_BODY(copysign(x[0], x[1])), {{0.7, -1.4}, {-0.7, -1.4}}},
      {"where", FX_BODY(where(x[0] < x[1], x[0] * x[0], sin(x[1]))), {{0.7, 1}, {0.7, -1}}},
      {"parts", FX_BODY(abs(complex(x[0], x[1]) * complex(x[1], 2.0))), {{0.7, 1}}},
      {"lgamma", FX_BODY(call("lgamma", x[0])), {{0.7}, {5.2}, {-1.4}}},
      {"digamma", FX_BODY(call("digamma", x[0])), {{0.7}, {5.2}, {-1.4}}},
      {"polygamma", FX_BODY(call("polygamma", 2.0, x[0])), {{0.7}, {5.2}}},
      {"zeta", FX_BODY(call("zeta", 2.5, x[0])), {{0.7}, {5.2}}},
      {"igamma", FX_BODY(call("igamma", 2.5, x[0])), {{0.7}, {5.2}}},
      {"igammac", FX_BODY(call("igammac", 2.5, x[0])), {{0.7}, {5.2}}},
      {"erfinv", FX_BODY(call("erfinv", x[0])), {{0.7}, {-0.3}}},
      {"erfcx", FX_BODY(call("erfcx", x[0])), {{0.7}, {-1.3}, {7.5}, {9}, {20}}},
      {"ndtri", FX_BODY(call("ndtri", x[0])), {{0.7}, {0.2}}},
      {"log_ndtr", FX_BODY(call("log_ndtr", x[0])), {{0.7}, {-3}}},
      {"i0", FX_BODY(call("i0", x[0])), {{0.7}, {-3}}},
      {"i1", FX_BODY(call("i1", x[0])), {{0.7}, {-3}}},
      {"i0e", FX_BODY(call("i0e", x[0])), {{0.7}, {-3}}},
      {"i1e", FX_BODY(call("i1e", x[0])), {{0.7}, {-3}}},
      {"k0", FX_BODY(call("k0", x[0])), {{0.7}, {3}}},
      {"k1", FX_BODY(call("k1", x[0])), {{0.7}, {3}}},
      {"k0e", FX_BODY(call("k0e", x[0])), {{0.7}, {3}}},
      {"k1e", FX_BODY(call("k1e", x[0])), {{0.7}, {3}}},
      {"j0", FX_BODY(call("j0", x[0])), {{0.7}, {-3}}},
      {"j1", FX_BODY(call("j1", x[0])), {{0.7}, {-3}}},
      {"y0", FX_BODY(call("y0", x[0])), {{0.7}, {3}}},
      {"y1", FX_BODY(call("y1", x[0])), {{0.7}, {3}}},
      {"frexp", FX_BODY(call("frexp_mantissa", x[0]) * x[0]), {{0.7}, {13}}},
      {"reciprocal", FX_BODY(reciprocal(x[0])), {{0.7}, {-3}}},
      {"rsqrt", FX_BODY(rsqrt(x[0])), {{0.7}, {3}}},
      {"sinc", FX_BODY(sinc(x[0])), {{0.7}, {0.1}, {0.0}, {-1.3}}},
      {"logit", FX_BODY(logit(x[0])), {{0.7}, {0.2}}},
      {"logaddexp", FX_BODY(logaddexp(x[0], x[1])), {{0.7, 0.7}, {-2, 1}, {3, 1}}},
      {"logaddexp2", FX_BODY(logaddexp2(x[0], x[1])), {{0.7, 0.7}, {-2, 1}, {3, 1}}},
      {"xlogy", FX_BODY(xlogy(x[0], x[1])), {{0.7, 0.7}, {0, 2}}},
      {"xlog1py", FX_BODY(xlog1py(x[0], x[1])), {{0.7, 0.7}, {0, 2}}},
      {"entr", FX_BODY(entr(x[0])), {{0.7}, {3}}},
      {"ndtr", FX_BODY(ndtr(x[0])), {{0.7}, {-3}}},
      {"spherical_j0", FX_BODY(spherical_j0(x[0])), {{0.2}, {3}, {0.0}}},
      {"mvlgamma", FX_BODY(mvlgamma(x[0], 3)), {{2.7}}},
      {"lerp", FX_BODY(lerp(x[0], x[1], x[2])), {{0.7, 2, 0.3}, {0.7, 2, 0.8}}},
      {"sigmoid", FX_BODY(sigmoid(x[0])), {{0.7}, {-5}, {0}}},
      {"log_sigmoid", FX_BODY(log_sigmoid(x[0])), {{0.7}, {-5}, {0}}},
      {"softplus", FX_BODY(softplus(x[0])), {{0.7}, {-5}, {0}}},
      {"softplus3", FX_BODY(softplus(x[0], 1.5, 20.0)), {{0.7}, {-5}, {0}, {17}}},
      {"gelu", FX_BODY(gelu(x[0], false)), {{0.7}, {-2}, {0}}},
      {"gelu_tanh", FX_BODY(gelu(x[0], true)), {{0.7}, {-2}, {0}}},
      {"silu", FX_BODY(silu(x[0])), {{0.7}, {-2}, {0}}},
      {"mish", FX_BODY(mish(x[0])), {{0.7}, {-2}, {0}}},
      {"elu", FX_BODY(elu(x[0], 1.3, 1.1, 0.7)), {{0.7}, {-2}}},
      {"selu", FX_BODY(selu(x[0])), {{0.7}, {-2}}},
      {"celu", FX_BODY(celu(x[0], 1.4)), {{0.7}, {-2}}},
      {"hardswish", FX_BODY(hardswish(x[0])), {{0.7}, {-4}, {4}}},
      {"softsign", FX_BODY(softsign(x[0])), {{0.7}, {-4}}},
      {"tanhshrink", FX_BODY(tanhshrink(x[0])), {{0.7}, {-4}, {1e-3}}},
      {"bce", FX_BODY(binary_cross_entropy(x[0], x[1], x[2])), {{0.7, 0.3, 2}}},
      {"bce_logits",
       FX_BODY(binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3])),
       {{0.7, 0.3, 2, 3}, {0, 1, 1, 1}}},
      {"smooth_l1", FX_BODY(smooth_l1(x[0], x[1], 0.5)), {{0.7, 0.4}, {2, -1}}},
      {"huber", FX_BODY(huber(x[0], x[1], 0.5)), {{0.7, 0.4}, {2, -1}}},
  };
  return bodies;
}

TEST(Derivative, FirstAndSecondMatchDifferences) {
  for (const Smooth& s : smooth_bodies()) {
    for (const Point& point : s.points) {
      const Errors errors = errors_of(s.body, point);
      EXPECT_LT(errors.first, kTolerance) << s.name << " at " << point[0];
      EXPECT_LT(errors.second, kTolerance) << s.name << ", second order, at " << point[0];
    }
  }
}

TEST(Derivative, EveryPrimitiveIsTested) {
  std::vector<bool> seen(size_t(Prim::kCall) + 1);
  for (const Smooth& s : smooth_bodies()) {
    Arena arena;
    Scope scope(arena);
    for (Expr e : topological_order(s.body(real_inputs(4)))) seen[size_t(e.prim())] = true;
  }
  for (Prim prim : {Prim::kNot, Prim::kEq, Prim::kLe, Prim::kAnd, Prim::kOr, Prim::kXor, Prim::kShl,
                    Prim::kShr, Prim::kCast, Prim::kReal, Prim::kImag, Prim::kConj}) {
    seen[size_t(prim)] = true;  // no real derivative; the complex ones have a test of their own
  }
  for (size_t prim = 0; prim < seen.size(); ++prim) {
    EXPECT_TRUE(seen[prim]) << name_of(Prim(prim));
  }
}

// The check itself must notice what it is for.
TEST(Derivative, PlantedFaultsAreFound) {
  const Body slightly_off = FX_BODY(with_grad(exp(x[0]), {{x[0], exp(x[0]) * 1.001}}));
  EXPECT_GT(errors_of(slightly_off, {0.7}).first, 1e-5);
  const Body wrong_sign = FX_BODY(with_grad(cos(x[0]), {{x[0], sin(x[0])}}));
  EXPECT_GT(errors_of(wrong_sign, {0.7}).first, 0.1);
  const Body kinked = FX_BODY(max(x[0], 0.0) + log1p(exp(-abs(x[0]))));  // softplus without hand
  EXPECT_LT(errors_of(kinked, {0.0}).first, kTolerance);
  EXPECT_GT(errors_of(kinked, {0.0}).second, 0.1);
  const Body naive = FX_BODY(exp(-x[0]) / (exp(-x[0]) + 1.0));
  EXPECT_EQ(errors_of(naive, {-1000.0}).first, kInfinity);  // inf / inf
  const Body wrong_second =
      FX_BODY(with_grad(sin(x[0]), {{x[0], with_grad(cos(x[0]), {{x[0], sin(x[0])}})}}));
  EXPECT_LT(errors_of(wrong_second, {0.7}).first, kTolerance);
  EXPECT_GT(errors_of(wrong_second, {0.7}).second, 0.1);
}

struct Exact {
  const char* name;
  Body body;
  Point point;
  Point first;                 // by each input
  std::vector<double> second;  // d2 / dx0 dxi, as far as given
};

const std::vector<Exact>& exact_values() {
  constexpr double kLog2 = 0.6931471805599453;
  static const std::vector<Exact> values = {
      {"abs", FX_BODY(abs(x[0])), {0}, {0}, {}},
      {"sign", FX_BODY(sign(x[0])), {0}, {0}, {}},
      {"relu", FX_BODY(relu(x[0])), {0}, {0}, {}},
      {"relu6", FX_BODY(hardtanh(x[0], 0.0, 6.0)), {6}, {0}, {}},
      {"relu6", FX_BODY(hardtanh(x[0], 0.0, 6.0)), {0}, {0}, {}},
      {"maximum", FX_BODY(max(x[0], x[1])), {2, 2}, {0.5, 0.5}, {}},
      {"minimum", FX_BODY(min(x[0], x[1])), {2, 2}, {0.5, 0.5}, {}},
      {"maximum", FX_BODY(max(x[0], x[1])), {kNan, 2}, {1, 1}, {}},
      {"fmax", FX_BODY(fmax(x[0], x[1])), {2, 2}, {0.5, 0.5}, {}},
      {"fmax", FX_BODY(fmax(x[0], x[1])), {2, kNan}, {1, 0}, {}},
      {"fmin", FX_BODY(fmin(x[0], x[1])), {kNan, 2}, {0, 1}, {}},
      {"clamp tensor", FX_BODY(clamp(x[0], x[1], x[2])), {1, 1, 3}, {0.5, 0.5, 0}, {}},
      {"clamp tensor", FX_BODY(clamp(x[0], x[1], x[2])), {3, 1, 3}, {0.5, 0, 0.5}, {}},
      {"clamp", FX_BODY(clamp_numbers(x[0], 1.0, 3.0)), {1}, {1}, {}},
      {"clamp", FX_BODY(clamp_numbers(x[0], 1.0, 3.0)), {3}, {1}, {}},
      {"clamp", FX_BODY(clamp_numbers(x[0], 1.0, 3.0)), {4}, {0}, {}},
      {"clamp", FX_BODY(clamp_numbers(x[0], 1.0, {})), {0}, {0}, {}},
      {"clamp lo > hi", FX_BODY(clamp_numbers(x[0], 3.0, 1.0)), {2}, {0}, {}},
      {"hardtanh", FX_BODY(hardtanh(x[0], -1.0, 1.0)), {1}, {0}, {}},
      {"leaky_relu", FX_BODY(leaky_relu(x[0], 0.1)), {0}, {0.1}, {}},
      {"hardsigmoid", FX_BODY(hardsigmoid(x[0])), {3}, {0}, {}},
      {"hardsigmoid", FX_BODY(hardsigmoid(x[0])), {-3}, {0}, {}},
      {"hardswish", FX_BODY(hardswish(x[0])), {-3}, {0}, {}},
      {"hardswish", FX_BODY(hardswish(x[0])), {3}, {1}, {}},
      {"hardshrink", FX_BODY(hardshrink(x[0], 0.5)), {0.5}, {0}, {}},
      {"softshrink", FX_BODY(softshrink(x[0], 0.5)), {0.5}, {0}, {}},
      {"threshold", FX_BODY(threshold(x[0], 1.0, 5.0)), {1}, {0}, {}},
      {"elu", FX_BODY(elu(x[0], 2.0, 1.0, 1.0)), {0}, {2}, {}},
      {"selu", FX_BODY(selu(x[0])), {0}, {1.7580993408473766}, {}},
      {"prelu", FX_BODY(where(x[0] > 0.0, x[0], x[1] * x[0])), {0, 0.25}, {0.25, 0}, {}},
      {"sqrt", FX_BODY(sqrt(x[0])), {0}, {kInfinity}, {}},
      {"rsqrt", FX_BODY(rsqrt(x[0])), {0}, {-kInfinity}, {}},
      {"asin", FX_BODY(asin(x[0])), {1}, {kInfinity}, {}},
      {"acosh", FX_BODY(acosh(x[0])), {1}, {kInfinity}, {}},
      {"acosh", FX_BODY(acosh(x[0])), {-2}, {kNan}, {}},
      {"pow", FX_BODY(pow(x[0], x[1])), {0, 0}, {0, 0}, {}},
      {"pow", FX_BODY(pow(x[0], x[1])), {0, 2}, {0, 0}, {}},
      {"pow", FX_BODY(pow(x[0], x[1])), {0, 1}, {1, 0}, {}},
      {"pow", FX_BODY(pow(x[0], x[1])), {-2, 3}, {12, kNan}, {}},
      {"pow", FX_BODY(pow(x[0], x[1])), {2, 0}, {0, kLog2}, {0, 0.5}},
      {"xlogy", FX_BODY(xlogy(x[0], x[1])), {0, 0}, {0, kNan}, {}},
      {"xlogy", FX_BODY(xlogy(x[0], x[1])), {0, 2}, {kLog2, 0}, {0, 0.5}},
      {"xlog1py", FX_BODY(xlog1py(x[0], x[1])), {0, -1}, {0, kNan}, {}},
      {"entr", FX_BODY(entr(x[0])), {0}, {kInfinity}, {}},
      {"atan2", FX_BODY(atan2(x[0], x[1])), {0, 0}, {0, 0}, {}},
      {"hypot", FX_BODY(hypot(x[0], x[1])), {0, 0}, {0, 0}, {}},
      {"copysign", FX_BODY(copysign(x[0], x[1])), {0, -1}, {0, 0}, {}},
      {"copysign", FX_BODY(copysign(x[0], x[1])), {2, -1}, {-1, 0}, {}},
      {"sinc", FX_BODY(sinc(x[0])), {0}, {0}, {-3.289868133696453}},
      {"fmod", FX_BODY(fmod(x[0], x[1])), {7, -2}, {1, 3}, {}},
      {"remainder", FX_BODY(mod(x[0], x[1])), {7, -2}, {1, 4}, {}},
      {"nan_to_num", FX_BODY(nan_to_num(x[0], 0.0, 9.0, -9.0)), {kNan}, {0}, {}},
      {"nan_to_num", FX_BODY(nan_to_num(x[0], 0.0, 9.0, -9.0)), {kInfinity}, {0}, {}},
      {"nan_to_num", FX_BODY(nan_to_num(x[0], 0.0, 9.0, -9.0)), {2}, {1}, {}},
      {"sigmoid", FX_BODY(sigmoid(x[0])), {-1000}, {0}, {0}},
      {"sigmoid", FX_BODY(sigmoid(x[0])), {1000}, {0}, {0}},
      {"sigmoid", FX_BODY(sigmoid(x[0])), {0}, {0.25}, {0}},
      {"log_sigmoid", FX_BODY(log_sigmoid(x[0])), {0}, {0.5}, {-0.25}},
      {"log_sigmoid", FX_BODY(log_sigmoid(x[0])), {-1000}, {1}, {0}},
      {"softplus", FX_BODY(softplus(x[0], 1.0, 20.0)), {0}, {0.5}, {0.25}},
      {"softplus", FX_BODY(softplus(x[0], 1.0, 20.0)), {25}, {1}, {0}},
      {"softplus", FX_BODY(softplus(x[0], 1.0, 20.0)), {1000}, {1}, {0}},
      {"mish", FX_BODY(mish(x[0])), {-1000}, {0}, {0}},
      {"silu", FX_BODY(silu(x[0])), {-1000}, {0}, {0}},
      {"gelu", FX_BODY(gelu(x[0], false)), {-1000}, {0}, {0}},
      {"gelu", FX_BODY(gelu(x[0], false)), {0}, {0.5}, {0.7978845608028654}},
      {"logaddexp", FX_BODY(logaddexp(x[0], x[1])), {1, 1}, {0.5, 0.5}, {0.25, -0.25}},
      {"logaddexp", FX_BODY(logaddexp(x[0], x[1])), {1000, -1000}, {1, 0}, {0, 0}},
      {"logaddexp2",
       FX_BODY(logaddexp2(x[0], x[1])),
       {1, 1},
       {0.5, 0.5},
       {0.17328679513998632, -0.17328679513998632}},
      {"tanh", FX_BODY(tanh(x[0])), {1000}, {0}, {0}},
      {"expm1", FX_BODY(expm1(x[0])), {0}, {1}, {1}},
      {"log1p", FX_BODY(log1p(x[0])), {0}, {1}, {-1}},
      {"i0", FX_BODY(call("i0", x[0])), {0}, {0}, {0.5}},
      {"i1", FX_BODY(call("i1", x[0])), {0}, {0.5}, {0}},
      {"i1e", FX_BODY(call("i1e", x[0])), {0}, {0.5}, {}},
      {"j1", FX_BODY(call("j1", x[0])), {0}, {0.5}, {0}},
      {"log_ndtr", FX_BODY(call("log_ndtr", x[0])), {-40}, {40.02496884720726}, {}},
      {"digamma", FX_BODY(call("digamma", x[0])), {1}, {1.6449340668482264}, {-2.404113806319188}},
      {"logit", FX_BODY(logit(x[0])), {0.5}, {4}, {0}},
      {"logit", FX_BODY(logit(x[0])), {2}, {kNan}, {}},
      {"smooth_l1", FX_BODY(smooth_l1(x[0], x[1], 1.0)), {1, 1}, {0, 0}, {}},
      {"l1", FX_BODY(abs(x[0] - x[1])), {1, 1}, {0, 0}, {}},
      {"lerp", FX_BODY(lerp(x[0], x[1], x[2])), {1, 2, 0.5}, {0.5, 0.5, 1}, {0, 0, -1}},
      {"frac", FX_BODY(x[0] - trunc(x[0])), {2}, {1}, {}},
      {"floor", FX_BODY(floor(x[0])), {2}, {0}, {}},
      {"bce", FX_BODY(binary_cross_entropy(x[0], x[1], {})), {0, 1}, {-1e12, 100}, {}},
      {"nextafter", FX_BODY(call("nextafter_f64", x[0], x[1])), {1, 2}, {1, 0}, {}},
      {"nextafter", FX_BODY(call("nextafter_f64", x[0], x[1])), {2, 2}, {0, 0}, {}},
      {"frexp", FX_BODY(call("frexp_mantissa", x[0])), {12}, {0.0625}, {}},
  };
  return values;
}

bool same(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= 1e-12 * (1 + std::fabs(expected));
}

TEST(Derivative, KinksTiesBoundsAndLimits) {
  for (const Exact& w : exact_values()) {
    Arena arena;
    Scope scope(arena);
    const Inputs x = real_inputs(w.point.size());
    const std::vector<Expr> first = vjp({w.body(x)}, {constant(1.0)}, x);
    for (size_t i = 0; i < w.first.size(); ++i) {
      const double got = value_at(first[i], w.point);
      EXPECT_TRUE(same(got, w.first[i])) << w.name << " at " << w.point[0] << ": d/dx" << i << " = "
                                         << got << ", expected " << w.first[i];
    }
    if (w.second.empty()) continue;
    std::vector<Expr> second(x.size());
    if (!first[0].empty()) second = vjp({first[0]}, {constant(1.0)}, x);
    for (size_t i = 0; i < w.second.size(); ++i) {
      const double got = value_at(second[i], w.point);
      EXPECT_TRUE(same(got, w.second[i])) << w.name << " at " << w.point[0] << ": d2/dx0 dx" << i
                                          << " = " << got << ", expected " << w.second[i];
    }
  }
}

// A zero by structure never meets the infinity of the branch not taken, in any order.
TEST(Derivative, WhereNeverLeaks) {
  Arena arena;
  Scope scope(arena);
  const Inputs x = real_inputs(1);
  const Expr safe_root = where(x[0] > 0.0, sqrt(x[0]), 0.0);
  const Expr safe_log = where(x[0] != 0.0, x[0] * log(abs(x[0])), 0.0);
  const Expr chained = exp(where(x[0] > 0.0, 1.0 / x[0], x[0])) * 2.0;
  for (Expr e : {safe_root, safe_log, chained}) {
    Expr derivative = e;
    for (int order = 1; order <= 3; ++order) {
      derivative = vjp({derivative}, {constant(1.0)}, x)[0];
      EXPECT_TRUE(std::isfinite(value_at(derivative, {0.0}))) << text(e) << ", order " << order;
    }
  }
  EXPECT_EQ(value_at(vjp({chained}, {constant(1.0)}, x)[0], {0.0}), 2.0);
}

TEST(Derivative, StructuralZeros) {
  Arena arena;
  Scope scope(arena);
  const Inputs x = real_inputs(2);
  EXPECT_TRUE(vjp({floor(x[0])}, {constant(1.0)}, x)[0].empty());
  EXPECT_TRUE(vjp({exp(x[0])}, {constant(1.0)}, x)[1].empty());
  EXPECT_TRUE(vjp({exp(x[0])}, {Expr()}, x)[0].empty());
  EXPECT_TRUE(vjp({x[0] < x[1]}, {constant(1.0)}, x)[0].empty());
  EXPECT_TRUE(vjp({call("frexp_exponent", x[0])}, {constant(1.0)}, x)[0].empty());
  EXPECT_TRUE(vjp({x[0] * 2.0}, {constant(1.0)}, {Expr(), x[1]})[0].empty());
  EXPECT_TRUE(vjp({sign(x[0])}, {constant(1.0)}, x)[0].empty());
}

TEST(Derivative, MissingDerivativesThrowOnlyWhereNeeded) {
  Arena arena;
  Scope scope(arena);
  const Inputs x = real_inputs(2);
  const Expr e = call("igamma", x[0], x[1]);
  EXPECT_NO_THROW(vjp({e}, {constant(1.0)}, {Expr(), x[1]}));
  try {
    vjp({e}, {constant(1.0)}, x);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kAutograd);
    EXPECT_EQ(error.message(),
              "the derivative of igamma with respect to its first argument is not implemented");
  }
  EXPECT_THROW(vjp({call("airy_ai", x[0])}, {constant(1.0)}, x), Error);
  EXPECT_NO_THROW(vjp({call("airy_ai", x[1]) * x[0]}, {constant(1.0)}, {x[0]}));
}

TEST(Derivative, SeveralOutputsAddUp) {
  Arena arena;
  Scope scope(arena);
  const Inputs x = real_inputs(2);
  const std::vector<Expr> outs = {x[0] * x[1], sin(x[0])};
  const std::vector<Expr> grads = {constant(2.0), constant(3.0)};
  const Expr by_first = vjp(outs, grads, x)[0];
  EXPECT_DOUBLE_EQ(value_at(by_first, {0.5, 4}), 2 * 4 + 3 * std::cos(0.5));
  const std::vector<Expr> tangents = {constant(1.0), constant(10.0)};
  const std::vector<Expr> forward = jvp(outs, x, tangents);
  EXPECT_DOUBLE_EQ(value_at(forward[0], {0.5, 4}), 4 + 10 * 0.5);
  EXPECT_DOUBLE_EQ(value_at(forward[1], {0.5, 4}), std::cos(0.5));
}

TEST(Derivative, GradientsStaySmall) {
  Arena arena;
  Scope scope(arena);
  const Expr x = input(0, Kind::kReal);
  const Expr g = input(1, Kind::kReal);
  const auto gradient = [&](Expr e) { return text(vjp({e}, {g}, {x})); };
  EXPECT_EQ(gradient(exp(x)), "mul(x1, exp(x0))");
  EXPECT_EQ(gradient(relu(x)), "mul(x1, where(le(x0, 0.0), 0.0, 1.0))");
  EXPECT_EQ(gradient(tanh(x)), "t0 = tanh(x0); mul(x1, sub(1.0, mul(t0, t0)))");
  EXPECT_EQ(gradient(x * 3.0), "mul(x1, 3.0)");
  EXPECT_EQ(gradient(x - 3.0), "x1");
  EXPECT_EQ(gradient(-x), "neg(x1)");
}

}  // namespace
}  // namespace fornax::expr
