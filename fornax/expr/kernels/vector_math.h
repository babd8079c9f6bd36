// Elementary functions as branchless scalar code that the compiler turns into SIMD loops. For
// kernel sources only (compiled once per instruction set); T is float or double.
//
// Largest errors found by sampling: 2.3 ulp, but tan 3.1 and erfc 3.3 (bounds in tests/vm). Right
// at 0, -0, infinities, NaN and subnormals. Polynomials are minimax fits made for these intervals;
// the reductions are Cody and Waite's, the log splits are those of FreeBSD's msun.
#pragma once

#include <cstdint>

#include "fornax/base/isa.h"

#define FX_INLINE static inline __attribute__((always_inline))

namespace fornax::FX_ISA_NS {

template <class T>
struct Fp;

template <>
struct Fp<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kSignBit = 0x80000000u;
  static constexpr Bits kSqrtHalf = 0x3f3504f3u;
  static constexpr float kRound = 0x1.8p23f;  // adding it leaves the integer in the low bits
  static constexpr float kMin = 0x1p-126f;
  static constexpr float kLift = 0x1p25f;
  static constexpr float kLiftExponent = 25;
  static constexpr float kInf = __builtin_inff();
  static constexpr float kNan = __builtin_nanf("");
  static constexpr float kLn2 = 0.693147182f, kLn2Low = -1.90465421e-9f;
  static constexpr float kLog2e = 1.44269502f, kLog10e = 0.434294492f;
  static constexpr float kLog10Of2 = 0.301029996f;
  static constexpr float kExpMin = -104.f, kExpMax = 89.f, kExp2Min = -151.f, kExp2Max = 129.f;
  static constexpr float kExpm1Min = -18.f, kTanhMax = 10.f, kHalfExpMax = 89.6f;
  static constexpr float kHalfPi = 1.57079637f, kHalfPiLow = -4.37113883e-8f,
                         kHalfPiLowest = -1.71512451e-15f;
  static constexpr float kTwoOverPi = 0.636619747f;
  static constexpr float kTrigLimit = 48000.f;  // n pi/2 keeps its bits up to here
  static constexpr float kRemainderLimit = 0x1p22f;
  static constexpr float kAsinhBig = 1e6f, kHuge = 0x1p100f, kShrink = 0x1p-30f;
  static constexpr float kErfOne = 3.95f;
};

template <>
struct Fp<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kSignBit = 0x8000000000000000u;
  static constexpr Bits kSqrtHalf = 0x3fe6a09e667f3bcdu;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kMin = 0x1p-1022;
  static constexpr double kLift = 0x1p54;
  static constexpr double kLiftExponent = 54;
  static constexpr double kInf = __builtin_inf();
  static constexpr double kNan = __builtin_nan("");
  static constexpr double kLn2 = 0.6931471805599453, kLn2Low = 2.3190468138462996e-17;
  static constexpr double kLog2e = 1.4426950408889634, kLog10e = 0.4342944819032518;
  static constexpr double kLog10Of2 = 0.3010299956639812;
  static constexpr double kExpMin = -746, kExpMax = 710, kExp2Min = -1076, kExp2Max = 1025;
  static constexpr double kExpm1Min = -39, kTanhMax = 20, kHalfExpMax = 710.5;
  static constexpr double kHalfPi = 1.5707963267948966, kHalfPiLow = 6.123233995736766e-17,
                          kHalfPiLowest = -1.4973849048591698e-33;
  static constexpr double kTwoOverPi = 0.6366197723675814;
  static constexpr double kTrigLimit = 1e9;
  static constexpr double kRemainderLimit = 0x1p51;
  static constexpr double kAsinhBig = 1e12, kHuge = 0x1p1000, kShrink = 0x1p-60;
};

template <class T>
using BitsOf = typename Fp<T>::Bits;

// ---- Building blocks

// Below this x and its odd functions with derivative 1 are equal in both types.
inline constexpr double kTiny = 0x1p-60;

template <class T>
FX_INLINE BitsOf<T> to_bits(T x) {
  return __builtin_bit_cast(BitsOf<T>, x);
}
FX_INLINE float from_bits(uint32_t b) { return __builtin_bit_cast(float, b); }
FX_INLINE double from_bits(uint64_t b) { return __builtin_bit_cast(double, b); }

