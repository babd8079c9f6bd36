// Philox words in vectors of counters, turned into distributions tile by tile while in cache.
#include "fornax/backends/cpu/kernels/random_kernels.h"

#include <cstring>

#if defined(__x86_64__)
// GCC 12 warns about its own AVX-512 intrinsics wherever they are inlined (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace fornax::FX_ISA_NS {
namespace {

#define FX_INLINE [[gnu::always_inline]] inline

// ---- the generator -----------------------------------------------------------------------------
//
// A vector's 64-bit lanes hold one 32-bit word of as many blocks. Upper halves of lanes are garbage
// between rounds: the multiply reads lower halves alone. Lanes count in an order that makes the
// final interleave leave whole blocks in memory order.

#if defined(__AVX512F__)
using Vec = __m512i;
constexpr int kLanes = 8;
FX_INLINE Vec splat(uint64_t x) { return _mm512_set1_epi64(int64_t(x)); }
FX_INLINE Vec lane_counters() { return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7); }
FX_INLINE Vec add(Vec a, Vec b) { return _mm512_add_epi64(a, b); }
FX_INLINE Vec multiply(Vec a, Vec b) { return _mm512_mul_epu32(a, b); }
FX_INLINE Vec upper(Vec a) { return _mm512_srli_epi64(a, 32); }
FX_INLINE Vec exclusive_or(Vec a, Vec b) { return _mm512_xor_si512(a, b); }
// Lower halves of a and b, side by side.
FX_INLINE Vec join(Vec a, Vec b) { return _mm512_mask_shuffle_epi32(a, 0xAAAA, b, _MM_PERM_CCAA); }
FX_INLINE void store_blocks(uint32_t* out, Vec x01, Vec x23) {
  _mm512_storeu_si512(out, _mm512_unpacklo_epi64(x01, x23));
  _mm512_storeu_si512(out + 16, _mm512_unpackhi_epi64(x01, x23));
}
#elif defined(__AVX2__)
using Vec = __m256i;
constexpr int kLanes = 4;
FX_INLINE Vec splat(uint64_t x) { return _mm256_set1_epi64x(int64_t(x)); }
FX_INLINE Vec lane_counters() { return _mm256_setr_epi64x(0, 2, 1, 3); }
FX_INLINE Vec add(Vec a, Vec b) { return _mm256_add_epi64(a, b); }
FX_INLINE Vec multiply(Vec a, Vec b) { return _mm256_mul_epu32(a, b); }
FX_INLINE Vec upper(Vec a) { return _mm256_srli_epi64(a, 32); }
FX_INLINE Vec exclusive_or(Vec a, Vec b) { return _mm256_xor_si256(a, b); }
FX_INLINE Vec join(Vec a, Vec b) { return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA); }
FX_INLINE void store_blocks(uint32_t* out, Vec x01, Vec x23) {
  _mm256_storeu_si256(reinterpret_cast<Vec*>(out), _mm256_unpacklo_epi64(x01, x23));
  _mm256_storeu_si256(reinterpret_cast<Vec*>(out + 8), _mm256_unpackhi_epi64(x01, x23));
}
#else
using Vec = uint64_t;
constexpr int kLanes = 1;
FX_INLINE Vec splat(uint64_t x) { return x; }
FX_INLINE Vec lane_counters() { return 0; }
FX_INLINE Vec add(Vec a, Vec b) { return a + b; }
FX_INLINE Vec multiply(Vec a, Vec b) { return uint64_t(uint32_t(a)) * uint32_t(b); }
FX_INLINE Vec upper(Vec a) { return a >> 32; }
FX_INLINE Vec exclusive_or(Vec a, Vec b) { return a ^ b; }
FX_INLINE Vec join(Vec a, Vec b) { return uint32_t(a) | b << 32; }
FX_INLINE void store_blocks(uint32_t* out, Vec x01, Vec x23) {
  std::memcpy(out, &x01, 8);
  std::memcpy(out + 2, &x23, 8);
}
#endif

constexpr int kVectors = 2;  // in flight: more spill on AVX2 and gain nothing on AVX-512
constexpr int kStep = kLanes * kVectors;
constexpr int64_t kTile = 1024;  // words made at a time
static_assert(kTile % (4 * kStep) == 0);

