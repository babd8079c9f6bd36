#include <algorithm>

#include "fornax/base/pool.h"
#include "fornax/base/startup.h"
#include "fornax/core/copy.h"
#include "fornax/core/core_hooks.h"
#include "fornax/core/op.h"
#include "fornax/core/overlap.h"

namespace fornax {

thread_local constinit ThreadState thread_state;

void* Step::operator new(size_t bytes) { return detail::pool_new(bytes); }
void Step::operator delete(void* p) { detail::pool_delete(p, sizeof(Step)); }
void* Rare::operator new(size_t bytes) { return detail::pool_new(bytes); }
void Rare::operator delete(void* p) { detail::pool_delete(p, sizeof(Rare)); }

Rare& rare_of(const Tensor& t) {
  auto& slot = t.impl()->rare;
  if (Rare* r = slot.load(std::memory_order_acquire)) return *r;
  Rare* fresh = new Rare;
  Rare* expected = nullptr;
  if (slot.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *expected;
}

void copy_wrapper(const Tensor& from, const Tensor& to) {
  const Rare& source = *rare_or_null(from);
  Rare& target = rare_of(to);
  target.level = source.level;
  target.bdim = source.bdim;
  target.id = source.id;
  target.inner = source.inner;
  target.tangent = source.tangent;
}

Meta meta_of(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  Meta m;
  m.dtype = impl.dtype;
  m.device = impl.device;
  m.sizes = impl.sizes;
  m.strides = impl.strides;
  m.offset = impl.offset;
  return m;
}

Meta view_meta_of(const Tensor& t, int arg) {
  Meta m = meta_of(t);
  m.alias = arg;
  m.flags = t.impl()->flags & (kConjFlag | kNegFlag);
  return m;
}

Tensor make_contiguous(const Dims& sizes, int64_t numel, Dtype dtype, Device device) {
  auto impl = Ref<TensorImpl>::own(new TensorImpl);
  impl->dtype = dtype;
  impl->device = device;
  impl->sizes = sizes;
  impl->strides = sizes;
  // As contiguous_strides(); a product that overflows belongs to an empty tensor.
  uint64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    impl->strides[d] = int64_t(step);
    if (sizes[d] > 1) step *= uint64_t(sizes[d]);
  }
  if (numel == 0) [[unlikely]]
    impl->strides = contiguous_strides(sizes);
  impl->numel = numel;
  impl->storage = Storage::allocate(size_t(numel * size_of(dtype)), device);
  if (thread_state.inference_mode) impl->flags = kInferenceFlag;
  return Tensor(std::move(impl));
}

Tensor make_tensor(const Meta& meta) {
  int64_t numel = checked_numel(meta.sizes);
  Tensor t = make_contiguous(meta.sizes, numel, meta.dtype, meta.device);
  if (!meta.strides.empty()) t.impl()->strides = meta.strides;
  return t;
}

// ---- where results go
// ---------------------------------------------------------------------------------------------
Tensors targets_of(const Call& call, size_t n) {
  Tensors given(n);
  if (call.form == Form::kOut)
    for (size_t i = 0; i < call.outs.size() && i < n; ++i) given[i] = call.outs[i];
  if (call.form == Form::kInplace) given[0] = call.args.tensor(0);
  if (!call.op.writes.any) return given;
  for (size_t k = 0, flat = 0; k < 8 && flat < n; ++k) {
    int arg = call.op.writes[k];
    if (arg < 0 || call.args[size_t(arg)].is_none()) {
      ++flat;
      continue;
    }
    for (const Tensor& t : call.args.list(size_t(arg))) given[flat++] = t;
  }
  return given;
}

bool is_written(const Call& call, const Tensor& t) {
  if (call.form == Form::kInplace && call.args.tensor(0).is_same(t)) return true;
  if (!call.op.writes.any) return false;
  for (int arg : call.op.writes.arg) {
    if (arg < 0) continue;
    for (const Tensor& x : call.args.list(size_t(arg)))
      if (x.is_same(t)) return true;
  }
  return false;
}

void link_view(const Call& call, int out, const Tensor& source, const Tensor& t, const Meta& meta) {
  TensorImpl& view = *t.impl();
  TensorImpl& from = *source.impl();
  view.counter = from.counter;
  if (from.flags & kInferenceFlag) view.flags |= kInferenceFlag;
  bool records = thread_state.grad_mode && (!from.base || (from.flags & kTapeView));
  if (records) view.flags |= kTapeView;
  view.base = from.base ? from.base : source.ref();
  Ref<Step> step = Ref<Step>::own(new Step);
  step->op = &call.op;
  step->args = OwnedArgs::make(call.args, false);
  step->parent = from.step;
  step->out = out;
  step->in = view_meta_of(source);
  step->result = meta;
  view.step = std::move(step);
  view.tape_generation = view.base->tape_generation;
  view.data_generation = view.base->data_generation;
}

SmallVec<const Step*, 4> steps_of(const Tensor& t) {
  SmallVec<const Step*, 4> steps;
  for (const Step* s = t.impl()->step.get(); s; s = s->parent.get()) steps.push_back(s);
  for (size_t i = 0, j = steps.size(); i + 1 < j; ++i, --j) std::swap(steps[i], steps[j - 1]);
  return steps;
}

Tensor apply(const Step& step, const Tensor& on) {
  Args stored = step.args->args();
  SmallVec<Arg, 8> args(stored.begin(), stored.end());
  args[0] = Arg(on);
  Tensors outs;
  Call call{*step.op, Form::kNew, Args(args.data(), args.size()), outs};
  dispatch(call);
  return outs[size_t(step.out)];
}

// ---- run: shape rule, targets, kernel
// -----------------------------------------------------------------------------
namespace {

[[gnu::noinline]] const Kernel& find_kernel_slow(const Op& op, Device device) {
  startup();
  const Kernel& kernel = op.kernels[int(device.type())];
  FX_CHECK(kernel.fn, kUnsupported, op.name(), ": no kernel for device ", device);
  return kernel;
}

const Kernel& find_kernel(const Op& op, Device device) {
  const Kernel& kernel = op.kernels[int(device.type())];
  if (!kernel.fn) [[unlikely]]
    return find_kernel_slow(op, device);
  return kernel;
}

Tensor make_view(const Call& call, int out, const Meta& meta) {
  const Tensor& source = call.args.tensor(size_t(meta.alias));
  Ref<TensorImpl> impl = Ref<TensorImpl>::own(new TensorImpl);
  impl->dtype = meta.dtype;
  impl->device = source.device();
  impl->sizes = meta.sizes;
  impl->numel = 1;
  for (int64_t s : meta.sizes) impl->numel *= s;
  impl->strides = meta.strides;
  impl->offset = meta.offset;
  impl->flags = meta.flags;
  impl->storage = source.impl()->storage;
  Tensor t(std::move(impl));
  if (call.op.is(kNoGrad)) {  // detach: the same bytes and version, a history of its own
    t.impl()->counter = source.impl()->counter;
    t.impl()->flags |= source.impl()->flags & kInferenceFlag;
  } else {
    link_view(call, out, source, t, meta);
  }
  return t;
}

// Checks a given target against the result's geometry; resizes empty ones of out=.
void fit_target(const Call& call, const Tensor& target, const Meta& meta) {
  TensorImpl& t = *target.impl();
  std::string_view name = call.op.name();
  if (!(IntArrayRef(t.sizes) == IntArrayRef(meta.sizes))) {
    if (call.form == Form::kOut) {
      FX_CHECK(t.numel == 0, kShape, name, ": out has sizes ", t.sizes, ", the result ", meta.sizes,
               "; give an empty tensor to have it resized");
      target.resize_(meta.sizes);
    } else {
      fail(ErrorKind::kShape, name, "_: self has sizes ", t.sizes, ", the result ", meta.sizes,
           "; an in-place operator can't grow its input");
    }
  }
  FX_CHECK(can_cast(meta.dtype, t.dtype), kType, name, ": a result of ", meta.dtype,
           " can't be stored in a tensor of ", t.dtype);
  FX_CHECK(t.device == meta.device || t.device.type() == meta.device.type(), kDevice, name,
           ": out is on ", t.device, ", the result on ", meta.device);
  FX_CHECK(!(t.flags & kInferenceFlag) || thread_state.inference_mode, kAutograd, name,
           ": an inference tensor can't be written outside InferenceMode; clone() it first");
  FX_CHECK(!has_internal_overlap(target), kValue, name,
           ": the target has several elements in one memory place (expand); clone() it first");
}

// Tensor arguments by storage: a target is compared with those alone that share its memory, since
// lists may hold thousands.
class ArgumentsByStorage {
 public:
  explicit ArgumentsByStorage(Args args) {
    for_each_tensor(args, [&](const Tensor& t, int, int) {
      if (t.defined()) tensors_.push_back(&t);
    });
    if (tensors_.size() > kLinearOp) std::sort(tensors_.begin(), tensors_.end(), before);
  }
  template <class F>
  void sharing(const Tensor& target, F fn) const {
    auto first = tensors_.begin(), last = tensors_.end();
    if (tensors_.size() > kLinearOp) first = std::lower_bound(first, last, &target, before);
    for (; first != last; ++first) {
      bool shared = (*first)->impl()->storage.get() == target.impl()->storage.get();
      if (shared)
        fn(**first);
      else if (tensors_.size() > kLinearOp)
        return;
    }
  }