FX_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
FX_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
FX_INLINE float abs(float a) { return __builtin_fabsf(a); }
FX_INLINE double abs(double a) { return __builtin_fabs(a); }
FX_INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
FX_INLINE double sqrt(double a) { return __builtin_sqrt(a); }
FX_INLINE float floor(float a) { return __builtin_floorf(a); }
FX_INLINE double floor(double a) { return __builtin_floor(a); }
FX_INLINE float ceil(float a) { return __builtin_ceilf(a); }
FX_INLINE double ceil(double a) { return __builtin_ceil(a); }
FX_INLINE float trunc(float a) { return __builtin_truncf(a); }
FX_INLINE double trunc(double a) { return __builtin_trunc(a); }
FX_INLINE float round(float a) { return __builtin_rintf(a); }  // half to even
FX_INLINE double round(double a) { return __builtin_rint(a); }
FX_INLINE float copysign(float a, float b) { return __builtin_copysignf(a, b); }
FX_INLINE double copysign(double a, double b) { return __builtin_copysign(a, b); }

// c0 + c1 x + c2 x^2 + ...
template <class T, class C>
FX_INLINE T poly(T, C c0) {
  return T(c0);
}
template <class T, class C, class... Rest>
FX_INLINE T poly(T x, C c0, Rest... rest) {
  return fma(poly(x, rest...), x, T(c0));
}

template <class T>
FX_INLINE T flip_sign(T x, T sign_of) {
  return from_bits(to_bits(x) ^ (to_bits(sign_of) & Fp<T>::kSignBit));
}

// 2^n from n + kRound, for n in the range of normal exponents.
template <class T>
FX_INLINE T pow2(T rounded) {
  return from_bits(BitsOf<T>((to_bits(rounded) + Fp<T>::kBias) << Fp<T>::kMantissaBits));
}

// p * 2^n for any n that exp can give, in two steps so that subnormal results come out right.
template <class T>
FX_INLINE T scale(T p, T n) {
  using F = Fp<T>;
  T half = n * T(0.5) + F::kRound;
  T rest = (n - (half - F::kRound)) + F::kRound;
  return p * pow2(half) * pow2(rest);
}

template <class T>
FX_INLINE T clamp(T x, T low, T high) {  // NaN passes
  x = x < low ? low : x;
  return x > high ? high : x;
}

// ---- Exponentials

// e^r - 1 for |r| <= ln(2) / 2.
FX_INLINE float expm1_small(float r) {
  float q = poly(r, 0.5f, 0.166665763f, 0.0416663773f, 0.00836320501f, 0.00139410270f);
  return fma(r * r, q, r);
}
FX_INLINE double expm1_small(double r) {
  double q = poly(r, 0.5, 0.16666666666666674, 0.04166666666662399, 0.008333333333322156,
                  0.0013888888917282637, 0.00019841269886770071, 2.4801521189161794e-05,
                  2.755724212461514e-06, 2.7620139161267583e-07, 2.511013212894521e-08);
  return fma(r * r, q, r);
}

template <class T>
struct ExpParts {
  T n;  // x = n ln 2 + r
  T r;
};
template <class T>
FX_INLINE ExpParts<T> split_exp(T x) {
  using F = Fp<T>;
  T n = fma(x, F::kLog2e, F::kRound) - F::kRound;
  T r = fma(n, -F::kLn2, x);
  return {n, fma(n, -F::kLn2Low, r)};
}

template <class T>
FX_INLINE T exp(T x) {
  auto [n, r] = split_exp(clamp(x, Fp<T>::kExpMin, Fp<T>::kExpMax));
  return scale(expm1_small(r) + T(1), n);
}

// e^x where the result is a normal number: no edges.
template <class T>
FX_INLINE T exp_normal(T x) {
  auto [n, r] = split_exp(x);
  return (expm1_small(r) + T(1)) * pow2(n + Fp<T>::kRound);
}

// e^(x + low) for a low that is tiny beside x.
template <class T>
FX_INLINE T exp_sum(T x, T low) {
  auto [n, r] = split_exp(clamp(x, Fp<T>::kExpMin, Fp<T>::kExpMax));
  return scale(expm1_small(r + low) + T(1), n);
}

template <class T>
FX_INLINE T exp2(T x) {
  using F = Fp<T>;
  T y = clamp(x, F::kExp2Min, F::kExp2Max);
  T n = (y + F::kRound) - F::kRound;
  return scale(expm1_small((y - n) * F::kLn2) + T(1), n);
}

