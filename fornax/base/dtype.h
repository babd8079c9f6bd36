// Element types and PyTorch's promotion rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fornax/base/numeric.h"

namespace fornax {

// X(C++ type, enumerator, libtorch enumerator, short name of the records, PyTorch name)
#define FX_DTYPES(X)                                   \
  X(bool, kBool, Bool, "b8", "bool")                   \
  X(uint8_t, kU8, Byte, "u8", "uint8")                 \
  X(int8_t, kI8, Char, "i8", "int8")                   \
  X(int16_t, kI16, Short, "i16", "int16")              \
  X(int32_t, kI32, Int, "i32", "int32")                \
  X(int64_t, kI64, Long, "i64", "int64")               \
  X(Half, kF16, Half, "f16", "float16")                \
  X(BFloat16, kBF16, BFloat16, "bf16", "bfloat16")     \
  X(float, kF32, Float, "f32", "float32")              \
  X(double, kF64, Double, "f64", "float64")            \
  X(complex32, kC32, ComplexHalf, "c32", "complex32")  \
  X(complex64, kC64, ComplexFloat, "c64", "complex64") \
  X(complex128, kC128, ComplexDouble, "c128", "complex128")

// Ordered by category: bool < integers < floats < complex.
enum class Dtype : uint8_t {
#define X(type, name, torch, short_name, long_name) name,
  FX_DTYPES(X)
#undef X
      kUndefined
};
using ScalarType = Dtype;
inline constexpr int kDtypeCount = int(Dtype::kUndefined);

// libtorch's names.
inline constexpr Dtype kBool = Dtype::kBool, kByte = Dtype::kU8, kUInt8 = Dtype::kU8,
                       kChar = Dtype::kI8, kInt8 = Dtype::kI8, kShort = Dtype::kI16,
                       kInt16 = Dtype::kI16, kInt = Dtype::kI32, kInt32 = Dtype::kI32,
                       kLong = Dtype::kI64, kInt64 = Dtype::kI64, kHalf = Dtype::kF16,
                       kFloat16 = Dtype::kF16, kBFloat16 = Dtype::kBF16, kFloat = Dtype::kF32,
                       kFloat32 = Dtype::kF32, kDouble = Dtype::kF64, kFloat64 = Dtype::kF64,
                       kComplexHalf = Dtype::kC32, kComplexFloat = Dtype::kC64,
                       kComplexDouble = Dtype::kC128;

constexpr int64_t size_of(Dtype d) {
  constexpr int64_t bytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 4, 8, 16, 0};
  return bytes[int(d)];
}
constexpr bool is_bool(Dtype d) { return d == Dtype::kBool; }
// Integers without bool.
constexpr bool is_integer(Dtype d) { return d >= Dtype::kU8 && d <= Dtype::kI64; }
constexpr bool is_integral(Dtype d) { return d <= Dtype::kI64; }
constexpr bool is_float(Dtype d) { return d >= Dtype::kF16 && d <= Dtype::kF64; }
constexpr bool is_complex(Dtype d) { return d >= Dtype::kC32 && d <= Dtype::kC128; }
// What can carry a gradient.
constexpr bool is_differentiable(Dtype d) { return is_float(d) || is_complex(d); }
constexpr bool is_reduced_float(Dtype d) {
  return d == Dtype::kF16 || d == Dtype::kBF16 || d == Dtype::kC32;
}
// f32 -> c64 and so on; bf16 has no complex partner and gives c64, as in PyTorch.
constexpr Dtype to_complex(Dtype d) {
  switch (d) {
    case Dtype::kF16: return Dtype::kC32;
    case Dtype::kBF16:
    case Dtype::kF32: return Dtype::kC64;
    case Dtype::kF64: return Dtype::kC128;
    default: return is_complex(d) ? d : Dtype::kC64;
  }
}
// c64 -> f32 and so on; others are returned as they are.
constexpr Dtype to_real(Dtype d) {
  switch (d) {
    case Dtype::kC32: return Dtype::kF16;
    case Dtype::kC64: return Dtype::kF32;
    case Dtype::kC128: return Dtype::kF64;
    default: return d;
  }
}

// torch.promote_types: the smallest dtype both convert to without changing category.
Dtype promote_types(Dtype a, Dtype b);
// torch.can_cast: a result of `from` may be stored in `to` (complex > float > integer > bool).
bool can_cast(Dtype from, Dtype to);

// "float32"; libtorch prints "Float": torch_name_of.
std::string_view name_of(Dtype d);
std::string_view torch_name_of(Dtype d);
std::string_view short_name_of(Dtype d);
// Accepts short, PyTorch and libtorch names; kUndefined if unknown.
Dtype dtype_of_name(std::string_view name);
void append_to(std::string& out, Dtype d);

template <class T>
struct DtypeOf;
#define X(type, name, torch, short_name, long_name) \
  template <>                                       \
  struct DtypeOf<type> {                            \
    static constexpr Dtype value = Dtype::name;     \
  };
FX_DTYPES(X)
#undef X
template <>
struct DtypeOf<long long> : DtypeOf<int64_t> {};
template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

}  // namespace fornax
