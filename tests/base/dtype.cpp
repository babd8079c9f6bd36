// Promotion against PyTorch's own table (promoteTypesLookup of c10/core/ScalarType).
#include "fornax/base/dtype.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace fornax {
namespace {

Dtype dtype_named(const std::string& name) {
  Dtype d = dtype_of_name(name);
  EXPECT_NE(d, Dtype::kUndefined) << name;
  return d;
}

constexpr const char* kOrder = "u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 b8 bf16";
constexpr const char* kTable[] = {
    "u8   i16  i16  i32  i64  f16  f32  f64  c32  c64  c128 u8   bf16",
    "i16  i8   i16  i32  i64  f16  f32  f64  c32  c64  c128 i8   bf16",
    "i16  i16  i16  i32  i64  f16  f32  f64  c32  c64  c128 i16  bf16",
    "i32  i32  i32  i32  i64  f16  f32  f64  c32  c64  c128 i32  bf16",
    "i64  i64  i64  i64  i64  f16  f32  f64  c32  c64  c128 i64  bf16",
    "f16  f16  f16  f16  f16  f16  f32  f64  c32  c64  c128 f16  f32 ",
    "f32  f32  f32  f32  f32  f32  f32  f64  c64  c64  c128 f32  f32 ",
    "f64  f64  f64  f64  f64  f64  f64  f64  c128 c128 c128 f64  f64 ",
    "c32  c32  c32  c32  c32  c32  c64  c128 c32  c64  c128 c32  c64 ",
    "c64  c64  c64  c64  c64  c64  c64  c128 c64  c64  c128 c64  c64 ",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    "u8   i8   i16  i32  i64  f16  f32  f64  c32  c64  c128 b8   bf16",
    "bf16 bf16 bf16 bf16 bf16 f32  f32  f64  c64  c64  c128 bf16 bf16",
};

TEST(Dtype, PromotesAsPyTorch) {
  std::istringstream rows(kOrder);
  int count = 0;
  std::string row, column, expected;
  while (rows >> row) {
    std::istringstream columns(kOrder), cells(kTable[count]);
    while (columns >> column) {
      ASSERT_TRUE(cells >> expected);
      EXPECT_EQ(promote_types(dtype_named(row), dtype_named(column)), dtype_named(expected))
          << row << " with " << column;
    }
    ++count;
  }
  EXPECT_EQ(count, kDtypeCount);
}

TEST(Dtype, UndefinedGivesWayInPromotion) {
  EXPECT_EQ(promote_types(Dtype::kUndefined, Dtype::kI8), Dtype::kI8);
  EXPECT_EQ(promote_types(Dtype::kC64, Dtype::kUndefined), Dtype::kC64);
}

TEST(Dtype, CanCastOnlyUpwardsInCategory) {
  EXPECT_TRUE(can_cast(Dtype::kF64, Dtype::kF16));
  EXPECT_TRUE(can_cast(Dtype::kI64, Dtype::kU8));
  EXPECT_TRUE(can_cast(Dtype::kBool, Dtype::kI8));
  EXPECT_TRUE(can_cast(Dtype::kF32, Dtype::kC32));
  EXPECT_FALSE(can_cast(Dtype::kI8, Dtype::kBool));
  EXPECT_FALSE(can_cast(Dtype::kF16, Dtype::kI64));
  EXPECT_FALSE(can_cast(Dtype::kC32, Dtype::kF64));
}

TEST(Dtype, SizesAndPartners) {
  EXPECT_EQ(size_of(Dtype::kBool), 1);
  EXPECT_EQ(size_of(Dtype::kBF16), 2);
  EXPECT_EQ(size_of(Dtype::kC128), 16);
#define X(type, name, torch, short_name, long_name)       \
  EXPECT_EQ(size_of(Dtype::name), int64_t(sizeof(type))); \
  EXPECT_EQ(dtype_of<type>, Dtype::name);                 \
  EXPECT_EQ(dtype_of_name(short_name), Dtype::name);      \
  EXPECT_EQ(dtype_of_name(long_name), Dtype::name);       \
  EXPECT_EQ(dtype_of_name(#torch), Dtype::name);
  FX_DTYPES(X)
#undef X
  EXPECT_EQ(to_complex(Dtype::kF16), Dtype::kC32);
  EXPECT_EQ(to_complex(Dtype::kBF16), Dtype::kC64);
  EXPECT_EQ(to_complex(Dtype::kI64), Dtype::kC64);
  EXPECT_EQ(to_real(Dtype::kC128), Dtype::kF64);
  EXPECT_EQ(dtype_of_name("f8"), Dtype::kUndefined);
}

}  // namespace
}  // namespace fornax
