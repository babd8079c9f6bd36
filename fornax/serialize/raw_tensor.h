// Tensors as plain bytes: what the file formats read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/base/dtype.h"
#include "fornax/base/file.h"

namespace fornax {

// An owned tensor: row-major, little-endian, no gaps. Bools are bytes 0 and 1.
struct RawTensor {
  std::string name;
  Dtype dtype = Dtype::kUndefined;
  std::vector<int64_t> sizes;
  Bytes bytes;
};

// A borrowed one, for writing.
struct RawTensorView {
  std::string_view name;
  Dtype dtype = Dtype::kUndefined;
  IntArrayRef sizes;
  ByteSpan bytes;

  RawTensorView() = default;
  RawTensorView(std::string_view n, Dtype d, IntArrayRef s, ByteSpan b)
      : name(n), dtype(d), sizes(s), bytes(b) {}
  RawTensorView(const RawTensor& t)
      : name(t.name), dtype(t.dtype), sizes(t.sizes), bytes(t.bytes) {}
};

// Largest rank a tensor can have.
inline constexpr size_t kMaxRank = 64;

// Product of the sizes times `item_bytes`, multiplied from the left; nullopt for a negative size
// or when a partial product leaves int64.
std::optional<int64_t> checked_bytes(IntArrayRef sizes, int64_t item_bytes);
// Throws Error(kValue) unless dtype is defined and bytes.size() is what sizes and dtype need.
void check_complete(const RawTensorView& tensor);
// Makes every byte 0 or 1: other values in a C++ bool are undefined behaviour.
void normalize_bools(std::span<std::byte> bytes);
// Turns each item of `item_bytes` (1, 2, 4, 8) around: big-endian to little-endian and back.
void swap_bytes(std::span<std::byte> bytes, int64_t item_bytes);

}  // namespace fornax