// (e^a - 1) / 2, which does not overflow where sinh does not. a <= kHalfExpMax.
template <class T>
FX_INLINE T half_expm1(T a) {
  auto [n, r] = split_exp(a);
  T s = pow2(n + (Fp<T>::kRound - T(2)));
  return T(2) * fma(s, expm1_small(r), s - T(0.25));
}

template <class T>
FX_INLINE T expm1(T x) {
  T y = T(2) * half_expm1(clamp(x, Fp<T>::kExpm1Min, Fp<T>::kHalfExpMax));
  return abs(x) < T(kTiny) ? x : y;
}

template <class T>
FX_INLINE T tanh(T x) {
  T a = abs(x);
  T e = T(2) * half_expm1(T(2) * (a > Fp<T>::kTanhMax ? Fp<T>::kTanhMax : a));
  return abs(x) < T(kTiny) ? x : copysign(e / (e + T(2)), x);
}

template <class T>
FX_INLINE T sinh(T x) {
  T a = abs(x);
  T h = half_expm1(a > Fp<T>::kHalfExpMax ? Fp<T>::kHalfExpMax : a);
  T y = h + h / (T(2) * h + T(1));
  y = copysign(h < Fp<T>::kInf ? y : a * Fp<T>::kInf, x);
  return a < T(kTiny) ? x : y;
}

template <class T>
FX_INLINE T cosh(T x) {
  T a = abs(x);
  T h = half_expm1(a > Fp<T>::kHalfExpMax ? Fp<T>::kHalfExpMax : a) + T(0.5);
  return h + T(0.25) / h;
}

// ---- Logarithms

template <class T>
struct LogParts {
  T e;  // x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2))
  T f;
};
FX_INLINE float exponent_value(uint32_t biased) { return float(int32_t(biased)) - 127.f; }
FX_INLINE double exponent_value(uint64_t biased) {
  return from_bits(biased | 0x4330000000000000u) - (0x1p52 + 1023);
}
template <class T>
FX_INLINE LogParts<T> split_log(T x) {
  using F = Fp<T>;
  bool tiny = x < F::kMin;
  T y = tiny ? x * F::kLift : x;
  BitsOf<T> one = F::kBias << F::kMantissaBits;
  BitsOf<T> u = to_bits(y) + (one - F::kSqrtHalf);
  T e = exponent_value(BitsOf<T>(u >> F::kMantissaBits));
  BitsOf<T> mantissa = (BitsOf<T>(1) << F::kMantissaBits) - 1;
  T m = from_bits(BitsOf<T>((u & mantissa) + F::kSqrtHalf));
  return {tiny ? e - F::kLiftExponent : e, m - T(1)};
}

// log(1 + f) - f + low, f as in LogParts.
FX_INLINE float log_tail(float f, float low) {
  float z = f * f;
  float q = poly(f, 0.333333313f, -0.249999806f, 0.200006887f, -0.166691482f, 0.142511532f,
                 -0.123967357f, 0.116347142f, -0.116597600f, 0.0733223185f);
  return fma(-0.5f, z, fma(f * z, q, low));
}
FX_INLINE double log_tail(double f, double low) {
  double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double q =
      z * poly(z, 0.666666666666667, 0.39999999999898495, 0.2857142862637653, 0.22222211076684678,
               0.18182892931161862, 0.15331606713560098, 0.14617750234081867);
  return fma(s, half + q, low) - half;
}

// What a logarithm gives outside the positive finite numbers.
template <class T>
FX_INLINE T log_edges(T x, T y) {
  y = x < Fp<T>::kInf ? y : x;
  y = x < T(0) ? Fp<T>::kNan : y;
  return x == T(0) ? -Fp<T>::kInf : y;
}

// log(x) + low, for x > 0.
template <class T>
FX_INLINE T log_sum(T x, T low) {
  using F = Fp<T>;
  auto [e, f] = split_log(x);
  return fma(e, F::kLn2, f + log_tail(f, fma(e, F::kLn2Low, low)));
}

template <class T>
FX_INLINE T log(T x) {
  auto [e, f] = split_log(x);
  return log_edges(x, fma(e, Fp<T>::kLn2, f + log_tail(f, e * Fp<T>::kLn2Low)));
}

template <class T>
FX_INLINE T log1p(T x) {
  T u = T(1) + x;
  T lost = (x - (u - T(1))) / u;  // what rounding 1 + x dropped
  T y = log_edges(u, log_sum(u, u < Fp<T>::kInf ? lost : T(0)));
  return x == T(0) ? x : y;
}

