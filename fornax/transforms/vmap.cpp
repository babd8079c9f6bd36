#include <atomic>
#include <mutex>

#include "fornax/autograd/custom.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/view.h"
#include "fornax/transforms/detail.h"
#include "fornax/transforms/interp.h"

namespace fornax {

Tensor move_dim(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return t;
  Dims order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != from) order.push_back(d);
  order.insert(order.begin() + to, from);
  return t.permute(order);
}

namespace {

constinit std::atomic<int64_t> loops{0};
std::mutex& loop_lock() {
  static std::mutex m;
  return m;
}
// Names of operators that were run row by row, each once.
std::vector<std::string>& loop_names() {
  static std::vector<std::string> names;
  return names;
}

void count_loop(const Op& op) {
  loops.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(loop_lock());
  auto& names = loop_names();
  for (const std::string& n : names)
    if (n == op.name()) return;
  names.emplace_back(op.name());
}

Tensor expand_to_batch(const Tensor& t, int64_t size) {
  return t.expand(with_batch(size, t.sizes()));
}

// A copy per row, whose rows have the strides of `t`: views of t must be derivable from it.
Tensor copy_to_batch(const Tensor& t, int64_t size) {
  SmallVec<size_t, 6> order;  // outermost first
  for (size_t d = 0; d < size_t(t.dim()); ++d) order.push_back(d);
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && t.strides()[order[j]] > t.strides()[order[j - 1]]; --j)
      std::swap(order[j], order[j - 1]);
  Dims to_memory, back(order.size() + 1);
  to_memory.push_back(0);
  back[0] = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    to_memory.push_back(int64_t(order[i]) + 1);
    back[order[i] + 1] = int64_t(i) + 1;
  }
  Tensor in_memory_order = expand_to_batch(t, size).permute(to_memory);
  return in_memory_order.clone(MemoryFormat::Contiguous).permute(back);
}

bool is_random(const Call& call) { return call.op.is(kRandom); }

// Repeats a call with the same random numbers.
class RandomReplay {
 public:
  explicit RandomReplay(const Call& call) : generator_(default_generator().impl()) {
    for (const Arg& a : call.args)
      if (a.tag == Tag::kGenerator) generator_ = a.generator;
    start_ = generator_->offset();
  }
  void rewind() const { generator_->set_offset(start_); }

 private:
  GeneratorImpl* generator_;
  uint64_t start_;
};

}  // namespace

Tensor VmapInterp::lower_for_query(const Tensor& t) {
  sync(t);
  FX_CHECK(
      !is_at_level(t, level) || rare_or_null(t)->bdim < 0, kUnsupported,
      "vmap: the value of a batched tensor was asked for (item, a condition on it); use where() "
      "instead of a branch");
  return unwrap_tensor(t, level);
}

void VmapInterp::check_allowed(const Call& call, bool batched) const {
  const Op& op = call.op;
  FX_CHECK(call.form != Form::kOut, kUnsupported, op.name(), ": out= is not available under vmap");
  FX_CHECK(!is_random(call) || randomness != func::Randomness::kError, kUnsupported,
           "vmap: ", op.name(), " is random; choose randomness kDifferent or kSame");
  if (!batched) return;
  FX_CHECK(!op.is(kSync), kUnsupported, "vmap: ", op.name(),
           " reads the value of a batched tensor");
  bool from_data = op.is(kShapeFromData) && (!op.shape_from_data || op.shape_from_data(call.args));
  FX_CHECK(!from_data, kUnsupported, "vmap: the sizes of ", op.name(),
           "'s result depend on values, which differ from row to row");
}

void VmapInterp::widen(std::string_view name, const Tensor& t) {
  FX_CHECK(level_of(t) == level, kUnsupported, "vmap: ", name,
           "_ would write a batched value into a tensor from outside; pass that tensor as a mapped "
           "argument");
  Tensor root = root_of(t);
  Rare& rare = rare_of(root);
  if (rare.bdim < 0) {
    Lower down(*this);
    rare.inner = copy_to_batch(rare.inner, size);
    rare.bdim = 0;
    ++root.impl()->data_generation;
  }
  sync(t);
}

