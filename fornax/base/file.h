// Reading files by offset: from disk, or from memory for tests and embedded data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fornax {

using ByteSpan = std::span<const std::byte>;
using Bytes = std::vector<std::byte>;

// A file open for reading. Reads use pread, never a mapping: a file that another process shortens
// meanwhile gives an error, not SIGBUS. Moves, never copies; read_at may be called from several
// threads at once.
class InputFile {
 public:
  // Throws Error(kIo) with the path and the system's reason, also for what is no regular file.
  explicit InputFile(std::string path);
  // Reads `bytes` instead of a file; borrows them. `name` stands in error texts.
  static InputFile from_bytes(std::string name, ByteSpan bytes);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  // Fills `into` from `offset`. Throws Error(kIo) where the file ends before that.
  void read_at(uint64_t offset, std::span<std::byte> into) const;
  // The `count` bytes at `offset`; checks against size() before it allocates.
  Bytes read_at(uint64_t offset, uint64_t count) const;

 private:
  InputFile() = default;

  std::string name_;
  int fd_ = -1;
  const std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
};

// The whole file. Throws Error(kIo) if it is longer than `limit` bytes.
Bytes read_file(const std::string& path, uint64_t limit);

// "No such file or directory" for ENOENT and so on; safe to call from any thread.
std::string errno_text(int error);

inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace fornax
