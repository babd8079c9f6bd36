// Small memory blocks from free lists per thread: the memory of tensors' headers, graph nodes and
// small tensors.
//
// Blocks belong to size classes (64-byte steps to 1 KiB, then four per doubling) and are 64-byte
// aligned. A hit takes a block from the calling thread's list without a lock. A block may be given
// back on any thread; it then joins that thread's list. Lists that grow long, and those of ending
// threads, go to central lists in batches. Under the address sanitizer every block is an allocation
// of its own, so that use after free is found.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fornax {

inline constexpr size_t kPoolMaxSize = 64 * 1024;
inline constexpr size_t kPoolAlignment = 64;
inline constexpr int kPoolClasses = 40;

// The class of a block of `size` <= kPoolMaxSize bytes.
constexpr int pool_class_of(size_t size) {
  if (size <= 1024) return size ? int((size - 1) / 64) : 0;
  size_t last = size - 1;
  int log = 63 - __builtin_clzll(last);
  return 16 + (log - 10) * 4 + int((last >> (log - 2)) & 3);
}
constexpr size_t pool_class_size(int size_class) {
  if (size_class < 16) return size_t(size_class + 1) * 64;
  int log = 10 + (size_class - 16) / 4;
  return size_t(5 + (size_class - 16) % 4) << (log - 2);
}

// A block of pool_class_size(size_class) bytes, contents undefined. Null when the system has no
// memory.
void* pool_take(int size_class) noexcept;
// Gives back a block of that class, from any thread.
void pool_give(void* block, int size_class) noexcept;
// Bytes that the pool holds from the system, in use or not.
int64_t pool_reserved_bytes();
// Gives the free blocks above 1 KiB of the calling thread and of the central lists back to the
// system; smaller ones stay (they are carved from slabs).
void pool_trim();

namespace detail {
void* pool_new(size_t size);  // Error(kMemory) when there is none; any size
void pool_delete(void* block, size_t size) noexcept;
}  // namespace detail

// Base class that gives T operator new and delete from the pool. T's destructor is virtual if it is
// deleted through a base.
template <class T>
class PooledNew {
 public:
  static void* operator new(size_t size) { return detail::pool_new(size); }
  static void* operator new(size_t, void* place) noexcept { return place; }
  static void operator delete(void* object, size_t size) noexcept {
    detail::pool_delete(object, size);
  }

 protected:
  PooledNew() = default;
  ~PooledNew() = default;
};

}  // namespace fornax
