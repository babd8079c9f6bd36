#include "fornax/core/storage.h"

#include <cstring>

#include "fornax/base/error.h"
#include "fornax/base/pool.h"
#include "fornax/device/allocator.h"

namespace fornax {
namespace {

void free_allocated(void*, void* data, size_t bytes) { cpu_memory::deallocate(data, bytes); }

}  // namespace

void* Storage::operator new(size_t bytes) { return detail::pool_new(bytes); }
void Storage::operator delete(void* p) { detail::pool_delete(p, sizeof(Storage)); }

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  if (device.is_meta())
    return Ref<Storage>::own(new Storage(nullptr, bytes, device, nullptr, nullptr));
  FX_CHECK(device.is_cpu(), kDevice, "allocate: this build has no allocator for device ", device);
  void* data = bytes ? cpu_memory::allocate(bytes) : nullptr;
  return Ref<Storage>::own(new Storage(data, bytes, device, free_allocated, nullptr));
}

Ref<Storage> Storage::wrap(void* data, size_t bytes, Device device, Deleter deleter,
                           void* context) {
  return Ref<Storage>::own(new Storage(data, bytes, device, deleter, context));
}

Storage::~Storage() {
  if (deleter_ && data_) deleter_(context_, data_, bytes_);
}

void Storage::resize(size_t bytes) {
  if (device_.is_meta()) {
    bytes_ = bytes;
    return;
  }
  FX_CHECK(deleter_ == free_allocated, kValue,
           "resize_: the memory was given by the caller (from_blob) and can't grow");
  void* fresh = bytes ? cpu_memory::allocate(bytes) : nullptr;
  if (size_t keep = bytes < bytes_ ? bytes : bytes_) std::memcpy(fresh, data_, keep);
  if (data_) cpu_memory::deallocate(data_, bytes_);
  data_ = fresh;
  bytes_ = bytes;
}

}  // namespace fornax