 private:
  static constexpr size_t kLinearOp = 16;
  static bool before(const Tensor* a, const Tensor* b) {
    return reinterpret_cast<uintptr_t>(a->impl()->storage.get()) <
           reinterpret_cast<uintptr_t>(b->impl()->storage.get());
  }
  SmallVec<const Tensor*, kLinearOp> tensors_;
};

// Whether a result must go through a temporary before it may land in `target`.
bool needs_temporary(const Call& call, const ArgumentsByStorage& arguments, const Kernel& kernel,
                     const Tensor& target, const Meta& meta) {
  bool temporary = target.dtype() != meta.dtype && !(kernel.traits & kCastsOnStore);
  temporary = temporary || (target.impl()->flags & (kConjFlag | kNegFlag));
  temporary = temporary || (!(kernel.traits & kAnyStrides) && !target.is_contiguous());
  arguments.sharing(target, [&](const Tensor& x) {
    if (!may_overlap(x, target)) return;
    if (same_elements(x, target)) {
      temporary = temporary || !(kernel.traits & kAliasSafe);
      return;
    }
    FX_CHECK(call.form == Form::kNew, kValue, call.op.name(),
             ": the output overlaps an input in memory without being the same elements; clone() "
             "one of them");
    temporary = true;
  });
  return temporary;
}

// Inputs as the kernel wants them: contiguous, conj and neg resolved.
struct PreparedArgs {
  SmallVec<Arg, 8> args;
  SmallVec<Tensor, 4> kept;
};

bool plain_input(const Tensor& t, uint8_t traits) {
  if (!t.defined()) return true;
  if (!(traits & kConjAware) && (t.impl()->flags & (kConjFlag | kNegFlag))) return false;
  return (traits & kAnyStrides) || t.is_contiguous();
}

void prepare_inputs(Args args, uint8_t traits, PreparedArgs& out) {
  size_t n = 0;
  for_each_tensor(args, [&](const Tensor&, int, int) { ++n; });
  out.args.append(args.begin(), args.end());
  out.kept.reserve(n);
  for_each_tensor(args, [&](const Tensor& t, int, int) {
    out.kept.push_back(plain_input(t, traits) ? t : contiguous_copy(t));
  });
  size_t next = 0;
  for (Arg& a : out.args) {
    size_t count = a.tensors().size();
    if (!count) continue;
    a.t = out.kept.data() + next;
    next += count;
  }
}

void run_kernel(const Call& call, const Kernel& kernel, ArrayRef<Tensor> outs) {
  for (const Arg& a : call.args)
    for (const Tensor& t : a.tensors())
      FX_CHECK(!t.defined() || !t.is_meta(), kDevice, call.op.name(),
               ": a meta tensor has no values to compute with; the other tensors have");
  KernelContext context{call.op, {}};
  if (call.op.is(kRandom)) {
    // One 128-bit block of the counter per element of the largest result, in whole runs of the
    // normal distribution's fills, so no two calls share numbers.
    constexpr uint64_t kRun = 32;
    uint64_t positions = 1;
    for (const Tensor& t : outs)
      positions = t.numel() > int64_t(positions) ? uint64_t(t.numel()) : positions;
    positions = (positions + kRun - 1) / kRun * kRun;
    GeneratorImpl* generator = nullptr;
    for (const Arg& a : call.args)
      if (a.tag == Tag::kGenerator) generator = a.generator;
    context.random = (generator ? generator : default_generator().impl())->reserve(positions);
  }
  if ((kernel.traits & kAnyStrides) && (kernel.traits & kConjAware))
    return kernel.fn(context, call.args, outs);
  bool plain = true;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    plain = plain && plain_input(t, kernel.traits);
  });
  if (plain) return kernel.fn(context, call.args, outs);
  PreparedArgs prepared;
  prepare_inputs(call.args, kernel.traits, prepared);
  kernel.fn(context, Args(prepared.args.data(), prepared.args.size()), outs);
}

