// Comparison of tensors within the records' tolerances.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/fornax/record.h"

namespace fornax::replay {

struct Tolerance {
  double relative = 0, absolute = 0;
};

// f64, c128: 1e-7, 1e-7; f32, c64: 1.3e-5, 1e-5; bf16: 1.6e-2, 1e-2; f16, c32: 2e-3, 1e-3; integers
// and bool exactly.
Tolerance tolerance_of(Dtype dtype);

// Nothing if `got` equals `want`: same dtype, same shape, and every value within
// absolute + relative * |want|. NaN equals NaN, an infinity the same infinity, -0 equals 0; complex
// values differ by the modulus of their difference, one with a NaN in a part is NaN, and infinite
// parts must agree.
// Otherwise the first difference in words. `term_sums`, where not empty, has one value per element:
// the sum of the moduli of the terms added up to make it; it stands for |want| where it is larger
// (gradients in half precision summed over broadcast or reduced dimensions).
std::optional<std::string> difference(const RawTensorView& want, const RawTensorView& got,
                                      std::span<const double> term_sums = {});
// The same where absent tensors stand for zeros.
std::optional<std::string> difference_or_zeros(const RawTensorView* want, const RawTensorView* got,
                                               std::span<const double> term_sums = {});
// Nothing if every value of `got` is zero.
std::optional<std::string> first_nonzero(const RawTensorView& got, double absolute);

}  // namespace fornax::replay
