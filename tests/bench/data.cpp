// The inputs of the benchmarks against values of the recipe's other implementations.
#include "bench/data.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/runner.h"

namespace {

using namespace fornax;
using namespace fornax::bench;

TEST(BenchData, HashHasTheReferenceValues) {
  EXPECT_EQ(u32(0, 1), 1296294863u);
  EXPECT_EQ(u32(1, 1), 3946632778u);
  EXPECT_EQ(u32(2, 1), 4080477844u);
  uint32_t all = 0;
  for (uint32_t i = 0; i < 1000; ++i) all ^= u32(i, 7) + i;
  EXPECT_EQ(all, 638295527u);
}

TEST(BenchData, FloatsHaveTheReferenceValues) {
  Tensor t = rnd({3});
  const float* v = t.data_ptr<float>();
  EXPECT_EQ(v[0], -0.396365762f);
  EXPECT_EQ(v[1], 0.837794065f);
  EXPECT_EQ(v[2], 0.900120497f);
}

TEST(BenchData, FloatsStayInTheirRange) {
  Tensor t = rnd({100, 1000}, 1000, -0.125, 0.125);
  const float* v = t.data_ptr<float>();
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    ASSERT_GE(v[i], -0.125f);
    ASSERT_LT(v[i], 0.125f);
    sum += v[i];
  }
  // The mean of uniform numbers: five standard errors.
  EXPECT_LT(std::abs(sum / 100000), 5 * 0.25 / std::sqrt(12.0 * 100000));
}

TEST(BenchData, IntegersHaveTheReferenceValues) {
  Tensor t = rint({4}, 65);
  const int64_t expected[] = {58, 23, 14, 62};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(t.data_ptr<int64_t>()[i], expected[i]);
}

TEST(BenchData, ComplexNumbersArePairsOfFloats) {
  Tensor z = crnd({5}, 3), re = rnd({5}, 3), im = rnd({5}, 4);
  const float* v = static_cast<const float*>(z.data_ptr());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(v[2 * i], re.data_ptr<float>()[i]);
    EXPECT_EQ(v[2 * i + 1], im.data_ptr<float>()[i]);
  }
}

TEST(BenchWorkloads, HaveDifferentNames) {
  std::set<std::string> names;
  for (const Workload& w : all_workloads())
    EXPECT_TRUE(names.insert(w.name).second) << w.name << " is registered twice";
}

TEST(BenchRunner, ReportsTheKeysOfTheBaseline) {
  int calls = 0;
  Workload w{"test.sleepless", [&calls] {
               Prepared p;
               p.inner = 10;
               p.bytes = 1000;
               p.flops = 2000;
               p.check = std::make_shared<std::vector<double>>(1, 0.5);
               p.run = [&calls] {
                 ++calls;
                 return Tensor();
               };
               return p;
             }};
  Json r = run_workload(w, {.threads = 1, .reps = 7, .max_seconds = 100});
  EXPECT_EQ(calls, 2 + 7);
  EXPECT_EQ(r["reps"], 7);
  EXPECT_EQ(r["check"][0], 0.5);
  for (const char* key :
       {"name",      "mode",          "median_ms",         "min_ms",  "cpu_ms",      "cpu_min_ms",
        "threads",   "peak_rss_mb",   "base_rss_mb",       "first_s", "first_cpu_s", "setup_s",
        "ns_per_op", "cpu_ns_per_op", "cpu_min_ns_per_op", "gb_s",    "gb_s_best",   "gb_per_cpu_s",
        "gflops",    "gflops_best",   "gflops_per_cpu_s"})
    EXPECT_TRUE(r.contains(key)) << key;
  EXPECT_DOUBLE_EQ(r["ns_per_op"].get<double>(), r["median_ms"].get<double>() * 1e5);
}

TEST(BenchRunner, StopsAfterTheGivenTimeButNotBeforeThreeRepetitions) {
  int calls = 0;
  Workload w{"test.slow", [&calls] {
               Prepared p;
               p.run_selftimed = [&calls] {
                 ++calls;
                 return Seconds{2, 2};
               };
               return p;
             }};
  Json r = run_workload(w, {.threads = 1, .reps = 15, .max_seconds = 1});
  EXPECT_EQ(r["reps"], 3);
  EXPECT_EQ(r["cpu_min_ms"], 2000);
}

TEST(BenchRunner, RoundsToFiveDigits) {
  Json r;
  r["a"] = 123.456789;
  r["b"] = "text";
  r["c"] = 1234567;
  EXPECT_EQ(rounded(r).dump(), R"({"a":123.46,"b":"text","c":1234567})");
}

}  // namespace
