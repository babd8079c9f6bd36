// Between forward and backward each argument and result is overwritten in turn. What PyTorch does
// not save may be overwritten: the gradient stays right. What the record saves raises kAutograd.
// Nothing ever gives a wrong gradient.
#include <string>

#include "fornax/autograd/autograd.h"
#include "fornax/ops/functions.h"
#include "tests/suites/suite.h"

namespace fornax::samples::suites {
namespace {

struct Forward {
  Sample sample;
  std::vector<Tensor> inputs, results, seeds;
  std::vector<int> numbers;  // of the results with a gradient
};

std::optional<Forward> forward(const Sample& s) {
  Forward f{s.copy(), {}, {}, {}, {}};
  for (const Slot& slot : f.sample.slots())
    if (slot.differentiable) f.inputs.push_back(f.sample.tensor(slot).requires_grad_());
  Tensors all = f.sample.run();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined()) continue;
    f.numbers.push_back(int(i));
    f.results.push_back(all[i]);
  }
  return f.inputs.empty() ? std::nullopt : std::optional<Forward>(std::move(f));
}

std::vector<Tensor> backward(const Forward& f) {
  std::vector<Tensor> outs, seeds;
  for (const Tensor& r : f.results) {
    if (!r.requires_grad()) continue;
    outs.push_back(r);
    std::vector<test::Number> ones(size_t(r.numel()));
    for (size_t i = 0; i < ones.size(); ++i) ones[i] = 0.5 + 0.25 * double(i % 5);
    seeds.push_back(test::write({r.impl()->sizes, ones}, r.dtype()));
  }
  return outs.empty() ? std::vector<Tensor>(f.inputs.size())
                      : autograd::grad(outs, f.inputs, seeds, {}, false, true);
}

bool names(std::string_view list, std::string_view name) {
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

std::string result_name(const Op& op, int i) {
  Schema schema = schema_of(op);
  if (i < schema.n_returns && !schema.returns[i].name.empty())
    return std::string(schema.returns[i].name);
  return schema.n_returns == 1 ? "result" : str("result", int64_t(i));
}

// What the record says it keeps; only for operators with a rule of their own.
struct Kept {
  bool known = false;
  Saves saves;
};
Kept kept_by(const Sample& s) {
  const Op& op = s.op();
  if (op.kind == OpKind::kComposite || op.kind == OpKind::kView || !op.vjp) return {};
  if (!op.saves) return {true, {}};
  auto args = s.args();
  uint64_t need = 0;
  for (const Slot& slot : s.slots())
    if (slot.differentiable) need |= uint64_t(1) << slot.arg;
  return {true, op.saves({op, Args(args.data(), args.size()), need})};
}

void overwrite(const Tensor& t) {
  NoGradGuard guard;
  Tensor target = t;
  target.fill_(1);
}

void expect_gradients(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  for (size_t i = 0; i < want.size(); ++i)
    expect_same({got[i]}, {want[i]}, str("gradient ", int64_t(i), " after the write"));
}

// Overwrites `pick(forward)` and runs backward.
template <class Pick>
void check(const Row& row, const Sample& s, const std::vector<Tensor>& want,
           const std::string& name, bool kept_known, bool kept, Pick pick) {
  SCOPED_TRACE("overwritten: " + name);
  std::optional<Forward> f = forward(s);
  Tensor target = pick(*f);
  if (target.numel() == 0) return;
  if (target.impl()->base && !f->results.empty() && row.flags & kAliases) return;
  overwrite(target);
  bool may_be_saved = !row.saved || names(row.saved, name);
  try {
    std::vector<Tensor> got = backward(*f);
    expect_gradients(got, want);
    EXPECT_FALSE(kept_known && kept) << "the record saves it, yet its change went unnoticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kAutograd) << e.what();
    EXPECT_TRUE(may_be_saved) << "PyTorch does not save it: " << e.what();
  }
}

FX_SUITE(Mutation) {
  if (has(kRandomValues | kNoGradient | kAliases)) GTEST_SKIP() << "no gradient of its own";
  for_each_call(row(), set_of(Dtype::kF64) | set_of(Dtype::kC128), [&](const Sample& s) {
    std::optional<Forward> plain = forward(s);
    if (!plain) return;
    std::vector<Tensor> want = backward(*plain);
    Kept kept = kept_by(plain->sample);
    Schema schema = schema_of(op());
    for (size_t k = 0; k < s.slots().size(); ++k) {
      int arg = s.slots()[k].arg;
      check(row(), s, want, std::string(schema.params[arg].name), kept.known,
            kept.saves.in >> arg & 1,
            [&](Forward& f) { return f.sample.tensor(f.sample.slots()[k]); });
    }
    for (size_t k = 0; k < plain->results.size(); ++k) {
      int number = plain->numbers[k];
      if (plain->results[k].is_view() || !plain->results[k].requires_grad()) continue;
      check(row(), s, want, result_name(op(), number), kept.known, kept.saves.out >> number & 1,
            [&](Forward& f) { return f.results[k]; });
    }
  });
}

}  // namespace
}  // namespace fornax::samples::suites
