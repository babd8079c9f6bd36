// The VM's elementary functions against the C library in long double, for both element types and
// every instruction set this CPU has.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fornax/expr/kernels/table.h"

namespace fornax::expr {
namespace {

using Unary = long double (*)(long double);
using Binary = long double (*)(long double, long double);

struct UnaryCase {
  Prim prim;
  Unary reference;
  double low, high;  // where most arguments lie
  double ulp_f32, ulp_f64;
};

long double sign_of(long double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

const UnaryCase kUnary[] = {
    {Prim::kExp, std::exp, -104, 89, 1.2, 1.2},
    {Prim::kExp2, std::exp2, -150, 128, 1.2, 1.2},
    {Prim::kExpm1, std::expm1, -20, 89, 2, 2},
    {Prim::kLog, std::log, 0, 1000, 1.2, 1.2},
    {Prim::kLog1p, std::log1p, -1, 10, 1.5, 1.5},
    {Prim::kLog2, std::log2, 0, 1000, 1.8, 1.8},
    {Prim::kLog10, std::log10, 0, 1000, 2.3, 2.3},
    {Prim::kSin, std::sin, -1e5, 1e5, 1.8, 1.8},
    {Prim::kCos, std::cos, -1e5, 1e5, 1.8, 1.8},
    {Prim::kTan, std::tan, -1e5, 1e5, 3.3, 3.3},
    {Prim::kSinh, std::sinh, -89, 89, 2.3, 2.3},
    {Prim::kCosh, std::cosh, -89, 89, 2, 2},
    {Prim::kTanh, std::tanh, -12, 12, 2.6, 2.6},
    {Prim::kAsin, std::asin, -1, 1, 2.5, 2.5},
    {Prim::kAcos, std::acos, -1, 1, 2, 2},
    {Prim::kAtan, std::atan, -10, 10, 2.5, 2.5},
    {Prim::kAsinh, std::asinh, -100, 100, 2, 2},
    {Prim::kAcosh, std::acosh, 1, 100, 2, 2},
    {Prim::kAtanh, std::atanh, -1, 1, 2.5, 2.5},
    {Prim::kErf, std::erf, -5, 5, 1.5, 1.5},
    {Prim::kErfc, std::erfc, -5, 10, 3.5, 4},
    {Prim::kSqrt, std::sqrt, 0, 1e6, 0.5, 0.5},
    {Prim::kFloor, std::floor, -100, 100, 0, 0},
    {Prim::kCeil, std::ceil, -100, 100, 0, 0},
    {Prim::kRound, std::nearbyint, -100, 100, 0, 0},
    {Prim::kTrunc, std::trunc, -100, 100, 0, 0},
    {Prim::kAbs, std::fabs, -100, 100, 0, 0},
    {Prim::kNeg, [](long double x) { return -x; }, -100, 100, 0, 0},
    {Prim::kSign, sign_of, -100, 100, 0, 0},
};

long double floor_mod(long double a, long double b) {
  const long double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
long double lesser(long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<long double>::quiet_NaN();
  return a < b ? a : b;
}
long double greater(long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<long double>::quiet_NaN();
  return a > b ? a : b;
}

struct BinaryCase {
  Prim prim;
  Binary reference;
  double ulp_f32, ulp_f64;
};

const BinaryCase kBinary[] = {
    {Prim::kAdd, [](long double a, long double b) { return a + b; }, 0.5, 0.501},
    {Prim::kSub, [](long double a, long double b) { return a - b; }, 0.5, 0.501},
    {Prim::kMul, [](long double a, long double b) { return a * b; }, 0.5, 0.501},
    {Prim::kDiv, [](long double a, long double b) { return a / b; }, 0.501, 0.501},
    {Prim::kMin, lesser, 0, 0},
    {Prim::kMax, greater, 0, 0},
    {Prim::kCopysign, std::copysign, 0, 0},
    {Prim::kPow, std::pow, 0.6, 2},
    {Prim::kAtan2, std::atan2, 2.5, 2.6},
    {Prim::kHypot, std::hypot, 0.6, 1.5},
    {Prim::kFmod, std::fmod, 0, 0},
    {Prim::kMod, floor_mod, 0.501, 0.501},
};

// Distance in units of the last place of T at `want`; infinite where the kind of value differs.
template <class T>
double ulps(T got, long double want) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : kWrong;
  const T rounded = T(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    // One ulp beside the overflow threshold.
    const bool near =
        std::fabs(double(got)) >= double(std::numeric_limits<T>::max()) * 0.9999999 &&
        std::fabs(double(rounded)) >= double(std::numeric_limits<T>::max()) * 0.9999999;
    return near && std::signbit(got) == std::signbit(rounded) ? 1 : kWrong;
  }
  if (rounded == 0 && got == 0) return std::signbit(rounded) == std::signbit(got) ? 0 : kWrong;
  int exponent = 0;
  std::frexp(std::max(std::fabs(rounded), std::numeric_limits<T>::min()), &exponent);
  return double(std::fabs((long double)(got)-want) /
                std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values;
  for (double x : {0.0,
                   1.0,
                   0.5,
                   2.0,
                   3.0,
                   10.0,
                   0.25,
                   1.5,
                   2.5,
                   4.5,
                   0.999999999,
                   1.000000001,
                   1e-5,
                   1e-20,
                   1e5,
                   1e6,
                   1e9,
                   1e10,
                   1e15,
                   1e22,
                   1e30,
                   88.7,
                   88.72283,
                   88.72284,
                   89.4,
                   89.5,
                   103.9,
                   103.97,
                   104.0,
                   127.0,
                   128.0,
                   149.0,
                   149.5,
                   150.0,
                   700.0,
                   709.78,
                   709.79,
                   710.4,
                   710.5,
                   745.0,
                   745.2,
                   1023.5,
                   1024.0,
                   1074.0,
                   1075.0,
                   0.7853981633974483,
                   1.5707963267948966,
                   3.141592653589793,
                   1e300,
                   1e-310}) {
    values.push_back(T(x));
    values.push_back(T(-x));
  }
  for (T x : {Limits::infinity(), Limits::max(), Limits::min(), Limits::denorm_min(),
              Limits::min() / 2, T(16777216), T(9007199254740992.0)}) {
    values.push_back(x);
    values.push_back(-x);
  }
  values.push_back(Limits::quiet_NaN());
  return values;
}

// Special values, the range, every magnitude, every bit pattern.
template <class T>
std::vector<T> arguments(double low, double high, int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values = special_values<T>();
  auto uniform = [&] { return double(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < count / 2; ++i) values.push_back(T(low + (high - low) * uniform()));
  for (int i = 0; i < count / 4; ++i)
    values.push_back(T((random() & 1 ? 1.0 : -1.0) * std::exp2(uniform() * 60 - 45)));
  for (int i = 0; i < count / 4; ++i) {
    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> bits = decltype(bits)(random());
    T value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  return values;
}

class VmMath : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    table_ = kernel_table(GetParam());
    if (table_ == nullptr) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
  }

  template <class T>
  void check_unary() {
    const Lane lane = sizeof(T) == 4 ? Lane::kF32 : Lane::kF64;
    const Lane mask = sizeof(T) == 4 ? Lane::kM32 : Lane::kM64;
    for (const UnaryCase& c : kUnary) {
      const Loop loop = table_->primitive(c.prim, lane, mask, 1);
      ASSERT_NE(loop, nullptr) << name_of(c.prim);
      const std::vector<T> x = arguments<T>(c.low, c.high, 20000, uint64_t(c.prim));
      std::vector<T> got(x.size());
      loop(got.data(), x.data(), nullptr, nullptr, int64_t(x.size()));
      const double bound = sizeof(T) == 4 ? c.ulp_f32 : c.ulp_f64;
      int shown = 0;
      for (size_t i = 0; i < x.size() && shown < 5; ++i) {
        const long double want = c.reference(x[i]);
        const double error = ulps(got[i], want);
        if (error <= bound) continue;
        ADD_FAILURE() << name_of(c.prim) << "(" << std::hexfloat << x[i] << ") = " << got[i]
                      << std::defaultfloat << " expected " << double(want) << ", " << error
                      << " ulp";
        ++shown;
      }
    }
  }

  template <class T>
  void check_binary() {
    const Lane lane = sizeof(T) == 4 ? Lane::kF32 : Lane::kF64;
    const Lane mask = sizeof(T) == 4 ? Lane::kM32 : Lane::kM64;
    const std::vector<T> special = special_values<T>();
    for (const BinaryCase& c : kBinary) {
      std::vector<T> x = arguments<T>(-20, 20, 20000, 1), y = arguments<T>(-20, 20, 20000, 2);
      for (T a : special)
        for (T b : special) {
          x.push_back(a);
          y.push_back(b);
        }
      std::vector<T> got(x.size());
      table_->primitive(c.prim, lane, mask, 3)(got.data(), x.data(), y.data(), nullptr,
                                               int64_t(x.size()));
      const double bound = sizeof(T) == 4 ? c.ulp_f32 : c.ulp_f64;
      int shown = 0;
      for (size_t i = 0; i < x.size() && shown < 5; ++i) {
        const long double want = c.reference(x[i], y[i]);
        const bool either_zero =
            want == 0 && got[i] == 0 && (c.prim == Prim::kMin || c.prim == Prim::kMax);
        const double error = either_zero ? 0 : ulps(got[i], want);
        if (error <= bound) continue;
        ADD_FAILURE() << name_of(c.prim) << "(" << std::hexfloat << x[i] << ", " << y[i]
                      << ") = " << got[i] << std::defaultfloat << " expected " << double(want)
                      << ", " << error << " ulp";
        ++shown;
      }
    }
  }

  // Loops with one operand in a register agree with the loop where both vary, also in place.
  template <class T>
  void check_variants() {
    const Lane lane = sizeof(T) == 4 ? Lane::kF32 : Lane::kF64;
    const Lane mask = sizeof(T) == 4 ? Lane::kM32 : Lane::kM64;
    const std::vector<T> x = arguments<T>(-5, 5, 500, 3);
    const int64_t n = int64_t(x.size());
    const T value = T(1.75);
    const std::vector<T> values(x.size(), value);
    for (const BinaryCase& c : kBinary) {
      std::vector<T> both(x.size()), one(x.size());
      table_->primitive(c.prim, lane, mask, 3)(both.data(), x.data(), values.data(), nullptr, n);
      table_->primitive(c.prim, lane, mask, 1)(one.data(), x.data(), &value, nullptr, n);
      EXPECT_EQ(std::memcmp(both.data(), one.data(), both.size() * sizeof(T)), 0)
          << name_of(c.prim) << " a varies";
      std::vector<T> in_place = x;
      table_->primitive(c.prim, lane, mask, 1)(in_place.data(), in_place.data(), &value, nullptr,
                                               n);
      EXPECT_EQ(std::memcmp(both.data(), in_place.data(), both.size() * sizeof(T)), 0)
          << name_of(c.prim) << " in place";
      table_->primitive(c.prim, lane, mask, 3)(both.data(), values.data(), x.data(), nullptr, n);
      table_->primitive(c.prim, lane, mask, 2)(one.data(), &value, x.data(), nullptr, n);
      EXPECT_EQ(std::memcmp(both.data(), one.data(), both.size() * sizeof(T)), 0)
          << name_of(c.prim) << " b varies";
    }
    for (const UnaryCase& c : kUnary) {
      std::vector<T> fresh(x.size()), in_place = x;
      const Loop loop = table_->primitive(c.prim, lane, mask, 1);
      loop(fresh.data(), x.data(), nullptr, nullptr, n);
      loop(in_place.data(), in_place.data(), nullptr, nullptr, n);
      EXPECT_EQ(std::memcmp(fresh.data(), in_place.data(), fresh.size() * sizeof(T)), 0)
          << name_of(c.prim) << " in place";
    }
  }

  const KernelTable* table_ = nullptr;
};

TEST_P(VmMath, UnaryF32) { check_unary<float>(); }
TEST_P(VmMath, UnaryF64) { check_unary<double>(); }
TEST_P(VmMath, BinaryF32) { check_binary<float>(); }
TEST_P(VmMath, BinaryF64) { check_binary<double>(); }
TEST_P(VmMath, VariantsF32) { check_variants<float>(); }
TEST_P(VmMath, VariantsF64) { check_variants<double>(); }

// The arithmetic is the same in both sets, so the results are: programs do not change with the CPU.
TEST(VmMathSets, AgreeBitForBit) {
  const KernelTable* v3 = kernel_table(Isa::kV3);
  const KernelTable* v4 = kernel_table(Isa::kV4);
  if (v3 == nullptr || v4 == nullptr) GTEST_SKIP() << "this CPU has one set only";
  for (const UnaryCase& c : kUnary) {
    const std::vector<float> x = arguments<float>(c.low, c.high, 4000, 9);
    std::vector<float> a(x.size()), b(x.size());
    v3->primitive(c.prim, Lane::kF32, Lane::kM32, 1)(a.data(), x.data(), nullptr, nullptr,
                                                     int64_t(x.size()));
    v4->primitive(c.prim, Lane::kF32, Lane::kM32, 1)(b.data(), x.data(), nullptr, nullptr,
                                                     int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) << name_of(c.prim) << " " << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, VmMath, testing::Values(Isa::kV3, Isa::kV4),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace fornax::expr
