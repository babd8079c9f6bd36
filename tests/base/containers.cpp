// SmallVec, ArrayRef, Ref, FunctionRef, Error, hashing and environment parsing.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/base/cpu_info.h"
#include "fornax/base/dtype.h"
#include "fornax/base/env.h"
#include "fornax/base/error.h"
#include "fornax/base/function_ref.h"
#include "fornax/base/hash.h"
#include "fornax/base/ref.h"
#include "fornax/base/small_vec.h"

namespace fornax {
namespace {

// Counts live objects and notices use of dead ones.
struct Tracked {
  static inline int live = 0;
  std::string text;
  Tracked(const char* t = "") : text(t) { ++live; }
  Tracked(const Tracked& o) : text(o.text) { ++live; }
  Tracked(Tracked&& o) noexcept : text(std::move(o.text)) { ++live; }
  Tracked& operator=(const Tracked&) = default;
  Tracked& operator=(Tracked&&) = default;
  ~Tracked() { --live; }
  bool operator==(const Tracked& o) const { return text == o.text; }
};

std::string joined(const SmallVec<Tracked, 3>& v) {
  std::string out;
  for (const Tracked& t : v) out += t.text + ",";
  return out;
}

constexpr const char* kLong = "a text too long to be kept inside the string object";

TEST(SmallVec, GrowsBeyondItsInlineElements) {
  {
    SmallVec<Tracked, 3> v;
    for (const char* t : {"a", "b", "c", kLong, "e"}) v.push_back(Tracked(t));
    EXPECT_EQ(joined(v), std::string("a,b,c,") + kLong + ",e,");
    EXPECT_EQ(Tracked::live, 5);
    v.pop_back();
    v.resize(2);
    EXPECT_EQ(joined(v), "a,b,");
    EXPECT_EQ(Tracked::live, 2);
    v.resize(4, "x");
    EXPECT_EQ(joined(v), "a,b,x,x,");
  }
  EXPECT_EQ(Tracked::live, 0);
}

TEST(SmallVec, CopiesAndMovesInlineAndHeap) {
  {
    for (size_t n : {2u, 7u}) {
      SmallVec<Tracked, 3> v(n, kLong);
      SmallVec<Tracked, 3> copy(v), moved(std::move(v));
      EXPECT_EQ(copy, moved);
      EXPECT_TRUE(v.empty());
      v.push_back("again");  // a moved-from vector is usable
      EXPECT_EQ(joined(v), "again,");
      v = moved;
      EXPECT_EQ(v, copy);
      v = std::move(copy);
      EXPECT_EQ(v, moved);
      SmallVec<Tracked, 3>& self = v;
      v = self;
      EXPECT_EQ(v.size(), n);
    }
    EXPECT_EQ(Tracked::live, 0);
    SmallVec<Tracked, 3> small(1, "s"), large(9, "l");
    std::swap(small, large);
    EXPECT_EQ(small.size(), 9u);
    EXPECT_EQ(joined(large), "s,");
  }
  EXPECT_EQ(Tracked::live, 0);
}

TEST(SmallVec, TakesArgumentsFromInsideItself) {
  SmallVec<Tracked, 3> v{Tracked(kLong), Tracked("b"), Tracked("c")};
  v.push_back(v[0]);
  EXPECT_EQ(v[3].text, kLong);
  SmallVec<Tracked, 3> w{Tracked(kLong), Tracked("b"), Tracked("c")};
  w.resize(20, w[0]);
  EXPECT_EQ(w[19].text, kLong);
  w.insert(w.begin() + 1, w[2]);
  EXPECT_EQ(w[1].text, "c");
  EXPECT_EQ(w[2].text, "b");
}

TEST(SmallVec, InsertsAndErases) {
  Dims v{1, 2, 4};
  EXPECT_EQ(*v.insert(v.begin() + 2, 3), 3);
  v.insert(v.end(), 5);
  v.insert(v.begin(), 0);
  EXPECT_EQ(v, (Dims{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(*v.erase(v.begin()), 1);
  v.erase(v.end() - 1);
  EXPECT_EQ(v, (Dims{1, 2, 3, 4}));
  v.assign(2, 9);
  EXPECT_EQ(v, (Dims{9, 9}));
  std::vector<int64_t> other{7, 8};
  v.assign(other.begin(), other.end());
  EXPECT_EQ(v, Dims(other.begin(), other.end()));
}

TEST(ArrayRef, BorrowsFromEverything) {
  auto sum = [](IntArrayRef a) {
    int64_t total = 0;
    for (int64_t x : a) total += x;
    return total;
  };
  std::vector<int64_t> vec{1, 2, 3};
  std::array<int64_t, 2> array{4, 5};
  int64_t raw[] = {6, 7};
  EXPECT_EQ(sum(vec), 6);
  EXPECT_EQ(sum(array), 9);
  EXPECT_EQ(sum(raw), 13);
  EXPECT_EQ(sum({1, 2}), 3);
  EXPECT_EQ(sum({}), 0);
  EXPECT_EQ(sum(5), 5);
  EXPECT_EQ(sum(Dims{8, 9}), 17);
  EXPECT_EQ(IntArrayRef(vec).slice(1, 2), IntArrayRef({2, 3}));
  EXPECT_FALSE(IntArrayRef(vec) == IntArrayRef({1, 2}));
  EXPECT_EQ(IntArrayRef(vec).vec(), vec);
}

struct Node : RefCounted {
  explicit Node(int* deaths) : deaths_(deaths) {}
  ~Node() { ++*deaths_; }
  int* deaths_;
};

TEST(Ref, CountsOwners) {
  int deaths = 0;
  {
    Ref<Node> a = make_ref<Node>(&deaths);
    EXPECT_EQ(a->use_count(), 1u);
    Ref<Node> b = a, c = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_EQ(b->use_count(), 2u);
    EXPECT_TRUE(b == c);
    b = nullptr;
    EXPECT_EQ(c->use_count(), 1u);
    Ref<Node> again = Ref<Node>::adopt(c.detach());
    EXPECT_EQ(again->use_count(), 1u);
    again = again;
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
}

TEST(Ref, IsDroppedOnceWhenThreadsRace) {
  for (int round = 0; round < 200; ++round) {
    int deaths = 0;
    Ref<Node> node = make_ref<Node>(&deaths);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([copy = node] {
        for (int i = 0; i < 100; ++i) Ref<Node> more = copy;
      });
    node.reset();
    for (std::thread& t : threads) t.join();
    threads.clear();
    ASSERT_EQ(deaths, 1);
  }
}

int twice(int x) { return 2 * x; }

TEST(FunctionRef, CallsWhatItBorrows) {
  int calls = 0;
  auto count = [&calls](int x) { return calls += x; };
  FunctionRef<int(int)> f = count;
  EXPECT_EQ(f(2), 2);
  EXPECT_EQ(f(3), 5);
  FunctionRef<int(int)> g = twice, h = &twice;
  EXPECT_EQ(g(4) + h(5), 18);
  FunctionRef<int(int)> copy = g;
  EXPECT_EQ(copy(1), 2);
  auto owned = std::make_unique<int>(3);
  auto take = [&](std::unique_ptr<int> p) { calls = *p; };
  FunctionRef<void(std::unique_ptr<int>)> sink = take;
  sink(std::move(owned));
  EXPECT_EQ(calls, 3);
}

TEST(Error, NamesKindAndValues) {
  try {
    int dims = 3;
    FX_CHECK(dims == 2, kShape, "expected 2-D input, got ", dims, "-D of ", Dims{1, 2, 3}, ", ",
             Dtype::kF32, ' ', 0.5, ' ', true);
    FAIL();
  } catch (Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kShape);
    EXPECT_STREQ(e.what(), "expected 2-D input, got 3-D of [1, 2, 3], float32 0.5 true");
    e.add_context("in layer conv1");
    EXPECT_EQ(e.message(),
              "in layer conv1: expected 2-D input, got 3-D of [1, 2, 3], float32 0.5 true");
  }
  EXPECT_THROW(FX_ASSERT(1 + 1 == 3), Error);
  EXPECT_EQ(str(int64_t(-9223372036854775807 - 1), " ", uint64_t(18446744073709551615u)),
            "-9223372036854775808 18446744073709551615");
  EXPECT_STREQ(name_of(ErrorKind::kUnsupported), "unsupported");
}

TEST(Hash, MixesEveryBit) {
  EXPECT_EQ(hash_mix(0x9e3779b97f4a7c15u), 0xe220a8397b1dcdafu);  // SplitMix64 of seed 0
  EXPECT_EQ(hash_mix(2 * 0x9e3779b97f4a7c15u), 0x6e789e6aa1b965f4u);
  EXPECT_NE(hash_combine(hash_combine(0, 1), 2), hash_combine(hash_combine(0, 2), 1));
  int flips = 0;
  for (int bit = 0; bit < 64; ++bit)
    flips += std::popcount(hash_combine(7, 0) ^ hash_combine(7, uint64_t(1) << bit));
  EXPECT_NEAR(flips / 64.0, 32, 2);
}

TEST(Hash, TellsByteRunsApart) {
  std::set<uint64_t> seen;
  std::string text(40, 'a');
  for (size_t n = 0; n <= text.size(); ++n) seen.insert(hash_bytes(text.substr(0, n)));
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = 'b';
    seen.insert(hash_bytes(changed));
  }
  seen.insert(hash_bytes(std::string_view("\0", 1)));
  EXPECT_EQ(seen.size(), 82u);
  EXPECT_NE(hash_bytes("x", 1), hash_bytes("x", 2));
}

TEST(Env, ParsesNumbersAndFlags) {
  int64_t n = -1;
  EXPECT_TRUE(parse_int("42", n));
  EXPECT_EQ(n, 42);
  EXPECT_TRUE(parse_int("3g", n));
  EXPECT_EQ(n, int64_t(3) << 30);
  EXPECT_TRUE(parse_int("-2K", n));
  EXPECT_EQ(n, -2048);
  for (const char* bad : {"", "x", "1.5", "2kb", "99999999999999999999", "9999999999t", "1 "}) {
    EXPECT_FALSE(parse_int(bad, n)) << bad;
  }
  EXPECT_EQ(n, -2048);
  bool flag = false;
  EXPECT_TRUE(parse_flag("ON", flag));
  EXPECT_TRUE(flag);
  EXPECT_TRUE(parse_flag("No", flag));
  EXPECT_FALSE(flag);
  EXPECT_FALSE(parse_flag("maybe", flag));
}

TEST(Env, ReadsVariables) {
  setenv("FORNAX_TEST_VARIABLE", "7", 1);
  EXPECT_EQ(env_int("FORNAX_TEST_VARIABLE", 1), 7);
  setenv("FORNAX_TEST_VARIABLE", "seven", 1);
  EXPECT_EQ(env_int("FORNAX_TEST_VARIABLE", 1), 1);
  setenv("FORNAX_TEST_VARIABLE", "", 1);
  EXPECT_EQ(env_text("FORNAX_TEST_VARIABLE"), nullptr);
  setenv("FORNAX_TEST_VARIABLE", "false", 1);
  EXPECT_FALSE(env_flag("FORNAX_TEST_VARIABLE", true));
  unsetenv("FORNAX_TEST_VARIABLE");
  EXPECT_TRUE(env_flag("FORNAX_TEST_VARIABLE", true));
}

TEST(CpuInfo, DescribesThisMachine) {
  EXPECT_GE(cpu_count(), 1);
  EXPECT_FALSE(cpu_name().empty());
#if defined(__x86_64__)
  EXPECT_EQ(cpu_features().find("avx2") != std::string::npos, bool(__builtin_cpu_supports("avx2")));
#endif
}

}  // namespace
}  // namespace fornax
