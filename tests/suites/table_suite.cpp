// The table is complete and says nothing about operators that do not exist.
#include <set>

#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

TEST(SampleTable, EveryRecordHasARow) {
  std::set<const Op*> excluded;
  for (const auto& e : samples::exclusions()) excluded.insert(find_op(e.op));
  for (const Op* op : op_table()) {
    if (excluded.count(op)) continue;
    EXPECT_TRUE(samples::row_of(*op)) << op->name() << " has no row in tests/samples";
  }
}

TEST(SampleTable, EveryRowHasARecord) {
  for (const Row& row : samples::rows()) EXPECT_TRUE(find_op(row.op)) << row.op;
  for (const auto& row : samples::error_rows()) EXPECT_TRUE(find_op(row.op)) << row.op;
  for (const auto& e : samples::exclusions()) {
    EXPECT_TRUE(find_op(e.op)) << e.op;
    EXPECT_FALSE(e.reason.empty()) << e.op;
  }
}

TEST(SampleTable, TextMakesTheCallItSays) {
  const Op& add = *find_op("add");
  Sample s(add, "[2,3] [3]:pos alpha=2", Dtype::kF64);
  ASSERT_EQ(s.slots().size(), 2u);
  EXPECT_TRUE(s.tensor(s.slots()[0]).sizes() == IntArrayRef({2, 3}));
  EXPECT_EQ(s.values()[2].integer, 2);
  for (auto v : test::read(s.tensor(s.slots()[1])).at) EXPECT_GT(v.real(), 0);
  EXPECT_EQ(Sample(add, "[2] [2]", Dtype::kF64).values()[2].integer, 1);  // the default
  EXPECT_THROW(Sample(add, "[2] [2] beta=1", Dtype::kF64), Error);
}

}  // namespace
}  // namespace fornax::samples::suites