void run_view(Call& call, const Metas& metas) {
  call.outs.clear();
  for (size_t i = 0; i < metas.size(); ++i) call.outs.push_back(make_view(call, int(i), metas[i]));
}

Device device_of(const Metas& metas) { return metas.empty() ? Device() : metas[0].device; }

// Results that the caller gave: check, compute into them or a temporary, bump versions.
void run_into_targets(Call& call, const Metas& metas) {
  const Kernel& kernel = find_kernel(call.op, device_of(metas));
  Tensors given = targets_of(call, metas.size());
  Tensors outs = given;
  ArgumentsByStorage arguments(call.args);
  for (size_t i = 0; i < metas.size(); ++i) {
    if (!given[i].defined()) {
      outs[i] = make_tensor(metas[i]);
      continue;
    }
    fit_target(call, given[i], metas[i]);
    if (needs_temporary(call, arguments, kernel, given[i], metas[i])) {
      Meta plain = metas[i];
      plain.strides.clear();
      outs[i] = make_tensor(plain);
    }
  }
  if (!device_of(metas).is_meta()) run_kernel(call, kernel, outs);
  for (size_t i = 0; i < metas.size(); ++i) {
    if (!given[i].defined()) continue;
    if (!outs[i].is_same(given[i])) {
      copy_elements(given[i], outs[i]);
      outs[i] = given[i];
    }
    if (!(given[i].impl()->flags & kInferenceFlag))
      given[i].impl()->version().fetch_add(1, std::memory_order_relaxed);
  }
  call.outs = std::move(outs);
}

}  // namespace

