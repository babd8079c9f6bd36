#include "fornax/autograd/forward.h"

#include <atomic>

#include "fornax/autograd/custom.h"
#include "fornax/autograd/forward_rule.h"
#include "fornax/autograd/level.h"
#include "fornax/core/core_hooks.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

// Number of the open dual level, 0 for none. Tangents of ended levels are recognised by theirs
// (Rare::id of base-level tensors) and count as absent.
constinit std::atomic<int> open_level{0};
constinit std::atomic<int> level_counter{0};

int current_dual_level() { return open_level.load(std::memory_order_relaxed); }

Tensor zeros_for(const Tensor& t) {
  return zeros(t.sizes(), TensorOptions(t.dtype()).device(t.device()));
}

// The memory behind wrappers of any level.
const Tensor& bottom_of(const Tensor& t) {
  const Tensor* at = &t;
  while (at->impl()->flags & kWrappedFlag) at = &rare_or_null(*at)->inner;
  return *at;
}

bool is_shared(const Tensor& t) {
  for (const Tensor* at = &t;; at = &rare_or_null(*at)->inner) {
    if (at->impl()->base) return true;
    if (!(at->impl()->flags & kWrappedFlag)) break;
  }
  const TensorImpl& memory = *bottom_of(t).impl();
  return !memory.storage || memory.storage->use_count() > 1;
}

bool is_among(TensorList list, const Tensor& t) {
  for (const Tensor& x : list)
    if (x.is_same(t)) return true;
  return false;
}

// Tangents where a rule needs all of them; operands without gradient stay as they are.
void run_linear(ForwardCall& call, Args args) {
  SmallVec<Arg, 8> own(args.begin(), args.end());
  Tensors flat;
  size_t at = 0;
  flat.reserve(call.tangents.size());
  for_each_tensor(args, [&](const Tensor& t, int, int) {
    const Tensor& tangent = call.tangents[at++];
    if (!t.defined() || !is_differentiable(t.dtype()))
      flat.push_back(t);
    else
      flat.push_back(tangent.defined() ? tangent : zeros_for(t));
  });
  at = 0;
  for (Arg& a : own) {
    size_t n = a.tensors().size();
    if (n) a.t = flat.data() + at;
    at += n;
  }
  Call k{call.op, Form::kNew, Args(own.data(), own.size()), call.out_tangents};
  dispatch(k);
}

void run_rule(ForwardCall& call, Args args) {
  Tensors primals;
  Jvp j{{call.op, Form::kNew, args, call.outs}, {}, call.tangents, {}, {}, {}};
  j.first.resize(args.size(), -1);
  for_each_tensor(args, [&](const Tensor& t, int i, int k) {
    if (k == 0) j.first[size_t(i)] = int16_t(primals.size());
    primals.push_back(t);
  });
  j.primals = primals;
  j.outs = call.outs;
  j.results.resize(call.outs.size());
  call.op.jvp(j);
  call.out_tangents = std::move(j.results);
}

// The new form, results and tangents fresh.
void run_forward_new(ForwardCall& call, Args args) {
  const Op& op = call.op;
  auto primal = [&](TensorList flat) {
    SmallVec<Arg, 8> own(args.begin(), args.end());
    size_t at = 0;
    for (Arg& a : own) {
      size_t n = a.tensors().size();
      if (n) a.t = flat.data() + at;
      at += n;
    }
    Tensors outs;
    Call k{op, Form::kNew, Args(own.data(), own.size()), outs};
    dispatch(k);
    return outs;
  };
  Tensors primals;
  for_each_tensor(args, [&](const Tensor& t, int, int) { primals.push_back(t); });
  bool any = false;
  for (const Tensor& t : call.tangents) any = any || t.defined();
  if (!any || op.is(kNoGrad)) {
    call.outs = primal(primals);
    return;
  }
  if (op.kind == OpKind::kView) {
    call.outs = primal(primals);
    // A tangent may lie otherwise than its primal, and then have no such view.
    if (op.name() == "view" && call.tangents[0].strides() != primals[0].strides()) {
      call.out_tangents = Tensors{call.tangents[0].reshape(call.outs[0].sizes())};
      return;
    }
    return run_linear(call, args);
  }
  if (op.jvp || op.is(kLinearOp)) {
    call.outs = primal(primals);
    if (op.jvp)
      run_rule(call, args);
    else
      run_linear(call, args);
  } else {
    FX_CHECK(op.vjp, kAutograd, op.name(), ": forward mode is not defined for this operator");
    call.out_tangents = jvp_by_vjp_twice(primal, primals, call.tangents, call.outs);
  }
  for (size_t i = 0; i < call.out_tangents.size(); ++i) {
    bool differentiable =
        !(op.nondiff >> i & 1) && call.outs[i].defined() && is_differentiable(call.outs[i].dtype());
    if (!differentiable) call.out_tangents[i].reset();
  }
  own_tangents(call.out_tangents, call.tangents, primals);
}

