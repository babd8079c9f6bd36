// Temporary memory of kernels: 64-byte aligned, taken from a cache of the calling thread.
#pragma once

#include <cstdint>

namespace fornax::cpu {

// Owns `bytes` uninitialised bytes (null for 0) until destroyed; then the block is kept for the
// thread's next request of about this size. A thread keeps at most kScratchKept bytes.
// Error(kMemory) when there is no memory.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

inline constexpr int64_t kScratchKept = int64_t(256) << 20;

}  // namespace fornax::cpu
