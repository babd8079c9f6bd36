// Building, simplification, text, rewriting.
#include "fornax/expr/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "fornax/base/error.h"
#include "fornax/expr/functions.h"
#include "fornax/expr/interpret.h"

namespace fornax::expr {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class ExprTest : public ::testing::Test {
 protected:
  Arena arena;
  Scope scope{arena};
  Expr x = input(0, Kind::kReal);
  Expr y = input(1, Kind::kReal);
  Expr n = input(2, Kind::kInt);
  Expr m = input(3, Kind::kInt);
  Expr p = input(4, Kind::kBool);
  Expr q = input(5, Kind::kBool);
  Expr z = input(6, Kind::kComplex);
};

TEST_F(ExprTest, EqualNodesAreOneNode) {
  EXPECT_TRUE((x + y).is(x + y));
  EXPECT_TRUE((x + y).is(y + x));
  EXPECT_TRUE((x * y).is(y * x));
  EXPECT_FALSE((x - y).is(y - x));
  EXPECT_FALSE(min(x, y).is(min(y, x)));  // the order decides which NaN, which zero
  EXPECT_FALSE(constant(0.0).is(constant(-0.0)));
  EXPECT_FALSE(constant(1.0).is(integer(1)));
  EXPECT_TRUE(constant(kNan).is(constant(kNan)));
}

TEST_F(ExprTest, ManyNodesStayDistinct) {
  std::vector<Expr> made;
  for (int i = 0; i < 5000; ++i) made.push_back(x + double(i) * 0.5);
  for (int i = 1; i < 5000; ++i) EXPECT_TRUE((x + double(i) * 0.5).is(made[i]));
  EXPECT_GE(arena.nodes().size(), 5000u);
}

TEST_F(ExprTest, KindsPromote) {
  EXPECT_EQ((n + m).kind(), Kind::kInt);
  EXPECT_EQ((n + x).kind(), Kind::kReal);
  EXPECT_EQ((p + q).kind(), Kind::kInt);
  EXPECT_EQ((p & q).kind(), Kind::kBool);
  EXPECT_EQ((p & n).kind(), Kind::kInt);
  EXPECT_EQ((x < y).kind(), Kind::kBool);
  EXPECT_EQ((z + x).kind(), Kind::kComplex);
  EXPECT_EQ(abs(z).kind(), Kind::kReal);
  EXPECT_EQ(sqrt(n).kind(), Kind::kReal);
  EXPECT_EQ((n / m).kind(), Kind::kInt);
  EXPECT_EQ(call("lgamma", n).kind(), Kind::kReal);
  EXPECT_EQ(call("gcd", n, m).kind(), Kind::kInt);
  EXPECT_EQ(where(p, n, x).kind(), Kind::kReal);
  EXPECT_EQ(text(n + x), "add(x0, to_real(x2:int))");
  EXPECT_EQ(text(cast(z, Kind::kBool)),
            "or(not(eq(real(x6:complex), 0.0)), not(eq(imag(x6:complex), 0.0)))");
  EXPECT_EQ(text(cast(cast(p, Kind::kInt), Kind::kReal)), "to_real(x4:bool)");
  EXPECT_EQ(text(floor(n)), "x2:int");
  EXPECT_EQ(text(z + x), "add(x6:complex, complex(x0, 0.0))");
}

TEST_F(ExprTest, SafeRewrites) {
  EXPECT_EQ(text(x * 1.0), "x0");
  EXPECT_EQ(text(1.0 * x), "x0");
  EXPECT_EQ(text(x / 1.0), "x0");
  EXPECT_EQ(text(x - 0.0), "x0");
  EXPECT_EQ(text(x + -0.0), "x0");
  EXPECT_EQ(text(n + 0), "x2:int");
  EXPECT_EQ(text(x * -1.0), "neg(x0)");
  EXPECT_EQ(text(-(-x)), "x0");
  EXPECT_EQ(text(abs(abs(x))), "abs(x0)");
  EXPECT_EQ(text(abs(-x)), "abs(x0)");
  EXPECT_EQ(text(~~p), "x4:bool");
  EXPECT_EQ(text(conj(conj(z))), "x6:complex");
  EXPECT_EQ(text(conj(x)), "x0");
  EXPECT_EQ(text(real(complex(x, y))), "x0");
  EXPECT_EQ(text(imag(complex(x, y))), "x1");
  EXPECT_EQ(text(x + (-y)), "sub(x0, x1)");
  EXPECT_EQ(text((-x) + y), "sub(x1, x0)");
  EXPECT_EQ(text(x - (-y)), "add(x0, x1)");
  EXPECT_EQ(text((-x) * y), "neg(mul(x0, x1))");
  EXPECT_EQ(text((-x) * (-y)), "mul(x0, x1)");
  EXPECT_EQ(text(x / 4.0), "mul(x0, 0.25)");
  EXPECT_EQ(text(x / 3.0), "div(x0, 3.0)");
  EXPECT_EQ(text(pow(x, 1.0)), "x0");
  EXPECT_EQ(text(pow(x, 2.0)), "mul(x0, x0)");
  EXPECT_EQ(text(min(x, x)), "x0");
  EXPECT_EQ(text(p & p), "x4:bool");
  EXPECT_EQ(text(p & boolean(true)), "x4:bool");
  EXPECT_EQ(text(p & boolean(false)), "false");
  EXPECT_EQ(text(p | boolean(true)), "true");
  EXPECT_EQ(text(where(p, x, x)), "x0");
  EXPECT_EQ(text(where(~p, x, y)), "where(x4:bool, x1, x0)");
  EXPECT_EQ(text(where(p, where(p, x, y), 2.0)), "where(x4:bool, x0, 2.0)");
  EXPECT_EQ(text(where(p, 2.0, where(p, x, y))), "where(x4:bool, 2.0, x1)");
  EXPECT_EQ(text(where(boolean(true), x, y)), "x0");
}

TEST_F(ExprTest, ConstantsFold) {
  EXPECT_EQ(text(Expr(2.0) + 0.5), "2.5");
  EXPECT_EQ(text(Expr(7) * 6), "42");
  EXPECT_EQ(text(-Expr(7)), "-7");
  EXPECT_EQ(text(Expr(1.0) / 0.0), "inf");
  EXPECT_EQ(text(sqrt(Expr(-1.0))), "nan");
  EXPECT_EQ(text(Expr(1) < Expr(2)), "true");
  EXPECT_EQ(text(cast(2.75, Kind::kInt)), "2");
  EXPECT_EQ(text(cast(kNan, Kind::kInt)), "to_int(nan)");  // no integer has this value
}

// Each would change a NaN, an infinity or the sign of a zero.
TEST_F(ExprTest, UnsafeRewritesStay) {
  EXPECT_EQ(text(x + 0.0), "add(x0, 0.0)");
  EXPECT_EQ(text(x - -0.0), "sub(x0, -0.0)");
  EXPECT_EQ(text(x * 0.0), "mul(x0, 0.0)");
  EXPECT_EQ(text(x - x), "sub(x0, x0)");
  EXPECT_EQ(text(x / x), "div(x0, x0)");
  EXPECT_EQ(text(x == x), "eq(x0, x0)");
  EXPECT_EQ(text(-(x - y)), "neg(sub(x0, x1))");
  EXPECT_EQ(text(0.0 - x), "sub(0.0, x0)");
  EXPECT_EQ(text(pow(x, 0.5)), "pow(x0, 0.5)");
  EXPECT_EQ(text(pow(x, 0.0)), "pow(x0, 0.0)");
  EXPECT_EQ(text(max(y, x)), "max(x1, x0)");
  EXPECT_EQ(text((x + y) + 1.0), "add(add(x0, x1), 1.0)");
  const Expr product = x * y;
  EXPECT_EQ(text(product + x * 2.0), "add(mul(x0, x1), mul(x0, 2.0))");
  EXPECT_EQ(text(~(x < y)), "not(lt(x0, x1))");  // a NaN is on neither side
}

// Both sides of every rewrite, on the values that break the unsafe ones.
TEST_F(ExprTest, RewritesKeepTheBits) {
  const double values[] = {0.0,    -0.0,   1.0,       -2.5,       1e308,
                           -1e308, 5e-324, kInfinity, -kInfinity, kNan};
  for (double a : values) {
    for (double b : values) {
      const auto same = [&](Expr e, double expected) {
        const double got = eval_real(e, {a, b});
        const bool equal = std::isnan(expected)
                               ? std::isnan(got)
                               : got == expected && std::signbit(got) == std::signbit(expected);
        EXPECT_TRUE(equal) << text(e) << " at " << a << ", " << b << ": " << got << ", expected "
                           << expected;
      };
      same(x * 1.0, a * 1.0);
      same(x - 0.0, a - 0.0);
      same(x + 0.0, a + 0.0);
      same(x + -0.0, a + -0.0);
      same(x * -1.0, a * -1.0);
      same(x + (-y), a + (-b));
      same((-x) + y, (-a) + b);
      same(x - (-y), a - (-b));
      same((-x) * y, (-a) * b);
      same(x / 4.0, a / 4.0);
      same(x * 0.0, a * 0.0);
      same(x - x, a - a);
      same(-(x - y), -(a - b));
      same(where(~(x < y), x, y), !(a < b) ? a : b);
    }
  }
}

TEST_F(ExprTest, TextNamesSharedNodes) {
  const Expr e = exp(x);
  EXPECT_EQ(text(e * (e + 1.0)), "t0 = exp(x0); mul(t0, add(t0, 1.0))");
  EXPECT_EQ(text({e, e + y, Expr()}), "t0 = exp(x0); t0, add(x1, t0), none");
  // 2^60 paths through 60 nodes
  Expr deep = x;
  for (int i = 0; i < 60; ++i) deep = deep * deep;
  EXPECT_LT(text(deep).size(), 2000u);
  EXPECT_EQ(topological_order(deep).size(), 61u);
}

TEST_F(ExprTest, Integers) {
  const auto at = [&](Expr e, int64_t a, int64_t b) {
    const Value none;
    return eval(e, {none, none, Value::of_int(a), Value::of_int(b)}).integer;
  };
  EXPECT_EQ(at(n / m, -7, 2), -3);
  EXPECT_EQ(at(fmod(n, m), -7, 2), -1);
  EXPECT_EQ(at(mod(n, m), -7, 2), 1);
  EXPECT_EQ(at(n / m, 5, 0), 0);
  EXPECT_EQ(at(n / m, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(at(n + m, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(at(pow(n, m), -3, 3), -27);
  EXPECT_EQ(at(pow(n, m), 2, -1), 0);
  EXPECT_EQ(at(shl(n, m), 1, 64), 0);
  EXPECT_EQ(at(shr(n, m), -8, 100), -1);
  EXPECT_EQ(at(~n, 5, 0), -6);
  EXPECT_EQ(at(floor_divide(n, m), -7, 2), -4);
  EXPECT_EQ(at(lcm(n, m), -4, 6), 12);
  EXPECT_EQ(at(lcm(n, m), 0, 0), 0);
}

TEST_F(ExprTest, FloorDivideIsPythons) {
  const Expr e = floor_divide(x, y);
  EXPECT_EQ(eval_real(e, {7.0, -2.0}), -4);
  EXPECT_EQ(eval_real(e, {1.0, 0.1}), 9);  // 1 / 0.1 rounds up to 10
  EXPECT_EQ(eval_real(e, {-1.0, 0.0}), -kInfinity);
  EXPECT_TRUE(std::signbit(eval_real(e, {-0.0, 3.0})));
}

TEST_F(ExprTest, ReplaceMakesSavedOutputs) {
  const Expr s = sigmoid(x);
  const std::vector<Expr> grad = vjp({s}, {y}, {x});
  EXPECT_EQ(inputs_used(grad), 0b11u);
  const Expr saved = input(7, Kind::kReal);
  const std::vector<Expr> from_output = replace(grad, {{s, saved}});
  EXPECT_EQ(text(from_output), "mul(x1, mul(x7, sub(1.0, x7)))");
  EXPECT_EQ(inputs_used(from_output), 0b10000010u);
  // the product saves both factors and not its result
  EXPECT_EQ(inputs_used(vjp({x * y}, {input(2, Kind::kReal)}, {x, y})), 0b111u);
  EXPECT_EQ(inputs_used(vjp({x + y}, {input(2, Kind::kReal)}, {x, y})), 0b100u);
  EXPECT_EQ(inputs_used({Expr(), constant(1.0)}), 0u);
}

TEST_F(ExprTest, RewriteMovesHandWrittenGradients) {
  const Expr moved = replace(softplus(x) * 2.0, {{x, y * 3.0}});
  const Expr grad = vjp({moved}, {constant(1.0)}, {y})[0];
  // the derived gradient is 3 at 0, not 2 * 3 * sigmoid(0)
  EXPECT_DOUBLE_EQ(eval_real(grad, {0.0, 0.0}), 3.0);
  const Expr second = vjp({grad}, {constant(1.0)}, {y})[0];
  EXPECT_DOUBLE_EQ(eval_real(second, {0.0, 0.0}), 2 * 9 * 0.25);
}

TEST_F(ExprTest, RewriteAfter) {
  const auto to_exp2 = [](Expr e) {
    return e.prim() == Prim::kExp ? exp2(Expr::at(e.node().a) * M_LOG2E) : Expr();
  };
  EXPECT_EQ(text(rewrite(exp(x + exp(y)), keep, to_exp2)),
            "exp2(mul(add(x0, exp2(mul(x1, 1.4426950408889634))), 1.4426950408889634))");
}

TEST_F(ExprTest, MisuseIsAnError) {
  EXPECT_THROW(x + Expr(), Error);
  EXPECT_THROW(-Expr(), Error);
  EXPECT_THROW(make(Prim::kNeg, x, y), Error);
  EXPECT_THROW(call("zeta", x), Error);
  EXPECT_THROW(call("lgamma", x, y), Error);
  EXPECT_THROW(call("lgamma", z), Error);
  EXPECT_THROW(x & y, Error);
  EXPECT_THROW(lower(erf(z)), Error);
  EXPECT_THROW(lower(atan2(z, z)), Error);
  EXPECT_THROW(inputs_used(input(64, Kind::kReal)), Error);
  EXPECT_THROW(eval(input(9, Kind::kReal), {1.0}), Error);
}

TEST(ExprArena, AFinishedArenaIsReadByManyThreads) {
  Arena arena;
  Expr root;
  {
    Scope scope(arena);
    root = silu(input(0, Kind::kReal));
    lower(root);
  }
  const Arena& finished = arena;
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& result : texts) {
    threads.emplace_back([&] {
      Scope scope(finished);
      result = text(lower(root).re);
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& t : texts) {
    EXPECT_EQ(t, "mul(x0, div(1.0, add(exp(neg(x0)), 1.0)))");
  }
  Scope scope(finished);
  EXPECT_TRUE((-input(0, Kind::kReal)).prim() == Prim::kNeg);  // it is there
  EXPECT_THROW(cos(input(0, Kind::kReal)), Error);
}

TEST(ExprArena, ScopesNest) {
  Arena outer;
  Arena inner;
  Scope a(outer);
  const Expr x = input(3, Kind::kReal);
  {
    Scope b(inner);
    input(0, Kind::kInt);
    EXPECT_EQ(inner.nodes().size(), 1u);
  }
  EXPECT_EQ(text(x), "x3");
}

}  // namespace
}  // namespace fornax::expr