void check_fits(const ForwardCall& call, const Tensor& target, const Tensor& result) {
  FX_CHECK(target.sizes() == result.sizes(), kShape, call.op.name(), "_: self has sizes ",
           target.sizes(), ", the result ", result.sizes(),
           "; an in-place operator can't grow its input");
  FX_CHECK(can_cast(result.dtype(), target.dtype()), kType, call.op.name(), ": a result of ",
           result.dtype(), " can't be stored in a tensor of ", target.dtype());
}

void run_forward_inplace(ForwardCall& call) {
  SmallVec<Arg, 8> args(call.args.begin(), call.args.end());
  Tensor target = call.args.tensor(0), target_tangent = call.tangents[0];
  Tensor before = target.clone();
  args[0] = Arg(before);
  call.tangents[0] = target_tangent.clone();
  run_forward_new(call, Args(args.data(), args.size()));
  check_fits(call, target, call.outs[0]);
  target.copy_(call.outs[0]);
  if (!call.out_tangents.empty() && call.out_tangents[0].defined())
    target_tangent.copy_(call.out_tangents[0]);
  else
    target_tangent.fill_(0);
  call.outs[0] = target;
  call.out_tangents.clear();
}

}  // namespace

// ---- rules
void own_tangents(Tensors& results, TensorList tangents, TensorList primals) {
  for (Tensor& t : results)
    if (t.defined() && (is_shared(t) || is_among(tangents, t) || is_among(primals, t)))
      t = t.clone();
}

void run_forward(ForwardCall& call) {
  if (call.form == Form::kInplace) return run_forward_inplace(call);
  run_forward_new(call, call.args);
}

Tensors jvp_by_vjp_twice(FunctionRef<Tensors(TensorList)> f, TensorList primals,
                         TensorList tangents, Tensors& outs) {
  GradInterp interp;
  GradInterp::Push push(interp);
  Tensors wrapped, xs, directions;
  for (size_t i = 0; i < primals.size(); ++i) {
    wrapped.push_back(primals[i].defined() ? wrap_tensor(primals[i], interp.level) : Tensor());
    if (!primals[i].defined() || !tangents[i].defined()) continue;
    wrapped[i].impl()->flags |= kTapeFlag;
    xs.push_back(wrapped[i]);
    directions.push_back(tangents[i]);
  }
  Tensors ys = f(wrapped), tracked, seeds;
  for (const Tensor& y : ys) {
    if (!is_tracked(y)) continue;
    tracked.push_back(y);
    seeds.push_back(zeros_for(y));
    seeds.back().impl()->flags |= kTapeFlag;
  }
  Tensors through;
  if (!tracked.empty()) {
    Tensors gs = run_backward(tracked, seeds, xs, {true, true, false}), heads, along;
    for (size_t i = 0; i < gs.size(); ++i) {
      if (!gs[i].defined() || !gs[i].requires_grad()) continue;
      heads.push_back(gs[i]);
      along.push_back(directions[i]);
    }
    if (!heads.empty()) through = run_backward(heads, along, seeds, {});
  }
  Tensors results;
  size_t next = 0;
  outs.clear();
  for (const Tensor& y : ys) {
    bool has = is_tracked(y);
    Tensor tangent = has && next < through.size() ? through[next] : Tensor();
    next += has;
    results.push_back(tangent.defined() ? unwrap_tensor(tangent, interp.level) : Tensor());
    outs.push_back(y.defined() ? unwrap_tensor(y, interp.level) : Tensor());
  }
  return results;
}

