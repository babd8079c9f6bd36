// Text of tensors: libtorch's layout.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "fornax/fornax.h"
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::make;

TEST(Print, Matrices) {
  EXPECT_EQ(to_string(make({2, 2}, {1, 2, 3, 4}, Dtype::kF32)),
            " 1  2\n 3  4\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(to_string(make({2, 2}, {0.5, -2, 3, 4.25})),
            " 0.5000 -2.0000\n 3.0000  4.2500\n[ CPUDoubleType{2,2} ]");
  EXPECT_EQ(to_string(zeros({0, 3})), "[ CPUFloatType{0,3} ]");
  EXPECT_EQ(to_string(make({2, 2}, {1, 2, 3, 4}).t()), " 1  3\n 2  4\n[ CPUDoubleType{2,2} ]");
}

TEST(Print, VectorsAndNumbers) {
  EXPECT_EQ(to_string(make({3}, {1, 2, 30}, Dtype::kI64)), "  1\n  2\n 30\n[ CPULongType{3} ]");
  EXPECT_EQ(to_string(make({}, {0.1}, Dtype::kF64)), "0.1\n[ CPUDoubleType{} ]");
  EXPECT_EQ(to_string(make({2}, {1, 0}, Dtype::kBool)), " 1\n 0\n[ CPUBoolType{2} ]");
  EXPECT_EQ(to_string(zeros({0})), "[ CPUFloatType{0} ]");
  EXPECT_EQ(to_string(Tensor()), "[ Tensor (undefined) ]");
}

TEST(Print, ScalesAndWideRanges) {
  EXPECT_EQ(to_string(make({2}, {123456.5, 234567.25})),
            "100000 *\n 1.2346\n 2.3457\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(to_string(make({2}, {1e-3, 12345.5})),
            " 1.0000e-03\n 1.2346e+04\n[ CPUDoubleType{2} ]");
  double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_string(make({3}, {1.5, -inf, std::numeric_limits<double>::quiet_NaN()})),
            " 1.5000\n   -inf\n    nan\n[ CPUDoubleType{3} ]");
}

TEST(Print, HigherDimensionsAreSeriesOfMatrices) {
  EXPECT_EQ(to_string(make({2, 1, 2}, {1, 2, 3, 4}, Dtype::kF32)),
            "(1,.,.) = \n  1  2\n\n(2,.,.) = \n  3  4\n[ CPUFloatType{2,1,2} ]");
}

TEST(Print, LongLinesAreCutIntoColumns) {
  std::string text = to_string(zeros({1, 30}));
  EXPECT_EQ(text.substr(0, 16), "Columns 1 to 26 ");
  EXPECT_NE(text.find("\nColumns 27 to 30 "), std::string::npos);
}

TEST(Print, ComplexAndLazySigns) {
  Tensor z = make({1, 2}, {1, -2}).view_as_complex();
  EXPECT_EQ(to_string(z), " 1-2j\n[ CPUComplexDoubleType{1} ]");
  EXPECT_EQ(to_string(z.conj()), " 1+2j\n[ CPUComplexDoubleType{1} ]");
  EXPECT_EQ(to_string(imag(z.conj())), " 2\n[ CPUDoubleType{1} ]");
}

TEST(Print, StreamsAndTransforms) {
  std::ostringstream stream;
  stream << make({1}, {2});
  EXPECT_EQ(stream.str(), " 2\n[ CPUDoubleType{1} ]");
  std::string seen;
  vmap([&](const Tensor& row) {
    seen = to_string(row);
    return row * 1.0;
  })(make({2, 2}, {1, 2, 3, 4}));
  EXPECT_NE(seen.find("[ CPUDoubleType{2}, of a function transform, level "), std::string::npos)
      << seen;
  EXPECT_NE(seen.find("] over\n 1  2\n 3  4"), std::string::npos) << seen;
}

}  // namespace
}  // namespace fornax
