// Recording: what a call keeps for its gradient, and how writes rebase histories.
#include <atomic>

#include "fornax/autograd/anomaly.h"
#include "fornax/autograd/forward_rule.h"
#include "fornax/autograd/node.h"
#include "fornax/base/pool.h"
#include "fornax/core/core_hooks.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

constinit std::atomic<uint64_t> sequence_counter{0};

int current_level() { return thread_state.top ? thread_state.top->level : 0; }

Edge make_step_node(const Step& step, Edge from) {
  auto n = Ref<GradNode>::own(new GradNode);
  n->op = step.op;
  n->sequence = next_sequence();
  n->args = step.args;
  n->step = Ref<Step>(const_cast<Step*>(&step));
  n->first.assign(step.args->args().size(), -1);
  n->first[0] = 0;
  auto& in = n->inputs.emplace_back();
  in.edge = std::move(from);
  in.meta = {step.in.dtype, step.in.device, step.in.sizes};
  n->outputs.resize(size_t(step.out) + 1);
  n->outputs[size_t(step.out)].meta = {step.result.dtype, step.result.device, step.result.sizes};
  return {std::move(n), uint32_t(step.out)};
}

Edge step_edge(const Step& step, const Edge& from) {
  return from.node ? make_step_node(step, from) : Edge{};
}

// base' = view_scatter(base, view', step); only its gradient rule will ever run.
Edge scatter_edge(const Step& step, const Edge& base, const Edge& view) {
  Arg args[] = {Arg(), Arg(), Arg(step)};
  auto n = Ref<GradNode>::own(new GradNode);
  n->op = &view_scatter_op;
  n->sequence = next_sequence();
  n->args = OwnedArgs::make(Args(args, 3), false);
  n->first = {0, 1, -1};
  n->inputs.resize(2);
  n->inputs[0].edge = base;
  n->inputs[0].meta = {step.in.dtype, step.in.device, step.in.sizes};
  n->inputs[1].edge = view;
  n->inputs[1].meta = {step.result.dtype, step.result.device, step.result.sizes};
  n->outputs.emplace_back().meta = n->inputs[0].meta;
  return {std::move(n), 0};
}

}  // namespace

void rebase(const Tensor& t, const Edge& edge) {
  Tensor root = t.impl()->base ? Tensor(t.impl()->base) : t;
  if (t.impl()->base) {
    auto steps = steps_of(t);
    SmallVec<Edge, 4> before;
    before.push_back(root.impl()->flags & kTapeFlag ? gradient_edge(root) : Edge{});
    for (size_t k = 0; k + 1 < steps.size(); ++k)
      before.push_back(step_edge(*steps[k], before.back()));
    Edge current = edge;
    for (size_t k = steps.size(); k-- > 0;) current = scatter_edge(*steps[k], before[k], current);
    rare_of(root).edge = current;
  }
  root.impl()->flags |= kTapeFlag;
  ++root.impl()->tape_generation;
  rare_of(t).edge = edge;
  t.impl()->tape_generation = root.impl()->tape_generation;
}

namespace {

// About to be overwritten: a copy of the value with the history it has now.
Saved save_before_write(const Tensor& t) {
  GradModeGuard off(false);
  Saved s = save(t.clone(), false);
  s.own_result = false;
  if (t.impl()->all_flags() & kTapeFlag) {
    thread_state.set_grad_mode(true);
    s.edge = gradient_edge(t);
  }
  return s;
}

}  // namespace

void check_written(std::string_view name, const Tensor& t, bool tracked) {
  const TensorImpl& impl = *t.impl();
  FX_CHECK(!impl.base || (impl.flags & kTapeView) || !(tracked || impl.base->flags & kTapeFlag),
           kAutograd, name,
           "_: a view made under no_grad can't be written in grad mode; make the view with "
           "gradients enabled, or "
           "write under NoGradGuard");
  if (!tracked) return;
  Tensor root = impl.base ? Tensor(impl.base) : t;
  Rare* rare = rare_or_null(root);
  bool leaf = (root.impl()->flags & kTapeFlag) && !(rare && rare->edge.node);
  FX_CHECK(!leaf, kAutograd, name, "_: a leaf that requires grad ",
           impl.base ? "is viewed here and " : "",
           "can't be written in place; use NoGradGuard for an update, or write into a copy");
}

