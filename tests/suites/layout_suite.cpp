// Where the elements lie must not matter: strides, offsets, repeated elements, lazy conj and neg.
#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

bool comparable(const Row& row) { return !(row.flags & (kRandomValues | kUninitialised)); }

FX_SUITE(Strided) {
  if (!comparable(row())) GTEST_SKIP() << "values are not determined";
  if (has(kReadsStrides)) GTEST_SKIP() << "the result depends on strides by definition";
  DtypeSet tried = set_of(main_dtype(row())) | set_of(Dtype::kF32) | set_of(Dtype::kBF16) |
                   set_of(Dtype::kI32) | set_of(Dtype::kC64);
  for_each_call(row(), tried, [&](const Sample& s) {
    Tensors want = s.run();
    for (size_t only = 0; only <= s.slots().size(); ++only) {  // the last round: all of them
      size_t at = 0;
      Sample strided = s.map([&](const Tensor& t, const Slot&) {
        return at++ == only || only == s.slots().size() ? test::strided_copy(t) : t;
      });
      expect_same(strided.run(), want, str("strided argument ", int64_t(only)));
    }
  });
}

// Every dimension of each argument in turn repeats its first slice with stride 0.
FX_SUITE(Expanded) {
  if (!comparable(row()) || has(kReadsStrides)) GTEST_SKIP() << "values are not determined";
  for_each_call(row(), [&](const Sample& s) {
    for (size_t which = 0; which < s.slots().size(); ++which) {
      const Tensor& t = s.tensor(s.slots()[which]);
      if (t.dim() == 0 || t.numel() == 0) continue;
      Tensor repeated = test::first_slice_repeated(t);
      Tensor plain = test::contiguous_of(repeated);
      size_t a = 0, b = 0;
      Sample lazy =
          s.map([&](const Tensor& x, const Slot&) { return a++ == which ? repeated : x; });
      Sample full = s.map([&](const Tensor& x, const Slot&) { return b++ == which ? plain : x; });
      Tensors want;
      try {
        want = full.run();
      } catch (const Error& e) {  // values that are invalid when repeated
        EXPECT_NE(e.kind(), ErrorKind::kInternal) << e.what();
        EXPECT_THROW(lazy.run(), Error);
        continue;
      }
      expect_same(lazy.run(), want, str("expanded argument ", int64_t(which)));
    }
  });
}

FX_SUITE(ChannelsLast) {
  if (!comparable(row()) || has(kReadsStrides)) GTEST_SKIP() << "values are not determined";
  for_each_call(row(), [&](const Sample& s) {
    bool any = false;
    Sample last = s.map([&](const Tensor& t, const Slot&) {
      if (t.dim() != 4 && t.dim() != 5) return t;
      any = true;
      MemoryFormat format =
          t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
      Meta m = meta_of(t);
      m.offset = 0;
      m.strides = strides_of(format, t.sizes());
      Tensor other = make_tensor(m);
      test::write_into(other, test::read(t).at);
      return other;
    });
    if (any) expect_same(last.run(), s.run(), "channels last");
  });
}

void set_bits(const Tensor& t, uint16_t bits) { t.impl()->flags |= bits; }

// The bits set on every open argument, whose memory holds the conjugates and negatives.
FX_SUITE(ConjAndNegBits) {
  if (!comparable(row())) GTEST_SKIP() << "values are not determined";
  if (has(kRefusesBits)) GTEST_SKIP() << "refuses lazy conjugates by definition";
  for_each_call(row(), set_of(Dtype::kC128) | set_of(Dtype::kF64), [&](const Sample& s) {
    Tensors want = s.run();
    bool complex = is_complex(s.dtype());
    for (uint16_t bits :
         {uint16_t(kNegFlag), uint16_t(kConjFlag), uint16_t(kConjFlag | kNegFlag)}) {
      if ((bits & kConjFlag) && !complex) continue;
      Sample lazy = s.map([&](const Tensor& t, const Slot&) {
        if (!is_differentiable(t.dtype()) || ((bits & kConjFlag) && !t.is_complex())) return t;
        test::Numbers n = test::read(t);
        for (auto& v : n.at) {
          if (bits & kConjFlag) v = std::conj(v);
          if (bits & kNegFlag) v = -v;
        }
        Tensor other = test::write(n, t.dtype());
        set_bits(other, bits);
        return other;
      });
      expect_same(lazy.run(), want, str("flags ", int64_t(bits)));
    }
  });
}

}  // namespace
}  // namespace fornax::samples::suites
