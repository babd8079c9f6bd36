// f, f_ and f_out agree; targets that don't fit are refused; meta tensors foretell the geometry.
#include "fornax/autograd/autograd.h"
#include "fornax/ops/functions.h"
#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

bool same_sizes(const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes(); }

bool has_forms(const Op& op) {
  return op.kind != OpKind::kView && op.kind != OpKind::kQuery && !op.writes.any &&
         !op.is(kMultiView);
}

// What f_ on the sample's first argument must leave there; nothing if f_ isn't defined for it.
std::optional<Tensor> inplace_result(const Sample& s, const Tensors& results) {
  if (s.values().empty() || s.values()[0].tag != Tag::kTensor || results.size() != 1) return {};
  const Tensor& self = s.values()[0].tensor;
  if (!results[0].defined() || !same_sizes(self, results[0])) return {};
  if (!can_cast(results[0].dtype(), self.dtype())) return {};
  return test::write(test::read(results[0]), self.dtype());
}

FX_SUITE(Inplace) {
  if (!has_forms(op()) || has(kNoInplace | kRandomValues | kUninitialised))
    GTEST_SKIP() << "no in-place form with determined values";
  DtypeSet tried = set_of(main_dtype(row())) | set_of(Dtype::kF32) | set_of(Dtype::kI64) |
                   set_of(Dtype::kC128) | kBools;
  for_each_call(row(), tried, [&](const Sample& s) {
    std::optional<Tensor> want = inplace_result(s, s.run());
    if (!want) return;
    for (bool strided : {false, true}) {
      Sample t = s.copy();
      Tensor& self = t.values()[0].tensor;
      if (strided) self = test::strided_copy(self);
      uint32_t version = self._version();
      Tensors got = t.run(Form::kInplace);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_TRUE(got[0].is_same(self));
      EXPECT_GT(self._version(), version);
      expect_same({self}, {*want}, strided ? "strided self" : "self");
    }
  });
}

// In place on a copy has the gradient of the operator.
FX_SUITE(InplaceGradient) {
  if (!has_forms(op()) || has(kNoInplace | kRandomValues | kNoGradient | kUninitialised))
    GTEST_SKIP() << "no in-place form with a gradient";
  for_each_call(row(), row().gradients, [&](const Sample& s) {
    if (s.slots().empty() || !s.slots()[0].differentiable || s.slots()[0].arg != 0) return;
    Sample plain = s.copy();
    for (const Slot& slot : plain.slots())
      if (slot.differentiable) plain.tensor(slot).requires_grad_();
    Tensors want = plain.run();
    if (want.size() != 1 || !same_sizes(want[0], plain.values()[0].tensor)) return;
    if (want[0].dtype() != s.dtype() || !want[0].requires_grad()) return;
    Sample other = s.copy();
    std::vector<Tensor> leaves, plain_leaves;
    for (const Slot& slot : other.slots()) {
      if (!slot.differentiable) continue;
      leaves.push_back(other.tensor(slot).requires_grad_());
      plain_leaves.push_back(plain.tensor(slot));
    }
    other.values()[0].tensor = leaves[0].clone();
    other.run(Form::kInplace);
    Tensor result = other.values()[0].tensor;
    Tensor seed = Sample(*find_op("add"), "[2] [2]", s.dtype(), 3).values()[0].tensor;
    seed = test::write(
        {want[0].impl()->sizes, std::vector<test::Number>(size_t(want[0].numel()), {0.5, 0})},
        s.dtype());
    auto grads = autograd::grad({result}, leaves, {seed}, {}, false, true);
    auto expected = autograd::grad({want[0]}, plain_leaves, {seed}, {}, false, true);
    for (size_t i = 0; i < grads.size(); ++i)
      expect_same({grads[i]}, {expected[i]}, str("gradient ", int64_t(i)));
  });
}

