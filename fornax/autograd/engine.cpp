// The engine: walks the tape from the outputs, newest node first. A local object on the calling
// thread, so re-entrant.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "fornax/autograd/anomaly.h"
#include "fornax/autograd/node.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// Nothing else holds the bytes of t, so they may be written without anyone noticing.
bool solely_owned(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  return impl.use_count() == 1 && !impl.base && impl.storage && impl.storage->use_count() == 1 &&
         !(impl.flags & kDispatchFlags);
}

// The one place that makes a gradient look like what it is a gradient of.
Tensor fit_gradient(Tensor g, const GradMeta& meta, const GradNode& node) {
  if (is_complex(g.dtype()) && !is_complex(meta.dtype)) g = real(g);
  if (!(g.sizes() == IntArrayRef(meta.sizes))) {
    FX_CHECK(g.dim() >= int64_t(meta.sizes.size()), kAutograd, node.name(),
             ": a gradient of sizes ", g.sizes(), " does not fit an input of sizes ", meta.sizes);
    g = sum_to_size(g, meta.sizes);
  }
  if (g.dtype() != meta.dtype) g = g.to(meta.dtype);
  return g;
}

// Accumulation into .grad from several threads: one of a few locks, by address.
std::mutex& leaf_lock(const TensorImpl* leaf) {
  static std::mutex locks[16];
  return locks[(reinterpret_cast<uintptr_t>(leaf) >> 7) % 16];
}

void accumulate_into_leaf(const Ref<TensorImpl>& leaf, Tensor g, bool create_graph) {
  Tensor t(leaf);
  Rare& rare = rare_of(t);
  for (const auto& hook : rare.hooks)
    if (hook) {
      Tensor replaced = hook(g);
      if (replaced.defined()) g = replaced;
    }
  {
    std::lock_guard<std::mutex> lock(leaf_lock(leaf.get()));
    Tensor& grad = rare.grad;
    if (!grad.defined()) {
      bool steal = !create_graph && solely_owned(g) && g.is_contiguous();
      grad = create_graph || steal ? std::move(g) : g.detach().clone();
    } else if (create_graph) {
      grad = add(grad, g);
    } else {
      grad.add_(g);
    }
  }
  for (const auto& hook : rare.post_hooks)
    if (hook) hook(t);
}

// One result of a view node as a step over contiguous zeros.
Ref<Step> step_of(const Vjp& v, size_t out) {
  const GradMeta& in = v.meta(0);
  auto step = Ref<Step>::own(new Step);
  step->op = v.node.op;
  step->args = v.node.args;
  step->out = int(out);
  step->in.dtype = in.dtype;
  step->in.device = in.device;
  step->in.sizes = in.sizes;
  step->in.strides = contiguous_strides(in.sizes);
  step->result.dtype = v.grads[out].dtype();
  step->result.sizes = v.node.outputs[out].meta.sizes;
  return step;
}

// Any view: each gradient into its place among zeros.
void view_vjp(Vjp& v) {
  Tensor sum;
  const GradMeta& in = v.meta(0);
  bool in_place = !thread_state.top && !thread_state.grad_mode;
  for (size_t i = 0; i < v.grads.size(); ++i) {
    if (!v.grads[i].defined()) continue;
    Ref<Step> step = step_of(v, i);
    if (!sum.defined()) sum = zeros(in.sizes, TensorOptions(v.grads[i].dtype()).device(in.device));
    if (in_place)
      apply(*step, sum).copy_(v.grads[i]);
    else
      sum = view_scatter(sum, v.grads[i], *step);
  }
  v.set(0, sum);
}

class Engine {
 public:
  Engine(ArrayRef<Tensor> inputs, const BackwardOptions& options) : options_(options) {
    for (const Tensor& x : inputs) wanted_.push_back(gradient_edge(x));
    results_.resize(inputs.size());
    inputs_.append(inputs.begin(), inputs.end());
  }