void VmapInterp::widen_targets(const Call& call) {
  // A record with a batching rule decides itself what its schema's writes mean.
  if (call.form != Form::kInplace && call.op.vmap) return;
  for_each_written(call, [&](const Tensor& t, bool) {
    if (!is_at_level(t, level) || rare_or_null(t)->bdim < 0) widen(call.op.name(), t);
  });
}

void VmapInterp::process(Call& call) {
  const Op& op = call.op;
  grad_mode = thread_state.grad_mode;
  bool batched = false;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    if (!is_at_level(t, level)) return;
    sync(t);
    batched = batched || rare_or_null(t)->bdim >= 0;
  });
  const bool expand = op.body && !op.vmap;
  if (expand && op.expands()) return expand_body(call);
  check_allowed(call, batched);
  const bool differs = is_random(call) && randomness == func::Randomness::kDifferent;
  if (batched || differs) widen_targets(call);
  if (expand && batched) return expand_body(call);

  Tensors outs;
  SmallVec<int, 4> bdims;
  if (!batched && !differs) {
    LoweredArgs lowered(call.args, level);
    Lower down(*this);
    Call k{op, call.form, lowered.args(), outs};
    dispatch(k);
    bdims.assign(outs.size(), -1);
  } else if (op.vmap) {
    run_rule(call, outs, bdims);
  } else {
    FX_CHECK(op.kind != OpKind::kView, kUnsupported, "vmap: the view ", op.name(),
             " has no batching rule");
    run_loop(call, outs);
    bdims.assign(outs.size(), 0);
  }
  wrap_results(call, outs, {.level = level, .bdims = bdims, .link_detached = true});
}

void VmapInterp::run_rule(Call& call, Tensors& outs, SmallVec<int, 4>& bdims) {
  LoweredArgs lowered(call.args, level);
  Lower down(*this);
  // A list is batched as a whole.
  size_t at = 0;
  for_each_tensor(call.args, [&](const Tensor& t, int i, int) {
    Tensor& physical = lowered.flat[at++];
    bool own = is_at_level(t, level) && rare_or_null(t)->bdim >= 0;
    bool list = call.args[size_t(i)].tag == Tag::kTensors;
    if (list && !own && t.defined() && (lowered.batched >> i & 1))
      physical = expand_to_batch(physical, size);
  });
  Call k{call.op, call.form, lowered.args(), outs};
  Vmapped v{k, size, lowered.batched, randomness == func::Randomness::kSame, {}};
  call.op.vmap(v);
  bdims.assign(v.out_bdims.begin(), v.out_bdims.end());
  bdims.resize(outs.size(), 0);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (bdims[i] <= 0 || !outs[i].defined()) continue;
    outs[i] = move_dim(outs[i], bdims[i], 0);
    bdims[i] = 0;
  }
  if (call.form == Form::kInplace && !outs[0].is_same(lowered.flat[0]))
    lowered.flat[0].copy_(outs[0]);
}

// No rule: row by row. Results are stacked; in place, rows of the target are written.
void VmapInterp::run_loop(Call& call, Tensors& outs) {
  count_loop(call.op);
  const bool replay = is_random(call) && randomness == func::Randomness::kSame;
  Lower down(*this);
  RandomReplay random(call);
  std::vector<Tensors> rows;              // per result
  const int64_t n = size > 0 ? size : 1;  // an empty batch still needs the results' sizes
  for (int64_t b = 0; b < n; ++b) {
    LoweredArgs row(call.args, level);
    size_t at = 0;
    for_each_tensor(call.args, [&](const Tensor& t, int, int) {
      Tensor& physical = row.flat[at++];
      if (!is_at_level(t, level) || rare_or_null(t)->bdim < 0) return;
      physical = size > 0 ? physical.select(0, b)
                          : zeros(t.sizes(), TensorOptions(t.dtype()).device(t.device()));
    });
    if (replay && b > 0) random.rewind();
    Tensors results;
    Call k{call.op, call.form, row.args(), results};
    dispatch(k);
    rows.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) rows[i].push_back(results[i]);
  }
  // What was written in place keeps its handle.
  Tensors given = targets_of(call, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    bool fresh = !given[i].defined() && rows[i][0].defined();
    outs.push_back(fresh ? stack(rows[i], 0) : given[i]);
    if (fresh && size == 0) outs[i] = outs[i].narrow(0, 0, 0);
  }
}