bool is_out_testable(const Sample& s, const Tensors& results) {
  for (const Tensor& r : results)
    if (!r.defined()) return false;
  for (const Value& v : s.values())
    if (v.tag == Tag::kTensors && results.size() != size_t(s.op().n_returns)) return false;
  return int(results.size()) == s.op().n_returns - s.op().hidden;
}

Tensors empties_like(const Tensors& results) {
  Tensors outs;
  for (const Tensor& r : results) outs.push_back(make_tensor(Meta(r.dtype(), {0})));
  return outs;
}

template <class F>
void expect_error(ErrorKind kind, std::string_view what, F fn) {
  try {
    fn();
    ADD_FAILURE() << what << ": no error";
  } catch (const Error& e) {
    EXPECT_EQ(name_of(e.kind()), std::string(name_of(kind))) << what << ": " << e.what();
  }
}

FX_SUITE(Out) {
  if (!has_forms(op()) || has(kNoOut | kRandomValues | kUninitialised))
    GTEST_SKIP() << "no out= with determined values";
  for_each_call(row(), [&](const Sample& s) {
    Tensors want = s.run();
    if (!is_out_testable(s, want)) return;
    Tensors outs = empties_like(want);
    s.run(Form::kOut, outs);
    expect_same(outs, want, "resized out");
    outs.clear();
    for (const Tensor& r : want) outs.push_back(test::strided_copy(r));
    for (const Tensor& o : outs)
      test::write_into(o, std::vector<test::Number>(size_t(o.numel()), {3, 0}));
    s.run(Form::kOut, outs);
    expect_same(outs, want, "strided out");
  });
}

FX_SUITE(OutErrors) {
  if (!has_forms(op()) || has(kNoOut)) GTEST_SKIP() << "no out=";
  for_each_call(row(), [&](const Sample& s) {
    Tensors want = s.run();
    if (!is_out_testable(s, want)) return;
    Dims other = want[0].impl()->sizes;
    other.push_back(2);
    if (want[0].numel() == 0) other = Dims{2, 2};
    Tensors outs = empties_like(want);
    outs[0] = make_tensor(Meta(want[0].dtype(), other));
    expect_error(ErrorKind::kShape, "out of wrong sizes", [&] { s.run(Form::kOut, outs); });
    Dtype lower = is_complex(want[0].dtype()) ? Dtype::kF64
                  : is_float(want[0].dtype()) ? Dtype::kI64
                                              : Dtype::kBool;
    if (can_cast(want[0].dtype(), lower)) return;
    outs = empties_like(want);
    outs[0] = make_tensor(Meta(lower, want[0].sizes()));
    expect_error(ErrorKind::kType, "out of a lower kind", [&] { s.run(Form::kOut, outs); });
  });
}

FX_SUITE(MetaDevice) {
  bool by_values = op().is(kSync) || op().is(kShapeFromData) || has(kReadsValues);
  if (by_values) GTEST_SKIP() << "needs values";
  for_each_call(row(), kAll, [&](const Sample& s) {
    if (s.op().shape_from_data) {
      auto args = s.args();
      if (s.op().shape_from_data(Args(args.data(), args.size()))) return;
    }
    Tensors want = s.run();
    Sample meta = s.map([&](const Tensor& t, const Slot&) {
      Meta m = meta_of(t);
      m.device = Device(DeviceType::kMeta);
      m.offset = 0;
      return make_tensor(m);
    });
    if (meta.slots().empty()) return;
    Tensors got = meta.run();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (!want[i].defined()) continue;
      EXPECT_TRUE(got[i].is_meta());
      EXPECT_EQ(name_of(got[i].dtype()), name_of(want[i].dtype()));
      EXPECT_TRUE(got[i].sizes() == want[i].sizes())
          << str(got[i].sizes(), " instead of ", want[i].sizes());
      EXPECT_TRUE(got[i].numel() < 2 || got[i].strides() == want[i].strides())
          << str("strides ", got[i].strides(), " instead of ", want[i].strides());
    }
  });
}

}  // namespace
}  // namespace fornax::samples::suites
