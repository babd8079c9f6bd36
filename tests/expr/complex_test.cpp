// Complex numbers: lowering against std::complex, Wirtinger derivatives against differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "fornax/expr/functions.h"
#include "fornax/expr/interpret.h"

namespace fornax::expr {
namespace {

using Z = std::complex<double>;
using Inputs = std::vector<Expr>;
using Body = Expr (*)(const Inputs& z);
using Point = std::vector<Z>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

#define FX_BODY(...) [](const Inputs& z) -> Expr { return __VA_ARGS__; }

Inputs complex_inputs(size_t count) {
  Inputs z;
  for (size_t i = 0; i < count; ++i) z.push_back(input(int(i), Kind::kComplex));
  return z;
}

std::vector<Value> values_of(const Point& point) {
  std::vector<Value> values;
  for (Z z : point) values.emplace_back(z.real(), z.imag());
  return values;
}

// Complex nodes computed by std::complex.
Z direct(Expr e, const Point& point) {
  const Value v = eval(e, values_of(point));
  return {v.re, v.im};
}

// The same after lowering to real nodes.
Z lowered(Expr e, const Point& point) {
  if (e.empty()) return 0;
  const Parts parts = lower(e);
  const std::vector<Value> values = values_of(point);
  return {eval_real(parts.re, values), eval_real(parts.im, values)};
}

double distance(Z got, Z expected) {
  const double error = std::abs(got - expected) / (1 + std::abs(expected));
  return std::isnan(error) ? kInfinity : error;
}

struct Case {
  const char* name;
  Body body;
  std::vector<Point> points;
};

const std::vector<Point>& quadrants() {
  static const std::vector<Point> points = {
      {{0.7, 0.4}}, {{-0.7, 0.4}}, {{0.3, -1.2}}, {{-1.3, -0.8}}, {{2.5, 0.1}}};
  return points;
}

const std::vector<Point>& pairs() {
  static const std::vector<Point> points = {
      {{0.7, 0.4}, {1.2, -0.5}}, {{-0.7, 0.4}, {0.3, 0.9}}, {{0.3, -1.2}, {-1.1, 0.2}}};
  return points;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"add", FX_BODY(z[0] + z[1]), pairs()},
      {"sub", FX_BODY(z[0] - z[1]), pairs()},
      {"mul", FX_BODY(z[0] * z[1]), pairs()},
      {"div", FX_BODY(z[0] / z[1]), pairs()},
      {"pow", FX_BODY(pow(z[0], z[1])), pairs()},
      {"where", FX_BODY(where(abs(z[0]) > 1.0, z[0] * z[1], z[1] / z[0])), pairs()},
      {"logaddexp", FX_BODY(logaddexp(z[0], z[1])), pairs()},
      {"neg", FX_BODY(-z[0]), quadrants()},
      {"conj", FX_BODY(conj(z[0]) * z[0]), quadrants()},
      {"real", FX_BODY(real(z[0]) * z[0]), quadrants()},
      {"imag", FX_BODY(imag(z[0]) * z[0]), quadrants()},
      {"abs", FX_BODY(abs(z[0])), quadrants()},
      {"sgn", FX_BODY(sign(z[0])), quadrants()},
      {"angle", FX_BODY(angle(z[0])), quadrants()},
      {"polar", FX_BODY(complex(real(z[0]) * cos(imag(z[0])), real(z[0]) * sin(imag(z[0])))),
       quadrants()},
      {"sqrt", FX_BODY(sqrt(z[0])), quadrants()},
      {"exp", FX_BODY(exp(z[0])), quadrants()},
      {"exp2", FX_BODY(exp2(z[0])), quadrants()},
      {"expm1", FX_BODY(expm1(z[0])), quadrants()},
      {"log", FX_BODY(log(z[0])), quadrants()},
      {"log1p", FX_BODY(log1p(z[0])), quadrants()},
      {"log2", FX_BODY(log2(z[0])), quadrants()},
      {"log10", FX_BODY(log10(z[0])), quadrants()},
      {"sin", FX_BODY(sin(z[0])), quadrants()},
      {"cos", FX_BODY(cos(z[0])), quadrants()},
      {"tan", FX_BODY(tan(z[0])), quadrants()},
      {"sinh", FX_BODY(sinh(z[0])), quadrants()},
      {"cosh", FX_BODY(cosh(z[0])), quadrants()},
      {"tanh", FX_BODY(tanh(z[0])), quadrants()},
      {"asin", FX_BODY(asin(z[0])), quadrants()},
      {"acos", FX_BODY(acos(z[0])), quadrants()},
      {"atan", FX_BODY(atan(z[0])), quadrants()},
      {"asinh", FX_BODY(asinh(z[0])), quadrants()},
      {"acosh", FX_BODY(acosh(z[0])), quadrants()},
      {"atanh", FX_BODY(atanh(z[0])), quadrants()},
      {"reciprocal", FX_BODY(reciprocal(z[0])), quadrants()},
      {"rsqrt", FX_BODY(rsqrt(z[0])), quadrants()},
      {"sigmoid", FX_BODY(sigmoid(z[0])), quadrants()},
      {"silu", FX_BODY(silu(z[0])), quadrants()},
      {"sinc", FX_BODY(sinc(z[0])), {{{0.7, 0.4}}, {{0.02, -0.05}}, {{-1.2, 0.3}}}},
      {"softsign", FX_BODY(softsign(z[0])), quadrants()},
      {"tanhshrink", FX_BODY(tanhshrink(z[0])), quadrants()},
      {"nan_to_num", FX_BODY(nan_to_num(z[0], 0.0, 1.0, -1.0)), quadrants()},
  };
  return list;
}

