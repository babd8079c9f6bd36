#include "fornax/autograd/autograd.h"

#include "fornax/autograd/anomaly.h"
#include "fornax/autograd/node.h"

namespace fornax {

bool GradMode::is_enabled() { return thread_state.grad_mode; }
void GradMode::set_enabled(bool on) { thread_state.set_grad_mode(on); }

InferenceMode::InferenceMode(bool on)
    : old_inference_(thread_state.inference_mode), old_grad_(thread_state.grad_mode) {
  thread_state.inference_mode = on;
  thread_state.set_grad_mode(!on && old_grad_);
}
InferenceMode::~InferenceMode() {
  thread_state.inference_mode = old_inference_;
  thread_state.set_grad_mode(old_grad_);
}
bool InferenceMode::is_enabled() { return thread_state.inference_mode; }

namespace autograd {

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grad_outputs,
              std::optional<bool> retain_graph, bool create_graph,
              const std::vector<Tensor>& inputs) {
  run_backward(outputs, grad_outputs, inputs,
               {retain_graph.value_or(create_graph), create_graph, !inputs.empty()});
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, std::optional<bool> retain_graph,
                         bool create_graph, bool allow_unused) {
  FX_CHECK(!inputs.empty(), kValue, "grad: no inputs were given");
  Tensors found = run_backward(outputs, grad_outputs, inputs,
                               {retain_graph.value_or(create_graph), create_graph, false});
  for (size_t i = 0; i < found.size(); ++i)
    FX_CHECK(found[i].defined() || allow_unused, kAutograd, "grad: input ", i,
             " was not used to compute the outputs; pass allow_unused=true to get an undefined "
             "tensor for it");
  return std::vector<Tensor>(found.begin(), found.end());
}

bool AnomalyMode::is_enabled() { return anomaly_mode_enabled(); }
void AnomalyMode::set_enabled(bool on) { set_anomaly_mode(on); }

}  // namespace autograd

// ---- Tensor's autograd methods
// ------------------------------------------------------------------------------------
Tensor& Tensor::requires_grad_(bool on) const {
  TensorImpl& impl = checked();
  FX_CHECK(!on || is_differentiable(impl.dtype), kAutograd,
           "requires_grad_: only floating and complex tensors can require gradients, got ",
           impl.dtype);
  FX_CHECK(!(impl.flags & kInferenceFlag) || !on, kAutograd,
           "requires_grad_: an inference tensor can't require grad");
  FX_CHECK(is_leaf() || on, kAutograd,
           "requires_grad_(false): this tensor has history; use detach()");
  if (!is_leaf()) return const_cast<Tensor&>(*this);
  if (on) {
    impl.flags |= kTapeFlag | kRequiresGrad;
    // A view becomes a leaf of its own: it no longer follows its base.
    impl.flags &= uint16_t(~kTapeView);
    impl.base.reset();
    impl.step.reset();
  } else {
    impl.flags &= uint16_t(~(kTapeFlag | kRequiresGrad));
  }
  return const_cast<Tensor&>(*this);
}

bool Tensor::is_leaf() const {
  if (!requires_grad()) return true;
  return !grad_fn();
}

Ref<GradNode> Tensor::grad_fn() const {
  if (!requires_grad()) return {};
  Edge edge = gradient_edge(*this);
  if (!edge.node || edge.node->leaf) return {};
  return edge.node;
}
uint32_t Tensor::output_nr() const { return requires_grad() ? gradient_edge(*this).nr : 0; }

const Tensor& Tensor::grad() const {
  static const Tensor none;
  Rare* rare = checked().rare.load(std::memory_order_acquire);
  if (!rare) return none;
  return rare->retained ? rare->retained->grad : rare->grad;
}
Tensor& Tensor::mutable_grad() const {
  checked();
  Rare& rare = rare_of(*this);
  return rare.retained ? rare.retained->grad : rare.grad;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<TensorList> inputs) const {
  BackwardOptions options{retain_graph.value_or(create_graph), create_graph,
                          inputs && !inputs->empty()};
  run_backward(TensorList(*this), gradient.defined() ? TensorList(gradient) : TensorList(),
               inputs ? *inputs : TensorList(), options);
}

