// Matrix products against plain loops in double, for every dtype, engine and many layouts.
#include "fornax/backends/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fornax/base/error.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

using Z = Complex<double>;

template <class T>
Z to_z(T v) {
  if constexpr (is_complex(dtype_of<T>))
    return Z(double(float(1) * v.re), double(float(1) * v.im));
  else
    return Z(double(v));
}
template <>
Z to_z(Complex<double> v) {
  return v;
}

template <class T>
T from_z(Z v) {
  if constexpr (is_complex(dtype_of<T>)) {
    using R = decltype(T().re);
    return T(R(v.re), R(v.im));
  } else {
    return T(v.re);
  }
}

// Relative error one rounding of T makes, and of the type its sums are in.
template <class T>
double epsilon() {
  switch (to_real(dtype_of<T>)) {
    case Dtype::kF16: return 0x1p-11;
    case Dtype::kBF16: return 0x1p-8;
    case Dtype::kF32: return 0x1p-23;
    case Dtype::kF64: return 0x1p-52;
    default: return 0;
  }
}
template <class T>
double sum_epsilon() {
  return to_real(dtype_of<T>) == Dtype::kF64 ? 0x1p-52 : 0x1p-23;
}

enum class Layout { kRows, kColumns, kGaps, kReversed, kRepeated };

// A matrix batch in some layout: element (x, i, j) lies at offset + x * batch + i * row + j * col.
template <class T>
struct Matrix {
  std::vector<T> data;
  int64_t offset = 0, batch = 0, row = 0, col = 0;

  Matrix(Layout layout, int64_t batches, int64_t rows, int64_t cols) {
    switch (layout) {
      case Layout::kRows: row = cols, col = 1; break;
      case Layout::kColumns: row = 1, col = rows; break;
      case Layout::kGaps: row = 3 * cols + 5, col = 3; break;
      case Layout::kReversed: row = -cols, col = 1, offset = (rows - 1) * cols; break;
      case Layout::kRepeated: row = 0, col = 1; break;
    }
    const int64_t used = layout == Layout::kGaps ? rows * row : rows * cols;
    batch = used + 7;
    data.resize(size_t(batches * batch + 16));
  }
  T& at(int64_t x, int64_t i, int64_t j) {
    return data[size_t(offset + x * batch + i * row + j * col)];
  }
  T* origin() { return data.data() + offset; }
};

template <class T>
void fill(std::vector<T>& v, std::mt19937& random) {
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int64_t> whole(-1000000, 1000000);
  for (T& e : v) {
    if constexpr (is_integer(dtype_of<T>))
      e = T(whole(random));
    else
      e = from_z<T>(Z(real(random), real(random)));
  }
}

struct Case {
  int64_t batch, m, n, k;
  Layout a = Layout::kRows, b = Layout::kRows, c = Layout::kRows;
  GemmScalar alpha = 1, beta = 0;
  bool bias = false, conj_a = false, conj_b = false;
};

// Whether `got` is alpha * sum + beta * before + bias within what rounding explains. magnitude: sum
// of the terms' sizes over sqrt(k).
template <class T>
bool is_close(const Case& t, Z sum, double magnitude, Z before, Z bias, T got) {
  Z want = Z(t.alpha.re, t.alpha.im) * sum + bias;
  if (t.beta.re != 0 || t.beta.im != 0) want = want + Z(t.beta.re, t.beta.im) * before;
  const double size = std::abs(want.re) + std::abs(want.im);
  const double scale = std::abs(t.alpha.re) + std::abs(t.alpha.im);
  const double slack = epsilon<T>() * (size + 2e-3) + sum_epsilon<T>() *
                                                          (size + scale * magnitude + 4) *
                                                          (2 + std::sqrt(double(t.k)));
  const Z z = to_z(got);
  return std::abs(z.re - want.re) <= slack && std::abs(z.im - want.im) <= slack;
}

// The same for integers: equal modulo 2^bits.
template <class T>
bool is_exact(const Case& t, uint64_t sum, T before, T bias, T got) {
  const uint64_t want = uint64_t(t.alpha.integer) * sum +
                        uint64_t(t.beta.integer) * uint64_t(int64_t(before)) +
                        uint64_t(int64_t(bias));
  return T(want) == got;
}