template <class T>
FX_INLINE T log2(T x) {
  auto [e, f] = split_log(x);
  T m = f + log_tail(f, T(0));
  return log_edges(x, fma(m, Fp<T>::kLog2e, e));
}

template <class T>
FX_INLINE T log10(T x) {
  auto [e, f] = split_log(x);
  T m = f + log_tail(f, T(0));
  return log_edges(x, fma(e, Fp<T>::kLog10Of2, m * Fp<T>::kLog10e));
}

// log(u) where the argument of a hyperbolic inverse is 1 + t, and log(a) + ln 2 where it is huge.
template <class T>
FX_INLINE T asinh(T x) {
  using F = Fp<T>;
  T a = abs(x), z = a * a;
  bool big = a > F::kAsinhBig;
  T t = a + z / (T(1) + sqrt(T(1) + z));
  T u = big ? a : T(1) + t;
  T y = log_sum(u, big ? F::kLn2 : (t - (u - T(1))) / u);
  y = a < F::kInf ? y : a;
  return copysign(a == T(0) ? a : y, x);
}

template <class T>
FX_INLINE T acosh(T x) {
  using F = Fp<T>;
  bool big = x > F::kAsinhBig;
  T d = x - T(1);
  T t = d + sqrt(T(2) * d + d * d);
  T u = big ? x : T(1) + t;
  T y = log_sum(u, big ? F::kLn2 : (t - (u - T(1))) / u);
  y = x < F::kInf ? y : x;
  return x < T(1) ? F::kNan : (x == T(1) ? T(0) : y);
}

template <class T>
FX_INLINE T atanh(T x) {
  T a = abs(x);
  return copysign(T(0.5) * log1p(T(2) * a / (T(1) - a)), x);
}

// ---- Trigonometry. |x| <= kTrigLimit; the loops treat larger arguments one by one.

FX_INLINE float sin_small(float r) {  // |r| <= pi / 4
  float z = r * r;
  return fma(r * z, poly(z, -0.166666672f, 0.00833333191f, -0.000198400856f, 2.72496959e-6f), r);
}
FX_INLINE double sin_small(double r) {
  double z = r * r;
  return fma(r * z,
             poly(z, -0.16666666666666666, 0.00833333333333094, -0.0001984126983674298,
                  2.755731609430797e-06, -2.5051130101805494e-08, 1.5918002281873061e-10),
             r);
}
FX_INLINE float cos_small(float r) {
  float z = r * r;
  return fma(z * z, poly(z, 0.0416666642f, -0.00138883025f, 2.45477822e-5f), fma(z, -0.5f, 1.f));
}
FX_INLINE double cos_small(double r) {
  double z = r * r;
  double head = 1.0 - 0.5 * z;
  double lost = (1.0 - head) - 0.5 * z;
  double q = poly(z, 0.041666666666666664, -0.001388888888888739, 2.4801587298755762e-05,
                  -2.7557317266494944e-07, 2.0876145163581403e-09, -1.138255204095506e-11);
  return head + fma(z * z, q, lost);
}

template <class T>
struct TrigParts {
  BitsOf<T> quadrant;  // its low two bits
  T r;                 // |x| = quadrant pi / 2 + r
};
template <class T>
FX_INLINE TrigParts<T> split_trig(T a) {
  using F = Fp<T>;
  T t = fma(a, F::kTwoOverPi, F::kRound);
  T n = t - F::kRound;
  T r = fma(n, -F::kHalfPi, a);
  r = fma(n, -F::kHalfPiLow, r);
  return {to_bits(t), fma(n, -F::kHalfPiLowest, r)};
}

template <class T>
FX_INLINE T sin(T x) {
  auto [q, r] = split_trig(abs(x));
  T y = (q & 1) ? cos_small(r) : sin_small(r);
  BitsOf<T> sign = ((q & 2) << (sizeof(T) * 8 - 2)) ^ (to_bits(x) & Fp<T>::kSignBit);
  return from_bits(BitsOf<T>(to_bits(y) ^ sign));
}

template <class T>
FX_INLINE T cos(T x) {
  auto [q, r] = split_trig(abs(x));
  T y = (q & 1) ? sin_small(r) : cos_small(r);
  BitsOf<T> sign = ((q + 1) & 2) << (sizeof(T) * 8 - 2);
  return from_bits(BitsOf<T>(to_bits(y) ^ sign));
}

