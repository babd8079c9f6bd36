#include "fornax/transforms/functionalize.h"

#include "fornax/autograd/custom.h"
#include "fornax/core/overlap.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"
#include "fornax/transforms/detail.h"

namespace fornax {
namespace {

const TensorImpl& memory_of(const Tensor& t) {
  const Tensor* at = &t;
  while (at->impl()->flags & kWrappedFlag) at = &rare_or_null(*at)->inner;
  return *at->impl();
}

// Both end in one storage, at places that meet.
bool share_memory(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = memory_of(a), &y = memory_of(b);
  if (!x.storage || x.storage.get() != y.storage.get()) return false;
  return may_overlap(Tensor(Ref<TensorImpl>(const_cast<TensorImpl*>(&x))),
                     Tensor(Ref<TensorImpl>(const_cast<TensorImpl*>(&y))));
}

// A call's arguments with tensors from outside replaced by their wrappers.
class ImportedArgs {
 public:
  template <class Import>
  ImportedArgs(Args args, Import import) : args_(args.begin(), args.end()) {
    size_t n = 0;
    for (const Arg& a : args) n += a.tensors().size();
    flat_.reserve(n);
    for_each_tensor(args, [&](const Tensor& t, int, int) { flat_.push_back(import(t)); });
    size_t next = 0;
    for (Arg& a : args_) {
      size_t count = a.tensors().size();
      if (count) a.t = flat_.data() + next;
      next += count;
    }
  }
  ImportedArgs(const ImportedArgs&) = delete;
  Args args() const { return Args(args_.data(), args_.size()); }

 private:
  Tensors flat_;
  SmallVec<Arg, 8> args_;
};

}  // namespace

Tensor FunctionalizeInterp::add_input(const Tensor& original, const Tensor& below) {
  Tensor wrapper = wrap_tensor(below, level);
  roots_.push_back({original, below, wrapper});
  return wrapper;
}

Tensor FunctionalizeInterp::import(const Tensor& t) {
  if (!t.defined()) return t;
  if (level_of(t) == level) {
    sync(t);
    return t;
  }
  if (auto it = imported_.find(t.impl()); it != imported_.end()) {
    sync(it->second.second);
    return it->second.second;
  }
  Tensor wrapper;
  if (t.impl()->base) {
    wrapper = import(Tensor(t.impl()->base));
    for (const Step* step : steps_of(t)) wrapper = apply(*step, wrapper);
  } else {
    wrapper = add_input(t, t);
  }
  imported_.emplace(t.impl(), std::pair(t, wrapper));
  return wrapper;
}

Tensor FunctionalizeInterp::value_of(const Tensor& t) {
  if (!t.defined()) return t;
  // One that was never written need not become an input.
  if (level_of(t) != level && !imported_.count(t.impl())) return t;
  return unwrap_tensor(import(t), level);
}

void FunctionalizeInterp::store(std::string_view name, const Tensor& target, Tensor value) {
  TensorImpl& t = *target.impl();
  FX_CHECK(target.sizes() == value.sizes(), kShape, name, "_: self has sizes ", target.sizes(),
           ", the result ", value.sizes(), "; an in-place operator can't grow its input");
  FX_CHECK(can_cast(value.dtype(), t.dtype), kType, name, ": a result of ", value.dtype(),
           " can't be stored in a tensor of ", t.dtype);
  FX_CHECK(!has_internal_overlap(target), kValue, name,
           ": the target has several elements in one memory place (expand); clone() it first");
  Rare& rare = rare_of(target);
  Lower down(*this);
  if (value.dtype() != t.dtype || value.strides() != rare.inner.strides())
    value = call1(copy_op, {rare.inner, value, false});
  t.version().fetch_add(1, std::memory_order_relaxed);
  if (!t.base) {
    rare.inner = value;
    ++t.data_generation;
    return;
  }
  // base' = scatter(base, value), step by step.
  Tensor root(t.base);
  auto steps = steps_of(target);
  Tensors before;
  before.push_back(rare_of(root).inner);
  for (size_t k = 0; k + 1 < steps.size(); ++k) before.push_back(apply(*steps[k], before.back()));
  Tensor whole = value;
  for (size_t k = steps.size(); k-- > 0;) whole = view_scatter(before[k], whole, *steps[k]);
  if (whole.strides() != before[0].strides() && before[0].is_non_overlapping_and_dense())
    whole = call1(copy_op, {before[0], whole, false});
  rare_of(root).inner = whole;
  ++root.impl()->data_generation;
  rare.inner = value;
  t.data_generation = root.impl()->data_generation;
}

void FunctionalizeInterp::process(Call& call) {
  const Op& op = call.op;
  grad_mode = thread_state.grad_mode;
  // Composites without a kernel are nothing but their bodies.
  if (op.body && !op.infer) return expand_body(call);
  ImportedArgs own(call.args, [this](const Tensor& t) { return import(t); });
  Tensors outs;
  {
    LoweredArgs lowered(own.args(), level);
    Lower down(*this);
    if (op.writes.any && !record_below_) {
      size_t at = 0;
      for_each_tensor(call.args, [&](const Tensor& t, int, int) {
        Tensor& below = lowered.flat[at++];
        if (t.defined() && is_written(call, t)) below = below.clone();
      });
    }
    Call k{op, Form::kNew, lowered.args(), outs};
    dispatch(k);
  }
  Tensors given = targets_of(call, outs.size());
  Tensors stored(outs.size());
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!given[i].defined()) continue;
    store(op.name(), import(given[i]), outs[i]);
    stored[i] = given[i];
    outs[i].reset();
  }
  Call wrapped{op, Form::kNew, own.args(), call.outs};
  if (op.writes.any || call.form != Form::kNew) {
    for (size_t i = 0; i < outs.size(); ++i)
      if (outs[i].defined()) stored[i] = wrap_tensor(outs[i], level);
    call.outs = std::move(stored);
    return;
  }
  wrap_results(wrapped, outs, {.level = level, .link_detached = true});
}

void FunctionalizeInterp::process_custom(CustomCall& call) {
  grad_mode = thread_state.grad_mode;
  // The function's own gradient matters to levels above only.
  run_custom_forward(call);
}

std::vector<FunctionalizeInterp::Write> FunctionalizeInterp::writes() const {
  std::vector<Write> written;
  for (const Root& r : roots_) {
    const Tensor& now = rare_or_null(r.wrapper)->inner;
    if (now.is_same(r.before)) continue;
    for (const Root& other : roots_)
      FX_CHECK(&other == &r || !share_memory(r.original, other.original), kUnsupported,
               "functionalize: a tensor that is written shares memory with another input of the "
               "function; pass one of them, and take views of it inside");
    written.push_back({r.original, now});
  }
  return written;
}

namespace func::detail {

Tensors functionalize(Erased f, TensorList inputs) {
  FunctionalizeInterp interp(false);
  PushLevel push(interp);
  Tensors wrapped;
  for (const Tensor& t : inputs) wrapped.push_back(t.defined() ? interp.add_input(t, t) : Tensor());
  Tensors outs = f(wrapped);
  for (Tensor& y : outs) y = interp.value_of(y);
  auto writes = interp.writes();
  Lower down(interp);
  for (auto& w : writes) w.original.copy_(w.value);
  return outs;
}

}  // namespace func::detail
}  // namespace fornax
