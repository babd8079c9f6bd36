#include "fornax/base/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "fornax/base/error.h"

namespace fornax {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// Puts the number of threads back.
class Threads : public testing::Test {
 protected:
  void TearDown() override { set_num_threads(before_); }
  int before_ = get_num_threads();
};

Ranges ranges_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Ranges out;
  parallel_for(begin, end, grain, [&](int64_t a, int64_t b) {
    std::lock_guard lock(mutex);
    out.emplace_back(a, b);
  });
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(Threads, RangesCoverEverythingOnce) {
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    for (int64_t n : {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4097, 100000}) {
      for (int64_t grain : {0, 1, 2, 64, 100, 1024, 1000000}) {
        Ranges r = ranges_of(-5, n - 5, grain);
        ASSERT_EQ(int64_t(r.size()), parallel_range_count(n, grain)) << n << " " << grain;
        int64_t at = -5;
        for (auto [a, b] : r) {
          ASSERT_EQ(a, at);
          ASSERT_LT(a, b);
          at = b;
        }
        ASSERT_EQ(at, n - 5);
        if (n <= grain || threads == 1) {
          ASSERT_LE(r.size(), 1u);
        }
        // All but the last hold at least the grain.
        for (size_t i = 0; i + 1 < r.size(); ++i) ASSERT_GE(r[i].second - r[i].first, grain);
      }
    }
  }
  EXPECT_TRUE(ranges_of(3, 3, 1).empty());
  EXPECT_TRUE(ranges_of(3, 1, 1).empty());
}

TEST_F(Threads, RangesAreTheSameWhenNestedAndWhenThePoolIsTaken) {
  set_num_threads(4);
  const Ranges free = ranges_of(0, 1000, 10);
  EXPECT_GT(free.size(), 4u);
  std::mutex mutex;
  std::vector<Ranges> nested;
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    Ranges r = ranges_of(0, 1000, 10);
    std::lock_guard lock(mutex);
    nested.push_back(r);
    // Another user thread, while this region has the pool.
    std::thread([&] { nested.push_back(ranges_of(0, 1000, 10)); }).join();
  });
  EXPECT_EQ(nested.size(), 8u);
  for (const Ranges& r : nested) EXPECT_EQ(r, free);
}

TEST_F(Threads, UsesSeveralThreadsAndNeverMoreThanAsked) {
  set_num_threads(4);
  parallel_for(0, 4, 1, [](int64_t, int64_t) {});  // the workers exist
  set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::set<int> indices;
  for (int round = 0; round < 50; ++round) {
    parallel_for(0, 8, 1, [&](int64_t, int64_t) {
      EXPECT_TRUE(in_parallel_region());
      {
        std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
        indices.insert(thread_index());
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
  }
  EXPECT_FALSE(in_parallel_region());
  EXPECT_EQ(thread_index(), 0);
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(indices, (std::set<int>{0, 1}));
}

TEST_F(Threads, NestedRegionsStayOnTheirThread) {
  set_num_threads(3);
  std::atomic<int> strays{0};
  parallel_for(0, 12, 1, [&](int64_t, int64_t) {
    std::thread::id me = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t, int64_t) { strays += me != std::this_thread::get_id(); });
  });
  EXPECT_EQ(strays, 0);
}

TEST_F(Threads, RethrowsAndGoesOn) {
  set_num_threads(3);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(parallel_for(0, 1000, 1,
                              [&](int64_t a, int64_t) {
                                if (a >= 500) throw std::runtime_error("x");
                              }),
                 std::runtime_error);
    EXPECT_FALSE(in_parallel_region());
    std::atomic<int64_t> sum{0};
    parallel_for(0, 1000, 1, [&](int64_t a, int64_t b) {
      for (; a < b; ++a) sum += a;
    });
    ASSERT_EQ(sum, 499500);
  }
  EXPECT_THROW(parallel_for(0, 5, 10, [](int64_t, int64_t) { throw 1; }), int);
}

TEST_F(Threads, ManyShortRegionsGiveRightSums) {
  set_num_threads(4);
  std::vector<int64_t> cells(64);
  for (int64_t round = 0; round < 5000; ++round)
    parallel_for(0, 64, 1, [&](int64_t a, int64_t b) {
      for (; a < b; ++a) cells[size_t(a)] += round + a;
    });
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(cells[size_t(i)], 5000 * 4999 / 2 + 5000 * i);
}

TEST_F(Threads, UserThreadsDoNotBlockEachOther) {
  set_num_threads(3);
  std::vector<std::thread> users;
  std::atomic<int> wrong{0};
  for (int u = 0; u < 4; ++u) {
    users.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        std::vector<int> cells(100);
        parallel_for(0, 100, 1, [&](int64_t a, int64_t b) {
          for (; a < b; ++a) ++cells[size_t(a)];
        });
        wrong += std::count(cells.begin(), cells.end(), 1) != 100;
      }
    });
  }
  for (std::thread& u : users) u.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Threads, LimitsHoldForOneThreadAndOnlyLower) {
  set_num_threads(6);
  {
    ThreadLimit two(2);
    EXPECT_EQ(get_num_threads(), 2);
    {
      ThreadLimit five(5);
      EXPECT_EQ(get_num_threads(), 2);
      ThreadLimit one(1);
      EXPECT_EQ(get_num_threads(), 1);
      EXPECT_EQ(ranges_of(0, 100, 1).size(), 1u);
    }
    EXPECT_EQ(get_num_threads(), 2);
    int elsewhere = 0;
    std::thread([&] { elsewhere = get_num_threads(); }).join();
    EXPECT_EQ(elsewhere, 6);
  }
  EXPECT_EQ(get_num_threads(), 6);
  EXPECT_THROW(ThreadLimit(0), Error);
}

thread_local int hook_saw = 0;

TEST_F(Threads, HookFollows) {
  set_threads_hook([](int threads) { hook_saw = threads; });
  set_num_threads(5);
  EXPECT_EQ(hook_saw, 5);
  {
    ThreadLimit limit(2);
    EXPECT_EQ(hook_saw, 2);
  }
  EXPECT_EQ(hook_saw, 5);
  set_threads_hook(nullptr);
  set_num_threads(3);
  EXPECT_EQ(hook_saw, 5);
}

TEST_F(Threads, RefusesSenselessNumbers) {
  for (int bad : {0, -1, kMaxThreads + 1}) {
    try {
      set_num_threads(bad);
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kValue);
    }
  }
}

// A forked child has no workers; it starts its own. (The thread sanitizer does not support threads
// in a child of a program with threads.)
TEST_F(Threads, WorksAfterFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not under the thread sanitizer";
#endif
  set_num_threads(3);
  ranges_of(0, 100, 1);
  pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (int round = 0; round < 20; ++round) {
      std::atomic<int64_t> sum{0};
      parallel_for(0, 1000, 1, [&](int64_t a, int64_t b) { sum += b - a; });
      right = right && sum == 1000;
    }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ranges_of(0, 100, 1).size(), size_t(parallel_range_count(100, 1)));
}

}  // namespace
}  // namespace fornax