template <class T>
FX_INLINE T tan(T x) {
  auto [q, r] = split_trig(abs(x));
  T s = sin_small(r), c = cos_small(r);
  bool odd = (q & 1) != 0;
  T y = (odd ? -c : s) / (odd ? s : c);
  return flip_sign(y, x);
}

// (asin(s) - s) / s^3 as a function of s^2 <= 1/4.
FX_INLINE float asin_series(float z) {
  return poly(z, 0.166666731f, 0.0749876201f, 0.0450202301f, 0.0264331587f, 0.0383288488f);
}
FX_INLINE double asin_series(double z) {
  return poly(z, 0.16666666666666669, 0.07499999999998241, 0.04464285714672264,
              0.030381944111012048, 0.0223721740069607, 0.017352368423729538, 0.013971564292377978,
              0.011475834614514076, 0.010344026396335191, 0.005368621593963224,
              0.017637032862221767, -0.015212260670465204, 0.02899841909201102);
}

template <class T>
FX_INLINE T asin(T x) {
  using F = Fp<T>;
  T a = abs(x);
  bool small = a < T(0.5);
  T z = small ? a * a : (T(1) - a) * T(0.5);
  T s = small ? a : sqrt(z);
  T w = fma(s * z, asin_series(z), s);
  return copysign(small ? w : F::kHalfPi - (T(2) * w - F::kHalfPiLow), x);
}

template <class T>
FX_INLINE T acos(T x) {
  using F = Fp<T>;
  T a = abs(x);
  bool small = a < T(0.5);
  T z = small ? a * a : (T(1) - a) * T(0.5);
  T s = small ? x : sqrt(z);
  T w = fma(s * z, asin_series(z), s);
  T middle = F::kHalfPi - (w - F::kHalfPiLow);
  T left = T(2) * (F::kHalfPi - (w - F::kHalfPiLow));
  return small ? middle : (x < T(0) ? left : T(2) * w);
}

// (atan(t) - t) / t^3 as a function of t^2 <= tan(pi / 8)^2.
FX_INLINE float atan_series(float z) {
  return poly(z, -0.333333313f, 0.199995592f, -0.142644763f, 0.107485265f, -0.0646573752f);
}
FX_INLINE double atan_series(double z) {
  return poly(z, -0.3333333333333333, 0.1999999999999576, -0.1428571428471185, 0.11111111018600137,
              -0.09090904703471034, 0.07692185890135278, -0.06664546839287067, 0.05858436141597504,
              -0.050868585213903, 0.039269915715625964, -0.01922104425515314);
}

// atan(y / x) for y >= 0, x >= 0, not both 0 or infinite.
template <class T>
FX_INLINE T atan_ratio(T y, T x) {
  using F = Fp<T>;
  bool steep = y > T(2.414213562373095) * x;
  bool middle = y > T(0.41421356237309503) * x;
  T num = steep ? -x : (middle ? y - x : y);
  T den = steep ? y : (middle ? y + x : x);
  T base = steep ? F::kHalfPi : (middle ? F::kHalfPi * T(0.5) : T(0));
  T low = steep ? F::kHalfPiLow : (middle ? F::kHalfPiLow * T(0.5) : T(0));
  T t = num / den, z = t * t;
  return base + (fma(t * z, atan_series(z), t) + low);
}

template <class T>
FX_INLINE T atan(T x) {
  return copysign(atan_ratio(abs(x), T(1)), x);
}

template <class T>
FX_INLINE T atan2(T y, T x) {
  using F = Fp<T>;
  T ay = abs(y), ax = abs(x);
  bool huge = (ay > F::kHuge) | (ax > F::kHuge);
  T down = huge ? F::kShrink : T(1);
  bool equal_infinite = (ay == F::kInf) & (ax == F::kInf);
  T r = atan_ratio(equal_infinite ? T(1) : ay * down, equal_infinite ? T(1) : ax * down);
  r = (ay == T(0)) & (ax == T(0)) ? T(0) : r;
  bool left = (to_bits(x) & F::kSignBit) != 0;
  T back = T(2) * F::kHalfPi - (r - T(2) * F::kHalfPiLow);
  return copysign(left ? back : r, y);
}

// ---- Error function