// Blocks `at`, at + 1, ... to `words`; `blocks` is rounded up to a multiple of kStep.
FX_INLINE void make_blocks(PhiloxState at, uint32_t* words, int64_t blocks) {
  const Vec factor0 = splat(0xD2511F53u), factor1 = splat(0xCD9E8D57u);
  for (int64_t b = 0; b < blocks; b += kStep) {
    Vec x0[kVectors], x1[kVectors], x2[kVectors], x3[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      x0[v] = add(splat(at.offset + uint64_t(b + v * kLanes)), lane_counters());
      x1[v] = upper(x0[v]);
      x2[v] = x3[v] = splat(0);
    }
    uint32_t key0 = uint32_t(at.seed), key1 = uint32_t(at.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const Vec k0 = splat(key0), k1 = splat(key1);
      for (int v = 0; v < kVectors; ++v) {
        const Vec p = multiply(x0[v], factor0), q = multiply(x2[v], factor1);
        x0[v] = exclusive_or(upper(q), exclusive_or(x1[v], k0));
        x2[v] = exclusive_or(upper(p), exclusive_or(x3[v], k1));
        x1[v] = q;
        x3[v] = p;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    for (int v = 0; v < kVectors; ++v)
      store_blocks(words + (b + v * kLanes) * 4, join(x0[v], x1[v]), join(x2[v], x3[v]));
  }
}

// Calls convert(words, first, count) for tile after tile of elements that take WordsEach words.
template <int WordsEach, class Convert>
FX_INLINE void for_tiles(PhiloxState at, int64_t n, Convert convert) {
  alignas(64) uint32_t words[kTile];
  constexpr int64_t kElements = kTile / WordsEach;
  for (int64_t first = 0; first < n; first += kElements) {
    const int64_t count = n - first < kElements ? n - first : kElements;
    make_blocks(at, words, (count * WordsEach + 3) / 4);
    at.offset += kTile / 4;
    convert(words, first, count);
  }
}

FX_INLINE uint64_t word64(const uint32_t* words, int64_t i) {
  return words[2 * i] | uint64_t(words[2 * i + 1]) << 32;
}

template <class To, class From>
FX_INLINE To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

// ---- numbers from words ------------------------------------------------------------------------

// Exact for x < 2^53. AVX2 has no such conversion; these additions are what it takes.
FX_INLINE double to_double(uint64_t x) {
  const double low = bits_as<double>((x & 0xffffffffu) | 0x4330000000000000u);
  const double high = bits_as<double>((x >> 32) | 0x4530000000000000u);
  return (high - 0x1.00000001p84) + low;
}

// In [0, 1).
FX_INLINE float unit_f32(uint32_t w) { return float(int32_t(w >> 8)) * 0x1p-24f; }
FX_INLINE double unit_f64(uint64_t w) { return to_double(w >> 11) * 0x1p-53; }
// In (0, 1], for logarithms: 31 bits (float rounds them near 1) and 53 bits.
FX_INLINE float positive_f32(uint32_t w) { return float(int32_t(w >> 1) | 1) * 0x1p-31f; }
FX_INLINE double positive_f64(uint64_t w) { return (to_double(w >> 11) + 1) * 0x1p-53; }

// log(x) of a normal x > 0, within 1 ulp or so; the polynomial is Cephes' logf (Moshier).
FX_INLINE float log_f32(float x) {
  const int32_t bits = bits_as<int32_t>(x);
  const float raw = bits_as<float>((bits & 0x7fffff) | 0x3f800000);  // in [1, 2)
  const bool upper_half = raw > 1.41421356f;
  const float f = (upper_half ? raw * 0.5f : raw) - 1;
  const float exponent = float((bits >> 23) - 127 + (upper_half ? 1 : 0));
  const float z = f * f;
  float p = 7.0376836292e-2f;
  p = __builtin_fmaf(p, f, -1.1514610310e-1f);
  p = __builtin_fmaf(p, f, 1.1676998740e-1f);
  p = __builtin_fmaf(p, f, -1.2420140846e-1f);
  p = __builtin_fmaf(p, f, 1.4249322787e-1f);
  p = __builtin_fmaf(p, f, -1.6668057665e-1f);
  p = __builtin_fmaf(p, f, 2.0000714765e-1f);
  p = __builtin_fmaf(p, f, -2.4999993993e-1f);
  p = __builtin_fmaf(p, f, 3.3333331174e-1f);
  float tail = __builtin_fmaf(f * z, p, -0.5f * z);
  tail = __builtin_fmaf(exponent, -2.12194440e-4f, tail);
  return __builtin_fmaf(exponent, 0.693359375f, f + tail);
}

// log(x) of a normal x in (0, 1], within 1 ulp; fdlibm's e_log.
FX_INLINE double log_f64(double x) {
  const uint64_t bits = bits_as<uint64_t>(x);
  const double raw = bits_as<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  const bool upper_half = raw > 1.4142135623730951;
  const double f = (upper_half ? raw * 0.5 : raw) - 1;
  const double biased = bits_as<double>((bits >> 52) | 0x4330000000000000u);
  const double k = biased - (0x1p52 + 1023) + (upper_half ? 1.0 : 0.0);
  const double s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
  double r = 1.479819860511658591e-1;
  r = __builtin_fma(r, z, 1.531383769920937332e-1);
  r = __builtin_fma(r, z, 1.818357216161805012e-1);
  r = __builtin_fma(r, z, 2.222219843214978396e-1);
  r = __builtin_fma(r, z, 2.857142874366239149e-1);
  r = __builtin_fma(r, z, 3.999999999940941908e-1);
  r = __builtin_fma(r, z, 6.666666666666735130e-1) * z;
  const double correction = __builtin_fma(s, half_square + r, k * 1.90821492927058770002e-10);
  return __builtin_fma(k, 6.93147180369123816490e-1, f - (half_square - correction));
}

struct SinCosF32 {
  float sin, cos;
};
struct SinCosF64 {
  double sin, cos;
};

// Sine and cosine of the angle w / 2^32 of a turn: the nearest quarter turn, and a polynomial on
// the eighth either side (Cephes' sinf and cosf).
FX_INLINE SinCosF32 sincos_turn(uint32_t w) {
  const uint32_t quarter = (w + 0x20000000u) >> 30;
  const float x = float(int32_t(w - (quarter << 30))) * 1.4629180792671596e-9f;  // 2 pi / 2^32
  const float z = x * x;
  float s = -1.9515295891e-4f;
  s = __builtin_fmaf(s, z, 8.3321608736e-3f);
  s = __builtin_fmaf(s, z, -1.6666654611e-1f);
  s = __builtin_fmaf(s * z, x, x);
  float c = 2.443315711809948e-5f;
  c = __builtin_fmaf(c, z, -1.388731625493765e-3f);
  c = __builtin_fmaf(c, z, 4.166664568298827e-2f);
  c = __builtin_fmaf(c * z, z, __builtin_fmaf(-0.5f, z, 1.0f));
  const bool odd = (quarter & 1) != 0;
  const uint32_t sin_bits = bits_as<uint32_t>(odd ? c : s) ^ ((quarter & 2) << 30);
  const uint32_t cos_bits = bits_as<uint32_t>(odd ? s : c) ^ (((quarter + 1) & 2) << 30);
  return {bits_as<float>(sin_bits), bits_as<float>(cos_bits)};
}

// The same for w / 2^64 of a turn; fdlibm's k_sin and k_cos.
FX_INLINE SinCosF64 sincos_turn(uint64_t w) {
  const uint64_t moved = w + 0x2000000000000000u;  // by an eighth
  const uint64_t quarter = moved >> 62;
  const double part = to_double((moved & 0x3fffffffffffffffu) >> 9) * 0x1p-53 - 0.5;
  const double x = part * 1.57079632679489661923, z = x * x;
  double s = 1.58969099521155010221e-10;
  s = __builtin_fma(s, z, -2.50507602534068634195e-8);
  s = __builtin_fma(s, z, 2.75573137070700676789e-6);
  s = __builtin_fma(s, z, -1.98412698298579493134e-4);
  s = __builtin_fma(s, z, 8.33333333332248946124e-3);
  s = __builtin_fma(s, z, -1.66666666666666324348e-1);
  s = __builtin_fma(s * z, x, x);
  double c = -1.13596475577881948265e-11;
  c = __builtin_fma(c, z, 2.08757232129817482790e-9);
  c = __builtin_fma(c, z, -2.75573143513906633035e-7);
  c = __builtin_fma(c, z, 2.48015872894767294178e-5);
  c = __builtin_fma(c, z, -1.38888888888741095749e-3);
  c = __builtin_fma(c, z, 4.16666666666666019037e-2);
  c = __builtin_fma(c * z, z, __builtin_fma(-0.5, z, 1.0));
  const bool odd = (quarter & 1) != 0;
  const uint64_t sin_bits = bits_as<uint64_t>(odd ? c : s) ^ ((quarter & 2) << 62);
  const uint64_t cos_bits = bits_as<uint64_t>(odd ? s : c) ^ (((quarter + 1) & 2) << 62);
  return {bits_as<double>(sin_bits), bits_as<double>(cos_bits)};
}

// ---- fills -------------------------------------------------------------------------------------

void bits(PhiloxState at, uint32_t* out, int64_t n) {
  for_tiles<1>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    std::memcpy(out + first, words, size_t(count) * 4);
  });
}