void expand_body(Call& call) {
  const Op& op = call.op;
  if (call.form == Form::kNew) {
    op.body(call);
    // Hidden results exist for the operator's own gradient only.
    while (op.hidden && call.outs.size() < size_t(op.n_returns)) call.outs.emplace_back();
    return;
  }
  Tensors results;
  Call functional{op, Form::kNew, call.args, results};
  op.body(functional);
  Tensors given = targets_of(call, results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!given[i].defined()) {
      given[i] = results[i];
      continue;
    }
    if (given[i].is_same(results[i])) continue;
    if (call.form == Form::kOut)
      fit_target(call, given[i], Meta(results[i].dtype(), results[i].sizes(), results[i].device()));
    FX_CHECK(given[i].sizes() == results[i].sizes(), kShape, op.name(), "_: self has sizes ",
             given[i].sizes(), ", the result ", results[i].sizes(),
             "; an in-place operator can't grow its input");
    FX_CHECK(can_cast(results[i].dtype(), given[i].dtype()), kType, op.name(), ": a result of ",
             results[i].dtype(), " can't be stored in a tensor of ", given[i].dtype());
    given[i].copy_(results[i]);
  }
  call.outs = std::move(given);
}

// Results whose sizes only the kernel knows: it makes them, then they are stored where they belong.
static void run_sized_by_data(Call& call) {
  const Op& op = call.op;
  Device device = call.args.tensor(0).device();
  FX_CHECK(!device.is_meta(), kUnsupported, op.name(),
           ": the result's sizes depend on values, which a meta tensor lacks");
  const Kernel& kernel = find_kernel(op, device);
  Tensors results;
  results.resize(size_t(op.n_returns));
  run_kernel(call, kernel, results);
  Tensors given = targets_of(call, results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (!given[i].defined()) continue;
    fit_target(call, given[i], meta_of(results[i]));
    copy_elements(given[i], results[i]);
    given[i].impl()->version().fetch_add(1, std::memory_order_relaxed);
    results[i] = given[i];
  }
  call.outs = std::move(results);
}