FX_INLINE float erf_series(float z) {  // erf(x) / x - 1, z = x^2 <= 1
  return poly(z, 0.128379166f, -0.376126260f, 0.112836003f, -0.0268544443f, 0.00518953474f,
              -0.000802083581f, 7.88909965e-5f);
}
FX_INLINE double erf_series(double z) {
  return poly(z, 0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.02686617064507787,
              0.005223977624828395, -0.0008548326981423788, 0.00012055331132903609,
              -1.4925595771172962e-05, 1.6461008464751155e-06, -1.6350396108648497e-07,
              1.4660328064339042e-08, -1.1374953447997308e-09, 5.960681677686845e-11);
}

// (1 + 2a) e^(a^2) erfc(a), t as below.
FX_INLINE float erfcx_series(float t) {
  return poly(t, 1.27697837f, -0.0927639902f, -0.166031539f, 0.164055556f, -0.0542029366f,
              -0.00806051027f, 0.00862624962f, 0.00131227321f, -0.00122320233f, -0.000396337331f);
}
FX_INLINE double erfcx_series(double t) {
  return poly(t, 1.2530080582697296, -0.13562110612458106, -0.047562294353452314,
              0.12964515870274565, -0.11927366341520908, 0.06830802734454822, -0.02377051492107036,
              0.0025293918059394443, 0.0018886903885117867, -0.0007798321711349484,
              -0.0001051599988516481, 0.00012509873252643936, 4.950288579883078e-06,
              -2.009810961209837e-05, -7.334534484581131e-07, 3.4659930991435204e-06,
              3.594323927572064e-07, -6.056724734420275e-07, -1.427583021789181e-07,
              9.005330944430908e-08, 4.0303731072585706e-08, -6.059097001610224e-09,
              -6.245427967739193e-09, -9.580866269906026e-10);
}
FX_INLINE float erfcx_center(float) { return 2.f; }
FX_INLINE double erfcx_center(double) { return 3.0; }

// erfc(a) for a >= 0.
template <class T>
FX_INLINE T erfc_positive(T a) {
  T b = a > T(28) ? T(28) : a;
  T k = erfcx_center(b);
  T series = erfcx_series((b - k) / (b + k));
  T s = b * b;
  T lost = fma(b, b, -s);
  return exp_sum(-s, -lost) * (series / fma(T(2), b, T(1)));
}

template <class T>
FX_INLINE T erfc(T x) {
  T a = abs(x), y = erfc_positive(a);
  y = x < T(0) ? T(2) - y : y;
  return a < T(0.5) ? T(1) - fma(x, erf_series(x * x), x) : y;
}

FX_INLINE float erf(float x) {
  float a = abs(x);
  float near = fma(a, erf_series(a * a), a);
  float b = a > Fp<float>::kErfOne ? Fp<float>::kErfOne : a;
  // log(erfc(a)) on [0.98, 3.95]
  float far = 1.f - exp_normal(poly(b, 0.000302441185f, -1.13016605f, -0.631933928f, -0.109985262f,
                                    0.0263710041f, -0.00474323705f, 0.000593581528f,
                                    -4.57065507e-5f, 1.62089498e-6f));
  return copysign(a < 1.f ? near : far, x);
}
FX_INLINE double erf(double x) {
  double a = abs(x);
  double near = fma(a, erf_series(a * a), a);
  return copysign(a < 1.0 ? near : 1.0 - erfc_positive(a), x);
}

// ---- Two arguments

// pow's value for |a|, with the sign and the exceptional cases of C's pow put on top.
template <class T>
FX_INLINE T pow_edges(T a, T b, T y) {
  using F = Fp<T>;
  bool whole = trunc(b) == b;
  T half = b * T(0.5);
  bool odd = whole & (trunc(half) != half);
  y = odd ? copysign(y, a) : y;
  y = (a < T(0)) & !whole & (a > -F::kInf) ? F::kNan : y;
  y = (a == T(-1)) & (abs(b) == F::kInf) ? T(1) : y;
  y = (b != b) | (a != a) ? a + b : y;
  return (b == T(0)) | (a == T(1)) ? T(1) : y;
}