void uniform_f32(PhiloxState at, float* out, int64_t n, float low, float high, float last) {
  const float width = high - low;
  for_tiles<1>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    float* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      const float x = __builtin_fmaf(unit_f32(words[i]), width, low);
      to[i] = x < last ? x : last;
    }
  });
}

void uniform_f64(PhiloxState at, double* out, int64_t n, double low, double high, double last) {
  const double width = high - low;
  for_tiles<2>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    double* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      const double x = __builtin_fma(unit_f64(word64(words, i)), width, low);
      to[i] = x < last ? x : last;
    }
  });
}

constexpr int64_t kRun = 32, kHalf = kRun / 2;  // of Box-Muller

void normal_f32(PhiloxState at, float* out, int64_t n, float mean, float std) {
  for_tiles<1>(
      at, (n + kRun - 1) / kRun * kRun, [&](const uint32_t* words, int64_t first, int64_t count) {
        alignas(64) float tile[kTile];
        for (int64_t run = 0; run < count; run += kRun) {
#pragma omp simd
          for (int64_t i = run; i < run + kHalf; ++i) {
            const float radius = std * __builtin_sqrtf(-2 * log_f32(positive_f32(words[i])));
            const SinCosF32 direction = sincos_turn(words[i + kHalf]);
            tile[i] = __builtin_fmaf(radius, direction.cos, mean);
            tile[i + kHalf] = __builtin_fmaf(radius, direction.sin, mean);
          }
        }
        const int64_t left = n - first < count ? n - first : count;
        std::memcpy(out + first, tile, size_t(left) * sizeof(float));
      });
}

