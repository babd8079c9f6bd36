// A number of any kind, as it stands in a program: bool, integer, real or complex.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "fornax/base/dtype.h"

namespace fornax {

class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kReal, kComplex };

  constexpr Scalar() : kind_(Kind::kInt) { v_.i = 0; }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  constexpr Scalar(T value)
      : kind_(std::is_same_v<T, bool> ? Kind::kBool
              : std::is_integral_v<T> ? Kind::kInt
                                      : Kind::kReal) {
    if constexpr (std::is_integral_v<T>)
      v_.i = int64_t(value);
    else
      v_.d = double(value);
  }
  constexpr Scalar(BFloat16 value) : Scalar(double(float(value))) {}
  constexpr Scalar(Half value) : Scalar(double(float(value))) {}
  template <class T>
  constexpr Scalar(Complex<T> value) : kind_(Kind::kComplex), im_(double(value.im)) {
    v_.d = double(value.re);
  }
  Scalar(const char*) = delete;  // x.add("a") is a compile error

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_bool() const { return kind_ == Kind::kBool; }
  constexpr bool is_integral(bool include_bool = true) const {
    return kind_ == Kind::kInt || (include_bool && is_bool());
  }
  constexpr bool is_floating_point() const { return kind_ == Kind::kReal; }
  constexpr bool is_complex() const { return kind_ == Kind::kComplex; }
  // i64, f64, bool or c128.
  constexpr Dtype dtype() const {
    constexpr Dtype table[] = {Dtype::kBool, Dtype::kI64, Dtype::kF64, Dtype::kC128};
    return table[int(kind_)];
  }
  constexpr double to_double() const { return kind_ >= Kind::kReal ? v_.d : double(v_.i); }
  // Reals are truncated; out of range saturates.
  constexpr int64_t to_int() const {
    if (kind_ < Kind::kReal) return v_.i;
    if (!(v_.d > -9.3e18)) return v_.d == v_.d ? INT64_MIN : 0;
    return v_.d < 9.2e18 ? int64_t(v_.d) : INT64_MAX;
  }
  constexpr bool to_bool() const {
    return kind_ >= Kind::kReal ? v_.d != 0 || imag() != 0 : v_.i != 0;
  }
  constexpr double real() const { return to_double(); }
  constexpr double imag() const { return kind_ == Kind::kComplex ? im_ : 0.0; }
  constexpr complex128 to_complex() const { return {to_double(), imag()}; }
  template <class T>
  constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>)
      return to_bool();
    else if constexpr (std::is_integral_v<T>)
      return T(to_int());
    else if constexpr (std::is_floating_point_v<T>)
      return T(to_double());
    else if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>)
      return T(float(to_double()));
    else
      return T(to_complex());
  }
  constexpr Scalar operator-() const {
    if (kind_ == Kind::kComplex) return Scalar(complex128(-v_.d, -im_));
    return kind_ == Kind::kReal ? Scalar(-v_.d) : Scalar(-v_.i);
  }
  constexpr Scalar conj() const { return is_complex() ? Scalar(complex128(v_.d, -im_)) : *this; }
  friend constexpr bool operator==(const Scalar& a, const Scalar& b) {
    if (a.kind_ < Kind::kReal && b.kind_ < Kind::kReal) return a.v_.i == b.v_.i;
    return a.real() == b.real() && a.imag() == b.imag();
  }

 private:
  Kind kind_;
  union {
    int64_t i;
    double d;
  } v_;
  double im_ = 0;
};

void append_to(std::string& out, const Scalar& value);

}  // namespace fornax
