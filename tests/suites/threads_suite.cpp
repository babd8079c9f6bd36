// Results do not depend on the number of threads, to the last bit.
#include "fornax/base/threads.h"
#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

// The row's own large calls; elementwise operators get their first call with large operands.
std::vector<std::string> large_calls(const Row& row, const Op& op) {
  std::vector<std::string> calls(row.large.begin(), row.large.end());
  if (!calls.empty() || op.kind != OpKind::kPointwise) return calls;
  std::string text = row.calls[0], large;
  for (size_t i = 0; i < text.size(); ++i) {
    large += text[i];
    if (text[i] != '[') continue;
    large += "300,301]";
    i = text.find(']', i);
  }
  return {large};
}

struct ThreadCount {
  int old = get_num_threads();
  ~ThreadCount() { set_num_threads(old); }
};

FX_SUITE(Threads) {
  std::vector<std::string> calls = large_calls(row(), op());
  if (calls.empty() || has(kRandomValues | kUninitialised)) GTEST_SKIP() << "no large call";
  ThreadCount restore;
  for (Dtype d : {main_dtype(row()), Dtype::kF32, Dtype::kBF16}) {
    if (!contains(row().dtypes, d)) continue;
    for (const std::string& text : calls) {
      Sample s(op(), text, d);
      SCOPED_TRACE(s.describe());
      no_error("call", [&] {
        set_num_threads(1);
        Tensors want = s.run();
        for (int threads : {2, 3}) {
          set_num_threads(threads);
          Tensors got = s.run();
          ASSERT_EQ(got.size(), want.size());
          for (size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(test::difference(test::read(got[i]), test::read(want[i]), {0, 0}), "")
                << threads << " threads, result " << i;
        }
      });
    }
  }
}

}  // namespace
}  // namespace fornax::samples::suites