TEST(Complex, LoweringMatchesTheLibrary) {
  for (const Case& c : cases()) {
    for (const Point& point : c.points) {
      Arena arena;
      Scope scope(arena);
      const Expr e = c.body(complex_inputs(point.size()));
      if (e.kind() != Kind::kComplex) {
        EXPECT_NEAR(eval_real(lower(e).re, values_of(point)), direct(e, point).real(), 1e-13)
            << c.name;
        continue;
      }
      EXPECT_LT(distance(lowered(e, point), direct(e, point)), 1e-13) << c.name << point[0];
    }
  }
}

TEST(Complex, LoweringLeavesNoComplexNode) {
  for (const Case& c : cases()) {
    Arena arena;
    Scope scope(arena);
    const Inputs z = complex_inputs(2);
    const Expr e = c.body(z);
    const std::vector<Expr> gradient = vjp({e}, {input(2, e.kind())}, z);
    for (Expr root : {e, gradient[0], gradient[1]}) {
      if (root.empty()) continue;
      const Parts parts = lower(root);
      for (Expr node : topological_order({parts.re, parts.im})) {
        EXPECT_NE(node.kind(), Kind::kComplex) << c.name << ": " << text(node);
      }
    }
  }
}

// The derivative of `e` along `direction` of input i.
Z difference(Expr e, Point point, size_t i, Z direction) {
  const Z center = point[i];
  const auto central = [&](double h) {
    point[i] = center + h * direction;
    const Z above = direct(e, point);
    point[i] = center - h * direction;
    return (above - direct(e, point)) / (2 * h);
  };
  return (4.0 * central(5e-4) - central(1e-3)) / 3.0;
}

// d and dc hold for every direction if they hold for 1 and i.
double worst_error(Expr e, const Inputs& z, const Point& point) {
  double worst = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    Derivative derivative(z[i]);
    const Pair pair = derivative.of(e);
    for (Z direction : {Z(1, 0), Z(0, 1)}) {
      const Z got =
          direct(pair.d, point) * direction + direct(pair.dc, point) * std::conj(direction);
      worst = std::max(worst, distance(got, difference(e, point, i, direction)));
    }
  }
  return worst;
}

