// Bytes and their version.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fornax/base/ref.h"
#include "fornax/device/device.h"

namespace fornax {

// Counts writes. A tensor uses its storage's counter, unless it has one of its own (.data, wrappers
// of transforms).
struct VersionCounter : RefCounted {
  std::atomic<uint32_t> value{0};
};

using Deleter = void (*)(void* context, void* data, size_t bytes);

// A block of memory shared by a tensor and its views. Counting is thread safe; the bytes are the
// user's to guard.
class Storage : public RefCounted {
 public:
  // Allocates. Device kMeta has no bytes. Throws Error(kMemory).
  static Ref<Storage> allocate(size_t bytes, Device device);
  // Wraps memory of the caller; `deleter` (may be null) runs when the last tensor lets go.
  static Ref<Storage> wrap(void* data, size_t bytes, Device device, Deleter deleter, void* context);
  ~Storage();
  Storage(const Storage&) = delete;
  static void* operator new(size_t bytes);
  static void operator delete(void* p);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Grows or shrinks, keeping the common prefix. Throws Error(kValue) for memory of the caller.
  void resize(size_t bytes);

  std::atomic<uint32_t> version{0};

 private:
  Storage(void* data, size_t bytes, Device device, Deleter deleter, void* context)
      : data_(data), bytes_(bytes), device_(device), deleter_(deleter), context_(context) {}
  void* data_;
  size_t bytes_;
  Device device_;
  Deleter deleter_;
  void* context_;
};

}  // namespace fornax
