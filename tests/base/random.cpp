// Philox against the authors' own code (Random123), and fills against the definitions of
// backends/cpu/random.h computed word by word.
#include "fornax/backends/cpu/random.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "fornax/backends/cpu/kernels/random_kernels.h"
#include "fornax/base/isa.h"
#include "fornax/base/philox.h"
#include "fornax/base/threads.h"

namespace fornax {

#if defined(__x86_64__)
namespace isa_v3 {
extern const cpu::RandomKernels random_kernels;
}
namespace isa_v4 {
extern const cpu::RandomKernels random_kernels;
}
#endif

namespace {

// The low half of the counter overflows within the test.
constexpr PhiloxState kState{0x123456789abcdef0u, 0xffffffffu - 40};

// Word i of the stream by Random123.
uint32_t word(int64_t i, PhiloxState s = kState) {
  uint64_t counter = s.offset + uint64_t(i / 4);
  r123::Philox4x32::ctr_type c = {{uint32_t(counter), uint32_t(counter >> 32), 0, 0}};
  r123::Philox4x32::key_type k = {{uint32_t(s.seed), uint32_t(s.seed >> 32)}};
  return r123::Philox4x32()(c, k)[size_t(i % 4)];
}
uint64_t word64(int64_t i, PhiloxState s = kState) {
  return word(2 * i, s) | uint64_t(word(2 * i + 1, s)) << 32;
}

// Fills a vector with a guard behind it and checks the guard and the count of blocks.
template <class T, class Fill>
std::vector<T> filled(int64_t n, uint64_t blocks, Fill fill) {
  std::vector<T> out(size_t(n) + 8, T(77));
  EXPECT_EQ(fill(out.data(), n), blocks);
  for (size_t i = size_t(n); i < out.size(); ++i)
    EXPECT_EQ(out[i], T(77)) << "written past the end";
  out.resize(size_t(n));
  return out;
}

constexpr int64_t kSizes[] = {0, 1, 3, 31, 32, 33, 64, 1000, 1024, 1025, 5000};

TEST(Philox, BlocksAgreeWithRandom123) {
  // Known answer of the authors' test vectors: all bits zero.
  PhiloxBlock zero = philox_block({0, 0}, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[1], 0xe169c58du);
  EXPECT_EQ(zero.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  for (int64_t i = 0; i < 400; ++i)
    ASSERT_EQ(philox_block(kState, uint64_t(i / 4)).word[i % 4], word(i));
}

TEST(Philox, StreamDrawsWordsInOrder) {
  PhiloxStream s(kState);
  EXPECT_EQ(s.state().offset, kState.offset);
  for (int64_t i = 0; i < 6; ++i) ASSERT_EQ(s.next_u32(), word(i));
  EXPECT_EQ(s.state().offset, kState.offset + 2);
  EXPECT_EQ(s.next_u64(), word64(3));
  EXPECT_EQ(s.uniform(), double(word64(4) >> 11) / 9007199254740992.0);
  int seen[5] = {};
  for (int i = 0; i < 5000; ++i) {
    uint64_t x = s.below(5);
    ASSERT_LT(x, 5u);
    ++seen[x];
  }
  for (int count : seen) EXPECT_NEAR(count, 1000, 150);
  uint64_t range = uint64_t(3) << 62;
  int lowest_third = 0;
  for (int i = 0; i < 3000; ++i) {
    uint64_t x = s.below(range);
    ASSERT_LT(x, range);
    lowest_third += x < range / 3;
  }
  EXPECT_NEAR(lowest_third, 1000, 120);
}

TEST(RandomFill, Bits) {
  for (int64_t n : kSizes) {
    auto out = filled<uint32_t>(n, uint64_t(n + 3) / 4, [](uint32_t* p, int64_t count) {
      return cpu::fill_bits(p, count, kState);
    });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[size_t(i)], word(i)) << i << " of " << n;
  }
}

TEST(RandomFill, Uniform) {
  for (int64_t n : kSizes) {
    auto f = filled<float>(n, uint64_t(n + 3) / 4, [](float* p, int64_t count) {
      return cpu::fill_uniform(p, count, kState, 0.0f, 1.0f);
    });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(f[size_t(i)], float(word(i) >> 8) / 16777216.0f);
    auto d = filled<double>(n, uint64_t(n + 1) / 2, [](double* p, int64_t count) {
      return cpu::fill_uniform(p, count, kState, 0.0, 1.0);
    });
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(d[size_t(i)], double(word64(i) >> 11) / 9007199254740992.0);
  }
}

TEST(RandomFill, UniformStaysBelowItsUpperBound) {
  float low = 1.0f, high = std::nextafter(std::nextafter(low, 2.0f), 2.0f);
  std::vector<float> f(10000);
  cpu::fill_uniform(f.data(), 10000, kState, low, high);
  EXPECT_EQ(*std::max_element(f.begin(), f.end()), std::nextafter(low, 2.0f));
  EXPECT_EQ(*std::min_element(f.begin(), f.end()), low);
  cpu::fill_uniform(f.data(), 10000, kState, -3.0f, 5.0f);
  EXPECT_NEAR(*std::max_element(f.begin(), f.end()), 5, 0.01);
  EXPECT_NEAR(*std::min_element(f.begin(), f.end()), -3, 0.01);
  cpu::fill_uniform(f.data(), 100, kState, 2.0f, 2.0f);
  EXPECT_EQ(f[7], 2.0f);
}

// Box-Muller in long double from the words that define elements i and i + 16 of a run.
void expected_normal(int64_t i, long double u, long double turn, long double* cosine,
                     long double* sine, int64_t* partner) {
  long double r = std::sqrt(-2 * std::log(u));
  *cosine = r * std::cos(2 * std::numbers::pi_v<long double> * turn);
  *sine = r * std::sin(2 * std::numbers::pi_v<long double> * turn);
  *partner = i + 16;
}

TEST(RandomFill, NormalFloat) {
  for (int64_t n : kSizes) {
    auto f = filled<float>(n, uint64_t(n + 31) / 32 * 8, [](float* p, int64_t count) {
      return cpu::fill_normal(p, count, kState, 0.0f, 1.0f);
    });
    for (int64_t i = 0; i < n; ++i) {
      if (i % 32 >= 16) continue;
      long double u = (word(i) >> 1 | 1) / 2147483648.0L, c, s;
      int64_t partner;
      // The kernel rounds u to float first.
      expected_normal(i, float(u), word(i + 16) / 4294967296.0L, &c, &s, &partner);
      ASSERT_NEAR(f[size_t(i)], c, 2e-6) << i;
      if (partner < n) {
        ASSERT_NEAR(f[size_t(partner)], s, 2e-6) << i;
      }
    }
  }
}

TEST(RandomFill, NormalDouble) {
  for (int64_t n : kSizes) {
    auto d = filled<double>(n, uint64_t(n + 31) / 32 * 16, [](double* p, int64_t count) {
      return cpu::fill_normal(p, count, kState, 0.0, 1.0);
    });
    for (int64_t i = 0; i < n; ++i) {
      if (i % 32 >= 16) continue;
      long double u = ((word64(i) >> 11) + 1) / 9007199254740992.0L, c, s;
      int64_t partner;
      expected_normal(i, u, word64(i + 16) / 18446744073709551616.0L, &c, &s, &partner);
      ASSERT_NEAR(d[size_t(i)], c, 5e-15) << i;
      if (partner < n) {
        ASSERT_NEAR(d[size_t(partner)], s, 5e-15) << i;
      }
    }
  }
}

TEST(RandomFill, NormalHasItsMoments) {
  constexpr int64_t n = 1 << 20;
  std::vector<float> f(n);
  cpu::fill_normal(f.data(), n, {3, 0}, 2.0f, 0.5f);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, serial = 0;
  for (int64_t i = 0; i < n; ++i) {
    double z = (f[size_t(i)] - 2.0) / 0.5;
    m1 += z;
    m2 += z * z;
    m3 += z * z * z;
    m4 += z * z * z * z;
    if (i >= 16) serial += z * (f[size_t(i - 16)] - 2.0) / 0.5;
  }
  double root = std::sqrt(double(n));
  EXPECT_NEAR(m1 / n, 0, 4 / root);
  EXPECT_NEAR(m2 / n, 1, 4 * std::sqrt(2.0) / root);
  EXPECT_NEAR(m3 / n, 0, 4 * std::sqrt(15.0) / root);
  EXPECT_NEAR(m4 / n, 3, 4 * std::sqrt(96.0) / root);
  EXPECT_NEAR(serial / n, 0, 4 / root);
}

TEST(RandomFill, Exponential) {
  for (int64_t n : kSizes) {
    auto f = filled<float>(n, uint64_t(n + 3) / 4, [](float* p, int64_t count) {
      return cpu::fill_exponential(p, count, kState, 4.0f);
    });
    for (int64_t i = 0; i < n; ++i) {
      float u = std::min(float((word(i) >> 1 | 1) / 2147483648.0), 1 - 0x1p-24f);
      double expected = -std::log(double(u)) / 4;
      ASSERT_NEAR(f[size_t(i)], expected, expected * 3e-7) << i;
      ASSERT_GT(f[size_t(i)], 0.0f);
    }
    auto d = filled<double>(n, uint64_t(n + 1) / 2, [](double* p, int64_t count) {
      return cpu::fill_exponential(p, count, kState, 4.0);
    });
    for (int64_t i = 0; i < n; ++i) {
      double u = ((word64(i) >> 11) + 1) / 9007199254740992.0;
      double expected = -std::log(u) / 4;
      ASSERT_NEAR(d[size_t(i)], expected, expected * 5e-16) << i;
    }
  }
}

TEST(RandomFill, Bernoulli) {
  for (int64_t n : kSizes) {
    for (double p : {0.0, 1e-10, 0.25, 0.9, 1.0}) {
      auto b = filled<uint8_t>(n, uint64_t(n + 3) / 4, [p](uint8_t* out, int64_t count) {
        return cpu::fill_bernoulli(out, count, kState, p, 1);
      });
      auto f = filled<float>(n, uint64_t(n + 3) / 4, [p](float* out, int64_t count) {
        return cpu::fill_bernoulli(out, count, kState, p, 2.5f);
      });
      for (int64_t i = 0; i < n; ++i) {
        bool expected = word(i) / 4294967296.0 < p;
        ASSERT_EQ(b[size_t(i)], expected) << i << " " << p;
        ASSERT_EQ(f[size_t(i)], expected ? 2.5f : 0.0f);
      }
    }
  }
}

TEST(RandomFill, Randint) {
  using Wide = unsigned __int128;
  for (int64_t n : kSizes) {
    for (uint64_t range : {uint64_t(1), uint64_t(10), (uint64_t(1) << 32) - 1, uint64_t(1) << 32}) {
      auto r = filled<int64_t>(n, uint64_t(n + 1) / 2, [range](int64_t* p, int64_t count) {
        return cpu::fill_randint(p, count, kState, -5, range);
      });
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(r[size_t(i)], -5 + int64_t(Wide(word64(i)) * range >> 64)) << i << " " << range;
    }
    for (uint64_t range : {(uint64_t(1) << 32) + 1, uint64_t(3) << 62, uint64_t(0)}) {
      int64_t low = std::numeric_limits<int64_t>::min();
      auto r = filled<int64_t>(n, uint64_t(n), [=](int64_t* p, int64_t count) {
        return cpu::fill_randint(p, count, kState, low, range);
      });
      for (int64_t i = 0; i < n; ++i) {
        uint64_t high = word64(2 * i + 1);
        uint64_t carry = uint64_t(Wide(word64(2 * i)) * range >> 64);
        uint64_t scaled = range ? uint64_t((Wide(high) * range + carry) >> 64) : high;
        ASSERT_EQ(uint64_t(r[size_t(i)]), uint64_t(low) + scaled) << i << " " << range;
      }
    }
  }
}

TEST(RandomFill, IsTheSameForEveryNumberOfThreads) {
  constexpr int64_t n = 200001;
  int before = get_num_threads();
  std::vector<float> normal[2], uniform[2];
  std::vector<double> wide[2];
  std::vector<int64_t> integers[2];
  for (int k : {0, 1}) {
    set_num_threads(k ? 5 : 1);
    normal[k].resize(n);
    uniform[k].resize(n);
    wide[k].resize(n);
    integers[k].resize(n);
    cpu::fill_normal(normal[k].data(), n, kState, 0.0f, 1.0f);
    cpu::fill_uniform(uniform[k].data(), n, kState, 0.0f, 1.0f);
    cpu::fill_normal(wide[k].data(), n, kState, 0.0, 1.0);
    cpu::fill_randint(integers[k].data(), n, kState, 0, 0);
  }
  set_num_threads(before);
  EXPECT_EQ(normal[0], normal[1]);
  EXPECT_EQ(uniform[0], uniform[1]);
  EXPECT_EQ(wide[0], wide[1]);
  EXPECT_EQ(integers[0], integers[1]);
}

#if defined(__x86_64__)

template <class T, class Kernel, class... A>
void expect_same(Kernel cpu::RandomKernels::*kernel, A... args) {
  constexpr int64_t n = 3003;
  std::vector<T> a(n), b(n);
  (isa_v3::random_kernels.*kernel)(kState, a.data(), n, args...);
  (isa_v4::random_kernels.*kernel)(kState, b.data(), n, args...);
  EXPECT_EQ(a, b);
}

TEST(RandomFill, IsTheSameForEveryInstructionSet) {
  if (cpu_isa() < Isa::kV4) GTEST_SKIP() << "needs x86-64-v4";
  using K = cpu::RandomKernels;
  expect_same<uint32_t>(&K::bits);
  expect_same<float>(&K::uniform_f32, -1.0f, 3.0f, 2.9999f);
  expect_same<double>(&K::uniform_f64, -1.0, 3.0, 2.9999);
  expect_same<float>(&K::normal_f32, 1.0f, 2.0f);
  expect_same<double>(&K::normal_f64, 1.0, 2.0);
  expect_same<float>(&K::exponential_f32, 3.0f);
  expect_same<double>(&K::exponential_f64, 3.0);
  expect_same<uint8_t>(&K::bernoulli_u8, 1u << 30, uint8_t(1));
  expect_same<float>(&K::bernoulli_f32, 1u << 30, 0.5f);
  expect_same<int64_t>(&K::randint_small, int64_t(-9), uint64_t(1000));
  expect_same<int64_t>(&K::randint_large, int64_t(-9), uint64_t(1) << 50);
}

#endif

}  // namespace
}  // namespace fornax