  void seed(const Tensor& output, Tensor g) { push(gradient_edge(output), std::move(g)); }
  // Only nodes that lead to a wanted edge run.
  void prune(ArrayRef<Tensor> outputs);
  Tensors run();

 private:
  using Buffers = SmallVec<Tensor, 1>;

  void push(const Edge& edge, Tensor g);
  void run_node(const Ref<GradNode>& node, Tensors grads);
  void apply_hooks(GradNode& node, Tensors& grads);
  void collect(GradNode& node, const Tensors& grads);
  void check_anomaly(const GradNode& node, const Tensors& results);

  BackwardOptions options_;
  SmallVec<Edge, 4> wanted_;
  Tensors inputs_, results_;
  bool pruned_ = false;
  std::unordered_set<GradNode*> leads_;
  std::vector<Ref<GradNode>> heap_;
  std::unordered_map<GradNode*, Buffers> buffers_;
};

bool older(const Ref<GradNode>& a, const Ref<GradNode>& b) { return a->sequence < b->sequence; }

void Engine::push(const Edge& edge, Tensor g) {
  if (!edge.node || !g.defined()) return;
  if (pruned_ && !leads_.count(edge.node.get())) return;
  auto [it, fresh] = buffers_.try_emplace(edge.node.get());
  Buffers& buffer = it->second;
  if (buffer.size() <= edge.nr) buffer.resize(edge.nr + 1);
  Tensor& sum = buffer[edge.nr];
  if (!sum.defined()) {
    sum = std::move(g);
  } else if (!options_.create_graph && solely_owned(sum) && sum.dtype() == g.dtype() &&
             sum.sizes() == g.sizes()) {
    sum.add_(g);
  } else {
    sum = add(sum, g);
  }
  if (!fresh) return;
  heap_.push_back(edge.node);
  std::push_heap(heap_.begin(), heap_.end(), older);
}

void Engine::prune(ArrayRef<Tensor> outputs) {
  std::unordered_set<GradNode*> targets;
  for (const Edge& e : wanted_) targets.insert(e.node.get());
  targets.erase(nullptr);
  // Depth first, children before parents; state 1 = open, 2 = done.
  std::unordered_map<GradNode*, int> state;
  std::vector<GradNode*> stack;
  for (const Tensor& y : outputs)
    if (Edge e = gradient_edge(y); e.node) stack.push_back(e.node.get());
  while (!stack.empty()) {
    GradNode* n = stack.back();
    int& s = state[n];
    if (s == 0) {
      s = 1;
      for (const auto& in : n->inputs)
        if (in.edge.node && !state.count(in.edge.node.get())) stack.push_back(in.edge.node.get());
      continue;
    }
    stack.pop_back();
    if (s == 2) continue;
    s = 2;
    bool leads = targets.count(n) != 0;
    for (const auto& in : n->inputs)
      leads = leads || (in.edge.node && leads_.count(in.edge.node.get()));
    if (leads) leads_.insert(n);
  }
  pruned_ = true;
}

void Engine::apply_hooks(GradNode& node, Tensors& grads) {
  for (const auto& [nr, hook] : node.tensor_hooks) {
    if (!hook || nr >= grads.size() || !grads[nr].defined()) continue;
    Tensor replaced = hook(grads[nr]);
    if (replaced.defined()) grads[nr] = replaced;
  }
  for (const auto& hook : node.pre_hooks)
    if (hook) hook(grads);
  for (const auto& [nr, slot] : node.retained) {
    if (nr >= grads.size() || !grads[nr].defined()) continue;
    Tensor& grad = slot->grad;
    grad = grad.defined() ? add(grad, grads[nr]) : grads[nr];
  }
}

void Engine::collect(GradNode& node, const Tensors& grads) {
  for (size_t i = 0; i < wanted_.size(); ++i)
    if (wanted_[i].node.get() == &node && wanted_[i].nr < grads.size())
      results_[i] = grads[wanted_[i].nr];
}

