// x.index({1, Slice(None, None, 2), "...", mask}): what an index may be.
#pragma once

#include <climits>

#include "fornax/core/tensor.h"

namespace fornax {
namespace indexing {

// A new dimension of size 1, and in Slice a bound that is left out.
inline constexpr std::nullopt_t None = std::nullopt;
struct EllipsisIndexType {};
// As many full slices as are needed; "..." is the same.
inline constexpr EllipsisIndexType Ellipsis{};

// Every step-th element from start to before stop.
struct Slice {
  constexpr Slice(std::optional<int64_t> start = std::nullopt,
                  std::optional<int64_t> stop = std::nullopt,
                  std::optional<int64_t> step = std::nullopt)
      : start(start), stop(stop), step(step.value_or(1)) {}
  std::optional<int64_t> start, stop;
  int64_t step;
};

struct TensorIndex {
  enum class Kind : uint8_t { kNone, kEllipsis, kInteger, kBool, kSlice, kTensor };

  TensorIndex(std::nullopt_t) : kind(Kind::kNone) {}
  TensorIndex(EllipsisIndexType) : kind(Kind::kEllipsis) {}
  // Only "..."; throws Error(kIndex) on other text.
  TensorIndex(const char* text);
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  TensorIndex(T value)
      : kind(std::is_same_v<T, bool> ? Kind::kBool : Kind::kInteger), integer(int64_t(value)) {}
  TensorIndex(Slice s) : kind(Kind::kSlice), slice(s) {}
  TensorIndex(Tensor t) : kind(Kind::kTensor), tensor(std::move(t)) {}

  Kind kind;
  int64_t integer = 0;
  Slice slice;
  Tensor tensor;
};

}  // namespace indexing

// index_put in place, with one tensor (or none: undefined) per dimension.
Tensor& index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate = false);

}  // namespace fornax
