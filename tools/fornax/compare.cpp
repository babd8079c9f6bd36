#include "tools/fornax/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "fornax/base/error.h"

namespace fornax::replay {
namespace {

template <class T>
T load(ByteSpan bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// Integers, widened.
int64_t integer_at(const RawTensorView& t, size_t i) {
  switch (t.dtype) {
    case Dtype::kI8: return load<int8_t>(t.bytes, i);
    case Dtype::kI16: return load<int16_t>(t.bytes, i);
    case Dtype::kI32: return load<int32_t>(t.bytes, i);
    case Dtype::kI64: return load<int64_t>(t.bytes, i);
    default: return load<uint8_t>(t.bytes, i);
  }
}

double real_at(ByteSpan bytes, Dtype d, size_t i) {
  switch (d) {
    case Dtype::kF16: return load<Half>(bytes, i);
    case Dtype::kBF16: return load<BFloat16>(bytes, i);
    case Dtype::kF32: return load<float>(bytes, i);
    default: return load<double>(bytes, i);
  }
}

// Real values have an imaginary part of zero.
std::complex<double> value_at(const RawTensorView& t, size_t i) {
  if (!is_complex(t.dtype)) return real_at(t.bytes, t.dtype, i);
  Dtype part = to_real(t.dtype);
  return {real_at(t.bytes, part, 2 * i), real_at(t.bytes, part, 2 * i + 1)};
}

bool has_nan(std::complex<double> v) { return std::isnan(v.real()) || std::isnan(v.imag()); }

bool close(std::complex<double> want, std::complex<double> got, Tolerance tolerance, double scale) {
  if (has_nan(want) || has_nan(got)) return has_nan(want) && has_nan(got);
  double size = std::max(std::abs(want), scale);
  if (std::isfinite(size) && std::isfinite(std::abs(got)))
    return std::abs(want - got) <= tolerance.absolute + tolerance.relative * size;
  auto part = [&](double a, double b) {
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(a);
  };
  return part(want.real(), got.real()) && part(want.imag(), got.imag());
}

// "[1, 0]" of a flat index.
std::string place(IntArrayRef sizes, size_t flat) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = int64_t(flat) % sizes[d];
    flat /= size_t(sizes[d]);
  }
  return str(IntArrayRef(index));
}

std::string show(const RawTensorView& t, size_t i) {
  if (is_integral(t.dtype)) return std::to_string(integer_at(t, i));
  char text[80];
  std::complex<double> v = value_at(t, i);
  if (is_complex(t.dtype)) {
    std::snprintf(text, sizeof text, "%.9g%+.9gi", v.real(), v.imag());
  } else {
    std::snprintf(text, sizeof text, "%.9g", v.real());
  }
  return text;
}

size_t count_of(const RawTensorView& t) { return t.bytes.size() / size_t(size_of(t.dtype)); }

bool equal_at(const RawTensorView& want, const RawTensorView& got, size_t i,
              std::span<const double> term_sums) {
  if (is_integral(want.dtype)) return integer_at(want, i) == integer_at(got, i);
  double scale = term_sums.empty() ? 0 : term_sums[i];
  return close(value_at(want, i), value_at(got, i), tolerance_of(want.dtype), scale);
}

}  // namespace

Tolerance tolerance_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kC128: return {1e-7, 1e-7};
    case Dtype::kF32:
    case Dtype::kC64: return {1.3e-5, 1e-5};
    case Dtype::kBF16: return {1.6e-2, 1e-2};
    case Dtype::kF16:
    case Dtype::kC32: return {2e-3, 1e-3};
    default: return {};
  }
}

std::optional<std::string> difference(const RawTensorView& want, const RawTensorView& got,
                                      std::span<const double> term_sums) {
  check_complete(want);
  check_complete(got);
  if (want.dtype != got.dtype) return str("dtype ", got.dtype, ", expected ", want.dtype);
  if (!(want.sizes == got.sizes)) return str("shape ", got.sizes, ", expected ", want.sizes);
  size_t count = count_of(want), wrong = 0, first = 0;
  FX_CHECK(term_sums.empty() || term_sums.size() == count, kValue, term_sums.size(),
           " sums of terms for ", count, " values");
  for (size_t i = 0; i < count; ++i) {
    if (equal_at(want, got, i, term_sums)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return std::nullopt;
  return str("value ", show(got, first), " at ", place(want.sizes, first), ", expected ",
             show(want, first), " (", wrong, " of ", count, " differ)");
}

std::optional<std::string> first_nonzero(const RawTensorView& got, double absolute) {
  check_complete(got);
  for (size_t i = 0; i < count_of(got); ++i) {
    bool zero =
        is_integral(got.dtype) ? integer_at(got, i) == 0 : std::abs(value_at(got, i)) <= absolute;
    if (!zero) return str("value ", show(got, i), " at ", place(got.sizes, i), ", expected 0");
  }
  return std::nullopt;
}

std::optional<std::string> difference_or_zeros(const RawTensorView* want, const RawTensorView* got,
                                               std::span<const double> term_sums) {
  if (want && got) return difference(*want, *got, term_sums);
  const RawTensorView* present = want ? want : got;
  if (!present) return std::nullopt;
  std::optional<std::string> nonzero =
      first_nonzero(*present, tolerance_of(present->dtype).absolute);
  if (!nonzero) return std::nullopt;
  return want ? str("nothing where the record has a nonzero tensor: ", *nonzero) : nonzero;
}

}  // namespace fornax::replay
