// The caching allocator of CPU memory, behind every tensor's storage.
//
// Up to 64 KiB a block comes from the calling thread's free list without a lock (base/pool.h).
// Larger ones come from one locked list by best fit; from 4 MiB on they start at a multiple of
// 2 MiB and ask for huge pages. Freed blocks are kept for reuse: fresh memory costs a page fault
// for every page, several times what filling it costs. What is kept stays below a limit. Under the
// address sanitizer every block is an allocation of its own.
//
// All functions may be called from any thread; a block may be freed on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fornax::cpu_memory {

inline constexpr size_t kAlignment = 64;

// At least `bytes` bytes, 64-byte aligned, contents undefined; null for 0 bytes. Error(kMemory)
// naming the size when the system has no room for it, which is asked before it is touched: requests
// beyond physical memory and swap fail here and not later.
void* allocate(size_t bytes);
// As allocate(count * element_size); Error(kMemory) too if the product overflows.
void* allocate_array(size_t count, size_t element_size);
// `bytes` is what allocate was asked for. Null is ignored.
void deallocate(void* block, size_t bytes) noexcept;

struct Stats {
  int64_t allocated = 0;    // bytes asked for and not yet freed
  int64_t peak = 0;         // most of it since reset_peak(); see below
  int64_t reserved = 0;     // bytes held from the system: in use, cached, and objects of the pool
  int64_t cached = 0;       // bytes of free blocks above 64 KiB
  int64_t allocations = 0;  // calls so far
  int64_t frees = 0;
  int64_t system_allocations = 0;  // blocks above 64 KiB that the cache could not serve
};
// Exact when no other thread is allocating, except that `peak` may miss up to 64 KiB for each
// further thread that had small blocks.
Stats stats();
void reset_peak();

// Gives all free blocks back to the system.
void empty_cache();
// Bytes of free blocks above 64 KiB to keep; the least recently used go first. At first
// FORNAX_CACHE_LIMIT (bytes; suffixes k, m, g), else a quarter of the physical memory.
void set_cache_limit(int64_t bytes);
int64_t cache_limit();

// "3.20 GiB (3435973837 bytes)"
std::string describe_size(uint64_t bytes);

}  // namespace fornax::cpu_memory