void normal_f64(PhiloxState at, double* out, int64_t n, double mean, double std) {
  for_tiles<2>(at, (n + kRun - 1) / kRun * kRun,
               [&](const uint32_t* words, int64_t first, int64_t count) {
                 alignas(64) double tile[kTile / 2];
                 for (int64_t run = 0; run < count; run += kRun) {
#pragma omp simd
                   for (int64_t i = run; i < run + kHalf; ++i) {
                     const double u = positive_f64(word64(words, i));
                     const double radius = std * __builtin_sqrt(-2 * log_f64(u));
                     const SinCosF64 direction = sincos_turn(word64(words, i + kHalf));
                     tile[i] = __builtin_fma(radius, direction.cos, mean);
                     tile[i + kHalf] = __builtin_fma(radius, direction.sin, mean);
                   }
                 }
                 const int64_t left = n - first < count ? n - first : count;
                 std::memcpy(out + first, tile, size_t(left) * sizeof(double));
               });
}

void exponential_f32(PhiloxState at, float* out, int64_t n, float mean) {
  for_tiles<1>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    float* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      const float u = positive_f32(words[i]);
      to[i] = -mean * log_f32(u < 0x1.fffffep-1f ? u : 0x1.fffffep-1f);
    }
  });
}

void exponential_f64(PhiloxState at, double* out, int64_t n, double mean) {
  for_tiles<2>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    double* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      const double u = positive_f64(word64(words, i));
      to[i] = -mean * log_f64(u < 0x1.fffffffffffffp-1 ? u : 0x1.fffffffffffffp-1);
    }
  });
}

template <class T>
FX_INLINE void bernoulli(PhiloxState at, T* out, int64_t n, uint32_t last_word, T value) {
  for_tiles<1>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    T* to = out + first;
    for (int64_t i = 0; i < count; ++i) to[i] = words[i] <= last_word ? value : T(0);
  });
}

void bernoulli_u8(PhiloxState at, uint8_t* out, int64_t n, uint32_t last_word, uint8_t value) {
  bernoulli(at, out, n, last_word, value);
}

void bernoulli_f32(PhiloxState at, float* out, int64_t n, uint32_t last_word, float value) {
  bernoulli(at, out, n, last_word, value);
}

// floor(w * range / 2^64) for range <= 2^32, in two exact steps.
void randint_small(PhiloxState at, int64_t* out, int64_t n, int64_t low, uint64_t range) {
  for_tiles<2>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    int64_t* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t lower = words[2 * i] * range >> 32;
      to[i] = int64_t(uint64_t(low) + ((words[2 * i + 1] * range + lower) >> 32));
    }
  });
}

// floor(w * range / 2^128); range 0 takes the upper 64 bits.
void randint_large(PhiloxState at, int64_t* out, int64_t n, int64_t low, uint64_t range) {
  for_tiles<4>(at, n, [&](const uint32_t* words, int64_t first, int64_t count) {
    int64_t* to = out + first;
    for (int64_t i = 0; i < count; ++i) {
      using Wide = unsigned __int128;
      const uint64_t high = word64(words, 2 * i + 1);
      const uint64_t lower = uint64_t(Wide(word64(words, 2 * i)) * range >> 64);
      const uint64_t scaled = uint64_t((Wide(high) * range + lower) >> 64);
      to[i] = int64_t(uint64_t(low) + (range ? scaled : high));
    }
  });
}

}  // namespace

constinit const cpu::RandomKernels random_kernels = {
    bits,          uniform_f32,     uniform_f64,     normal_f32,
    normal_f64,    exponential_f32, exponential_f64, bernoulli_u8,
    bernoulli_f32, randint_small,   randint_large,
};

}  // namespace fornax::FX_ISA_NS
