// What the generic suites share: a case per row of the sample table, and loops over its calls.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/samples/sample.h"
#include "tests/support/values.h"

namespace fornax::samples::suites {

class PerRow : public ::testing::TestWithParam<const Row*> {
 protected:
  const Row& row() const { return *GetParam(); }
  const Op& op() const { return *find_op(GetParam()->op); }
  bool has(uint32_t flag) const { return (GetParam()->flags & flag) != 0; }
};

// Rows whose operator exists; TableTest fails for the others.
std::vector<const Row*> known_rows();
std::string name_of_row(const ::testing::TestParamInfo<const Row*>& info);

// Defines a suite and its case for every row.
#define FX_SUITE(Name)                                                                   \
  using Name = ::fornax::samples::suites::PerRow;                                        \
  class Name##Suite : public Name {};                                                    \
  INSTANTIATE_TEST_SUITE_P(Rows, Name##Suite,                                            \
                           ::testing::ValuesIn(::fornax::samples::suites::known_rows()), \
                           ::fornax::samples::suites::name_of_row);                      \
  TEST_P(Name##Suite, Row)

// Runs fn, turning an Error into a failure of the case. Returns whether none was thrown.
template <class F>
bool no_error(const std::string& what, F fn) {
  try {
    fn();
    return true;
  } catch (const Error& e) {
    ADD_FAILURE() << what << ": " << name_of(e.kind()) << ": " << e.what();
    return false;
  }
}

// fn(sample) for every call of the row in each of `dtypes` that the row has.
template <class F>
void for_each_call(const Row& row, samples::DtypeSet dtypes, F fn) {
  const Op& op = *find_op(row.op);
  for (int d = 0; d < kDtypeCount; ++d) {
    if (!samples::contains(dtypes & row.dtypes, Dtype(d))) continue;
    for (const char* text : row.calls) {
      SCOPED_TRACE(str(row.op, "(", text, ") ", name_of(Dtype(d))));
      no_error("call", [&] { fn(Sample(op, text, Dtype(d))); });
    }
  }
}
// In one dtype that serves for everything that does not depend on it: the widest float the row has,
// or an integer.
Dtype main_dtype(const Row& row);
template <class F>
void for_each_call(const Row& row, F fn) {
  for_each_call(row, samples::set_of(main_dtype(row)), fn);
}

// Results differ by no more than the bound of their dtype.
void expect_same(const Tensors& got, const Tensors& want, std::string_view what,
                 double looseness = 1);
double looseness_of(const Row& row);

}  // namespace fornax::samples::suites