void run(Call& call) {
  const Op& op = call.op;
  if (op.short_call && op.short_call(call)) return;
  if (!op.infer) return expand_body(call);
  Infer infer{op, call.args, {}};
  op.infer(infer);
  Metas& metas = infer.outs;
  if (op.kind == OpKind::kView) return run_view(call, metas);
  if (op.is(kShapeFromData) && metas.empty()) return run_sized_by_data(call);
  if (call.form != Form::kNew || op.writes.any) return run_into_targets(call, metas);
  call.outs.clear();
  for (const Meta& m : metas) call.outs.push_back(make_tensor(m));
  Device device = device_of(metas);
  if (device.is_meta()) return;
  run_kernel(call, find_kernel(op, device), call.outs);
}

// Not the fast path: each step is one line here, each in its own function.
void eager(Call& call, uint16_t flags) {
  const Op& op = call.op;
  FX_CHECK(!(flags & kWrappedFlag), kAutograd, op.name(),
           ": a tensor of a function transform was used after the transform ended");
  if (op.expands()) return expand_body(call);
  if ((flags & kDualFlag) && thread_state.forward_grad_mode && forward_step(call)) return;
  auto node = thread_state.grad_mode && (flags & kTapeFlag) ? tape_prepare(call) : Ref<GradNode>();
  run(call);
  if (node) tape_attach(std::move(node), call);
}

// ---- calls
// --------------------------------------------------------------------------------------------------------
static void drop_hidden(const Op& op, Tensors& outs) {
  for (int i = 0; i < op.hidden && !outs.empty(); ++i) outs.pop_back();
}

Tensors call(const Op& op, Form form, Args args, Tensors outs) {
  Call c{op, form, args, outs};
  dispatch(c);
  drop_hidden(op, outs);
  return outs;
}

Tensors call(const Op& op, Form form, std::initializer_list<Arg> args) {
  return call(op, form, Args(args.begin(), args.size()));
}

Tensor call1(const Op& op, std::initializer_list<Arg> args) {
  Tensors outs;
  Call c{op, Form::kNew, Args(args.begin(), args.size()), outs};
  dispatch(c);
  return std::move(outs[0]);
}

void call_inplace(const Op& op, std::initializer_list<Arg> args) {
  Tensors outs;
  Call c{op, Form::kInplace, Args(args.begin(), args.size()), outs};
  dispatch(c);
}

void call_out(const Op& op, std::initializer_list<Arg> args, std::initializer_list<Tensor> given) {
  Tensors outs(given.begin(), given.end());
  for (const Tensor& t : outs)
    FX_CHECK(t.defined(), kValue, op.name(), ": out= was given an undefined tensor");
  Call c{op, Form::kOut, Args(args.begin(), args.size()), outs};
  dispatch(c);
}

Tensor Interp::lower_for_query(const Tensor& t) {
  sync(t);
  return level_of(t) == level ? rare_of(t).inner : t;
}

Schema schema_of(const Op& op) { return parse_schema(op.schema); }

}  // namespace fornax