const Tensor& Jvp::primal(int arg, int k) const { return primals[size_t(first[size_t(arg)] + k)]; }
const Tensor& Jvp::tangent(int arg, int k) const {
  static constinit Tensor none;
  int at = first[size_t(arg)];
  return at < 0 ? none : tangents[size_t(at + k)];
}

Tensors run_forward_custom(CustomCall& call, TensorList tangents) {
  Tensors results;
  if (call.function->jvp) {
    dispatch_custom(call);
    Ref<autograd::AutogradContext> context = call.context->for_level();
    Tensors saved = saved_tensors(call);
    context->save_for_backward({saved.begin(), saved.end()});
    results = call.function->jvp(*context, tangents);
    FX_CHECK(results.size() == call.outs.size(), kAutograd, call.function->name, ": jvp returned ",
             results.size(), " tangents for ", call.outs.size(), " results");
  } else {
    auto primal = [&](TensorList primals) {
      CustomCall inner{call.function, Tensors(primals.begin(), primals.end()), {}, {}, {}, {}, {}};
      dispatch_custom(inner);
      call.context = inner.context;
      call.saved = inner.saved;
      call.out_is_input = inner.out_is_input;
      call.non_differentiable = inner.non_differentiable;
      return inner.outs;
    };
    results = jvp_by_vjp_twice(primal, call.inputs, tangents, call.outs);
  }
  for (size_t i = 0; i < results.size(); ++i)
    if (call.non_differentiable[i]) results[i].reset();
  own_tangents(results, tangents, call.inputs);
  return results;
}

// ---- the base level
Tensor tangent_of(const Tensor& t) {
  TensorImpl& impl = *t.impl();
  if (!(impl.all_flags() & kDualFlag) || (impl.flags & kWrappedFlag)) return {};
  int now = current_dual_level();
  Rare* rare = rare_or_null(t);
  if (impl.base && (impl.base->flags & kDualFlag) &&
      impl.data_generation != impl.base->data_generation) {
    Tensor tangent = tangent_of(Tensor(impl.base));
    if (tangent.defined()) {
      StateGuard guard;
      thread_state.forward_grad_mode = false;
      for (const Step* step : steps_of(t)) tangent = apply(*step, tangent);
      set_tangent(t, tangent);
    }
    impl.data_generation = impl.base->data_generation;
    rare = rare_or_null(t);
  }
  if (!rare || !(impl.flags & kDualFlag) || rare->id != now || now == 0) return {};
  return rare->tangent;
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  Rare& rare = rare_of(t);
  rare.tangent = tangent;
  rare.id = current_dual_level();
  t.impl()->flags |= kDualFlag;
}

namespace {

// A constant is about to receive values with tangents; views of its base follow.
void give_tangent(const Tensor& t) {
  Tensor root = root_of(t);
  set_tangent(root, zeros_for(root));
  ++root.impl()->data_generation;
}

// The node saved a result before it had its tangent.
void give_saved_tangent(const Op& op, const Tensor& t, const Tensor& tangent) {
  Rare* rare = rare_or_null(t);
  if (!rare || !rare->edge.node || rare->edge.node->op != &op) return;
  auto& outputs = rare->edge.node->outputs;
  if (rare->edge.nr < outputs.size() && outputs[rare->edge.nr].saved.tensor.defined())
    set_tangent(outputs[rare->edge.nr].saved.tensor, tangent);
}

void check_form(const Op& op, Form form) {
  FX_CHECK(form != Form::kOut, kAutograd, op.name(),
           ": out= can't carry tangents; use the form that returns a result");
}

}  // namespace

