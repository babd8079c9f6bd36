// Bad arguments: the listed ones give the listed errors; changed ones of every sample give an error
// or a result, never a crash and never an internal error.
#include <cstdint>
#include <limits>

#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

TEST(ErrorSamples, GiveTheListedErrors) {
  for (const ErrorRow& row : error_rows()) {
    SCOPED_TRACE(str(row.op, "(", row.call, ")"));
    const Op* op = find_op(row.op);
    if (!op) continue;  // reported by EveryRowHasARecord
    try {
      Sample(*op, row.call, Dtype::kF32).run();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(std::string(name_of(e.kind())), name_of(row.kind)) << e.what();
      EXPECT_NE(e.message().find(row.text), std::string::npos) << e.what();
    }
  }
}

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

class Hostile : public PerRow {
 protected:
  // Runs a changed sample: any outcome but an internal error will do.
  void try_call(const Sample& s, const std::string& change) {
    SCOPED_TRACE(s.describe() + " with " + change);
    try {
      s.run();
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
      EXPECT_FALSE(e.message().empty());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "a foreign exception: " << e.what();
    }
  }
  void vary(const Sample& s, size_t i);
  void vary_numbers(const Sample& s, size_t i);
  void vary_tensors(const Sample& s, const Slot& slot);
};

void Hostile::vary_numbers(const Sample& s, size_t i) {
  const Value& v = s.values()[i];
  for (int64_t bad : {kMin, kMax, int64_t(-1), int64_t(-7), int64_t(0), int64_t(7),
                      int64_t(1) << 40, int64_t(1) << 62}) {
    if (has(kCounts) && bad > 7) continue;
    std::string change = str("argument ", int64_t(i), " = ", bad);
    Sample t = s;
    Value& w = t.values()[i];
    if (v.tag == Tag::kInt) {
      w.integer = bad;
      try_call(t, change);
    }
    for (size_t k = 0; v.tag == Tag::kInts && k < v.ints.size(); ++k) {
      w.ints = v.ints;
      w.ints[k] = bad;
      try_call(t, change + str(" at ", int64_t(k)));
    }
  }
  if (v.tag == Tag::kInts) {
    Sample t = s;
    t.values()[i].ints.clear();
    try_call(t, "an empty list");
    t.values()[i].ints = {1, 1, 1, 1, 1, 1, 1};
    try_call(t, "a long list");
  }
  if (v.tag != Tag::kReal) return;
  for (double bad : {std::numeric_limits<double>::quiet_NaN(),
                     std::numeric_limits<double>::infinity(), -1.0, 1e300}) {
    Sample t = s;
    t.values()[i].real = bad;
    try_call(t, str("argument ", int64_t(i), " = ", bad));
  }
}

Tensor filled(IntArrayRef sizes, Dtype dtype, double value) {
  Tensor t = make_tensor(Meta(dtype, sizes));
  test::write_into(t, std::vector<test::Number>(size_t(t.numel()), {value, 0}));
  return t;
}

void Hostile::vary_tensors(const Sample& s, const Slot& slot) {
  const Tensor& old = s.tensor(slot);
  std::string which = str("argument ", slot.arg, " = ");
  auto replace = [&](const Tensor& by, const std::string& what) {
    Sample t = s;
    t.tensor(slot) = by;
    try_call(t, which + what);
  };
  for (Dtype d : {Dtype::kBool, Dtype::kI32, Dtype::kI64, Dtype::kF16, Dtype::kF32, Dtype::kC64})
    replace(filled(old.sizes(), d, 1), std::string(name_of(d)));
  for (const Dims& sizes : {Dims{0}, Dims{}, Dims{2, 0, 3}, Dims{7}, Dims{1, 1, 1, 1, 1, 1, 1}})
    replace(filled(sizes, old.dtype(), 1), str("sizes ", sizes));
  if (old.dtype() == Dtype::kI64)  // indices
    for (int64_t bad : {kMin, kMax, int64_t(-1), int64_t(100)}) {
      Tensor t = test::contiguous_of(old);
      for (int64_t k = 0; k < t.numel(); ++k) t.data_ptr<int64_t>()[k] = bad;
      replace(t, str("elements ", bad));
    }
  Meta meta = meta_of(old);
  meta.device = Device(DeviceType::kMeta);
  meta.offset = 0;
  replace(make_tensor(meta), "a meta tensor");
}

void Hostile::vary(const Sample& s, size_t i) {
  const Value& v = s.values()[i];
  vary_numbers(s, i);
  Sample t = s;
  if (v.tag == Tag::kString) {
    t.values()[i].text = "bogus";
    try_call(t, "text 'bogus'");
  }
  if (v.tag == Tag::kDtype)
    for (int d = 0; d < kDtypeCount; ++d) {
      t.values()[i].integer = d;
      try_call(t, std::string(name_of(Dtype(d))));
    }
  if (v.tag == Tag::kTensors) {
    t.values()[i].list.clear();
    Sample empty = t;
    try_call(Sample(empty), "an empty list");
  }
}

class HostileSuite : public Hostile {};
INSTANTIATE_TEST_SUITE_P(Rows, HostileSuite, ::testing::ValuesIn(known_rows()), name_of_row);

TEST_P(HostileSuite, Row) {
  if (has(kUninitialised)) GTEST_SKIP() << "allocates what it is told to";
  for_each_call(row(), [&](const Sample& s) {
    for (size_t i = 0; i < s.values().size(); ++i) vary(s, i);
    for (const Slot& slot : s.slots()) vary_tensors(s, slot);
  });
}

}  // namespace
}  // namespace fornax::samples::suites
