// Values: against plain loops, across dtypes, and refusal of dtypes an operator is not defined for.
#include "tests/suites/reference.h"
#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

using test::Bound;
using test::Numbers;

void expect_numbers(const Tensor& got, const Numbers& want, double looseness, size_t i) {
  Bound b = test::bound_of(got.dtype());
  Numbers stored = want;
  if (is_integral(got.dtype())) stored = test::read(test::write(want, got.dtype()));
  EXPECT_EQ(
      test::difference(test::read(got), stored, {b.relative * looseness, b.absolute * looseness}),
      "")
      << "result " << i;
}

// Independent loops in double precision.
FX_SUITE(Reference) {
  const ReferenceFn* reference = reference_of(op().name());
  if (!reference || has(kRandomValues)) GTEST_SKIP() << "no independent reference";
  DtypeSet tried = set_of(Dtype::kF64) | set_of(Dtype::kF32) | set_of(Dtype::kC128) |
                   set_of(Dtype::kI64) | set_of(Dtype::kU8) | kBools;
  for_each_call(row(), tried, [&](const Sample& s) {
    std::optional<std::vector<Numbers>> want = (*reference)(s);
    if (!want) return;  // the reference does not cover this form
    Tensors got = s.run();
    ASSERT_EQ(got.size(), want->size());
    for (size_t i = 0; i < got.size(); ++i)
      expect_numbers(got[i], (*want)[i], looseness_of(row()), i);
  });
}

Dtype wide_of(Dtype d) {
  return is_complex(d) ? Dtype::kC128 : is_float(d) ? Dtype::kF64 : Dtype::kI64;
}

// The dtype a result has in `d` when it is `wide` in the widest dtype of d's category.
bool right_dtype(Dtype got, Dtype wide, Dtype d) {
  if (is_integral(d)) return got == wide || (wide == Dtype::kI64 && got == d);
  if (wide == Dtype::kC128) return got == to_complex(d);
  if (wide == Dtype::kF64) return got == to_real(d) || got == d;
  return got == wide;
}

// Every dtype gives what the widest of its category gives, rounded.
FX_SUITE(Dtypes) {
  for_each_call(row(), kAll, [&](const Sample& s) {
    Tensors got = s.run();
    if (has(kRandomValues | kUninitialised)) return;
    Sample wide = s.map([&](const Tensor& t, const Slot& slot) {
      return slot.open ? test::write(test::read(t), wide_of(s.dtype())) : t;
    });
    if (is_bool(s.dtype()) && !contains(row().dtypes, Dtype::kI64)) return;
    Tensors want = wide.run();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (!has(kWideResults | kDtypeGiven)) {
        EXPECT_TRUE(right_dtype(got[i].dtype(), want[i].dtype(), s.dtype()))
            << "result " << i << " is " << name_of(got[i].dtype()) << ", in "
            << name_of(wide_of(s.dtype())) << " it is " << name_of(want[i].dtype());
      }
      if (is_bool(s.dtype()) && want[i].dtype() == Dtype::kI64) continue;  // other arithmetic
      double loose = looseness_of(row());
      if (is_reduced_float(s.dtype())) loose = 1;
      expect_numbers(got[i], test::read(want[i]), loose, i);
    }
  });
}

// A dtype the row does not list is refused in words, never computed and never a crash.
FX_SUITE(RefusedDtypes) {
  for (int d = 0; d < kDtypeCount; ++d) {
    if (contains(row().dtypes, Dtype(d))) continue;
    Sample s(op(), row().calls[0], Dtype(d));
    bool any_open = false;
    for (const Slot& slot : s.slots()) any_open = any_open || slot.open;
    if (!any_open) continue;
    SCOPED_TRACE(s.describe());
    try {
      s.run();
      ADD_FAILURE() << "computed, but the row does not list the dtype";
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::kType || e.kind() == ErrorKind::kUnsupported)
          << name_of(e.kind()) << ": " << e.what();
    }
  }
}

}  // namespace
}  // namespace fornax::samples::suites
