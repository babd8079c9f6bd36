#include "fornax/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "fornax/base/error.h"

namespace fornax {

std::string errno_text(int error) { return std::generic_category().message(error); }

InputFile::InputFile(std::string path) : name_(std::move(path)) {
  fd_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  FX_CHECK(fd_ >= 0, kIo, "cannot open ", name_, ": ", errno_text(errno));
  struct stat info;
  const char* problem = nullptr;
  if (::fstat(fd_, &info) != 0) {
    problem = "its size cannot be read";
  } else if (!S_ISREG(info.st_mode)) {
    problem = S_ISDIR(info.st_mode) ? "it is a directory" : "it is no regular file";
  }
  if (problem) {
    ::close(fd_);
    fail(ErrorKind::kIo, "cannot read ", name_, ": ", problem);
  }
  size_ = uint64_t(info.st_size);
}

InputFile InputFile::from_bytes(std::string name, ByteSpan bytes) {
  InputFile file;
  file.name_ = std::move(name);
  file.memory_ = bytes.data();
  file.size_ = bytes.size();
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> into) const {
  FX_CHECK(offset <= size_ && into.size() <= size_ - offset, kIo, name_,
           " is cut short: ", into.size(), " bytes at offset ", offset, " are needed, it has ",
           size_);
  if (into.empty()) return;
  if (fd_ < 0) {
    std::memcpy(into.data(), memory_ + offset, into.size());
    return;
  }
  constexpr size_t kMostPerCall = size_t(1) << 30;
  while (!into.empty()) {
    ssize_t got = ::pread(fd_, into.data(), std::min(into.size(), kMostPerCall), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    FX_CHECK(got >= 0, kIo, "cannot read ", name_, " at offset ", offset, ": ", errno_text(errno));
    FX_CHECK(got > 0, kIo, name_, " became shorter while it was read: it ends at offset ", offset);
    offset += uint64_t(got);
    into = into.subspan(size_t(got));
  }
}

Bytes InputFile::read_at(uint64_t offset, uint64_t count) const {
  FX_CHECK(offset <= size_ && count <= size_ - offset, kIo, name_, " is cut short: ", count,
           " bytes at offset ", offset, " are needed, it has ", size_);
  Bytes bytes(count);
  read_at(offset, std::span(bytes));
  return bytes;
}

Bytes read_file(const std::string& path, uint64_t limit) {
  InputFile file(path);
  FX_CHECK(file.size() <= limit, kIo, path, " has ", file.size(), " bytes, more than the limit of ",
           limit);
  return file.read_at(0, file.size());
}

}  // namespace fornax
