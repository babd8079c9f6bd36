#include "fornax/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fornax/base/error.h"

namespace fornax {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMostPerCall = size_t(1) << 30;

// Follows a symbolic link; other paths, also those that don't exist yet, stay as they are.
std::string resolve_link(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) ? std::string(resolved) : path;
}

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  target_ = resolve_link(path_);
  open_temporary();
  struct stat info;
  if (::stat(target_.c_str(), &info) != 0) return;
  if (S_ISDIR(info.st_mode)) fail_with("write", EISDIR);
  if (::fchmod(fd_, info.st_mode & 07777) != 0) fail_with("set the mode of", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::open_temporary() {
  // Process number and counter make names of this machine distinct; O_EXCL catches the rest, such
  // as files that a killed process left behind or another machine's on a shared disk.
  static constinit std::atomic<unsigned> counter{0};
  for (int tries = 0;; ++tries) {
    unsigned serial = counter.fetch_add(1, std::memory_order_relaxed);
    temporary_ = str(target_, ".tmp-", ::getpid(), "-", serial);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) return;
    int error = errno;
    if (error == EEXIST && tries < 100) continue;
    temporary_.clear();
    fail_with("create a temporary file for", error);
  }
}

void AtomicFile::write(ByteSpan bytes) {
  FX_CHECK(fd_ >= 0, kIo, "cannot write ", path_, ": it is closed already");
  position_ += bytes.size();
  if (bytes.size() < kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    if (buffer_.size() >= kBufferBytes) flush();
    return;
  }
  flush();
  write_all(bytes);
}

void AtomicFile::flush() {
  write_all(buffer_);
  buffer_.clear();
}

void AtomicFile::write_all(ByteSpan bytes) {
  while (!bytes.empty()) {
    ssize_t put = ::write(fd_, bytes.data(), std::min(bytes.size(), kMostPerCall));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with("write", errno);
    bytes = bytes.subspan(size_t(put));
  }
}

void AtomicFile::commit() {
  FX_CHECK(fd_ >= 0, kIo, "cannot write ", path_, ": it is closed already");
  flush();
  if (::fsync(fd_) != 0) fail_with("flush", errno);
  // Network file systems report late write errors here.
  if (::close(std::exchange(fd_, -1)) != 0) fail_with("close", errno);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with("replace", errno);
  temporary_.clear();
  int directory = ::open(directory_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // a directory that may be written but not read: nothing more to do
  int failed = ::fsync(directory) != 0 ? errno : 0;
  ::close(directory);
  // Some file systems cannot flush directories and say EINVAL.
  if (failed != 0 && failed != EINVAL) fail_with("flush the directory of", failed);
}

void AtomicFile::fail_with(std::string_view action, int error) {
  discard();
  fail(ErrorKind::kIo, "cannot ", action, " ", path_, ": ", errno_text(error));
}

void AtomicFile::discard() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

}  // namespace fornax