TEST(Complex, WirtingerDerivativesMatchDifferences) {
  for (const Case& c : cases()) {
    for (const Point& point : c.points) {
      Arena arena;
      Scope scope(arena);
      const Inputs z = complex_inputs(point.size());
      EXPECT_LT(worst_error(c.body(z), z, point), 1e-8) << c.name << " at " << point[0];
    }
  }
}

TEST(Complex, SecondDerivativesMatchDifferences) {
  for (const Case& c : cases()) {
    for (const Point& point : c.points) {
      Arena arena;
      Scope scope(arena);
      const Inputs z = complex_inputs(point.size());
      const Expr e = c.body(z);
      const Expr seed = e.kind() == Kind::kComplex ? complex(0.8, -0.3) : constant(0.8);
      for (Expr g : vjp({e}, {seed}, z)) {
        if (g.empty()) continue;
        EXPECT_LT(worst_error(g, z, point), 1e-7) << c.name << " at " << point[0];
      }
    }
  }
}

// Re(conj(g) J t) = Re(conj(vjp(g)) t) for every g and t; gradients lower to the same value.
TEST(Complex, VjpIsTheAdjointOfJvp) {
  const Z g(0.8, -0.3);
  const Z t(-0.4, 1.1);
  for (const Case& c : cases()) {
    for (const Point& point : c.points) {
      Arena arena;
      Scope scope(arena);
      const Inputs z = complex_inputs(point.size());
      const Expr e = c.body(z);
      const bool real_output = e.kind() != Kind::kComplex;
      const Expr grad = real_output ? constant(g.real()) : complex(g.real(), g.imag());
      const Expr tangent = complex(t.real(), t.imag());
      for (size_t i = 0; i < z.size(); ++i) {
        const Expr backward = vjp({e}, {grad}, {z[i]})[0];
        const Expr forward = jvp({e}, {z[i]}, {tangent})[0];
        const Z seed = real_output ? Z(g.real()) : g;
        const double left = (std::conj(seed) * direct(forward, point)).real();
        const double right = (std::conj(direct(backward, point)) * t).real();
        EXPECT_NEAR(left, right, 1e-12 * (1 + std::fabs(left))) << c.name;
        EXPECT_LT(distance(lowered(backward, point), direct(backward, point)), 1e-12) << c.name;
      }
    }
  }
}

TEST(Complex, RealInputsGetRealGradients) {
  Arena arena;
  Scope scope(arena);
  const Expr x = input(0, Kind::kReal);
  const Expr y = input(1, Kind::kReal);
  const Expr w = exp(complex(x, y));
  const std::vector<Expr> gradient = vjp({w}, {complex(0.5, -2.0)}, {x, y});
  // dw = w dx + i w dy; Re(conj(g) dw)
  const Z value = std::exp(Z(0.3, 0.7));
  const Z g(0.5, -2);
  ASSERT_EQ(gradient[0].kind(), Kind::kReal);
  EXPECT_NEAR(eval_real(gradient[0], {0.3, 0.7}), (std::conj(g) * value).real(), 1e-14);
  EXPECT_NEAR(eval_real(gradient[1], {0.3, 0.7}), (std::conj(g) * Z(0, 1) * value).real(), 1e-14);
  const Expr tangent = jvp({abs(w)}, {x}, {constant(1.0)})[0];
  ASSERT_EQ(tangent.kind(), Kind::kReal);
  EXPECT_NEAR(eval_real(tangent, {0.3, 0.7}), std::exp(0.3), 1e-14);
}

// Nothing at 0: abs, sgn and angle have the derivative 0 there.
TEST(Complex, ZeroIsNoPole) {
  Arena arena;
  Scope scope(arena);
  const Inputs z = complex_inputs(1);
  for (Expr e : {abs(z[0]), sign(z[0]), angle(z[0]), softsign(z[0])}) {
    const Expr seed = e.kind() == Kind::kComplex ? complex(1.0, 1.0) : constant(1.0);
    const Z at_zero = lowered(vjp({e}, {seed}, z)[0], {Z(0, 0)});
    EXPECT_TRUE(std::isfinite(at_zero.real()) && std::isfinite(at_zero.imag())) << text(e);
  }
  EXPECT_EQ(lowered(vjp({abs(z[0])}, {constant(1.0)}, z)[0], {Z(0, 0)}), Z(0, 0));
}