template <class T>
bool element_is_right(const Case& t, Matrix<T>& a, Matrix<T>& b, T before, T bias, T got, int64_t x,
                      int64_t i, int64_t j) {
  if constexpr (is_integer(dtype_of<T>)) {
    uint64_t sum = 0;
    for (int64_t p = 0; p < t.k; p++)
      sum += uint64_t(int64_t(a.at(x, i, p))) * uint64_t(int64_t(b.at(x, p, j)));
    return is_exact<T>(t, sum, before, bias, got);
  } else {
    Z sum;
    double magnitude = 0;
    for (int64_t p = 0; p < t.k; p++) {
      const Z u = to_z(a.at(x, i, p)), v = to_z(b.at(x, p, j));
      const Z uv = (t.conj_a ? conj(u) : u) * (t.conj_b ? conj(v) : v);
      sum = sum + uv;
      magnitude += std::abs(uv.re) + std::abs(uv.im);
    }
    return is_close<T>(t, sum, magnitude / std::sqrt(double(t.k) + 1), to_z(before), to_z(bias),
                       got);
  }
}

template <class T>
void check(const Case& t, unsigned seed = 1) {
  std::mt19937 random(seed);
  Matrix<T> a(t.a, t.batch, t.m, t.k), b(t.b, t.batch, t.k, t.n), c(t.c, t.batch, t.m, t.n);
  std::vector<T> bias(size_t(t.n + 1));
  fill(a.data, random);
  fill(b.data, random);
  fill(c.data, random);
  fill(bias, random);
  const auto before = c;
  gemm({.dtype = dtype_of<T>,
        .batch = t.batch,
        .m = t.m,
        .n = t.n,
        .k = t.k,
        .a = a.origin(),
        .a_batch = a.batch,
        .a_row = a.row,
        .a_col = a.col,
        .b = b.origin(),
        .b_batch = b.batch,
        .b_row = b.row,
        .b_col = b.col,
        .c = c.origin(),
        .c_batch = c.batch,
        .c_row = c.row,
        .c_col = c.col,
        .bias = t.bias ? bias.data() : nullptr,
        .alpha = t.alpha,
        .beta = t.beta,
        .conj_a = t.conj_a,
        .conj_b = t.conj_b});
  std::vector<bool> written(c.data.size());
  auto old = before;
  for (int64_t x = 0; x < t.batch; x++)
    for (int64_t i = 0; i < t.m; i++)
      for (int64_t j = 0; j < t.n; j++) {
        written[size_t(&c.at(x, i, j) - c.data.data())] = true;
        const T bias_value = t.bias ? bias[size_t(j)] : T(0);
        ASSERT_TRUE(
            element_is_right<T>(t, a, b, old.at(x, i, j), bias_value, c.at(x, i, j), x, i, j))
            << name_of(dtype_of<T>) << " batch " << t.batch << " m " << t.m << " n " << t.n << " k "
            << t.k << " layouts " << int(t.a) << int(t.b) << int(t.c) << " alpha " << t.alpha.re
            << " beta " << t.beta.re << " at " << x << "," << i << "," << j << ": got "
            << to_z(c.at(x, i, j)).re;
      }
  for (size_t i = 0; i < c.data.size(); i++) {
    if (!written[i]) {
      ASSERT_EQ(0, memcmp(&c.data[i], &before.data[i], sizeof(T)))
          << "touched memory between elements, at " << i;
    }
  }
}

constexpr int64_t kShapes[][3] = {
    {1, 1, 1},     {2, 3, 4},    {4, 4, 4},   {1, 100, 50}, {1, 600, 33},  {3, 130, 157},
    {100, 1, 70},  {128, 2, 96}, {5, 17, 0},  {16, 16, 16}, {33, 47, 65},  {15, 300, 31},
    {17, 90, 900}, {7, 64, 800}, {97, 35, 5}, {80, 65, 64}, {29, 600, 35}, {300, 20, 40}};
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kGaps, Layout::kReversed,
                               Layout::kRepeated};