void Tensor::retain_grad() const {
  FX_CHECK(requires_grad(), kAutograd, "retain_grad: this tensor does not require grad");
  Edge edge = gradient_edge(*this);
  Rare& rare = rare_of(*this);
  if (edge.node->leaf || rare.retained) return;
  rare.retained = make_ref<GradSlot>();
  edge.node->retained.push_back({edge.nr, rare.retained});
}
bool Tensor::retains_grad() const {
  Rare* rare = checked().rare.load(std::memory_order_acquire);
  return rare && rare->retained;
}

unsigned Tensor::add_hook(Function<Tensor(const Tensor&)> hook) const {
  FX_CHECK(requires_grad(), kAutograd, "register_hook: this tensor does not require grad");
  Edge edge = gradient_edge(*this);
  if (edge.node->leaf) {
    auto& hooks = rare_of(*this).hooks;
    hooks.push_back(std::move(hook));
    return unsigned(hooks.size()) - 1;
  }
  auto& hooks = edge.node->tensor_hooks;
  hooks.push_back({edge.nr, std::move(hook)});
  return unsigned(hooks.size()) - 1;
}

unsigned Tensor::add_post_hook(Function<void(const Tensor&)> hook) const {
  FX_CHECK(
      requires_grad() && is_leaf(), kAutograd,
      "register_post_accumulate_grad_hook: only leaves that require grad accumulate gradients");
  auto& hooks = rare_of(*this).post_hooks;
  hooks.push_back(std::move(hook));
  return unsigned(hooks.size()) - 1;
}

void Tensor::remove_hook(unsigned number) const {
  Edge edge = gradient_edge(*this);
  FX_CHECK(edge.node, kAutograd, "remove_hook: this tensor does not require grad");
  if (edge.node->leaf) {
    auto& hooks = rare_of(*this).hooks;
    FX_CHECK(number < hooks.size(), kIndex, "remove_hook: no hook number ", number);
    hooks[number] = nullptr;
    return;
  }
  auto& hooks = edge.node->tensor_hooks;
  FX_CHECK(number < hooks.size(), kIndex, "remove_hook: no hook number ", number);
  hooks[number].second = nullptr;
}

Tensor& Tensor::detach_() const {
  TensorImpl& impl = checked();
  FX_CHECK(!impl.base, kAutograd, "detach_: a view can't be detached in place; use detach()");
  impl.flags &= uint16_t(~(kTapeFlag | kRequiresGrad));
  if (Rare* rare = rare_or_null(*this)) rare->edge = {};
  ++impl.tape_generation;
  return const_cast<Tensor&>(*this);
}

Tensor Tensor::data() const {
  FX_CHECK(!(checked().flags & kWrappedFlag), kUnsupported,
           "data: not available inside a function transform; use detach()");
  Tensor copy = alias();
  copy.impl()->counter = make_ref<VersionCounter>();
  return copy;
}

void Tensor::set_data(const Tensor& other) const {
  TensorImpl& to = checked();
  const TensorImpl& from = other.checked();
  FX_CHECK(!to.base && !(to.flags & kWrappedFlag), kUnsupported,
           "set_data: not available on views or inside transforms");
  FX_CHECK(is_differentiable(from.dtype) || !requires_grad(), kType,
           "set_data: a tensor that requires grad can't become ", from.dtype);
  to.dtype = from.dtype;
  to.device = from.device;
  to.sizes = from.sizes;
  to.strides = from.strides;
  to.offset = from.offset;
  to.numel = from.numel;
  to.storage = from.storage;
  ++to.data_generation;
  if (!requires_grad()) return;
  // The accumulator remembers the old geometry; a fresh one is made when it is needed.
  if (Rare* rare = rare_or_null(*this)) rare->accumulator.store(nullptr, std::memory_order_release);
}

}  // namespace fornax