// In double, where a short series suffices: correctly rounded nearly always.
FX_INLINE float pow(float a, float b) {
  double x = abs(double(a));
  auto [e, f] = split_log(x);
  double s = f / (2.0 + f), z = s * s;
  double q =
      poly(z, 0.6666666655307102, 0.4000012271493042, 0.28550741397512625, 0.233322677512293);
  double log2_x = fma(fma(s * z, q, s + s), Fp<double>::kLog2e, e);
  log2_x = x == 0.0 ? -Fp<double>::kInf : (x < Fp<double>::kInf ? log2_x : x);
  double t = clamp(log2_x * double(b), -200.0, 200.0);
  double rounded = t + Fp<double>::kRound;
  double r = t - (rounded - Fp<double>::kRound);
  double p = poly(r, 0.6931471880324562, 0.24022651084117294, 0.05550357094287028,
                  0.009618030782505154, 0.0013390871338035259, 0.00015469731977475548);
  return pow_edges(a, b, float(fma(p, r, 1.0) * pow2(rounded)));
}

// The logarithm in double-double (about 2^-65 relative), so that b log(a) is good to its last bit.
FX_INLINE double pow(double a, double b) {
  using F = Fp<double>;
  double x = abs(a);
  auto [e, f] = split_log(x);
  double d = f + 2.0;
  double d_low = f - (d - 2.0);
  double s = f / d;
  double s_low = fma(-s, d_low, fma(-s, d, f)) / d;
  double z = s * s;
  double z_low = fma(s, s, -z) + 2.0 * s * s_low;
  double q =
      z * poly(z, 0.4000000000000003, 0.2857142857133764, 0.22222222271440675, 0.18181808198975855,
               0.15385577947600154, 0.13285863214749458, 0.1291467405889406);
  double third = 0.6666666666666666, third_low = 3.700743415417188e-17;
  double c = third + q;
  double c_low = (third - c) + q + third_low;
  double cube = s * z;
  double cube_low = fma(s, z, -cube) + s * z_low + s_low * z;
  double tail = cube * c;
  double tail_low = fma(cube, c, -tail) + cube * c_low + cube_low * c;
  // e ln 2 (its high part exact) + 2 s + tail, largest first
  double base = e * 0.6931471803691238, base_low = e * 1.9082149292705877e-10;
  double h1 = base + 2.0 * s, l1 = (base - h1) + 2.0 * s;
  // when e is 0, base is exactly 0 and the line above loses nothing
  double h2 = h1 + tail, l2 = (h1 - h2) + tail;
  double h3 = h2 + base_low, l3 = (h2 - h3) + base_low;
  double low = l1 + l2 + l3 + tail_low + 2.0 * s_low;
  double high = x == 0.0 ? -F::kInf : (x < F::kInf ? h3 : x);
  low = (x > 0.0) & (x < F::kInf) ? low : 0.0;
  double t = high * b;
  double t_low = fma(high, b, -t) + low * b;
  t_low = abs(t) < 800.0 ? t_low : 0.0;
  return pow_edges(a, b, exp_sum(t, t_low));
}

FX_INLINE float hypot(float a, float b) {
  double x = a, y = b;
  float r = float(sqrt(fma(x, x, y * y)));
  return (abs(a) == Fp<float>::kInf) | (abs(b) == Fp<float>::kInf) ? Fp<float>::kInf : r;
}
FX_INLINE double hypot(double a, double b) {
  using F = Fp<double>;
  a = abs(a);
  b = abs(b);
  double high = a > b ? a : b;
  double up = high > 0x1p500 ? 0x1p-600 : (high < 0x1p-400 ? 0x1p600 : 1.0);
  double down = high > 0x1p500 ? 0x1p600 : (high < 0x1p-400 ? 0x1p-600 : 1.0);
  double x = a * up, y = b * up;
  double xx = x * x, yy = y * y;
  double lost = fma(x, x, -xx) + fma(y, y, -yy);
  double r = sqrt(xx + (yy + lost)) * down;
  return (a == F::kInf) | (b == F::kInf) ? F::kInf : r;
}

// Exact where |a / b| < kRemainderLimit; the loops treat larger quotients one by one.
template <class T>
FX_INLINE T fmod(T a, T b) {
  using F = Fp<T>;
  T x = abs(a), y = abs(b);
  T r = fma(-trunc(x / y), y, x);
  r = r < T(0) ? r + y : r;  // the quotient rounded up
  r = r >= y ? r - y : r;
  r = (y == F::kInf) & (x < F::kInf) ? x : r;
  return copysign(r, a);
}

// fmod to floor's remainder: the sign of the divisor.
template <class T>
FX_INLINE T floor_mod(T r, T b) {
  return (r != T(0)) & ((r < T(0)) != (b < T(0))) ? r + b : r;
}

}  // namespace fornax::FX_ISA_NS
