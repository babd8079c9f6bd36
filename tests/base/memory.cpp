// The pool of small blocks and the caching allocator.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fornax/base/error.h"
#include "fornax/base/pool.h"
#include "fornax/device/allocator.h"
#include "fornax/device/system_memory.h"

namespace fornax {
namespace {

using cpu_memory::allocate;
using cpu_memory::deallocate;
using cpu_memory::stats;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

constexpr size_t kMiB = size_t(1) << 20;

TEST(Pool, ClassesHoldTheirSizes) {
  EXPECT_EQ(pool_class_of(0), 0);
  EXPECT_EQ(pool_class_of(kPoolMaxSize), kPoolClasses - 1);
  for (size_t size = 1; size <= kPoolMaxSize; ++size) {
    int c = pool_class_of(size);
    ASSERT_GE(pool_class_size(c), size);
    if (c > 0) {
      ASSERT_LT(pool_class_size(c - 1), size);
    }
    if (size > 1024) {
      ASSERT_LE(pool_class_size(c), size + size / 4);
    }
  }
}

struct Pooled : PooledNew<Pooled> {
  explicit Pooled(int v) : value(v) {}
  virtual ~Pooled() = default;
  int value;
  char filler[150] = {};
};
struct LargerPooled : Pooled {
  using Pooled::Pooled;
  char more[500] = {};
};
struct HugePooled : PooledNew<HugePooled> {
  char bytes[100000];
};

TEST(Pool, ObjectsAreAlignedAndDistinct) {
  std::vector<Pooled*> objects;
  for (int i = 0; i < 5000; ++i) objects.push_back(i % 2 ? new Pooled(i) : new LargerPooled(i));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(objects[size_t(i)]->value, i);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(objects[size_t(i)]) % kPoolAlignment, 0u);
  }
  for (Pooled* object : objects) delete object;
  delete new HugePooled;
  delete static_cast<Pooled*>(nullptr);
}

TEST(Pool, ReusesTheLastFreedBlock) {
  if (!kCaching) GTEST_SKIP() << "no caching under the address sanitizer";
  void* first = pool_take(5);
  pool_give(first, 5);
  EXPECT_EQ(pool_take(5), first);
  pool_give(first, 5);
}

// Blocks made on one thread and freed on another come back through the central lists.
TEST(Pool, ProducerAndConsumerDoNotGrowWithoutBound) {
  if (!kCaching) GTEST_SKIP() << "no caching under the address sanitizer";
  auto pass = [] {
    std::vector<Pooled*> objects;
    for (int i = 0; i < 20000; ++i) objects.push_back(new Pooled(i));
    std::thread([&] {
      for (Pooled* object : objects) delete object;
    }).join();
  };
  pass();
  int64_t after_one = pool_reserved_bytes();
  for (int i = 0; i < 10; ++i) pass();
  EXPECT_LE(pool_reserved_bytes(), after_one + 1000000);
}

TEST(Pool, TrimGivesLargerBlocksBack) {
  if (!kCaching) GTEST_SKIP() << "no caching under the address sanitizer";
  pool_trim();
  int64_t before = pool_reserved_bytes();
  int c = pool_class_of(60000);
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(pool_take(c));
  EXPECT_GE(pool_reserved_bytes(), before + 20 * 60000);
  for (void* block : blocks) pool_give(block, c);
  pool_trim();
  EXPECT_EQ(pool_reserved_bytes(), before);
}

TEST(Allocator, BlocksAreAlignedAndApart) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t size : {size_t(1), size_t(63), size_t(64), size_t(1000), size_t(65536), size_t(65537),
                      kMiB, 4 * kMiB - 1, 4 * kMiB, 9 * kMiB + 5}) {
    for (int copy = 0; copy < 3; ++copy) {
      char* p = static_cast<char*>(allocate(size));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % cpu_memory::kAlignment, 0u);
      if (kCaching && size >= 4 * kMiB) {
        ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % (2 * kMiB), 0u);
      }
      std::memset(p, int(blocks.size()), size);
      blocks.emplace_back(p, size);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    auto [p, size] = blocks[i];
    for (size_t at : {size_t(0), size / 2, size - 1}) ASSERT_EQ(p[at], char(i));
    deallocate(p, size);
  }
  EXPECT_EQ(allocate(0), nullptr);
  deallocate(nullptr, 0);
}

TEST(Allocator, CountsExactlyOnOneThread) {
  cpu_memory::reset_peak();
  cpu_memory::Stats before = stats();
  void* a = allocate(1000);
  void* b = allocate(3 * kMiB);
  void* c = allocate(50000);
  EXPECT_EQ(stats().allocated, before.allocated + 1000 + 50000 + int64_t(3 * kMiB));
  deallocate(b, 3 * kMiB);
  void* d = allocate(60000);
  deallocate(a, 1000);
  deallocate(c, 50000);
  deallocate(d, 60000);
  cpu_memory::Stats after = stats();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.peak, before.allocated + 1000 + 50000 + int64_t(3 * kMiB));
  EXPECT_EQ(after.allocations - before.allocations, 4);
  EXPECT_EQ(after.frees - before.frees, 4);
  cpu_memory::reset_peak();
  EXPECT_EQ(stats().peak, before.allocated);
}

TEST(Allocator, PeakSeesSmallBlocksThatCameAndWent) {
  cpu_memory::reset_peak();
  int64_t base = stats().allocated;
  void* a = allocate(40000);
  deallocate(a, 40000);
  a = allocate(10);
  deallocate(a, 10);
  EXPECT_EQ(stats().peak, base + 40000);
}

