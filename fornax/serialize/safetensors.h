// The safetensors format: named tensors and string metadata in one file, nothing executable.
//
// Layout: 8 bytes little-endian length N, N bytes of JSON (name -> dtype, shape, data_offsets),
// then the tensors' bytes without gaps. Bool, u8, i8, i16, i32, i64, f16, bf16, f32, f64 and
// complex64
// ("C64") are stored as the format defines them. It knows no complex128 and complex32: these are
// stored as F64 and F16 with a last dimension of 2 more, and the metadata entry
// "fornax.dtype.NAME" = "complex128" or "complex32" tells the reader to undo that.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fornax/serialize/raw_tensor.h"

namespace fornax {

// Key and value, in the order of the file.
using StringPairs = std::vector<std::pair<std::string, std::string>>;

struct SafetensorsEntry {
  std::string name;
  // As the file spells it, "F32"; after undoing the complex128 and complex32 convention still
  // "F64".
  std::string stored_dtype;
  // kUndefined for what the format has and Fornax lacks (U16, U32, U64, F8_*, F6_*, F4).
  Dtype dtype = Dtype::kUndefined;
  std::vector<int64_t> sizes;
  uint64_t begin = 0, end = 0;  // within the data part of the file
};

// Reads a file's header at once and tensors on demand. Every length, offset, name and number is
// checked as the reference implementation does (gaps, overlaps, overflow, bytes that belong to no
// tensor), and repeated names too; a fault is Error(kIo) naming the file, the tensor and the
// values. After construction it is read-only: threads may share it.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::string path) : SafetensorsReader(InputFile(std::move(path))) {}
  explicit SafetensorsReader(InputFile file);

  const std::string& path() const { return file_.name(); }
  // Ordered by their place in the file.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  // Without the entries that carry the complex convention.
  const StringPairs& metadata() const { return metadata_; }
  // Null if there is none.
  const SafetensorsEntry* find(std::string_view name) const;
  const std::string* find_metadata(std::string_view key) const;

  // Fills `into`, whose size must be end - begin. Throws Error(kUnsupported) for dtypes that Fornax
  // lacks.
  void read(const SafetensorsEntry& entry, std::span<std::byte> into) const;
  // Throws Error(kIo) if there is no tensor of that name.
  RawTensor read(std::string_view name) const;

 private:
  void parse_header(std::string_view header, uint64_t data_bytes);
  void check_places(uint64_t data_bytes);
  void undo_complex_convention();

  InputFile file_;
  uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::vector<uint32_t> by_name_;  // indices into entries_, sorted by name
  StringPairs metadata_;
};

// Writes atomically. The same tensors give the same bytes in any order, and the reference
// implementation's bytes: sorted by falling alignment, then name. Throws Error(kValue) for repeated
// names, the reserved name "__metadata__", metadata keys that start with "fornax.dtype." or repeat,
// names or values that are no UTF-8, and sizes that don't fit the bytes.
void write_safetensors(const std::string& path, std::span<const RawTensorView> tensors,
                       const StringPairs& metadata = {});
// The same, in memory.
Bytes safetensors_bytes(std::span<const RawTensorView> tensors, const StringPairs& metadata = {});

}  // namespace fornax
