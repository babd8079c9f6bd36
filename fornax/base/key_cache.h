// A cache from 64-bit keys to immortal values: lock-free per-thread hits, one shared table behind a
// mutex.
#pragma once

#include <mutex>
#include <unordered_map>

#include "fornax/base/hash.h"

namespace fornax {

// Values are made once per key and never freed; pointers stay valid. `Tag` separates the
// thread-local parts of caches.
template <class Value, class Tag>
class KeyCache {
 public:
  // The value of `key`; make() runs under the lock, at most once per key. It must not use this
  // cache.
  template <class Make>
  const Value& get(uint64_t key, Make make) {
    Slot& slot = recent_[key % kRecent];
    if (slot.key == key && slot.value) [[likely]]
      return *slot.value;
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    auto it = values_.find(key);
    if (it == values_.end()) it = values_.emplace(key, new Value(make())).first;
    slot = {key, it->second};
    return *it->second;
  }
  size_t size() const {
    std::lock_guard<std::recursive_mutex> lock(mutex_);
    return values_.size();
  }

 private:
  struct Slot {
    uint64_t key = 0;
    const Value* value = nullptr;
  };
  static constexpr size_t kRecent = 512;
  static thread_local constinit Slot recent_[kRecent];
  mutable std::recursive_mutex mutex_;
  std::unordered_map<uint64_t, const Value*> values_;
};

template <class Value, class Tag>
thread_local constinit typename KeyCache<Value, Tag>::Slot
    KeyCache<Value, Tag>::recent_[KeyCache<Value, Tag>::kRecent];

}  // namespace fornax