template <class T>
void check_layouts() {
  for (const auto& s : kShapes) {
    const Layout some[] = {Layout::kRows, Layout::kColumns, Layout::kGaps};
    for (Layout a : kLayouts)
      for (Layout b : kLayouts) {
        // Odd layouts are tried once each, the ordinary ones with every layout of C.
        for (Layout c : some) {
          if (c != Layout::kRows && (a > Layout::kColumns || b > Layout::kColumns)) continue;
          if (a > Layout::kColumns && b > Layout::kColumns && a != b) continue;
          check<T>({.batch = 1, .m = s[0], .n = s[1], .k = s[2], .a = a, .b = b, .c = c});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
  }
}

template <class T>
void check_factors() {
  for (const auto& s : {kShapes[1], kShapes[3], kShapes[5], kShapes[7], kShapes[8], kShapes[10],
                        kShapes[12], kShapes[16]}) {
    for (Layout b : {Layout::kRows, Layout::kColumns})
      for (Layout c : {Layout::kRows, Layout::kColumns})
        for (double beta : {0.0, 1.0, -2.0})
          for (double alpha : {1.0, 3.0}) {
            const Case t{.batch = 1,
                         .m = s[0],
                         .n = s[1],
                         .k = s[2],
                         .b = b,
                         .c = c,
                         .alpha = int64_t(alpha),
                         .beta = int64_t(beta),
                         .bias = beta != 1.0};
            check<T>(t);
            if (testing::Test::HasFatalFailure()) return;
          }
  }
}

template <class T>
void check_batches() {
  for (const auto& s : {kShapes[1], kShapes[9], kShapes[10], kShapes[5]})
    for (int64_t batch : {0, 2, 5})
      for (Layout b : {Layout::kRows, Layout::kColumns}) {
        check<T>(
            {.batch = batch, .m = s[0], .n = s[1], .k = s[2], .b = b, .bias = b == Layout::kRows});
        if (testing::Test::HasFatalFailure()) return;
      }
}

template <class T>
class GemmOf : public testing::Test {};
using All = testing::Types<float, double, BFloat16, Half, Complex<float>, Complex<double>,
                           Complex<Half>, uint8_t, int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(GemmOf, All);

TYPED_TEST(GemmOf, Layouts) { check_layouts<TypeParam>(); }
TYPED_TEST(GemmOf, Factors) { check_factors<TypeParam>(); }
TYPED_TEST(GemmOf, Batches) { check_batches<TypeParam>(); }

// The library computes what the own kernels compute, where it has the dtype at all.
class LibraryEngine : public testing::Test {
 protected:
  void SetUp() override { set_gemm_engine(GemmEngine::kLibrary); }
  void TearDown() override { set_gemm_engine(GemmEngine::kAuto); }
};
TEST_F(LibraryEngine, F32) {
  check_layouts<float>();
  check_factors<float>();
  check_batches<float>();
}
TEST_F(LibraryEngine, NumberOfThreadsChangesBetweenCalls) {
  const int before = get_num_threads();
  for (int threads : {1, 4, 2, 1}) {
    set_num_threads(threads);
    check<float>({.batch = 1, .m = 100, .n = 200, .k = 150});
  }
  set_num_threads(before);
}
TEST_F(LibraryEngine, BF16) {
  check_layouts<BFloat16>();
  check_factors<BFloat16>();
  check_batches<BFloat16>();
}
TEST_F(LibraryEngine, F16) {
  check_layouts<Half>();
  check_factors<Half>();
  check_batches<Half>();
}

TEST(Gemm, Conjugates) {
  for (const auto& s : {kShapes[1], kShapes[4], kShapes[6], kShapes[8], kShapes[10], kShapes[14]})
    for (Layout a : {Layout::kRows, Layout::kColumns, Layout::kGaps})
      for (Layout b : {Layout::kRows, Layout::kColumns})
        for (Layout c : {Layout::kRows, Layout::kColumns, Layout::kGaps})
          for (int conj = 0; conj < 4; conj++) {
            const Case t{.batch = 1,
                         .m = s[0],
                         .n = s[1],
                         .k = s[2],
                         .a = a,
                         .b = b,
                         .c = c,
                         .alpha = {0.5, -2.0},
                         .beta = {0, double(conj & 1)},
                         .bias = conj == 2,
                         .conj_a = (conj & 1) != 0,
                         .conj_b = (conj & 2) != 0};
            check<Complex<float>>(t);
            check<Complex<double>>(t);
            if (testing::Test::HasFatalFailure()) return;
          }
}

TEST(Gemm, ScalarOfHugeIntegers) {
  const int64_t big = (int64_t(1) << 53) + 1;
  const int64_t a = 3, b = 5;
  int64_t c = 7;
  gemm({.dtype = Dtype::kI64,
        .m = 1,
        .n = 1,
        .k = 1,
        .a = &a,
        .b = &b,
        .c = &c,
        .alpha = big,
        .beta = big});
  EXPECT_EQ(c, big * 22);
}

template <class T>
void check_never_reads_c() {
  for (int64_t m : {1, 4, 40})
    for (int64_t k : {0, 1, 40, 500}) {
      const int64_t n = 70;
      std::vector<T> a(size_t(m * k + 1), T(1)), b(size_t(k * n + 1), T(1));
      std::vector<T> c(size_t(m * n), T(std::numeric_limits<float>::quiet_NaN()));
      gemm({.dtype = dtype_of<T>,
            .m = m,
            .n = n,
            .k = k,
            .a = a.data(),
            .a_row = k,
            .b = b.data(),
            .b_row = n,
            .c = c.data(),
            .c_row = n});
      for (const T& v : c) ASSERT_TRUE(to_z(v) == Z(double(k))) << m << " " << k;
    }
}
TEST(Gemm, NeverReadsCForBetaZero) {
  check_never_reads_c<float>();
  check_never_reads_c<double>();
  check_never_reads_c<BFloat16>();
  check_never_reads_c<Half>();
  check_never_reads_c<Complex<float>>();
  check_never_reads_c<Complex<double>>();
}

// Sums of many small terms would stall if they were kept in the storage type.
TEST(Gemm, ReducedTypesSumInFloat) {
  for (int64_t m : {1, 3, 40})
    for (bool turned : {false, true}) {
      const int64_t n = 80, k = 3000;
      std::vector<BFloat16> a(size_t(m * k), BFloat16(1.f)), b(size_t(k * n), BFloat16(1.f)),
          c(size_t(m * n));
      gemm({.dtype = Dtype::kBF16,
            .m = m,
            .n = n,
            .k = k,
            .a = a.data(),
            .a_row = k,
            .b = b.data(),
            .b_row = turned ? 1 : n,
            .b_col = turned ? k : 1,
            .c = c.data(),
            .c_row = n});
      for (BFloat16 v : c) ASSERT_EQ(float(v), float(BFloat16(3000.f)));
    }
}

TEST(Gemm, SpecialValuesPropagate) {
  const float inf = std::numeric_limits<float>::infinity();
  for (Dtype d : {Dtype::kF16, Dtype::kBF16}) {
    for (int64_t n : {5, 200}) {
      std::vector<uint16_t> a(size_t(2 * 40)), b(size_t(40 * n)), c(size_t(2 * n));
      const uint16_t one = d == Dtype::kF16 ? Half(1.f).bits : BFloat16(1.f).bits;
      const uint16_t infinite = d == Dtype::kF16 ? Half(inf).bits : BFloat16(inf).bits;
      for (auto& v : a) v = one;
      for (auto& v : b) v = one;
      a[3] = infinite;                           // row 0 becomes inf
      b[size_t(7 * n + 2)] = infinite | 0x8000;  // column 2 becomes -inf, where both meet: NaN
      gemm({.dtype = d,
            .m = 2,
            .n = n,
            .k = 40,
            .a = a.data(),
            .a_row = 40,
            .b = b.data(),
            .b_row = n,
            .c = c.data(),
            .c_row = n});
      const auto value = [&](size_t i) {
        return d == Dtype::kF16 ? float(Half(c[i], Half::FromBits()))
                                : float(BFloat16(c[i], BFloat16::FromBits()));
      };
      EXPECT_EQ(value(0), inf);
      EXPECT_TRUE(std::isnan(value(2)));
      EXPECT_EQ(value(size_t(n) + 2), -inf);
      EXPECT_EQ(value(size_t(n)), 40.f);
    }
  }
}

template <class T>
void check_same_on_threads(int64_t batch, int64_t m, int64_t n, int64_t k, bool turned) {
  std::mt19937 random(7);
  std::vector<T> a(size_t(batch * m * k)), b(size_t(batch * k * n));
  fill(a, random);
  fill(b, random);
  std::vector<T> results[2] = {std::vector<T>(size_t(batch * m * n)),
                               std::vector<T>(size_t(batch * m * n))};
  for (int threads : {1, 2}) {
    ThreadLimit limit(threads);
    gemm({.dtype = dtype_of<T>,
          .batch = batch,
          .m = m,
          .n = n,
          .k = k,
          .a = a.data(),
          .a_batch = m * k,
          .a_row = k,
          .b = b.data(),
          .b_batch = k * n,
          .b_row = turned ? 1 : n,
          .b_col = turned ? k : 1,
          .c = results[threads - 1].data(),
          .c_batch = m * n,
          .c_row = n});
  }
  EXPECT_EQ(0, memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(T)))
      << batch << "x" << m << "x" << n << "x" << k;
}
TEST(Gemm, SameBitsOnAnyNumberOfThreads) {
  for (bool turned : {false, true}) {
    check_same_on_threads<float>(1, 200, 333, 500, turned);
    check_same_on_threads<float>(1, 1, 3001, 777, turned);
    check_same_on_threads<float>(3, 150, 90, 110, turned);
    check_same_on_threads<float>(3, 300, 50, 1000, turned);
    check_same_on_threads<float>(1, 33, 700, 1000, turned);
    check_same_on_threads<BFloat16>(1, 3, 3001, 777, turned);
    check_same_on_threads<BFloat16>(1, 60, 800, 500, turned);
    check_same_on_threads<double>(1, 300, 99, 400, turned);
    check_same_on_threads<int32_t>(1, 300, 99, 400, turned);
    check_same_on_threads<Complex<float>>(1, 300, 99, 100, turned);
  }
}

TEST(Gemm, InsideAParallelRegion) {
  std::vector<float> a(size_t(64 * 64), 1.f), c(size_t(8 * 64 * 64));
  parallel_for(0, 8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t x = begin; x < end; x++)
      gemm({.dtype = Dtype::kF32,
            .m = 64,
            .n = 64,
            .k = 64,
            .a = a.data(),
            .a_row = 64,
            .b = a.data(),
            .b_row = 64,
            .c = c.data() + x * 64 * 64,
            .c_row = 64});
  });
  for (float v : c) ASSERT_EQ(v, 64.f);
}

