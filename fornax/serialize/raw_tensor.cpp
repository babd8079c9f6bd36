#include "fornax/serialize/raw_tensor.h"

#include <algorithm>
#include <bit>

#include "fornax/base/error.h"

namespace fornax {

static_assert(std::endian::native == std::endian::little, "file formats are read as they lie");

std::optional<int64_t> checked_bytes(IntArrayRef sizes, int64_t item_bytes) {
  int64_t total = 1;
  for (int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(total, size, &total)) return std::nullopt;
  }
  if (__builtin_mul_overflow(total, item_bytes, &total)) return std::nullopt;
  return total;
}

void check_complete(const RawTensorView& t) {
  FX_CHECK(t.dtype < Dtype::kUndefined, kValue, "tensor ", t.name, " has no dtype");
  FX_CHECK(t.sizes.size() <= kMaxRank, kValue, "tensor ", t.name, " has ", t.sizes.size(),
           " dimensions, the most is ", kMaxRank);
  std::optional<int64_t> want = checked_bytes(t.sizes, size_of(t.dtype));
  FX_CHECK(want && uint64_t(*want) == t.bytes.size(), kValue, "tensor ", t.name, " of shape ",
           t.sizes, " and dtype ", t.dtype, " does not fit its ", t.bytes.size(), " bytes");
}

void normalize_bools(std::span<std::byte> bytes) {
  for (std::byte& b : bytes) b = std::byte(b != std::byte{0});
}

void swap_bytes(std::span<std::byte> bytes, int64_t item_bytes) {
  if (item_bytes < 2) return;
  for (size_t at = 0; at + size_t(item_bytes) <= bytes.size(); at += size_t(item_bytes)) {
    std::reverse(bytes.begin() + ptrdiff_t(at), bytes.begin() + ptrdiff_t(at) + item_bytes);
  }
}

}  // namespace fornax
