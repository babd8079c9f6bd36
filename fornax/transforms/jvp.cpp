#include "fornax/autograd/custom.h"
#include "fornax/autograd/forward_rule.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/transforms/detail.h"
#include "fornax/transforms/interp.h"

namespace fornax {
namespace {

Tensor zeros_for(const Tensor& t) {
  return zeros(t.sizes(), TensorOptions(t.dtype()).device(t.device()));
}

}  // namespace

void ForwardInterp::sync(const Tensor& t) {
  if (!is_at_level(t, level) || !t.impl()->base) return;
  TensorImpl& view = *t.impl();
  if (view.data_generation == view.base->data_generation) return;
  // Only tangents are ever swapped: values are written in place one level down.
  Tensor along = tangent(Tensor(view.base));
  if (along.defined()) {
    Lower down(*this);
    for (const Step* step : steps_of(t)) along = apply(*step, along);
  }
  rare_of(t).tangent = along;
  view.data_generation = view.base->data_generation;
}

Tensor ForwardInterp::tangent(const Tensor& t) {
  if (!is_at_level(t, level)) return {};
  sync(t);
  return rare_or_null(t)->tangent;
}

// A constant local is about to receive a value with a tangent; views of its base follow.
void ForwardInterp::give_tangent(std::string_view name, const Tensor& t) {
  FX_CHECK(
      level_of(t) == level, kUnsupported, "jvp: ", name,
      "_ would write a value with a tangent into a tensor from outside; pass that tensor as an "
      "argument");
  Tensor root = root_of(t);
  Rare& rare = rare_of(root);
  {
    Lower down(*this);
    rare.tangent = zeros_for(rare.inner);
  }
  ++root.impl()->data_generation;
  sync(t);
}

void ForwardInterp::process(Call& call) {
  const Op& op = call.op;
  grad_mode = thread_state.grad_mode;
  if (op.expands()) return expand_body(call);
  FX_CHECK(call.form != Form::kOut, kUnsupported, op.name(), ": out= is not available under jvp");
  bool any = false;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    any = any || (t.defined() && tangent(t).defined());
  });
  any = any && thread_state.forward_grad_mode;
  if (any && op.body && !op.jvp && op.kind == OpKind::kComposite) return expand_body(call);
  if (any && !op.is(kNoGrad))
    for_each_written(call, [&](const Tensor& t, bool differentiable) {
      if (differentiable && !tangent(t).defined()) give_tangent(op.name(), t);
    });
  Tensors tangents;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    tangents.push_back(any && t.defined() ? tangent(t) : Tensor());
  });
  LoweredArgs lowered(call.args, level);
  Tensors outs, out_tangents;
  {
    Lower down(*this);
    ForwardCall forward{op, call.form, lowered.args(), std::move(tangents), {}, {}};
    bool inplace = call.form == Form::kInplace;
    if (!any || (inplace && !forward.tangents[0].defined())) {
      Call k{op, call.form, lowered.args(), outs};
      dispatch(k);
    } else {
      run_forward(forward);
      outs = std::move(forward.outs);
      out_tangents = std::move(forward.out_tangents);
    }
  }
  wrap_results(call, outs, {.level = level});
  for (size_t i = 0; i < out_tangents.size(); ++i)
    if (out_tangents[i].defined() && is_at_level(call.outs[i], level))
      rare_of(call.outs[i]).tangent = out_tangents[i];
}

void ForwardInterp::process_custom(CustomCall& call) {
  grad_mode = thread_state.grad_mode;
  CustomCall inner{call.function, {}, {}, {}, {}, {}, {}};
  Tensors tangents;
  bool any = false;
  for (const Tensor& t : call.inputs) {
    tangents.push_back(t.defined() ? tangent(t) : Tensor());
    inner.inputs.push_back(t.defined() ? unwrap_tensor(t, level) : Tensor());
    any = any || tangents.back().defined();
  }
  Tensors results;
  {
    Lower down(*this);
    if (any)
      results = run_forward_custom(inner, tangents);
    else
      dispatch_custom(inner);
  }
  take_custom_results(call, inner, [&](const Tensor& t, size_t) { return wrap_tensor(t, level); });
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& out = call.outs[i];
    if (!results[i].defined() || !out.defined()) continue;
    if (inner.out_is_input[i] < 0) {
      rare_of(out).tangent = results[i];
      continue;
    }
    if (!tangent(out).defined()) give_tangent(call.function->name, out);
    Lower down(*this);
    rare_of(out).tangent.copy_(results[i]);
  }
}

namespace func::detail {

Tensors jvp(Erased f, TensorList inputs, TensorList tangents, Tensors& outs) {
  ForwardInterp interp;
  PushLevel push(interp);
  thread_state.forward_grad_mode = true;
  Tensors wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      wrapped.emplace_back();
      continue;
    }
    wrapped.push_back(wrap_tensor(inputs[i], interp.level));
    if (!tangents[i].defined()) continue;
    FX_CHECK(inputs[i].sizes() == tangents[i].sizes(), kShape, "jvp: argument tensor ", i,
             " has sizes ", inputs[i].sizes(), ", its tangent ", tangents[i].sizes());
    FX_CHECK(inputs[i].dtype() == tangents[i].dtype(), kType, "jvp: argument tensor ", i, " is of ",
             inputs[i].dtype(), ", its tangent of ", tangents[i].dtype());
    FX_CHECK(is_differentiable(inputs[i].dtype()), kType, "jvp: argument tensor ", i, " is of ",
             inputs[i].dtype(), "; only floating and complex tensors have tangents");
    rare_of(wrapped.back()).tangent = tangents[i];
  }
  outs = f(wrapped);
  Tensors results;
  for (Tensor& y : outs) {
    if (!y.defined()) {
      results.emplace_back();
      continue;
    }
    Tensor along = interp.tangent(y);
    y = unwrap_tensor(y, interp.level);
    Lower down(interp);
    results.push_back(along.defined() ? along : zeros_for(y));
  }
  return results;
}

}  // namespace func::detail
}  // namespace fornax