// The sides of the branch cuts, by the sign of the zero.
TEST(Complex, BranchCuts) {
  struct Cut {
    const char* name;
    Body body;
    Z (*library)(const Z&);
    std::vector<Z> points;
  };
  const std::vector<Z> left = {{-2, 0.0}, {-2, -0.0}};
  const std::vector<Z> both = {{-2, 0.0}, {-2, -0.0}, {2, 0.0}, {2, -0.0}};
  const std::vector<Z> vertical = {{0.0, 2}, {-0.0, 2}, {0.0, -2}, {-0.0, -2}};
  const Cut cuts[] = {
      {"sqrt", FX_BODY(sqrt(z[0])), &std::sqrt<double>, left},
      {"log", FX_BODY(log(z[0])), &std::log<double>, left},
      {"asin", FX_BODY(asin(z[0])), &std::asin<double>, both},
      {"acos", FX_BODY(acos(z[0])), &std::acos<double>, both},
      {"atanh", FX_BODY(atanh(z[0])), &std::atanh<double>, both},
      {"acosh", FX_BODY(acosh(z[0])), &std::acosh<double>, left},
      {"asinh", FX_BODY(asinh(z[0])), &std::asinh<double>, vertical},
      {"atan", FX_BODY(atan(z[0])), &std::atan<double>, vertical},
  };
  for (const Cut& cut : cuts) {
    Arena arena;
    Scope scope(arena);
    const Expr e = cut.body(complex_inputs(1));
    for (Z point : cut.points) {
      EXPECT_LT(distance(lowered(e, {point}), cut.library(point)), 1e-14)
          << cut.name << " at " << point << ": " << lowered(e, {point}) << ", expected "
          << cut.library(point);
    }
  }
}

TEST(Complex, ExtremeMagnitudes) {
  Arena arena;
  Scope scope(arena);
  const Inputs z = complex_inputs(2);
  const auto at = [&](Expr e, Z a, Z b = 0) { return lowered(e, {a, b}); };
  EXPECT_LT(distance(at(z[0] / z[1], {1e300, 1e300}, {1e300, -1e300}), Z(0, 1)), 1e-14);
  EXPECT_LT(distance(at(z[0] / z[1], {1e-300, 0}, {1e-300, 1e-300}), Z(0.5, -0.5)), 1e-14);
  EXPECT_EQ(at(tanh(z[0]), {800, 1}).real(), 1);
  EXPECT_LT(distance(at(expm1(z[0]), {1e-12, 1e-12}) * 1e12, Z(1, 1)), 1e-11);
  EXPECT_LT(distance(at(log1p(z[0]), {1e-12, 1e-12}) * 1e12, Z(1, 1)), 1e-11);
  EXPECT_EQ(at(pow(z[0], z[1]), 0, 0), Z(1, 0));
  EXPECT_EQ(at(pow(z[0], z[1]), 0, {2, 1}), Z(0, 0));
  EXPECT_EQ(at(exp(z[0]), {1, 0}).imag(), 0);
  EXPECT_EQ(at(sign(z[0]), 0), Z(0, 0));
}

// A real factor costs two multiplications, a real divisor two divisions.
TEST(Complex, RealOperandsStayCheap) {
  Arena arena;
  Scope scope(arena);
  const Expr z = input(0, Kind::kComplex);
  const Expr x = input(1, Kind::kReal);
  const Parts product = lower(z * x);
  const Parts quotient = lower(z / x);
  EXPECT_EQ(text({product.re, product.im}), "mul(x1, x0.re), mul(x1, x0.im)");
  EXPECT_EQ(text({quotient.re, quotient.im}), "div(x0.re, x1), div(x0.im, x1)");
}

}  // namespace
}  // namespace fornax::expr