// ---- users' functions
namespace {

using autograd::AutogradContext;
using autograd::CustomFunction;

// Values per tensor, and which of them have a batch dimension (at 0).
struct BatchedList {
  Tensors tensors;
  SmallVec<bool, 4> batched;
};

// Runs `body` on wrappers of a new level; returns physical results.
template <class Body>
BatchedList run_batched(const BatchedList& in, int64_t size, func::Randomness randomness,
                        Body body) {
  VmapInterp interp;
  interp.size = size;
  interp.randomness = randomness;
  PushLevel push(interp);
  Tensors wrapped;
  for (size_t i = 0; i < in.tensors.size(); ++i)
    wrapped.push_back(in.batched[i] ? wrap_tensor(in.tensors[i], interp.level, 0) : in.tensors[i]);
  BatchedList out;
  for (const Tensor& t : body(wrapped)) {
    if (t.defined()) interp.sync(t);
    out.tensors.push_back(t.defined() ? unwrap_tensor(t, interp.level) : Tensor());
    out.batched.push_back(is_at_level(t, interp.level) && rare_or_null(t)->bdim >= 0);
  }
  return out;
}

// The function one level down: its forward and backward are the user's, run on batches.
struct BatchedFunction : RefCounted {
  Ref<CustomFunction> original;
  int64_t size = 0;
  func::Randomness randomness = func::Randomness::kError;
  SmallVec<bool, 4> in_batched, out_batched, saved_batched;
  Ref<AutogradContext> context;  // the user's, with options and data only

  Tensors forward(AutogradContext& ctx, TensorList inputs);
  Tensors backward(AutogradContext& ctx, TensorList grads);
};

Tensors BatchedFunction::forward(AutogradContext& ctx, TensorList inputs) {
  BatchedList in{Tensors(inputs.begin(), inputs.end()), in_batched};
  autograd::variable_list dirty, constant, saved;
  BatchedList out;
  {
    size_t n_outs = 0;
    Ref<AutogradContext> own;
    CustomCall call{original, {}, {}, {}, {}, {}, {}};
    BatchedList all = run_batched(in, size, randomness, [&](TensorList wrapped) {
      call.inputs.assign(wrapped.begin(), wrapped.end());
      run_custom_forward(call);
      n_outs = call.outs.size();
      Tensors results = call.outs, kept = saved_tensors(call);
      results.append(kept.begin(), kept.end());
      return results;
    });
    context = call.context;
    for (size_t i = 0; i < n_outs; ++i) {
      Tensor t = call.out_is_input[i] >= 0 ? inputs[size_t(call.out_is_input[i])] : all.tensors[i];
      out.tensors.push_back(t);
      out.batched.push_back(all.batched[i]);
      if (call.out_is_input[i] >= 0) dirty.push_back(t);
      if (call.non_differentiable[i]) constant.push_back(t);
    }
    saved_batched.clear();
    for (size_t i = n_outs; i < all.tensors.size(); ++i) {
      saved.push_back(all.tensors[i]);
      saved_batched.push_back(all.batched[i]);
    }
  }
  out_batched = out.batched;
  ctx.mark_dirty(dirty);
  ctx.mark_non_differentiable(constant);
  ctx.save_for_backward(saved);
  ctx.set_materialize_grads(false);
  return out.tensors;
}

Tensors BatchedFunction::backward(AutogradContext& ctx, TensorList grads) {
  autograd::variable_list saved = ctx.get_saved_variables();
  BatchedList in;
  for (size_t i = 0; i < grads.size(); ++i) {
    in.tensors.push_back(grads[i]);
    in.batched.push_back(grads[i].defined() && out_batched[i]);
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    in.tensors.push_back(saved[i]);
    in.batched.push_back(saved[i].defined() && saved_batched[i]);
  }
  Ref<AutogradContext> own = context->for_level();
  BatchedList out = run_batched(in, size, randomness, [&](TensorList wrapped) {
    TensorList kept = wrapped.slice(grads.size(), saved.size());
    own->save_for_backward({kept.begin(), kept.end()});
    Tensors gs(wrapped.begin(), wrapped.begin() + grads.size());
    return original->backward(*own, gs);
  });
  for (size_t i = 0; i < out.tensors.size() && i < in_batched.size(); ++i) {
    Tensor& g = out.tensors[i];
    if (!g.defined() || out.batched[i] == in_batched[i]) continue;
    g = in_batched[i] ? expand_to_batch(g, size) : g.sum(Dims{0});
  }
  return out.tensors;
}

Ref<CustomFunction> make_batched(const Ref<BatchedFunction>& state) {
  auto f = make_ref<CustomFunction>();
  f->name = state->original->name;
  f->forward = [state](AutogradContext& ctx, TensorList inputs) {
    return state->forward(ctx, inputs);
  };
  f->backward = [state](AutogradContext& ctx, TensorList grads) {
    return state->backward(ctx, grads);
  };
  return f;
}

}  // namespace