TEST(Gemm, MediumPrecisionIsStillRight) {
  set_float32_matmul_precision(MatmulPrecision::kMedium);
  EXPECT_EQ(float32_matmul_precision(), MatmulPrecision::kMedium);
  for (GemmEngine e : {GemmEngine::kAuto, GemmEngine::kLibrary}) {
    set_gemm_engine(e);
    std::vector<float> a(size_t(64 * 100), 0.5f), b(size_t(100 * 80), 3.f), c(size_t(64 * 80));
    gemm({.dtype = Dtype::kF32,
          .m = 64,
          .n = 80,
          .k = 100,
          .a = a.data(),
          .a_row = 100,
          .b = b.data(),
          .b_row = 80,
          .c = c.data(),
          .c_row = 80});
    for (float v : c) ASSERT_EQ(v, 150.f);
  }
  set_gemm_engine(GemmEngine::kAuto);
  set_float32_matmul_precision(MatmulPrecision::kHighest);
}

TEST(Gemm, Errors) {
  bool c = false;
  EXPECT_THROW(gemm({.dtype = Dtype::kBool, .m = 1, .n = 1, .k = 1, .a = &c, .b = &c, .c = &c}),
               Error);
  EXPECT_THROW(gemm({.dtype = Dtype::kF32, .m = -1, .n = 1, .k = 1}), Error);
}

}  // namespace
}  // namespace fornax::cpu