bool forward_step(Call& call) {
  const Op& op = call.op;
  bool any = false;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    any = any || (t.defined() && tangent_of(t).defined());
  });
  if (!any) return false;
  check_form(op, call.form);
  if (op.body && !op.jvp && op.kind == OpKind::kComposite) {
    expand_body(call);
    return true;
  }
  StateGuard guard;
  thread_state.forward_grad_mode = false;
  if (!op.is(kNoGrad))
    for_each_written(call, [&](const Tensor& t, bool differentiable) {
      if (differentiable && !tangent_of(t).defined()) give_tangent(t);
    });
  ForwardCall forward{op, call.form, call.args, {}, {}, {}};
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    forward.tangents.push_back(t.defined() ? tangent_of(t) : Tensor());
  });
  if (call.form == Form::kInplace && !forward.tangents[0].defined())
    forward.tangents[0] = zeros_for(call.args.tensor(0));
  run_forward(forward);
  call.outs = std::move(forward.outs);
  for (size_t i = 0; i < forward.out_tangents.size(); ++i) {
    if (!forward.out_tangents[i].defined()) continue;
    set_tangent(call.outs[i], forward.out_tangents[i]);
    give_saved_tangent(op, call.outs[i], forward.out_tangents[i]);
  }
  return true;
}

void forward_step_custom(CustomCall& call) {
  StateGuard guard;
  thread_state.forward_grad_mode = false;
  Tensors tangents;
  for (const Tensor& t : call.inputs) tangents.push_back(t.defined() ? tangent_of(t) : Tensor());
  Tensors results = run_forward_custom(call, tangents);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || !call.outs[i].defined()) continue;
    Tensor old = call.out_is_input[i] >= 0 ? tangent_of(call.outs[i]) : Tensor();
    if (old.defined())
      old.copy_(results[i]);
    else
      set_tangent(call.outs[i], results[i]);
  }
}

// ---- for programs
namespace autograd::forward_ad {

dual_level::dual_level() {
  int expected = 0, fresh = level_counter.fetch_add(1) + 1;
  FX_CHECK(open_level.compare_exchange_strong(expected, fresh), kAutograd,
           "dual_level: a level is open already; levels don't nest, use func::jvp");
}
dual_level::~dual_level() { open_level.store(0); }

Tensor make_dual(const Tensor& tensor, const Tensor& tangent) {
  FX_CHECK(current_dual_level() != 0, kAutograd, "make_dual: no dual level is open");
  FX_CHECK(is_differentiable(tensor.dtype()), kType,
           "make_dual: expected a floating or complex tensor, got ", tensor.dtype());
  FX_CHECK(tensor.sizes() == tangent.sizes(), kShape, "make_dual: the primal has sizes ",
           tensor.sizes(), ", the tangent ", tangent.sizes());
  FX_CHECK(tensor.dtype() == tangent.dtype(), kType, "make_dual: the primal is of ", tensor.dtype(),
           ", the tangent of ", tangent.dtype());
  FX_CHECK(!(tensor.impl()->flags & kWrappedFlag), kUnsupported,
           "make_dual: not available inside a function transform; use func::jvp");
  FX_CHECK(!tangent_of(tensor).defined(), kAutograd, "make_dual: the tensor has a tangent already");
  Tensor dual = tensor.view(tensor.sizes());
  set_tangent(dual, tangent);
  return dual;
}

UnpackedDual unpack_dual(const Tensor& tensor) {
  Tensor tangent = tangent_of(tensor);
  if (!tangent.defined()) return {tensor, {}};
  StateGuard guard;
  thread_state.forward_grad_mode = false;
  return {tensor.view(tensor.sizes()), tangent};
}

bool is_fwd_grad_enabled() { return thread_state.forward_grad_mode; }
void set_fwd_grad_enabled(bool on) { thread_state.forward_grad_mode = on; }

}  // namespace autograd::forward_ad
}  // namespace fornax
