#include "fornax/base/pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "fornax/base/error.h"

namespace fornax {
namespace {

void* system_block(size_t size) noexcept {
  return std::aligned_alloc(kPoolAlignment,
                            (size + kPoolAlignment - 1) / kPoolAlignment * kPoolAlignment);
}

[[noreturn]] void fail_new(size_t size) {
  fail(ErrorKind::kMemory, "out of memory: cannot allocate an object of ", size, " bytes");
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__)

void* pool_take(int size_class) noexcept { return system_block(pool_class_size(size_class)); }
void pool_give(void* block, int) noexcept { std::free(block); }
int64_t pool_reserved_bytes() { return 0; }
void pool_trim() {}

void* detail::pool_new(size_t size) {
  void* block = system_block(std::max<size_t>(size, 1));
  if (!block) fail_new(size);
  return block;
}
void detail::pool_delete(void* block, size_t) noexcept { std::free(block); }

#else

namespace {

// Classes up to here are carved from slabs; larger blocks are allocations of their own.
constexpr int kSlabClasses = pool_class_of(1024) + 1;
constexpr size_t kSlabBytes = 64 * 1024;
// What one thread keeps of a class, and how much the central list hands out at once.
constexpr size_t kThreadBytes = 256 * 1024, kBatchBytes = 16 * 1024;
// What a central list keeps of a class above the slabs'.
constexpr size_t kCentralBytes = 4 * 1024 * 1024;

// A free block holds the address of the next one.
void*& next_of(void* block) { return *static_cast<void**>(block); }

struct Chain {
  void* head = nullptr;
  uint32_t count = 0;
};

struct List {
  void* head = nullptr;
  uint32_t count = 0, limit = 0;
};

struct ThreadCache {
  List lists[kPoolClasses];
};

struct Central {
  std::mutex mutex;
  std::vector<Chain> chains;
  size_t free_blocks = 0;
  char* slab = nullptr;
  char* slab_end = nullptr;
};

struct Centrals {
  Central of_class[kPoolClasses];
  std::atomic<int64_t> reserved{0};
};

void lock_all();
void unlock_all();

// Never destroyed: threads may still free while the program ends.
Centrals& centrals() {
  static Centrals* instance = [] {
    pthread_atfork(lock_all, unlock_all, unlock_all);
    return new Centrals;
  }();
  return *instance;
}

void lock_all() {
  for (Central& c : centrals().of_class) c.mutex.lock();
}
void unlock_all() {
  for (Central& c : centrals().of_class) c.mutex.unlock();
}

// Null before the first use and after the thread's destructors ran.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* thread_cache = nullptr;

void free_chain(Chain chain, size_t size) {
  centrals().reserved.fetch_sub(int64_t(chain.count * size), std::memory_order_relaxed);
  for (void* block = chain.head; block;) std::free(std::exchange(block, next_of(block)));
}

void give_central(Chain chain, int size_class) noexcept {
  if (!chain.count) return;
  Central& central = centrals().of_class[size_class];
  size_t size = pool_class_size(size_class);
  {
    std::lock_guard lock(central.mutex);
    bool keep = size_class < kSlabClasses || central.free_blocks * size < kCentralBytes;
    if (keep) {
      central.chains.push_back(chain);
      central.free_blocks += chain.count;
      return;
    }
  }
  free_chain(chain, size);
}

// Cuts up to `want` blocks from the class's slab. The caller holds the lock.
Chain carve(Central& central, size_t size, uint32_t want) {
  if (size_t(central.slab_end - central.slab) < size) {
    char* slab = static_cast<char*>(system_block(kSlabBytes));
    if (!slab) return {};
    central.slab = slab;
    central.slab_end = slab + kSlabBytes;
    centrals().reserved.fetch_add(kSlabBytes, std::memory_order_relaxed);
  }
  Chain chain;
  while (chain.count < want && size_t(central.slab_end - central.slab) >= size) {
    next_of(central.slab) = std::exchange(chain.head, central.slab);
    central.slab += size;
    ++chain.count;
  }
  return chain;
}

Chain take_central(int size_class, uint32_t want) noexcept {
  Centrals& all = centrals();
  Central& central = all.of_class[size_class];
  size_t size = pool_class_size(size_class);
  {
    std::lock_guard lock(central.mutex);
    if (!central.chains.empty()) {
      Chain chain = central.chains.back();
      central.chains.pop_back();
      central.free_blocks -= chain.count;
      return chain;
    }
    if (size_class < kSlabClasses) return carve(central, size, want);
  }
  void* block = system_block(size);
  if (!block) return {};
  next_of(block) = nullptr;
  all.reserved.fetch_add(int64_t(size), std::memory_order_relaxed);
  return {block, 1};
}

void flush(ThreadCache& cache) {
  for (int i = 0; i < kPoolClasses; ++i) {
    List& list = cache.lists[i];
    give_central({std::exchange(list.head, nullptr), std::exchange(list.count, 0u)}, i);
  }
}

enum class Life : uint8_t { kUnborn, kAlive, kDead };
constinit thread_local Life thread_life = Life::kUnborn;

// Returns the thread's lists when the thread ends.
struct Guard {
  ThreadCache cache;
  Guard() {
    for (int i = 0; i < kPoolClasses; ++i)
      cache.lists[i].limit =
          uint32_t(std::clamp<size_t>(kThreadBytes / pool_class_size(i), 4, 512));
    thread_cache = &cache;
    thread_life = Life::kAlive;
  }
  ~Guard() {
    thread_life = Life::kDead;
    thread_cache = nullptr;
    flush(cache);
  }
};

// The calling thread's cache, made now if need be; null while the thread is being torn down.
ThreadCache* cache_of_thread() {
  if (thread_life == Life::kUnborn) {
    thread_local Guard guard;
    return &guard.cache;
  }
  return thread_cache;
}

[[gnu::noinline]] void* take_slow(int size_class) noexcept {
  ThreadCache* cache = cache_of_thread();
  uint32_t batch = uint32_t(std::clamp<size_t>(kBatchBytes / pool_class_size(size_class), 1, 64));
  Chain chain = take_central(size_class, cache ? batch : 1);
  if (!chain.head) return nullptr;
  void* block = chain.head;
  Chain rest{next_of(block), chain.count - 1};
  if (!cache) {
    give_central(rest, size_class);
    return block;
  }
  List& list = cache->lists[size_class];
  list.head = rest.head;
  list.count = rest.count;
  return block;
}

// Hands the colder half of a full list to the central one.
[[gnu::noinline]] void give_slow(void* block, int size_class) noexcept {
  ThreadCache* cache = cache_of_thread();
  next_of(block) = nullptr;
  if (!cache) return give_central({block, 1}, size_class);
  List& list = cache->lists[size_class];
  if (list.count >= list.limit) {
    uint32_t keep = list.count / 2;
    void* last = list.head;
    for (uint32_t i = 1; i < keep; ++i) last = next_of(last);
    Chain cold{std::exchange(next_of(last), nullptr), list.count - keep};
    list.count = keep;
    give_central(cold, size_class);
  }
  next_of(block) = std::exchange(list.head, block);
  ++list.count;
}

}  // namespace

void* pool_take(int size_class) noexcept {
  if (ThreadCache* cache = thread_cache) [[likely]] {
    List& list = cache->lists[size_class];
    if (void* block = list.head) [[likely]] {
      list.head = next_of(block);
      --list.count;
      return block;
    }
  }
  return take_slow(size_class);
}

void pool_give(void* block, int size_class) noexcept {
  if (ThreadCache* cache = thread_cache) [[likely]] {
    List& list = cache->lists[size_class];
    if (list.count < list.limit) [[likely]] {
      next_of(block) = std::exchange(list.head, block);
      ++list.count;
      return;
    }
  }
  give_slow(block, size_class);
}

int64_t pool_reserved_bytes() { return centrals().reserved.load(std::memory_order_relaxed); }

void pool_trim() {
  if (ThreadCache* cache = cache_of_thread()) flush(*cache);
  for (int i = kSlabClasses; i < kPoolClasses; ++i) {
    Central& central = centrals().of_class[i];
    std::vector<Chain> chains;
    {
      std::lock_guard lock(central.mutex);
      chains.swap(central.chains);
      central.free_blocks = 0;
    }
    for (Chain chain : chains) free_chain(chain, pool_class_size(i));
  }
}

void* detail::pool_new(size_t size) {
  bool pooled = size <= kPoolMaxSize;
  void* block = pooled ? pool_take(pool_class_of(size)) : system_block(size);
  if (!block) [[unlikely]]
    fail_new(size);
  return block;
}

void detail::pool_delete(void* block, size_t size) noexcept {
  if (!block) return;
  if (size > kPoolMaxSize) return std::free(block);
  pool_give(block, pool_class_of(size));
}

#endif

}  // namespace fornax