TEST(Allocator, CountsBlocksFreedElsewhere) {
  cpu_memory::Stats before = stats();
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(allocate(500));
  std::thread([&] {
    for (void* block : blocks) deallocate(block, 500);
  }).join();
  cpu_memory::Stats after = stats();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.allocations - before.allocations, 1000);
  EXPECT_EQ(after.frees - before.frees, 1000);
}

TEST(Allocator, ReusesLargeBlocksThatFit) {
  if (!kCaching) GTEST_SKIP() << "no caching under the address sanitizer";
  cpu_memory::empty_cache();
  void* a = allocate(10 * kMiB);
  deallocate(a, 10 * kMiB);
  int64_t fresh = stats().system_allocations;
  void* b = allocate(9 * kMiB);  // a tenth is wasted
  EXPECT_EQ(b, a);
  EXPECT_EQ(stats().system_allocations, fresh);
  deallocate(b, 9 * kMiB);
  void* c = allocate(6 * kMiB);  // two fifths would be
  EXPECT_NE(c, a);
  EXPECT_EQ(stats().system_allocations, fresh + 1);
  void* d = allocate(6 * kMiB);
  deallocate(c, 6 * kMiB);
  deallocate(d, 6 * kMiB);
  EXPECT_EQ(allocate(6 * kMiB), d);  // the last freed, still in cache
  deallocate(d, 6 * kMiB);
}

TEST(Allocator, KeepsItsCacheBelowTheLimit) {
  if (!kCaching) GTEST_SKIP() << "no caching under the address sanitizer";
  cpu_memory::empty_cache();
  EXPECT_EQ(stats().cached, 0);
  int64_t limit = cpu_memory::cache_limit();
  cpu_memory::set_cache_limit(10 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(allocate(4 * kMiB));
  for (void* block : blocks) deallocate(block, 4 * kMiB);
  EXPECT_EQ(stats().cached, int64_t(8 * kMiB));
  EXPECT_EQ(allocate(4 * kMiB), blocks[4]);  // the first freed were given back
  EXPECT_EQ(allocate(4 * kMiB), blocks[3]);
  deallocate(blocks[4], 4 * kMiB);
  deallocate(blocks[3], 4 * kMiB);
  int64_t reserved = stats().reserved;
  cpu_memory::empty_cache();
  EXPECT_EQ(stats().cached, 0);
  EXPECT_LE(stats().reserved, reserved - int64_t(8 * kMiB));
  cpu_memory::set_cache_limit(limit);
  EXPECT_THROW(cpu_memory::set_cache_limit(-1), Error);
}

std::string message_of(size_t bytes) {
  try {
    deallocate(allocate(bytes), bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kMemory);
    return e.what();
  }
  return "";
}

TEST(Allocator, OutOfMemoryIsAnErrorThatNamesTheSize) {
  EXPECT_NE(message_of(size_t(1) << 45).find("32.00 TiB (35184372088832 bytes)"),
            std::string::npos);
  EXPECT_NE(message_of(std::numeric_limits<size_t>::max()).find("18446744073709551615 bytes"),
            std::string::npos);
  EXPECT_NE(message_of(size_t(-8)).find("out of memory"), std::string::npos);
  // More than the machine has, though the kernel might promise it.
  size_t beyond = size_t(cpu_memory::physical_memory()) * 2 + (size_t(1) << 33);
  EXPECT_NE(message_of(beyond).find("out of memory"), std::string::npos);
  EXPECT_THROW(cpu_memory::allocate_array(size_t(1) << 40, size_t(1) << 40), Error);
  void* p = cpu_memory::allocate_array(10, 8);
  std::memset(p, 0, 80);
  deallocate(p, 80);
}

TEST(Allocator, DescribesSizes) {
  EXPECT_EQ(cpu_memory::describe_size(0), "0 bytes");
  EXPECT_EQ(cpu_memory::describe_size(1023), "1023 bytes");
  EXPECT_EQ(cpu_memory::describe_size(1536), "1.50 KiB (1536 bytes)");
  EXPECT_EQ(cpu_memory::describe_size(uint64_t(1) << 30), "1.00 GiB (1073741824 bytes)");
  EXPECT_EQ(cpu_memory::describe_size(kMiB - 1), "1.00 MiB (1048575 bytes)");
}

// Threads exchange blocks of all sizes; each block's content must survive until it is freed.
TEST(Allocator, SurvivesThreadsThatExchangeBlocks) {
  struct Slot {
    std::mutex mutex;
    unsigned char* block = nullptr;
    size_t size = 0;
    unsigned char mark = 0;
  };
  std::vector<Slot> slots(64);
  std::atomic<int> damaged{0};
  int64_t before = stats().allocated;
  auto work = [&](unsigned seed) {
    for (int i = 0; i < 4000; ++i) {
      seed = seed * 1664525u + 1013904223u;
      Slot& slot = slots[(seed >> 8) % slots.size()];
      std::lock_guard lock(slot.mutex);
      if (slot.block) {
        damaged += slot.block[0] != slot.mark || slot.block[slot.size - 1] != slot.mark;
        deallocate(slot.block, slot.size);
      }
      slot.size = 1 + (seed >> 12) % (i % 50 == 0 ? 6 * kMiB : i % 7 == 0 ? 200000 : 3000);
      slot.block = static_cast<unsigned char*>(allocate(slot.size));
      slot.mark = static_cast<unsigned char>(seed >> 24);
      slot.block[0] = slot.block[slot.size - 1] = slot.mark;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, t + 1);
  for (std::thread& t : threads) t.join();
  for (Slot& slot : slots) deallocate(slot.block, slot.size);
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(stats().allocated, before);
  cpu_memory::empty_cache();
}

}  // namespace
}  // namespace fornax
