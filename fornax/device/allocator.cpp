#include "fornax/device/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fornax/base/env.h"
#include "fornax/base/error.h"
#include "fornax/base/pool.h"
#include "fornax/device/system_memory.h"

namespace fornax::cpu_memory {
namespace {

constexpr size_t kMiB = size_t(1) << 20;
constexpr size_t kHugePage = 2 * kMiB;
// From here on blocks are mapped by themselves, aligned to huge pages.
constexpr size_t kMapped = 4 * kMiB;
// Requests from here on are checked against what the machine has available right now.
constexpr size_t kChecked = 256 * kMiB;
// A request larger than any address space; catches negative sizes converted to size_t.
constexpr size_t kLargest = size_t(1) << 47;
constexpr int64_t kFlushBytes = 64 * 1024;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

// ---- statistics --------------------------------------------------------------------------------

// A thread counts its small blocks by itself; only it writes, stats() reads. `bytes` moves to the
// totals when it has changed by kFlushBytes, together with the highest value it had.
struct Counters {
  std::atomic<int64_t> bytes{0}, highest{0}, allocations{0}, frees{0};
};

struct Totals {
  std::mutex mutex;  // guards `threads`
  std::vector<Counters*> threads;
  std::atomic<int64_t> bytes{0}, peak{0}, allocations{0}, frees{0};
};

Totals& totals() {
  static Totals* instance = new Totals;  // never destroyed: threads free while the program ends
  return *instance;
}

void raise(std::atomic<int64_t>& highest, int64_t value) {
  int64_t seen = highest.load(std::memory_order_relaxed);
  while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

int64_t get(const std::atomic<int64_t>& value) { return value.load(std::memory_order_relaxed); }
void set(std::atomic<int64_t>& value, int64_t to) { value.store(to, std::memory_order_relaxed); }

void flush(Counters& c) {
  Totals& t = totals();
  int64_t before = t.bytes.fetch_add(get(c.bytes), std::memory_order_relaxed);
  raise(t.peak, before + std::max<int64_t>(get(c.highest), 0));
  set(c.bytes, 0);
  set(c.highest, 0);
}

enum class Life : uint8_t { kUnborn, kAlive, kDead };
[[gnu::tls_model("initial-exec")]] constinit thread_local Counters* thread_counters = nullptr;
constinit thread_local Life thread_life = Life::kUnborn;

struct CountersGuard {
  Counters counters;
  CountersGuard() {
    std::lock_guard lock(totals().mutex);
    totals().threads.push_back(&counters);
    thread_counters = &counters;
    thread_life = Life::kAlive;
  }
  ~CountersGuard() {
    thread_life = Life::kDead;
    thread_counters = nullptr;
    Totals& t = totals();
    std::lock_guard lock(t.mutex);
    flush(counters);
    t.allocations.fetch_add(get(counters.allocations), std::memory_order_relaxed);
    t.frees.fetch_add(get(counters.frees), std::memory_order_relaxed);
    std::erase(t.threads, &counters);
  }
};

// Null while the thread is being torn down.
[[gnu::noinline]] Counters* make_counters() {
  if (thread_life == Life::kDead) return nullptr;
  thread_local CountersGuard guard;
  return &guard.counters;
}

void count_globally(int64_t bytes) {
  Totals& t = totals();
  int64_t now = t.bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  (bytes > 0 ? t.allocations : t.frees).fetch_add(1, std::memory_order_relaxed);
  if (bytes > 0) raise(t.peak, now);
}

// `bytes` > 0: a block given out; < 0: one taken back.
void count_small(int64_t bytes) {
  Counters* c = thread_counters;
  if (!c) [[unlikely]] {
    c = make_counters();
    if (!c) return count_globally(bytes);
  }
  int64_t now = get(c->bytes) + bytes;
  set(c->bytes, now);
  if (bytes > 0) {
    set(c->allocations, get(c->allocations) + 1);
    if (now > get(c->highest)) set(c->highest, now);
  } else {
    set(c->frees, get(c->frees) + 1);
  }
  if (now > kFlushBytes || now < -kFlushBytes) [[unlikely]]
    flush(*c);
}

void count_large(int64_t bytes) {
  if (Counters* c = thread_counters) flush(*c);  // keeps the peak of one thread exact
  count_globally(bytes);
}

// ---- large blocks ------------------------------------------------------------------------------

// Eight sizes per doubling: at most 1/8 is wasted and sizes that nearly agree share blocks.
size_t round_capacity(size_t bytes) {
  int log = 63 - __builtin_clzll(bytes - 1);
  size_t step = std::max<size_t>(size_t(1) << (log - 3), 4096);
  return (bytes + step - 1) / step * step;
}

// A larger free block serves a request if no more than this of it is wasted.
size_t tolerated(size_t capacity) { return capacity + capacity / (capacity < 64 * kMiB ? 4 : 8); }

void* map_block(size_t capacity) {
  size_t span = capacity + kHugePage;
  void* raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  uintptr_t from = reinterpret_cast<uintptr_t>(raw);
  uintptr_t start = (from + kHugePage - 1) / kHugePage * kHugePage;
  if (start > from) munmap(raw, start - from);
  void* block = reinterpret_cast<void*>(start);
  munmap(reinterpret_cast<void*>(start + capacity), from + span - start - capacity);
  madvise(block, capacity, MADV_HUGEPAGE);  // advice only
  return block;
}

void* system_allocate(size_t capacity) {
  return capacity >= kMapped ? map_block(capacity) : std::aligned_alloc(kAlignment, capacity);
}

void system_free(void* block, size_t capacity) {
  if (capacity >= kMapped) {
    munmap(block, capacity);
  } else {
    std::free(block);
  }
}

struct LargeBlocks {
  struct Block {
    size_t capacity;
    uint64_t freed_at;  // time of the last free, in frees
  };
  std::mutex mutex;
  std::unordered_map<void*, Block> blocks;   // all of them
  std::multimap<size_t, void*> free_blocks;  // by capacity, the last freed first
  std::map<uint64_t, void*> by_age;          // free blocks, the least recently used first
  uint64_t clock = 0;
  int64_t reserved = 0, cached = 0, system_allocations = 0;
  int64_t limit = -1;  // not yet asked for

  void* take_cached(size_t capacity);
  void* take_fresh(size_t capacity);
  void give(void* block);
  void trim(int64_t keep);
  void forget_free(std::multimap<size_t, void*>::iterator where);
  int64_t cache_limit();
};

void lock_large();
void unlock_large();

LargeBlocks& large() {
  static LargeBlocks* instance = [] {
    pthread_atfork(lock_large, unlock_large, unlock_large);
    return new LargeBlocks;
  }();
  return *instance;
}

void lock_large() {
  totals().mutex.lock();
  large().mutex.lock();
}
void unlock_large() {
  large().mutex.unlock();
  totals().mutex.unlock();
}

int64_t LargeBlocks::cache_limit() {
  if (limit < 0) {
    limit = env_int("FORNAX_CACHE_LIMIT", -1);
    if (limit < 0) limit = int64_t(physical_memory() / 4);
  }
  return limit;
}

void LargeBlocks::forget_free(std::multimap<size_t, void*>::iterator where) {
  cached -= int64_t(where->first);
  by_age.erase(blocks[where->second].freed_at);
  free_blocks.erase(where);
}

void* LargeBlocks::take_cached(size_t capacity) {
  auto found = free_blocks.lower_bound(capacity);
  if (found == free_blocks.end() || found->first > tolerated(capacity)) return nullptr;
  void* block = found->second;
  forget_free(found);
  return block;
}

void* LargeBlocks::take_fresh(size_t capacity) {
  if (!has_room_for(capacity, size_t(reserved), capacity >= kChecked)) {
    trim(0);
    if (!has_room_for(capacity, size_t(reserved), capacity >= kChecked)) return nullptr;
  }
  void* block = system_allocate(capacity);
  if (!block) {
    trim(0);
    block = system_allocate(capacity);
    if (!block) return nullptr;
  }
  blocks[block] = {capacity, 0};
  reserved += int64_t(capacity);
  ++system_allocations;
  return block;
}

void LargeBlocks::give(void* block) {
  Block& info = blocks.at(block);
  info.freed_at = ++clock;
  by_age[clock] = block;
  free_blocks.emplace_hint(free_blocks.lower_bound(info.capacity), info.capacity, block);
  cached += int64_t(info.capacity);
  if (cached > cache_limit()) trim(cache_limit());
}

// Frees the least recently used blocks until at most `keep` bytes are cached.
void LargeBlocks::trim(int64_t keep) {
  while (cached > keep) {
    void* block = by_age.begin()->second;
    size_t capacity = blocks[block].capacity;
    auto where = free_blocks.lower_bound(capacity);
    while (where->second != block) ++where;
    forget_free(where);
    blocks.erase(block);
    reserved -= int64_t(capacity);
    system_free(block, capacity);
  }
}

[[noreturn, gnu::cold]] void fail_allocation(size_t bytes) {
  Stats now = stats();
  fail(ErrorKind::kMemory, "out of memory: cannot allocate ", describe_size(bytes), "; ",
       describe_size(uint64_t(now.allocated)), " allocated, ", describe_size(physical_memory()),
       " physical memory");
}

void* take_large(size_t bytes) {
  if (bytes > kLargest) return nullptr;
  if (!kCaching) {
    size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return has_room_for(bytes, 0, bytes >= kChecked) ? std::aligned_alloc(kAlignment, rounded)
                                                     : nullptr;
  }
  size_t capacity = round_capacity(bytes);
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  void* block = all.take_cached(capacity);
  return block ? block : all.take_fresh(capacity);
}

void give_large(void* block) {
  if (!kCaching) return std::free(block);
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  all.give(block);
}

[[gnu::noinline]] void* allocate_large(size_t bytes) {
  void* block = take_large(bytes);
  if (!block) fail_allocation(bytes);
  count_large(int64_t(bytes));
  return block;
}

void* take_small(size_t bytes) {
  if (kCaching) return pool_take(pool_class_of(bytes));
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > kPoolMaxSize) return allocate_large(bytes);
  if (bytes == 0) return nullptr;
  void* block = take_small(bytes);
  if (!block) [[unlikely]]
    fail_allocation(bytes);
  count_small(int64_t(bytes));
  return block;
}

void* allocate_array(size_t count, size_t element_size) {
  size_t bytes;
  bool overflows = __builtin_mul_overflow(count, element_size, &bytes);
  FX_CHECK(!overflows, kMemory, "out of memory: the size of ", count, " elements of ", element_size,
           " bytes overflows 64 bits");
  return allocate(bytes);
}

void deallocate(void* block, size_t bytes) noexcept {
  if (!block) return;
  if (bytes > kPoolMaxSize) {
    count_large(-int64_t(bytes));
    return give_large(block);
  }
  count_small(-int64_t(bytes));
  if (kCaching) return pool_give(block, pool_class_of(bytes));
  std::free(block);
}

Stats stats() {
  Stats s;
  Totals& t = totals();
  {
    std::lock_guard lock(t.mutex);
    if (Counters* own = thread_counters) flush(*own);
    s.allocated = get(t.bytes);
    s.allocations = get(t.allocations);
    s.frees = get(t.frees);
    for (const Counters* c : t.threads) {
      s.allocated += get(c->bytes);
      s.allocations += get(c->allocations);
      s.frees += get(c->frees);
    }
    s.peak = std::max(get(t.peak), s.allocated);
  }
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  s.reserved = all.reserved + pool_reserved_bytes();
  s.cached = all.cached;
  s.system_allocations = all.system_allocations;
  return s;
}

void reset_peak() {
  Totals& t = totals();
  std::lock_guard lock(t.mutex);
  if (Counters* own = thread_counters) flush(*own);
  int64_t now = get(t.bytes);
  for (const Counters* c : t.threads) now += get(c->bytes);
  set(t.peak, now);
}

void empty_cache() {
  pool_trim();
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  all.trim(0);
}

void set_cache_limit(int64_t bytes) {
  FX_CHECK(bytes >= 0, kValue, "set_cache_limit: expected a size >= 0, got ", bytes);
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  all.limit = bytes;
  all.trim(bytes);
}

int64_t cache_limit() {
  LargeBlocks& all = large();
  std::lock_guard lock(all.mutex);
  return all.cache_limit();
}

}  // namespace fornax::cpu_memory
