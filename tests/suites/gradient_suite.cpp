// First and second gradients against differences.
#include "tests/suites/suite.h"
#include "tests/support/gradcheck.h"

namespace fornax::samples::suites {
namespace {

// The sample's differentiable tensors, and the call as a function of them.
std::vector<Tensor> inputs_of(const Sample& s) {
  std::vector<Tensor> inputs;
  for (const Slot& slot : s.slots())
    if (slot.differentiable) inputs.push_back(s.tensor(slot));
  return inputs;
}

Tensors run_with(const Sample& s, const std::vector<Tensor>& inputs) {
  size_t next = 0;
  return s
      .map([&](const Tensor& t, const Slot& slot) {
        return slot.differentiable ? inputs[next++] : t;
      })
      .run();
}

void check(const Row& row, bool second) {
  for_each_call(row, row.gradients, [&](const Sample& s) {
    std::vector<Tensor> inputs = inputs_of(s);
    if (inputs.empty()) return;
    auto f = [&](const std::vector<Tensor>& at) { return run_with(s, at); };
    test::GradcheckOptions options;
    options.second = second;
    EXPECT_EQ(test::gradcheck(f, inputs, options), "");
  });
}

FX_SUITE(Gradcheck) {
  if (has(kRandomValues)) GTEST_SKIP() << "results differ from call to call";
  if (!has(kNoGradient)) return check(row(), false);
  for_each_call(row(), set_of(Dtype::kF64) | set_of(Dtype::kC128), [&](const Sample& s) {
    auto f = [&](const std::vector<Tensor>& at) { return run_with(s, at); };
    std::vector<Tensor> inputs = inputs_of(s);
    EXPECT_FALSE(test::is_differentiable_at(f, inputs)) << "the row says there is no gradient";
  });
}

FX_SUITE(Gradgradcheck) {
  if (has(kRandomValues | kNoGradient | kNoSecond)) GTEST_SKIP() << "no second gradient";
  check(row(), true);
}

}  // namespace
}  // namespace fornax::samples::suites
