// Programs: compilation, storage conversions, shapes and strides, in-place use, threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fornax/base/dtype.h"
#include "fornax/base/error.h"
#include "fornax/base/threads.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/kernels/table.h"
#include "fornax/expr/vm.h"

namespace fornax::expr {
namespace {

Expr real_input(int i) { return input(i, Kind::kReal); }

template <class Body>
Program program_of(Body body, std::vector<Dtype> outputs, std::vector<InputSpec> inputs,
                   bool f64 = false) {
  Arena arena;
  Scope scope(arena);
  const std::vector<Expr> roots = body();
  return compile(roots, outputs, inputs, f64);
}

const InputSpec kF32In{Dtype::kF32};

TEST(Vm, RunsOneInstructionForFusedMultiplyAdd) {
  const Program p =
      program_of([] { return std::vector<Expr>{real_input(0) * real_input(1) + real_input(2)}; },
                 {Dtype::kF32}, {kF32In, kF32In, kF32In});
  EXPECT_EQ(p.code.size(), 1u);
  EXPECT_EQ(p.slots, 0);
  const float a[] = {1, 2, 3}, b[] = {4, 5, 6}, c[] = {0.5f, -1, 2};
  float out[3];
  const void* in[] = {a, b, c};
  void* o[] = {out};
  run_contiguous(p, in, o, 3);
  EXPECT_EQ(out[0], 4.5f);
  EXPECT_EQ(out[1], 9.f);
  EXPECT_EQ(out[2], 20.f);
}

TEST(Vm, UniformSubexpressionsRunOncePerCall) {
  const Program p =
      program_of([] { return std::vector<Expr>{real_input(0) * (exp(real_input(1)) + 1.0)}; },
                 {Dtype::kF32}, {kF32In, InputSpec{Dtype::kF64, true}});
  EXPECT_EQ(p.code.size(), 1u);
  EXPECT_EQ(p.prelude.size(), 3u);  // load, exp, add
  const float x[] = {2, -3};
  const double alpha = 0;
  float out[2];
  const void* in[] = {x, &alpha};
  void* o[] = {out};
  run_contiguous(p, in, o, 2);
  EXPECT_EQ(out[0], 4.f);
  EXPECT_EQ(out[1], -6.f);
}

TEST(Vm, ReportsWhichInputsAreRead) {
  const Program p = program_of([] { return std::vector<Expr>{real_input(2) + 1.0}; }, {Dtype::kF32},
                               {kF32In, kF32In, kF32In});
  EXPECT_EQ(p.used_inputs, 4u);
  const float x = 1;
  float out = 0;
  const void* in[] = {nullptr, nullptr, &x};
  void* o[] = {&out};
  run_contiguous(p, in, o, 1);
  EXPECT_EQ(out, 2.f);
}

TEST(Vm, RefusesTooManyOperands) {
  std::vector<InputSpec> inputs(kMaxOperands, kF32In);
  EXPECT_THROW(program_of([] { return std::vector<Expr>{real_input(0)}; }, {Dtype::kF32}, inputs),
               Error);
}

// ---- Fusion rounds twice and keeps the order of operands.

TEST(Vm, SuperinstructionsEqualSeparateOperations) {
  const int n = 1000;
  std::mt19937 random(5);
  std::vector<float> v[3];
  for (auto& x : v)
    for (int i = 0; i < n; ++i) x.push_back(float(int(random() % 2001) - 1000) * 0.0371f);
  using Op = Expr (*)(Expr, Expr);
  using Scalar = float (*)(float, float);
  const Op ops[] = {[](Expr a, Expr b) { return a + b; }, [](Expr a, Expr b) { return a - b; },
                    [](Expr a, Expr b) { return a * b; }, [](Expr a, Expr b) { return a / b; }};
  const Scalar scalars[] = {
      [](float a, float b) { return a + b; }, [](float a, float b) { return a - b; },
      [](float a, float b) { return a * b; }, [](float a, float b) { return a / b; }};
  for (int inner = 0; inner < 4; ++inner)
    for (int outer = 0; outer < 4; ++outer)
      for (bool left : {true, false})
        for (int uniform = 0; uniform < 8; ++uniform) {
          std::vector<InputSpec> specs(3, kF32In);
          for (int i = 0; i < 3; ++i) specs[size_t(i)].uniform = uniform >> i & 1;
          const Program p = program_of(
              [&] {
                const Expr t = ops[inner](real_input(0), real_input(1));
                return std::vector<Expr>{left ? ops[outer](t, real_input(2))
                                              : ops[outer](real_input(2), t)};
              },
              {Dtype::kF32}, specs);
          std::vector<float> out(n);
          const void* in[] = {v[0].data(), v[1].data(), v[2].data()};
          void* o[] = {out.data()};
          run_contiguous(p, in, o, n);
          for (int i = 0; i < n; ++i) {
            auto at = [&](int k) { return v[k][size_t(uniform >> k & 1 ? 0 : i)]; };
            volatile float t = scalars[inner](at(0), at(1));
            const float want = left ? scalars[outer](t, at(2)) : scalars[outer](at(2), t);
            ASSERT_TRUE(out[size_t(i)] == want || want != want)
                << inner << outer << left << uniform << " at " << i;
          }
        }
}

// ---- Dtypes

template <class T>
T stored(double x) {
  return T(x);
}
template <>
BFloat16 stored(double x) {
  return BFloat16(float(x));
}
template <>
Half stored(double x) {
  return Half(float(x));
}
double loaded(double x) { return x; }

template <class From, class To>
void check_conversion(bool f64) {
  std::vector<From> x;
  for (double v : {0.0, 1.0, 2.0, 3.0, 17.0, 100.0, 127.0}) x.push_back(stored<From>(v));
  if constexpr (std::numeric_limits<From>::is_signed || !std::is_integral_v<From>)
    for (double v : {-1.0, -2.0, -100.0, -128.0}) x.push_back(stored<From>(v));
  for (int i = 0; i < 30; ++i) x.push_back(stored<From>(i * 4.0));
  const Dtype from = dtype_of<From>, to = dtype_of<To>;
  const Kind kind = is_bool(from) ? Kind::kBool : is_integer(from) ? Kind::kInt : Kind::kReal;
  const Program p =
      program_of([&] { return std::vector<Expr>{input(0, kind)}; }, {to}, {InputSpec{from}}, f64);
  std::vector<unsigned char> out(x.size() * sizeof(To));
  // vector<bool> is no array
  std::vector<unsigned char> raw(x.size() * sizeof(From));
  for (size_t i = 0; i < x.size(); ++i) {
    const From value = x[i];
    std::memcpy(&raw[i * sizeof(From)], &value, sizeof(From));
  }
  const void* in[] = {raw.data()};
  void* o[] = {out.data()};
  run_contiguous(p, in, o, int64_t(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    To got;
    std::memcpy(&got, &out[i * sizeof(To)], sizeof(To));
    const From value = x[i];
    To want;
    if constexpr (std::is_same_v<To, bool>) {
      want = loaded(value) != 0;
    } else if constexpr (std::is_integral_v<To>) {
      want = To(int64_t(loaded(value)));
    } else {
      want = stored<To>(loaded(value));
    }
    EXPECT_EQ(loaded(got), loaded(want))
        << name_of(from) << " to " << name_of(to) << ": " << loaded(value);
  }
}

template <class From>
void check_conversions_from() {
  for (bool f64 : {false, true}) {
    check_conversion<From, bool>(f64);
    check_conversion<From, uint8_t>(f64);
    check_conversion<From, int8_t>(f64);
    check_conversion<From, int16_t>(f64);
    check_conversion<From, int32_t>(f64);
    check_conversion<From, int64_t>(f64);
    check_conversion<From, Half>(f64);
    check_conversion<From, BFloat16>(f64);
    check_conversion<From, float>(f64);
    check_conversion<From, double>(f64);
  }
}

TEST(VmConvert, EveryRealDtypeToEveryOther) {
  check_conversions_from<bool>();
  check_conversions_from<uint8_t>();
  check_conversions_from<int8_t>();
  check_conversions_from<int16_t>();
  check_conversions_from<int32_t>();
  check_conversions_from<int64_t>();
  check_conversions_from<Half>();
  check_conversions_from<BFloat16>();
  check_conversions_from<float>();
  check_conversions_from<double>();
}

TEST(VmConvert, NanAndOutOfRangeToIntegersAreDefined) {
  const float x[] = {std::numeric_limits<float>::quiet_NaN(), 1e30f, -1e30f, -1.9f, 300.f, 2.9f};
  const void* in[] = {x};
  const Program p =
      program_of([] { return std::vector<Expr>{real_input(0)}; }, {Dtype::kI64}, {kF32In});
  int64_t wide[6];
  void* o[] = {wide};
  run_contiguous(p, in, o, 6);
  EXPECT_EQ(wide[0], INT64_MIN);
  EXPECT_EQ(wide[1], INT64_MIN);
  EXPECT_EQ(wide[2], INT64_MIN);
  EXPECT_EQ(wide[3], -1);
  EXPECT_EQ(wide[4], 300);
  EXPECT_EQ(wide[5], 2);
  const Program q =
      program_of([] { return std::vector<Expr>{real_input(0)}; }, {Dtype::kU8}, {kF32In});
  uint8_t narrow[6];
  void* r[] = {narrow};
  run_contiguous(q, in, r, 6);
  EXPECT_EQ(narrow[3], 255);
  EXPECT_EQ(narrow[4], 44);
  EXPECT_EQ(narrow[5], 2);
}

TEST(VmConvert, HalvesRoundToEvenForEveryPattern) {
  std::vector<float> x;
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float f = float(Half(uint16_t(h), Half::FromBits()));
    x.push_back(f);
    x.push_back(std::nextafter(f * 1.0009765625f, 1e30f));
    x.push_back(f * 1.00048828125f);
  }
  for (int which = 0; which < 2; ++which) {
    const Dtype to = which ? Dtype::kBF16 : Dtype::kF16;
    const Program p = program_of([] { return std::vector<Expr>{real_input(0)}; }, {to}, {kF32In});
    std::vector<uint16_t> out(x.size());
    const void* in[] = {x.data()};
    void* o[] = {out.data()};
    run_contiguous(p, in, o, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t want = which ? BFloat16(x[i]).bits : Half(x[i]).bits;
      if (x[i] != x[i]) {
        EXPECT_GT(out[i] & 0x7fff, which ? 0x7f80 : 0x7c00);
      } else {
        ASSERT_EQ(out[i], want) << x[i];
      }
    }
  }
}

TEST(VmConvert, ComplexPartsConjugatedAndNegated) {
  const complex64 x[] = {{1, 2}, {-3, 4}, {0.5f, -0.25f}};
  complex64 out[3];
  const void* in[] = {x};
  void* o[] = {out};
  for (bool conjugate : {false, true})
    for (bool negate : {false, true}) {
      InputSpec spec{Dtype::kC64, false, conjugate, negate};
      const Program p = program_of([] { return std::vector<Expr>{input(0, Kind::kComplex)}; },
                                   {Dtype::kC64}, {spec});
      run_contiguous(p, in, o, 3);
      for (int i = 0; i < 3; ++i) {
        complex64 want = conjugate ? conj(x[i]) : x[i];
        if (negate) want = -want;
        EXPECT_EQ(out[i], want) << conjugate << negate << i;
      }
    }
}

TEST(VmConvert, ComplexProductInEveryComplexDtype) {
  auto body = [] { return std::vector<Expr>{input(0, Kind::kComplex) * input(1, Kind::kComplex)}; };
  const complex128 a{1.5, -2}, b{0.25, 4};
  const complex128 want = a * b;
  {
    const Program p = program_of(body, {Dtype::kC128}, {{Dtype::kC128}, {Dtype::kC128}}, true);
    complex128 out;
    const void* in[] = {&a, &b};
    void* o[] = {&out};
    run_contiguous(p, in, o, 1);
    EXPECT_EQ(out, want);
  }
  {
    const complex32 x{Half(1.5f), Half(-2.f)}, y{Half(0.25f), Half(4.f)};
    const Program p = program_of(body, {Dtype::kC32}, {{Dtype::kC32}, {Dtype::kC32}});
    complex32 out;
    const void* in[] = {&x, &y};
    void* o[] = {&out};
    run_contiguous(p, in, o, 1);
    EXPECT_EQ(float(out.re), float(want.re));
    EXPECT_EQ(float(out.im), float(want.im));
  }
}

// ---- Integers

template <class T>
std::vector<T> integers_through(const Program& p, const std::vector<T>& a,
                                const std::vector<T>& b) {
  std::vector<T> out(a.size());
  const void* in[] = {a.data(), b.data()};
  void* o[] = {out.data()};
  run_contiguous(p, in, o, int64_t(a.size()));
  return out;
}

TEST(VmInteger, ExactBeyondDoublesAndWrapping) {
  const std::vector<int64_t> a = {INT64_MAX, (int64_t(1) << 53) + 1, -7, INT64_MIN, 3};
  const std::vector<int64_t> b = {1, 1, 3, -1, 0};
  const InputSpec i64{Dtype::kI64};
  auto result = [&](Expr (*op)(Expr, Expr)) {
    const Program p = program_of(
        [&] { return std::vector<Expr>{op(input(0, Kind::kInt), input(1, Kind::kInt))}; },
        {Dtype::kI64}, {i64, i64});
    return integers_through(p, a, b);
  };
  EXPECT_EQ(result([](Expr x, Expr y) { return x + y; }),
            (std::vector<int64_t>{INT64_MIN, (int64_t(1) << 53) + 2, -4, INT64_MAX, 3}));
  EXPECT_EQ(result([](Expr x, Expr y) { return make(Prim::kDiv, x, y); }),
            (std::vector<int64_t>{INT64_MAX, (int64_t(1) << 53) + 1, -2, INT64_MIN, 0}));
  EXPECT_EQ(result(fmod), (std::vector<int64_t>{0, 0, -1, 0, 0}));
  EXPECT_EQ(result(mod), (std::vector<int64_t>{0, 0, 2, 0, 0}));
  EXPECT_EQ(result(pow), (std::vector<int64_t>{INT64_MAX, (int64_t(1) << 53) + 1, -343, 0, 1}));
}

template <class T>
void check_narrow() {
  std::vector<T> a, b;
  std::mt19937_64 random(11);
  const T edges[] = {0,
                     1,
                     T(-1),
                     std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max(),
                     T(std::numeric_limits<T>::max() / 2),
                     2,
                     3,
                     31,
                     32,
                     33,
                     63,
                     64};
  for (T x : edges)
    for (T y : edges) {
      a.push_back(x);
      b.push_back(y);
    }
  for (int i = 0; i < 600; ++i) {
    a.push_back(T(random()));
    b.push_back(T(random()));
  }
  struct Case {
    Prim prim;
    int64_t (*reference)(int64_t, int64_t);
  };
  const Case cases[] = {
      {Prim::kAdd, [](int64_t x, int64_t y) { return x + y; }},
      {Prim::kSub, [](int64_t x, int64_t y) { return x - y; }},
      {Prim::kMul, [](int64_t x, int64_t y) { return x * y; }},
      {Prim::kDiv, [](int64_t x, int64_t y) { return y == 0 ? 0 : x / y; }},
      {Prim::kFmod, [](int64_t x, int64_t y) { return y == 0 ? 0 : x % y; }},
      {Prim::kMod, [](int64_t x, int64_t y) { return y == 0 ? 0 : ((x % y) + y) % y; }},
      {Prim::kMin, [](int64_t x, int64_t y) { return x < y ? x : y; }},
      {Prim::kMax, [](int64_t x, int64_t y) { return x > y ? x : y; }},
      {Prim::kAnd, [](int64_t x, int64_t y) { return x & y; }},
      {Prim::kOr, [](int64_t x, int64_t y) { return x | y; }},
      {Prim::kXor, [](int64_t x, int64_t y) { return x ^ y; }},
      {Prim::kShl,
       [](int64_t x, int64_t y) { return y < 0 || y > 63 ? 0 : int64_t(uint64_t(x) << y); }},
      {Prim::kShr, [](int64_t x, int64_t y) { return x >> (y < 0 || y > 63 ? 63 : y); }},
  };
  const InputSpec spec{dtype_of<T>};
  for (const Case& c : cases) {
    const Program p = program_of(
        [&] { return std::vector<Expr>{make(c.prim, input(0, Kind::kInt), input(1, Kind::kInt))}; },
        {dtype_of<T>}, {spec, spec});
    EXPECT_EQ(p.slot_bytes, 4) << name_of(c.prim);
    const std::vector<T> out = integers_through(p, a, b);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(out[i], T(c.reference(a[i], b[i])))
          << name_of(c.prim) << "(" << int64_t(a[i]) << ", " << int64_t(b[i]) << ") of "
          << short_name_of(dtype_of<T>);
  }
}

TEST(VmInteger, NarrowTypesWrapLikeSixtyFourBits) {
  check_narrow<uint8_t>();
  check_narrow<int8_t>();
  check_narrow<int16_t>();
  check_narrow<int32_t>();
}

// (a + b) < 0 looks at the whole sum, so 32 bits would be wrong.
TEST(VmInteger, ComparesSumsInSixtyFourBits) {
  const InputSpec i32{Dtype::kI32};
  const Program p = program_of(
      [] {
        const Expr sum = input(0, Kind::kInt) + input(1, Kind::kInt);
        return std::vector<Expr>{sum < integer(0), sum};
      },
      {Dtype::kBool, Dtype::kI64}, {i32, i32});
  const int32_t a[] = {INT32_MAX, 1}, b[] = {INT32_MAX, -2};
  bool less[2];
  int64_t sum[2];
  const void* in[] = {a, b};
  void* o[] = {less, sum};
  run_contiguous(p, in, o, 2);
  EXPECT_FALSE(less[0]);
  EXPECT_TRUE(less[1]);
  EXPECT_EQ(sum[0], 2 * int64_t(INT32_MAX));
}

TEST(VmInteger, RareFunctionsTakeTheirIntegerForm) {
  const InputSpec i64{Dtype::kI64};
  const Program p = program_of(
      [] { return std::vector<Expr>{call("gcd", input(0, Kind::kInt), input(1, Kind::kInt))}; },
      {Dtype::kI64}, {i64, i64});
  const std::vector<int64_t> a = {12, (int64_t(1) << 60) + 2, 0}, b = {18, 6, 5};
  EXPECT_EQ(integers_through(p, a, b), (std::vector<int64_t>{6, 6, 5}));
}

TEST(VmLogic, MasksSelectAndStoreAsBytes) {
  const Program p = program_of(
      [] {
        const Expr x = real_input(0), flag = input(1, Kind::kBool);
        const Expr positive = x > Expr(0.0);
        return std::vector<Expr>{where(positive & ~flag, x, Expr(-1.0)), positive ^ flag,
                                 cast(flag, Kind::kReal) + x};
      },
      {Dtype::kF64, Dtype::kBool, Dtype::kF32}, {kF32In, InputSpec{Dtype::kBool}});
  const float x[] = {1, 2, -3, std::numeric_limits<float>::quiet_NaN()};
  const bool flag[] = {false, true, true, false};
  double chosen[4];
  bool either[4];
  float sum[4];
  const void* in[] = {x, flag};
  void* o[] = {chosen, either, sum};
  run_contiguous(p, in, o, 4);
  EXPECT_EQ(chosen[0], 1);
  EXPECT_EQ(chosen[1], -1);
  EXPECT_EQ(chosen[2], -1);
  EXPECT_EQ(chosen[3], -1);
  EXPECT_TRUE(either[0]);
  EXPECT_FALSE(either[1]);
  EXPECT_TRUE(either[2]);
  EXPECT_FALSE(either[3]);
  EXPECT_EQ(sum[1], 3.f);
  EXPECT_EQ(sum[2], -2.f);
}

// The value not selected, even NaN or infinite, never shows.
TEST(VmLogic, WhereWithUniformOperands) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float x[] = {1, -1, 0}, y[] = {5, 6, 7};
  for (int uniform = 0; uniform < 4; ++uniform) {
    const Program p = program_of(
        [] {
          return std::vector<Expr>{where(real_input(0) < Expr(0.0), real_input(1), real_input(2))};
        },
        {Dtype::kF32},
        {kF32In, InputSpec{Dtype::kF32, (uniform & 1) != 0},
         InputSpec{Dtype::kF32, (uniform & 2) != 0}});
    float out[3];
    const void* in[] = {x, uniform & 1 ? &nan : y, y};
    void* o[] = {out};
    run_contiguous(p, in, o, 3);
    EXPECT_EQ(out[0], 5.f);
    EXPECT_EQ(out[2], uniform & 2 ? 5.f : 7.f);
    EXPECT_TRUE(uniform & 1 ? out[1] != out[1] : out[1] == 6.f);
  }
}

}  // namespace
}  // namespace fornax::expr
