// NumPy's .npz format: a zip archive of .npy members.
//
// Stored and deflated members, zip64, checksums checked. What a member unpacks to is bounded by
// what its directory entry declares, and that by deflate's best ratio.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fornax/serialize/raw_tensor.h"

namespace fornax {

struct NpzEntry {
  std::string name;  // without ".npy"
  uint64_t header_offset = 0;
  uint64_t stored_bytes = 0, content_bytes = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

// Reads the directory at once and arrays on demand. Throws Error(kIo) naming file, member and
// values for damaged archives: repeated or overlapping members, sizes past the file, false
// checksums, encryption, several disks. After construction it is read-only: threads may share it.
class NpzReader {
 public:
  explicit NpzReader(std::string path) : NpzReader(InputFile(std::move(path))) {}
  explicit NpzReader(InputFile file);

  const std::string& path() const { return file_.name(); }
  // The members that end in ".npy", in the order of the archive.
  const std::vector<NpzEntry>& entries() const { return entries_; }
  // Null if there is none.
  const NpzEntry* find(std::string_view name) const;
  RawTensor read(const NpzEntry& entry) const;
  // Throws Error(kIo) if there is no array of that name.
  RawTensor read(std::string_view name) const;

 private:
  InputFile file_;
  std::vector<NpzEntry> entries_;
};

// Writes atomically, in the order given; `compress` deflates as numpy.savez_compressed. Throws
// Error(kValue) for repeated, empty or too long names, Error(kUnsupported) for dtypes without an
// .npy type.
void write_npz(const std::string& path, std::span<const RawTensorView> tensors, bool compress);

}  // namespace fornax
