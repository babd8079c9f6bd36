// bfloat16, half and complex: storage types with exact conversions. Arithmetic happens in float (or
// wider).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace fornax {

// Upper half of a float; conversion rounds to nearest even, NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  struct FromBits {};
  constexpr BFloat16(uint16_t raw, FromBits) : bits(raw) {}
  constexpr BFloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = uint16_t((u >> 16) | 0x40u);
      return;
    }
    bits = uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  constexpr operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

// IEEE binary16; conversion rounds to nearest even.
struct Half {
  uint16_t bits = 0;

  constexpr Half() = default;
  struct FromBits {};
  constexpr Half(uint16_t raw, FromBits) : bits(raw) {}
  constexpr Half(float value) : bits(narrow(value)) {}
  constexpr operator float() const { return widen(bits); }

 private:
  static constexpr uint16_t narrow(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    uint32_t sign = (u >> 16) & 0x8000u;
    u &= 0x7fffffffu;
    if (u > 0x7f800000u) return uint16_t(sign | 0x7e00u | ((u >> 13) & 0x1ffu));
    if (u >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // 65520 and above round to infinity
    if (u < 0x38800000u) {                                  // below 2^-14: subnormal, or zero
      float scaled = std::bit_cast<float>(u) + 0.5f;        // aligns the last bit at 2^-24
      return uint16_t(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
    }
    u += 0xc8000fffu + ((u >> 13) & 1u);  // rebias by -112, round to nearest even
    return uint16_t(sign | (u >> 13));
  }
  static constexpr float widen(uint16_t h) {
    uint32_t sign = uint32_t(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0)
      return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    float value = float(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
};

// Two values side by side, layout of C's complex. Only what conversions and scalar code need;
// kernels work on (re, im).
template <class T>
struct Complex {
  T re{}, im{};

  constexpr Complex() = default;
  constexpr Complex(T real, T imag = T(0)) : re(real), im(imag) {}
  template <class U>
  constexpr explicit Complex(Complex<U> other)
      : re(T(float_or_self(other.re))), im(T(float_or_self(other.im))) {}
  constexpr T real() const { return re; }
  constexpr T imag() const { return im; }
  friend constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend constexpr Complex operator+(Complex a, Complex b) {
    return {T(a.re + b.re), T(a.im + b.im)};
  }
  friend constexpr Complex operator-(Complex a, Complex b) {
    return {T(a.re - b.re), T(a.im - b.im)};
  }
  friend constexpr Complex operator-(Complex a) { return {T(-a.re), T(-a.im)}; }
  friend constexpr Complex operator*(Complex a, Complex b) {
    return {T(a.re * b.re - a.im * b.im), T(a.re * b.im + a.im * b.re)};
  }
  // By Smith's method: b's square may overflow where the quotient does not.
  friend constexpr Complex operator/(Complex a, Complex b) {
    auto c = float_or_self(b.re), d = float_or_self(b.im);
    auto abs_c = c < 0 ? -c : c, abs_d = d < 0 ? -d : d;
    if (abs_c == 0 && abs_d == 0) return {T(a.re / abs_c), T(a.im / abs_d)};
    if (abs_c >= abs_d) {
      auto ratio = d / c, norm = c + d * ratio;
      return {T((a.re + a.im * ratio) / norm), T((a.im - a.re * ratio) / norm)};
    }
    auto ratio = c / d, norm = d + c * ratio;
    return {T((a.re * ratio + a.im) / norm), T((a.im * ratio - a.re) / norm)};
  }

 private:
  template <class U>
  static constexpr auto float_or_self(U v) {
    if constexpr (std::is_same_v<U, Half>)
      return float(v);
    else
      return v;
  }
};

template <class T>
constexpr Complex<T> conj(Complex<T> z) {
  return {z.re, T(-z.im)};
}

using complex32 = Complex<Half>;
using complex64 = Complex<float>;
using complex128 = Complex<double>;
using bfloat16 = BFloat16;
using half = Half;

}  // namespace fornax