void Engine::check_anomaly(const GradNode& node, const Tensors& results) {
  for (const Tensor& r : results) {
    if (!r.defined() || !is_differentiable(r.dtype())) continue;
    if (!read_item(isnan(r).sum()).to_bool()) continue;
    fail(ErrorKind::kAutograd, node.name(),
         ": its backward produced NaN; the forward call was made at\n", node.forward_trace);
  }
}

void Engine::run_node(const Ref<GradNode>& node, Tensors grads) {
  GradNode& n = *node;
  grads.resize(n.outputs.size());
  if (!n.op && !n.custom) {  // a leaf
    collect(n, grads);
    if (inputs_.empty()) accumulate_into_leaf(n.leaf, std::move(grads[0]), options_.create_graph);
    return;
  }
  apply_hooks(n, grads);
  collect(n, grads);
  bool leads_on = false;
  for (const auto& in : n.inputs)
    leads_on = leads_on || (in.edge.node && (!pruned_ || leads_.count(in.edge.node.get())));
  if (!leads_on) return;
  Vjp v{n, std::move(grads), Tensors(n.inputs.size())};
  if (n.custom) {
    n.custom(v);
  } else if (n.op->vjp) {
    n.op->vjp(v);
  } else {
    FX_CHECK(n.op->kind == OpKind::kView, kAutograd, n.name(),
             ": the derivative of this operator is not defined");
    view_vjp(v);
  }
  if (anomaly_mode_enabled()) check_anomaly(n, v.results);
  if (!options_.retain_graph && thread_state.top == nullptr) n.release_saved();
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    Tensor& r = v.results[i];
    if (!n.inputs[i].edge.node || !r.defined()) continue;
    push(n.inputs[i].edge, fit_gradient(std::move(r), n.inputs[i].meta, n));
  }
}

Tensors Engine::run() {
  GradModeGuard mode(options_.create_graph);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), older);
    Ref<GradNode> node = std::move(heap_.back());
    heap_.pop_back();
    auto it = buffers_.find(node.get());
    Tensors grads(it->second.begin(), it->second.end());
    buffers_.erase(it);
    run_node(node, std::move(grads));
  }
  if (options_.accumulate) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (results_[i].defined())
        accumulate_into_leaf(inputs_[i].ref(), results_[i], options_.create_graph);
  }
  return std::move(results_);
}

Tensor default_seed(const Tensor& y) {
  FX_CHECK(y.numel() == 1, kAutograd,
           "backward: the gradient can be left out only for one-element outputs, got sizes ",
           y.sizes(), "; pass one of these sizes");
  return ones(y.sizes(), TensorOptions(y.dtype()).device(y.device()));
}

}  // namespace

Tensors run_backward(ArrayRef<Tensor> outputs, ArrayRef<Tensor> seeds, ArrayRef<Tensor> inputs,
                     BackwardOptions options) {
  FX_CHECK(seeds.empty() || seeds.size() == outputs.size(), kValue, "backward: ", outputs.size(),
           " outputs but ", seeds.size(), " gradients");
  Engine engine(inputs, options);
  if (!inputs.empty()) engine.prune(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    FX_CHECK(y.defined(), kAutograd, "backward: output ", i, " is undefined");
    if (!is_tracked(y)) {
      FX_CHECK(thread_state.top, kAutograd, "backward: output ", i,
               " does not require grad and has no history; was it computed under NoGradGuard, or "
               "from tensors without "
               "requires_grad?");
      continue;
    }
    Tensor g = i < seeds.size() && seeds[i].defined() ? seeds[i] : default_seed(y);
    FX_CHECK(g.sizes() == y.sizes(), kShape, "backward: gradient ", i, " has sizes ", g.sizes(),
             ", its output ", y.sizes());
    FX_CHECK(is_complex(g.dtype()) == is_complex(y.dtype()), kType, "backward: gradient ", i,
             " is of ", g.dtype(), ", its output of ", y.dtype());
    engine.seed(y, g.dtype() == y.dtype() ? g : g.to(y.dtype()));
  }
  return engine.run();
}

}  // namespace fornax
