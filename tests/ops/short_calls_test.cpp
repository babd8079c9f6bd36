// Calls on contiguous tensors of one shape take a shorter way. They must not differ from others in
// anything but speed.
#include <gtest/gtest.h>

#include "fornax/fornax.h"

namespace {

using namespace fornax;

TEST(ShortCalls, TypesFollowTheDefaultOfTheMoment) {
  Tensor n = tensor({1, 2, 3});
  EXPECT_EQ((n * 1.5).dtype(), kFloat);
  set_default_dtype(kDouble);
  Dtype second = (n * 1.5).dtype();
  set_default_dtype(kFloat);
  EXPECT_EQ(second, kDouble);
  EXPECT_EQ((n * 1.5).dtype(), kFloat);
}

TEST(ShortCalls, EqualSizesWithOtherTypesAreOtherCalls) {
  Tensor a = tensor({1.5f, 2.5f}), n = tensor({2, 3});
  EXPECT_EQ((a + a).dtype(), kFloat);
  EXPECT_EQ((n + n).dtype(), n.dtype());
  EXPECT_EQ((a + n).dtype(), kFloat);
  EXPECT_EQ((a + n)[1].item<float>(), 5.5f);
  EXPECT_EQ((n > n).dtype(), kBool);
}

TEST(ShortCalls, ResultsAreRowMajorWhateverDimensionsOfOneHave) {
  Tensor a = ones({3}).as_strided({1, 3}, {77, 1});
  Tensor r = a + a;
  EXPECT_EQ(r.stride(0), 3);
  EXPECT_EQ(r.stride(1), 1);
}

TEST(ShortCalls, WritesCountAsVersions) {
  Tensor a = ones({4}), out = empty({4});
  uint32_t before = a._version();
  a.add_(a);
  a.mul_(a);
  EXPECT_EQ(a._version(), before + 2);
  EXPECT_EQ(a[3].item<float>(), 4.0f);
  before = out._version();
  add_out(out, a, a);
  EXPECT_EQ(out._version(), before + 1);
  EXPECT_EQ(out[0].item<float>(), 8.0f);
}

TEST(ShortCalls, AModifiedOperandIsNoticedInBackward) {
  Tensor x = ones({4}).requires_grad_(), y = x * 2, w = ones({4});
  Tensor z = y * w;
  {
    NoGradGuard no_grad;
    w.add_(w);
  }
  EXPECT_THROW(z.backward(ones({4})), Error);
}

TEST(ShortCalls, PartlyOverlappingTargetsAreRefused) {
  Tensor a = ones({5});
  EXPECT_THROW(a.slice(0, 1, 5).add_(a.slice(0, 0, 4)), Error);
  Tensor same = a.slice(0, 1, 5);
  EXPECT_NO_THROW(same.add_(a.slice(0, 1, 5)));
}

TEST(ShortCalls, TargetsMustHoldTheResult) {
  Tensor f = ones({3}), n = tensor({1, 2, 3});
  EXPECT_THROW(n.add_(f), Error);
  Tensor out = empty({3}, kLong);
  EXPECT_THROW(add_out(out, f, f), Error);
  Tensor wide = empty({3}, kDouble);
  add_out(wide, f, f);
  EXPECT_EQ(wide[2].item<double>(), 2.0);
}

TEST(ShortCalls, InferenceTensorsStayInside) {
  Tensor t;
  {
    InferenceMode inference;
    t = ones({3}) + ones({3});
    EXPECT_TRUE(t.is_inference());
    EXPECT_NO_THROW(t.add_(t));
  }
  EXPECT_THROW(t.add_(ones({3})), Error);
}

TEST(ShortCalls, IntegersCheckTheirValuesEveryTime) {
  Tensor n = tensor({4, 6}), ok = tensor({2, 3}), zero = tensor({2, 0});
  EXPECT_EQ(n.div(ok, "floor")[1].item<int64_t>(), 2);
  EXPECT_THROW(n.div(zero, "floor"), Error);
  EXPECT_EQ(n.pow(2)[0].item<int64_t>(), 16);
  EXPECT_THROW(n.pow(-3), Error);
}

TEST(ShortCalls, ConjugateOperandsAreResolved) {
  Tensor z = view_as_complex(tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2}));
  Tensor r = z.conj() * z;
  EXPECT_EQ(view_as_real(r.clone()).select(1, 0)[1].item<float>(), 25.0f);
  EXPECT_EQ(view_as_real(r.clone()).select(1, 1)[1].item<float>(), 0.0f);
}

}  // namespace