void VmapInterp::process_custom(CustomCall& call) {
  grad_mode = thread_state.grad_mode;
  SmallVec<bool, 4> batched;
  std::vector<std::optional<int64_t>> in_dims;
  bool any = false;
  CustomCall inner{call.function, {}, {}, {}, {}, {}, {}};
  for (const Tensor& t : call.inputs) {
    if (t.defined()) sync(t);
    bool b = is_at_level(t, level) && rare_or_null(t)->bdim >= 0;
    batched.push_back(b);
    in_dims.push_back(b ? std::optional<int64_t>(0) : std::nullopt);
    inner.inputs.push_back(t.defined() ? unwrap_tensor(t, level) : Tensor());
    any = any || b;
  }
  if (any && call.function->vmap) {
    Lower down(*this);
    autograd::VmapResult r =
        call.function->vmap({size, randomness == func::Randomness::kSame}, inner.inputs, in_dims);
    FX_CHECK(r.outputs.size() == r.out_dims.size(), kValue, call.function->name, ": vmap returned ",
             r.outputs.size(), " results and ", r.out_dims.size(), " dimensions");
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      Tensor t = r.outputs[i];
      if (r.out_dims[i]) t = move_dim(t, wrap_dim(*r.out_dims[i], t.dim()), 0);
      call.outs.push_back(t.defined() ? wrap_tensor(t, level, r.out_dims[i] ? 0 : -1) : t);
    }
    call.out_is_input.assign(call.outs.size(), -1);
    call.non_differentiable.assign(call.outs.size(), false);
    call.context = make_ref<AutogradContext>();
    return;
  }
  Ref<BatchedFunction> state;
  Ref<CustomFunction> function = call.function;
  if (any) {
    state = make_ref<BatchedFunction>();
    state->original = call.function;
    state->size = size;
    state->randomness = randomness;
    state->in_batched = batched;
    function = make_batched(state);
  }
  CustomCall below{function, inner.inputs, {}, {}, {}, {}, {}};
  {
    Lower down(*this);
    dispatch_custom(below);
  }
  take_custom_results(call, below, [&](const Tensor& t, size_t i) {
    return wrap_tensor(t, level, state && state->out_batched[i] ? 0 : -1);
  });
  if (!state) return;
  // Levels above save what the user saved, not the batched form.
  call.context = state->context->for_level();
  for (size_t i = 0; i < call.saved.size(); ++i) {
    auto& place = call.saved[i];
    if (place.kind == CustomCall::SavedPlace::kOther && place.other.defined())
      place.other = wrap_tensor(place.other, level, state->saved_batched[i] ? 0 : -1);
  }
  function->forward = nullptr;
}

