// Storage types: conversions against the processor's own and against exact arithmetic.
#include "fornax/base/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fornax {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

// The nearest bfloat16 by distance in double, ties to even; the value one past the largest stands
// for infinity.
uint16_t nearest_bf16(float x) {
  uint32_t u = bits_of(x);
  uint16_t low = uint16_t(u >> 16), high = uint16_t(low + 1);
  auto value = [](uint16_t b) {
    bool infinite = (b & 0x7fffu) == 0x7f80u;
    return infinite ? std::copysign(0x1p128, double(int16_t(b)))
                    : double(float_of(uint32_t(b) << 16));
  };
  double down = std::fabs(double(x) - value(low)), up = std::fabs(value(high) - double(x));
  if (down != up) return down < up ? low : high;
  return low & 1 ? high : low;
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint64_t u = 0; u < 1u << 31; u += 509) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      float x = float_of(uint32_t(u) | sign);
      if (std::isnan(x) || std::isinf(x)) continue;
      ASSERT_EQ(BFloat16(x).bits, nearest_bf16(x)) << std::hex << u;
    }
  }
  // Around every rounding boundary.
  for (uint32_t b = 0; b < 0x7f80u; ++b) {
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      float x = float_of(b << 16 | low);
      ASSERT_EQ(BFloat16(x).bits, nearest_bf16(x)) << std::hex << (b << 16 | low);
    }
  }
}

TEST(BFloat16, KeepsEveryValueInfinityAndNaN) {
  for (uint32_t b = 0; b < 65536; ++b) {
    float x = BFloat16(uint16_t(b), BFloat16::FromBits());
    ASSERT_EQ(bits_of(x), b << 16);
    BFloat16 back(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(float(back)));
    } else {
      ASSERT_EQ(back.bits, b);
    }
  }
  EXPECT_TRUE(std::isnan(float(BFloat16(float_of(0x7f800001u)))));  // payload in the lost half
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
}

#if defined(__x86_64__)

[[gnu::target("f16c")]] uint16_t hardware_half(float x) {
  return uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
}
[[gnu::target("f16c")]] float hardware_float(uint16_t h) { return _cvtsh_ss(h); }

TEST(Half, WidensAsTheProcessorDoes) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "needs f16c";
  for (uint32_t h = 0; h < 65536; ++h) {
    float x = Half(uint16_t(h), Half::FromBits());
    float reference = hardware_float(uint16_t(h));
    if (std::isnan(reference)) {
      ASSERT_TRUE(std::isnan(x)) << std::hex << h;
    } else {
      ASSERT_EQ(bits_of(x), bits_of(reference)) << std::hex << h;
    }
  }
}

TEST(Half, NarrowsAsTheProcessorDoes) {
  if (!__builtin_cpu_supports("f16c")) GTEST_SKIP() << "needs f16c";
  for (uint64_t u = 0; u < uint64_t(1) << 32; u += 251) {
    float x = float_of(uint32_t(u));
    ASSERT_EQ(Half(x).bits, hardware_half(x)) << std::hex << u;
  }
  // The neighbourhood of every half and of every midpoint between two.
  for (uint32_t h = 0; h < 0x7c00u; ++h) {
    float low = Half(uint16_t(h), Half::FromBits()), high = Half(uint16_t(h + 1), Half::FromBits());
    float top = std::isinf(high) ? 65536.0f : high;
    for (float at : {low, (low + top) / 2}) {
      for (int step = -2; step <= 2; ++step) {
        float x = float_of(bits_of(at) + uint32_t(at == 0 && step < 0 ? 0 : step));
        ASSERT_EQ(Half(x).bits, hardware_half(x)) << x;
        ASSERT_EQ(Half(-x).bits, hardware_half(-x)) << -x;
      }
    }
  }
}

#endif

TEST(Half, KnownValues) {
  EXPECT_EQ(Half(1.0f).bits, 0x3c00);
  EXPECT_EQ(Half(-2.0f).bits, 0xc000);
  EXPECT_EQ(Half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(Half(0x1p-25f).bits, 0x0000);  // a tie, to even
  EXPECT_EQ(Half(0x1.8p-24f).bits, 0x0002);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  static_assert(float(Half(0.333f)) == 0.3330078125f);
}

TEST(Complex, Arithmetic) {
  complex64 a(1, 2), b(3, -4);
  EXPECT_EQ(a + b, complex64(4, -2));
  EXPECT_EQ(a - b, complex64(-2, 6));
  EXPECT_EQ(a * b, complex64(11, 2));
  EXPECT_EQ(a / b, complex64(-0.2f, 0.4f));
  EXPECT_EQ(a / complex64(0, 2), complex64(1, -0.5f));
  EXPECT_EQ(-a, complex64(-1, -2));
  EXPECT_EQ(conj(a), complex64(1, -2));
  static_assert(sizeof(complex32) == 4 && sizeof(complex64) == 8 && sizeof(complex128) == 16);
}

TEST(Complex, DivisionDoesNotOverflowOnTheWay) {
  complex64 big(1e30f, 1e30f);
  EXPECT_EQ(big / big, complex64(1, 0));
  complex128 tiny(1e-200, 0);
  EXPECT_EQ(tiny / tiny, complex128(1, 0));
  complex64 by_zero = complex64(1, -1) / complex64(0, 0);
  EXPECT_EQ(by_zero.re, std::numeric_limits<float>::infinity());
  EXPECT_EQ(by_zero.im, -std::numeric_limits<float>::infinity());
}

TEST(Complex, ConvertsBetweenWidths) {
  complex128 z(1.1, -2.7);
  complex64 narrow(z);
  EXPECT_EQ(narrow, complex64(1.1f, -2.7f));
  complex32 half_wide(narrow);
  EXPECT_EQ(half_wide.re.bits, Half(1.1f).bits);
  EXPECT_EQ(complex64(half_wide).im, float(Half(-2.7f)));
  complex32 quotient = complex32(Half(300.0f), Half(0.0f)) / complex32(Half(300.0f), Half(0.0f));
  EXPECT_EQ(float(quotient.re), 1.0f);  // 300 * 300 is beyond half
}

}  // namespace
}  // namespace fornax
