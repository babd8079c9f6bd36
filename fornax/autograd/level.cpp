#include "fornax/autograd/level.h"

#include <atomic>

#include "fornax/autograd/custom.h"
#include "fornax/core/core_hooks.h"

namespace fornax {

int next_level() {
  static constinit std::atomic<int> counter{0};
  int level = counter.fetch_add(1, std::memory_order_relaxed) + 1;
  // 0 is the base level; reached again only after 2^32 levels.
  return level != 0 ? level : next_level();
}

Tensor wrap_tensor(const Tensor& inner, int level, int bdim) {
  const TensorImpl& from = *inner.impl();
  auto impl = make_ref<TensorImpl>();
  impl->flags = uint16_t(kWrappedFlag | (from.flags & (kConjFlag | kNegFlag)));
  impl->dtype = from.dtype;
  impl->device = from.device;
  impl->sizes = from.sizes;
  impl->strides = from.strides;
  impl->numel = from.numel;
  impl->counter = make_ref<VersionCounter>();
  if (bdim >= 0) {
    impl->sizes.erase(impl->sizes.begin() + bdim);
    impl->strides.erase(impl->strides.begin() + bdim);
    impl->numel = checked_numel(impl->sizes);
  }
  Tensor t(std::move(impl));
  Rare& rare = rare_of(t);
  rare.level = level;
  rare.bdim = bdim;
  rare.inner = inner;
  return t;
}

const Tensor& unwrap_tensor(const Tensor& t, int level) {
  return is_at_level(t, level) ? rare_or_null(t)->inner : t;
}

LoweredArgs::LoweredArgs(Args args, int level) : args_(args.begin(), args.end()) {
  size_t n = 0;
  for (const Arg& a : args) n += a.tensors().size();
  flat.reserve(n);
  for_each_tensor(args, [&](const Tensor& t, int i, int) {
    flat.push_back(unwrap_tensor(t, level));
    if (is_at_level(t, level) && rare_or_null(t)->bdim >= 0) batched |= uint64_t(1) << i;
  });
  size_t next = 0;
  for (Arg& a : args_) {
    size_t count = a.tensors().size();
    if (count) a.t = flat.data() + next;
    next += count;
  }
}

void rederive_view(const Tensor& t, int level) {
  if (!is_at_level(t, level) || !t.impl()->base) return;
  TensorImpl& view = *t.impl();
  if (view.data_generation == view.base->data_generation) return;
  Tensor fresh(view.base);
  for (const Step* step : steps_of(t)) fresh = apply(*step, fresh);
  Rare& to = rare_of(t);
  const Rare& from = *rare_or_null(fresh);
  to.inner = from.inner;
  to.bdim = from.bdim;
  to.tangent = from.tangent;
  view.data_generation = view.base->data_generation;
}

void wrap_results(Call& call, Tensors& outs, const WrapOptions& options) {
  Tensors given = targets_of(call, outs.size());
  const bool view = call.op.kind == OpKind::kView;
  const bool detached = view && call.op.is(kNoGrad);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (given[i].defined()) {
      if (level_of(given[i]) == options.level)
        given[i].impl()->version().fetch_add(1, std::memory_order_relaxed);
      outs[i] = given[i];
      continue;
    }
    if (!outs[i].defined()) continue;
    // A view of a tensor from outside stays outside: writing it must write that tensor.
    if (view && !is_at_level(call.args.tensor(0), options.level)) continue;
    outs[i] = wrap_tensor(outs[i], options.level, options.bdims.empty() ? -1 : options.bdims[i]);
    if (!view) continue;
    const Tensor& source = call.args.tensor(0);
    if (detached && !options.link_detached) {
      outs[i].impl()->counter = source.impl()->counter;
      continue;
    }
    link_view(call, int(i), source, outs[i], view_meta_of(outs[i]));
    if (detached) outs[i].impl()->flags &= uint16_t(~kTapeView);
  }
  call.outs = std::move(outs);
}

PushLevel::PushLevel(Interp& interp, int level) {
  interp.level = level;
  interp.below = thread_state.top;
  interp.grad_mode = thread_state.grad_mode;
  thread_state.top = &interp;
}

void GradInterp::process(Call& call) {
  const Op& op = call.op;
  if (op.expands()) return expand_body(call);
  FX_CHECK(call.form != Form::kOut, kUnsupported, op.name(),
           ": out= is not available inside a function transform");
  auto node = thread_state.grad_mode ? tape_prepare(call) : Ref<GradNode>();
  if (node) {
    for_each_written(call, [&](const Tensor& t, bool differentiable) {
      FX_CHECK(!differentiable || level_of(t) == level, kAutograd, op.name(),
               "_: a function under grad or vjp would write a value that depends on its arguments "
               "into a tensor from outside; pass that tensor as an argument");
    });
  }
  LoweredArgs lowered(call.args, level);
  Tensors outs;
  {
    Lower down(*this);
    Call k{op, call.form, lowered.args(), outs};
    dispatch(k);
  }
  wrap_results(call, outs, {.level = level});
  if (node) tape_attach(std::move(node), call);
}

void GradInterp::process_custom(CustomCall& call) {
  CustomCall inner{call.function, {}, {}, {}, {}, {}, {}};
  for (const Tensor& t : call.inputs) inner.inputs.push_back(unwrap_tensor(t, level));
  {
    Lower down(*this);
    dispatch_custom(inner);
  }
  take_custom_results(call, inner, [&](const Tensor& t, size_t) { return wrap_tensor(t, level); });
  attach_custom_node(call);
}

}  // namespace fornax