// ---- the transform
namespace func {

int64_t vmap_loop_count() { return loops.load(std::memory_order_relaxed); }
std::vector<std::string> vmap_loop_ops() {
  std::lock_guard<std::mutex> lock(loop_lock());
  return loop_names();
}

namespace detail {
namespace {

struct MappedInputs {
  Tensors physical;  // batch dimension first where mapped
  SmallVec<bool, 4> mapped;
  int64_t size = -1;
};

MappedInputs map_inputs(TensorList inputs, ArrayRef<std::optional<int64_t>> dims) {
  MappedInputs m;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor t = inputs[i];
    bool mapped = dims[i] && t.defined();
    if (mapped) {
      FX_CHECK(t.dim() > 0, kShape, "vmap: argument ", i,
               " is 0-D and has no dimension to map over");
      int64_t d = wrap_dim(*dims[i], t.dim(), "vmap");
      FX_CHECK(m.size < 0 || t.size(d) == m.size, kShape, "vmap: argument ", i, " has ", t.size(d),
               " rows along dimension ", d, ", others have ", m.size);
      m.size = t.size(d);
      t = move_dim(t, d, 0);
    }
    m.physical.push_back(t);
    m.mapped.push_back(mapped);
  }
  FX_CHECK(m.size >= 0, kValue, "vmap: no argument is mapped; in_dims names none");
  return m;
}

struct MappedOutputs {
  Tensors outs;  // batch dimension first where batched
  SmallVec<bool, 4> batched;
};

// One pass over rows [from, from + count).
MappedOutputs run_rows(Erased f, const MappedInputs& in, int64_t from, int64_t count,
                       Randomness randomness) {
  VmapInterp interp;
  interp.size = count;
  interp.randomness = randomness;
  Tensors rows;
  for (size_t i = 0; i < in.physical.size(); ++i) {
    Tensor t = in.physical[i];
    if (in.mapped[i] && count != in.size) t = t.narrow(0, from, count);
    rows.push_back(t);
  }
  MappedOutputs result;
  PushLevel push(interp);
  for (size_t i = 0; i < rows.size(); ++i)
    if (in.mapped[i]) rows[i] = wrap_tensor(rows[i], interp.level, 0);
  for (const Tensor& y : f(rows)) {
    if (y.defined()) interp.sync(y);
    result.batched.push_back(is_at_level(y, interp.level) && rare_or_null(y)->bdim >= 0);
    result.outs.push_back(y.defined() ? unwrap_tensor(y, interp.level) : y);
  }
  return result;
}

// All rows, in chunks.
MappedOutputs run_chunks(Erased f, const MappedInputs& in, int64_t chunk, Randomness randomness) {
  MappedOutputs all;
  std::vector<Tensors> parts;  // per result
  for (int64_t from = 0; from < in.size; from += chunk) {
    int64_t count = from + chunk < in.size ? chunk : in.size - from;
    MappedOutputs part = run_rows(f, in, from, count, randomness);
    if (from == 0) all = part;
    parts.resize(part.outs.size());
    for (size_t i = 0; i < part.outs.size(); ++i) parts[i].push_back(part.outs[i]);
  }
  for (size_t i = 0; i < parts.size(); ++i)
    if (all.batched[i]) all.outs[i] = cat(parts[i], 0);
  return all;
}

}  // namespace

Tensors vmap(Erased f, TensorList inputs, ArrayRef<std::optional<int64_t>> in_dims,
             const VmapOptions& options) {
  MappedInputs in = map_inputs(inputs, in_dims);
  int64_t chunk = options.chunk_size.value_or(in.size);
  FX_CHECK(chunk > 0 || in.size == 0, kValue, "vmap: chunk_size must be positive, got ", chunk);
  MappedOutputs mapped = chunk >= in.size ? run_rows(f, in, 0, in.size, options.randomness)
                                          : run_chunks(f, in, chunk, options.randomness);
  Tensors& outs = mapped.outs;
  const DimSpec& to = options.out_dims;
  FX_CHECK(!to.is_list() || to.size() == outs.size(), kValue, "vmap: ", to.size(),
           " out_dims were given for ", outs.size(), " results");
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].defined()) continue;
    std::optional<int64_t> d = to.at(i);
    FX_CHECK(d || !mapped.batched[i], kValue, "vmap: result ", i,
             " differs from row to row, but its out_dim is none");
    if (!d) continue;
    if (!mapped.batched[i]) outs[i] = expand_to_batch(outs[i], in.size);
    outs[i] = move_dim(outs[i], 0, wrap_dim(*d, outs[i].dim(), "vmap"));
  }
  return std::move(mapped.outs);
}

}  // namespace detail
}  // namespace func
}  // namespace fornax
