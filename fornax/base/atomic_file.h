// Writing a file so that readers see the old content or the new one, never a part.
#pragma once

#include <string>
#include <string_view>

#include "fornax/base/file.h"

namespace fornax {

// Writes to a temporary file beside `path`; commit() makes it durable and renames it over `path`.
// Without commit(), and after any error, the destructor removes the temporary file and `path` is
// untouched. A symbolic link at `path` stays and its target is replaced; an existing file's mode is
// kept. Not thread safe. Every method throws Error(kIo) with the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(ByteSpan bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  // Bytes written so far.
  uint64_t position() const { return position_; }
  // fsync, rename, fsync of the directory. Nothing may be written afterwards.
  void commit();

 private:
  void open_temporary();
  void flush();
  void write_all(ByteSpan bytes);
  [[noreturn]] void fail_with(std::string_view action, int error);
  void discard() noexcept;

  std::string path_;       // as the caller named it, for error texts
  std::string target_;     // symbolic links resolved
  std::string temporary_;  // empty when there is none
  int fd_ = -1;
  uint64_t position_ = 0;
  Bytes buffer_;  // collects small writes
};

}  // namespace fornax
