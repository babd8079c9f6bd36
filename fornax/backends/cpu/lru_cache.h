// A bounded map that forgets what was used least recently; not safe for several threads, so made
// thread_local by its users.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <unordered_map>

namespace fornax::cpu {

// Key: a struct of integers without padding, compared and hashed by its bytes.
template <class Key, class Value>
class LruCache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // The cached value, or what make() returns, which is then kept. Valid until the next call.
  template <class Make>
  Value& get(const Key& key, Make&& make) {
    // The latest entry again is the usual case in a loop.
    if (!order_.empty() && same(order_.front().first, key)) return order_.front().second;
    auto found = index_.find(key);
    if (found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return order_.front().second;
    }
    order_.emplace_front(key, make());
    index_.emplace(key, order_.begin());
    if (order_.size() > capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  size_t size() const { return order_.size(); }

 private:
  static_assert(std::has_unique_object_representations_v<Key>);

  static bool same(const Key& a, const Key& b) { return memcmp(&a, &b, sizeof(Key)) == 0; }
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t hash = 0x9e3779b97f4a7c15u;
      const char* bytes = reinterpret_cast<const char*>(&key);
      for (size_t i = 0; i + 8 <= sizeof(Key); i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
      }
      return size_t(hash);
    }
  };
  struct Equal {
    bool operator()(const Key& a, const Key& b) const { return same(a, b); }
  };
  static_assert(sizeof(Key) % 8 == 0);

  using Order = std::list<std::pair<Key, Value>>;
  size_t capacity_;
  Order order_;
  std::unordered_map<Key, typename Order::iterator, Hash, Equal> index_;
};

}  // namespace fornax::cpu