namespace {

bool has_attributes(Args args) {
  for (const Arg& a : args)
    if (a.tag != Tag::kTensor && a.tag != Tag::kNone && a.tag != Tag::kTensors) return true;
  return false;
}

void refuse_overwrite(const Call& call) {
  for_each_tensor(call.args, [&](const Tensor& t, int, int) {
    if (!t.defined() || !is_tracked(t) || !is_written(call, t)) return;
    fail(ErrorKind::kAutograd, call.op.name(),
         " has no gradient and would overwrite a tensor that requires one; use NoGradGuard");
  });
}

}  // namespace

uint64_t next_sequence() { return sequence_counter.fetch_add(1, std::memory_order_relaxed) + 1; }

GradMeta grad_meta_of(const Tensor& t) {
  return {t.impl()->dtype, t.impl()->device, t.impl()->sizes};
}

bool is_tracked(const Tensor& t) {
  return t.defined() && (t.impl()->all_flags() & kTapeFlag) && level_of(t) == current_level() &&
         is_differentiable(t.dtype());
}

static Edge accumulator_edge(const Tensor& t) {
  Rare& rare = rare_of(t);
  // A dying accumulator unregisters itself; a concurrent reader may lose the race and then makes
  // its own.
  if (GradNode* existing = rare.accumulator.load(std::memory_order_acquire))
    return {Ref<GradNode>(existing), 0};
  auto fresh = Ref<GradNode>::own(new GradNode);
  fresh->sequence = 0;  // after every other node: all its gradients have arrived then
  fresh->leaf = t.ref();
  fresh->outputs.emplace_back().meta = grad_meta_of(t);
  GradNode* expected = nullptr;
  if (rare.accumulator.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
    return {fresh, 0};
  fresh->leaf.reset();
  return {Ref<GradNode>(expected), 0};
}

Edge gradient_edge(const Tensor& t) {
  TensorImpl& impl = *t.impl();
  if (impl.flags & kTapeView) {
    Tensor base(impl.base);
    Rare& rare = rare_of(t);
    if (!rare.edge.node || impl.tape_generation != impl.base->tape_generation) {
      Edge edge = impl.base->flags & kTapeFlag ? gradient_edge(base) : Edge{};
      for (const Step* step : steps_of(t)) edge = step_edge(*step, edge);
      rare.edge = edge;
      impl.tape_generation = impl.base->tape_generation;
    }
    return rare.edge;
  }
  if (!(impl.flags & kTapeFlag)) return {};
  if (Rare* rare = rare_or_null(t); rare && rare->edge.node) return rare->edge;
  return accumulator_edge(t);
}

Saved save(const Tensor& t, bool with_history) {
  // The tensor's owner may be a level further down; it brings stale views up to date first.
  if (t.impl()->flags & kWrappedFlag) {
    for (Interp* i = thread_state.top; i; i = i->below) {
      if (i->level != level_of(t)) continue;
      StateGuard guard;
      thread_state.top = i;
      i->sync(t);
    }
  }
  FX_CHECK(
      !(t.impl()->flags & kInferenceFlag), kAutograd,
      "an inference tensor can't be saved for backward; clone() it outside InferenceMode first");
  const TensorImpl& from = *t.impl();
  Saved s;
  s.version = from.version().load(std::memory_order_relaxed);
  s.tensor = t.alias();
  if (Tensor tangent = tangent_of(t); tangent.defined()) set_tangent(s.tensor, tangent);
  if (with_history && (from.all_flags() & kTapeFlag)) s.edge = gradient_edge(t);
  s.own_result = !with_history;
  return s;
}

Ref<GradNode> tape_prepare(const Call& call) {
  const Op& op = call.op;
  if (op.is(kNoGrad) || (!op.vjp && op.kind != OpKind::kView)) {
    refuse_overwrite(call);
    bool any = false;
    if (!op.is(kNoGrad) && op.kind != OpKind::kQuery)
      for_each_tensor(call.args, [&](const Tensor& t, int, int) { any = any || is_tracked(t); });
    // A record without a rule: its results must not look like constants. The node's rule throws
    // when it is reached.
    if (!any) return {};
  }
  uint64_t need = 0;
  size_t flat = 0;
  for_each_tensor(call.args, [&](const Tensor& t, int i, int) {
    if (is_tracked(t)) need |= uint64_t(1) << i;
    ++flat;
  });
  if (!need) return {};
  FX_CHECK(call.form != Form::kOut, kAutograd, op.name(),
           ": out= is not recorded, but an argument requires grad; use the form that returns a "
           "result, or NoGradGuard");
  auto n = Ref<GradNode>::own(new GradNode);
  n->op = &op;
  n->first.resize(call.args.size(), -1);
  n->inputs.reserve(flat);
  Saves saves = op.saves ? op.saves({op, call.args, need}) : Saves{};
  n->plan = saves.plan;
  n->saved_outs = saves.out;
  for_each_tensor(call.args, [&](const Tensor& t, int i, int k) {
    if (k == 0) n->first[size_t(i)] = int16_t(n->inputs.size());
    auto& in = n->inputs.emplace_back();
    if (!t.defined()) return;
    bool tracked = is_tracked(t), written = is_written(call, t);
    if (written) check_written(op.name(), t, tracked);
    if (tracked) in.edge = gradient_edge(t);
    in.meta = grad_meta_of(t);
    if (saves.in >> i & 1) in.saved = written ? save_before_write(t) : save(t, true);
  });
  if (op.kind != OpKind::kView && has_attributes(call.args))
    n->args = OwnedArgs::make(call.args, false);
  if (anomaly_mode_enabled()) n->forward_trace = current_backtrace();
  return n;
}

void tape_attach(Ref<GradNode> n, Call& call) {
  const Op& op = call.op;
  const uint32_t saved_outs = n->saved_outs;
  n->sequence = next_sequence();
  Tensors given = targets_of(call, call.outs.size());
  if (op.kind == OpKind::kView) {
    if (!call.outs.empty()) n->step = call.outs[0].impl()->step;
    n->args = n->step ? n->step->args : OwnedArgs::make(call.args, false);
  }
  for (size_t i = 0; i < call.outs.size(); ++i) {
    Tensor& t = call.outs[i];
    auto& out = n->outputs.emplace_back();
    out.meta = grad_meta_of(t);
    bool differentiable = !(i < 32 && (op.nondiff >> i & 1)) && is_differentiable(t.dtype());
    if (i < 32 && (saved_outs >> i & 1)) {
      out.saved = save(t, false);
      out.saved.own_result = differentiable;
    }
    if (!differentiable) continue;
    Edge edge{n, uint32_t(i)};
    if (given[i].defined()) {
      rebase(t, edge);
      // What was written is at a new version; its own node may still read it.
      if (out.saved.tensor.defined())
        out.saved.version = t.impl()->version().load(std::memory_order_relaxed);
      continue;
    }
    rare_of(t).edge = edge;
    if (t.impl()->flags & kTapeView) t.impl()->tape_generation = t.impl()->base->tape_generation;
    t.impl()->flags |= kTapeFlag;
  }
}

// ---- node
// ---------------------------------------------------------------------------------------------------------
GradNode::GradNode() = default;
void retain_ref(const GradNode* node) noexcept { node->retain(); }
void drop_ref(GradNode* node) noexcept {
  if (node->release()) delete node;
}

void* GradNode::operator new(size_t bytes) { return detail::pool_new(bytes); }
void GradNode::operator delete(void* p) { detail::pool_delete(p, sizeof(GradNode)); }

GradNode::~GradNode() {
  if (leaf)
    if (Rare* rare = leaf->rare.load(std::memory_order_acquire)) {
      GradNode* self = this;
      rare->accumulator.compare_exchange_strong(self, nullptr, std::memory_order_acq_rel);
    }
  // Unlink what only this node holds, without recursion.
  std::vector<Ref<GradNode>> work;
  auto take = [&work](GradNode& n) {
    for (Input& in : n.inputs) {
      if (in.edge.node) work.push_back(std::move(in.edge.node));
      if (in.saved.edge.node) work.push_back(std::move(in.saved.edge.node));
    }
  };
  for (take(*this); !work.empty();) {
    Ref<GradNode> n = std::move(work.back());
    work.pop_back();
    if (n->use_count() == 1) take(*n);
  }
}

std::string GradNode::name() const {
  if (custom) return custom_name;
  return op ? std::string(op->name()) : "accumulate";
}

int GradNode::list_size(int arg) const {
  if (first[size_t(arg)] < 0) return 0;
  for (size_t j = size_t(arg) + 1; j < first.size(); ++j)
    if (first[j] >= 0) return first[j] - first[size_t(arg)];
  return int(inputs.size()) - first[size_t(arg)];
}

void GradNode::release_saved() {
  released = true;
  for (Input& in : inputs) in.saved = {};
  for (Output& out : outputs) out.saved = {};
}

// ---- reading saved values
// -----------------------------------------------------------------------------------------
namespace {

Tensor with_edge(const Saved& s, Edge edge) {
  Saved again = save(s.tensor, false);
  rare_of(again.tensor).edge = std::move(edge);
  again.tensor.impl()->flags |= kTapeFlag;
  return again.tensor;
}

}  // namespace

Tensor unpack_saved(const Saved& s, GradNode& n, uint32_t out) {
  FX_CHECK(!n.released, kAutograd, n.name(),
           ": backward ran through this graph a second time, but its saved tensors were freed; "
           "pass retain_graph=true "
           "to the first backward");
  if (!s.tensor.defined()) return {};
  uint32_t now = s.tensor.impl()->version().load(std::memory_order_relaxed);
  FX_CHECK(now == s.version, kAutograd, n.name(), ": a tensor needed for its gradient (sizes ",
           s.tensor.sizes(), ") was modified in place: it is at version ", now, ", expected ",
           s.version, "; clone() it before the write, or use the form that returns a new tensor");
  // Without recording on the level that runs, only histories of levels below it matter.
  if (!thread_state.grad_mode && level_of(s.tensor) == current_level()) return s.tensor;
  if (s.own_result) return with_edge(s, {Ref<GradNode>(&n), out});  // joined only now: no cycle
  return s.edge.node ? with_edge(s, s.edge) : s.tensor;
}

const Op& Vjp::op() const { return *node.op; }
const void* Vjp::plan() const { return node.plan; }
const Step& Vjp::step() const {
  FX_ASSERT(node.step);
  return *node.step;
}
bool Vjp::is_tensor(int arg) const { return node.first[size_t(arg)] >= 0; }

Args Vjp::args() const {
  static constexpr Arg kNone[32] = {};
  if (node.args) return node.args->args();
  return Args(kNone, node.first.size());
}
bool Vjp::need(int arg, int k) const {
  int at = node.first[size_t(arg)];
  return at >= 0 && bool(node.inputs[size_t(at + k)].edge.node);
}
const GradMeta& Vjp::meta(int arg, int k) const {
  return node.inputs[size_t(node.first[size_t(arg)] + k)].meta;
}
const GradMeta& Vjp::out_meta(int result) const { return node.outputs[size_t(result)].meta; }
int Vjp::list_size(int arg) const { return node.list_size(arg); }
Tensor Vjp::in(int arg, int k) const {
  int at = node.first[size_t(arg)];
  return at < 0 ? Tensor() : unpack_saved(node.inputs[size_t(at + k)].saved, node, 0);
}
Tensor Vjp::out(int result) const {
  return unpack_saved(node.outputs[size_t(result)].saved, node, uint32_t(result));
}
void Vjp::set(int arg, Tensor gradient, int k) {
  if (need(arg, k)) results[size_t(node.first[size_t(arg)] + k)] = std::move(gradient);
}

}  // namespace fornax
