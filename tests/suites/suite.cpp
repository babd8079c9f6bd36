#include "tests/suites/suite.h"

#include <cctype>

namespace fornax::samples::suites {

std::vector<const Row*> known_rows() {
  std::vector<const Row*> known;
  for (const Row& row : samples::rows())
    if (find_op(row.op)) known.push_back(&row);
  return known;
}

std::string name_of_row(const ::testing::TestParamInfo<const Row*>& info) {
  std::string name(info.param->op);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

Dtype main_dtype(const Row& row) {
  for (Dtype d : {Dtype::kF64, Dtype::kC128, Dtype::kF32, Dtype::kI64, Dtype::kBool})
    if (samples::contains(row.dtypes, d)) return d;
  return Dtype::kF32;
}

void expect_same(const Tensors& got, const Tensors& want, std::string_view what, double looseness) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    test::Bound b = test::bound_of(want[i].defined() ? want[i].dtype() : Dtype::kF64);
    std::string d =
        test::difference(got[i], want[i], {b.relative * looseness, b.absolute * looseness});
    EXPECT_EQ(d, "") << what << ", result " << i;
  }
}

double looseness_of(const Row& row) { return row.flags & samples::kLoose ? 100 : 1; }

}  // namespace fornax::samples::suites
