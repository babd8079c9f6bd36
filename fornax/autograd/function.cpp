#include "fornax/autograd/function.h"

#include "fornax/autograd/anomaly.h"
#include "fornax/autograd/custom.h"
#include "fornax/autograd/forward_rule.h"
#include "fornax/autograd/node.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"

namespace fornax {
namespace autograd {

// The library's access to a context.
class ContextAccess {
 public:
  static variable_list& to_save(AutogradContext& c) { return c.to_save_; }
  static bool is_dirty(const AutogradContext& c, const Tensor& t) { return has(c.dirty_, t); }
  static size_t dirty_count(const AutogradContext& c) { return c.dirty_.size(); }
  static bool is_non_differentiable(const AutogradContext& c, const Tensor& t) {
    return has(c.non_differentiable_, t);
  }
  static bool materialize(const AutogradContext& c) { return c.materialize_; }
  static void set_node(AutogradContext& c, GradNode* node) { c.node_ = node; }
  static void add_place(AutogradContext& c, bool result, size_t place) {
    c.places_.push_back({result, uint32_t(place)});
  }

 private:
  static bool has(const SmallVec<const TensorImpl*, 1>& set, const Tensor& t) {
    for (const TensorImpl* p : set)
      if (p == t.impl()) return true;
    return false;
  }
};

// ---- saved data
const Tensor& SavedValue::toTensor() const {
  expect(Kind::kTensors);
  FX_CHECK(tensors_.size() == 1, kType, "saved_data: expected one tensor, got a list of ",
           tensors_.size());
  return tensors_[0];
}

void SavedValue::expect(Kind kind) const {
  static constexpr const char* kNames[] = {"nothing",  "a number", "tensors",
                                           "integers", "reals",    "text"};
  FX_CHECK(kind_ == kind, kType, "saved_data: expected ", kNames[int(kind)], ", got ",
           kNames[int(kind_)]);
}

SavedValue& SavedData::operator[](std::string_view name) {
  for (Item& item : items_)
    if (item.first == name) return item.second;
  return items_.emplace_back(std::string(name), SavedValue()).second;
}

const SavedValue& SavedData::at(std::string_view name) const {
  const SavedValue* v = find(name);
  FX_CHECK(v, kIndex, "saved_data: there is nothing called ", name);
  return *v;
}

const SavedValue* SavedData::find(std::string_view name) const {
  for (const Item& item : items_)
    if (item.first == name) return &item.second;
  return nullptr;
}

// ---- context
variable_list AutogradContext::get_saved_variables() const {
  if (!node_) return to_save_;
  variable_list saved;
  for (auto [result, place] : places_) {
    const Saved& s = result ? node_->outputs[place].saved : node_->inputs[place].saved;
    saved.push_back(unpack_saved(s, *node_, place));
  }
  return saved;
}

void AutogradContext::mark_dirty(const variable_list& inputs) {
  for (const Tensor& t : inputs) dirty_.push_back(t.impl());
}

void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  for (const Tensor& t : outputs) non_differentiable_.push_back(t.impl());
}

bool AutogradContext::needs_input_grad(size_t index) const {
  if (!node_) return true;
  return index < node_->inputs.size() && node_->inputs[index].edge.node;
}

Ref<AutogradContext> AutogradContext::for_level() const {
  auto copy = make_ref<AutogradContext>();
  copy->saved_data = saved_data;
  copy->materialize_ = materialize_;
  return copy;
}

namespace detail {

Tensors pick_tensors(const variable_list& all, const SmallVec<bool, 4>& is_tensor,
                     std::string_view name) {
  size_t expected = is_tensor.size(), got = all.size();
  // Trailing undefined ones do no harm.
  while (got > expected && !all[got - 1].defined()) --got;
  FX_CHECK(got == expected, kAutograd, name, ": backward returned ", all.size(),
           " gradients, forward has ", expected, " arguments");
  Tensors picked;
  for (size_t i = 0; i < expected; ++i) {
    if (is_tensor[i])
      picked.push_back(all[i]);
    else
      FX_CHECK(!all[i].defined(), kAutograd, name, ": backward returned a gradient for argument ",
               i, ", which is not a tensor");
  }
  return picked;
}

variable_list spread_tensors(TensorList tensors, const SmallVec<bool, 4>& is_tensor) {
  variable_list all(is_tensor.size());
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (is_tensor[i]) all[i] = tensors[next++];
  return all;
}

// "... [with T = ns::Name]" or "... [T = ns::Name]" -> "ns::Name".
std::string_view class_name(const char* signature) {
  std::string_view text = signature;
  auto at = text.find("T = ");
  if (at == text.npos) return "custom function";
  text.remove_prefix(at + 4);
  auto end = text.find_first_of(";]");
  return text.substr(0, end);
}

}  // namespace detail

Tensors apply_custom(const Ref<CustomFunction>& function, TensorList inputs) {
  CustomCall call{function, Tensors(inputs.begin(), inputs.end()), {}, {}, {}, {}, {}};
  dispatch_custom(call);
  return std::move(call.outs);
}

}  // namespace autograd

using autograd::AutogradContext;
using autograd::ContextAccess;

namespace {

int index_of(TensorList list, const Tensor& t) {
  for (size_t i = 0; t.defined() && i < list.size(); ++i)
    if (list[i].is_same(t)) return int(i);
  return -1;
}

}  // namespace

void run_custom_forward(CustomCall& call) {
  auto context = make_ref<AutogradContext>();
  {
    GradModeGuard off(false);
    thread_state.forward_grad_mode = false;
    call.outs = call.function->forward(*context, call.inputs);
    size_t written = 0;
    for (Tensor& out : call.outs) {
      int input = index_of(call.inputs, out);
      bool dirty = input >= 0 && ContextAccess::is_dirty(*context, out);
      call.out_is_input.push_back(dirty ? input : -1);
      call.non_differentiable.push_back(ContextAccess::is_non_differentiable(*context, out));
      written += dirty;
    }
    FX_CHECK(written == ContextAccess::dirty_count(*context), kAutograd, call.function->name,
             ": forward marked ", ContextAccess::dirty_count(*context),
             " inputs dirty, but returned ", written, " of them");
    for (const Tensor& t : ContextAccess::to_save(*context)) {
      CustomCall::SavedPlace place;
      int input = index_of(call.inputs, t), result = index_of(call.outs, t);
      bool is_result = result >= 0 && (input < 0 || call.out_is_input[size_t(result)] >= 0);
      if (is_result)
        place = {CustomCall::SavedPlace::kResult, result, {}};
      else if (input >= 0)
        place = {CustomCall::SavedPlace::kInput, input, {}};
      else
        place.other = t;
      call.saved.push_back(std::move(place));
    }
    // An input that is handed through becomes a tensor of its own.
    for (size_t i = 0; i < call.outs.size(); ++i)
      if (call.out_is_input[i] < 0 && index_of(call.inputs, call.outs[i]) >= 0)
        call.outs[i] = call.outs[i].detach();
  }
  ContextAccess::to_save(*context).clear();
  call.context = context;
}

Tensors saved_tensors(const CustomCall& call) {
  Tensors saved;
  for (const auto& place : call.saved) {
    switch (place.kind) {
      case CustomCall::SavedPlace::kInput: saved.push_back(call.inputs[size_t(place.index)]); break;
      case CustomCall::SavedPlace::kResult: saved.push_back(call.outs[size_t(place.index)]); break;
      default: saved.push_back(place.other);
    }
  }
  return saved;
}

namespace {

// The node's rule: the user's backward on this level.
void run_custom_backward(const autograd::CustomFunction& function, AutogradContext& context,
                         Vjp& v) {
  FX_CHECK(!v.node.released, kAutograd, v.node.name(),
           ": backward ran through this graph a second time, but its saved tensors were freed; "
           "pass retain_graph=true to the first backward");
  for (size_t i = 0; i < v.grads.size(); ++i) {
    const GradMeta& meta = v.node.outputs[i].meta;
    if (v.grads[i].defined() || !ContextAccess::materialize(context)) continue;
    if (meta.dtype == Dtype::kUndefined) continue;
    v.grads[i] = zeros(meta.sizes, TensorOptions(meta.dtype).device(meta.device));
  }
  Tensors results = function.backward(context, v.grads);
  for (size_t i = 0; i < results.size() && i < v.results.size(); ++i) v.results[i] = results[i];
}

void check_dirty(const CustomCall& call) {
  for (int input : call.out_is_input) {
    if (input < 0) continue;
    const Tensor& t = call.inputs[size_t(input)];
    int here = thread_state.top ? thread_state.top->level : 0;
    FX_CHECK(level_of(t) == here, kAutograd, call.function->name,
             ": a value that depends on the arguments of a function transform was written into a "
             "tensor from outside");
    check_written(call.function->name, t, is_tracked(t));
  }
}

}  // namespace

void attach_custom_node(CustomCall& call) {
  bool any = false;
  for (const Tensor& t : call.inputs) any = any || is_tracked(t);
  if (!thread_state.grad_mode || !any) return;
  check_dirty(call);
  AutogradContext& context = *call.context;
  Ref<GradNode> node(new GradNode);
  ContextAccess::set_node(context, node.get());
  node->custom_name = std::string(call.function->name);
  node->custom = [function = call.function, context = call.context](Vjp& v) {
    run_custom_backward(*function, *context, v);
  };
  if (anomaly_mode_enabled()) node->forward_trace = current_backtrace();
  for (const Tensor& t : call.inputs) {
    auto& in = node->inputs.emplace_back();
    if (!t.defined()) continue;
    if (is_tracked(t)) in.edge = gradient_edge(t);
    in.meta = grad_meta_of(t);
  }
  // Saved tensors that aren't results take further inputs, which need no gradient.
  for (const auto& place : call.saved) {
    bool result = place.kind == CustomCall::SavedPlace::kResult;
    ContextAccess::add_place(context, result, result ? size_t(place.index) : node->inputs.size());
    if (result) continue;
    const Tensor& t = place.index >= 0 ? call.inputs[size_t(place.index)] : place.other;
    auto& in = node->inputs.emplace_back();
    if (t.defined()) in.saved = save(t, true);
  }
  node->sequence = next_sequence();
  for (size_t i = 0; i < call.outs.size(); ++i) {
    Tensor& t = call.outs[i];
    auto& out = node->outputs.emplace_back();
    out.meta.dtype = Dtype::kUndefined;
    if (!t.defined()) continue;
    out.meta = grad_meta_of(t);
    if (call.non_differentiable[i] || !is_differentiable(t.dtype())) continue;
    if (call.out_is_input[i] >= 0) {
      rebase(t, {node, uint32_t(i)});
    } else {
      rare_of(t).edge = {node, uint32_t(i)};
      t.impl()->flags |= kTapeFlag;
    }
  }
  for (const auto& place : call.saved) {
    if (place.kind != CustomCall::SavedPlace::kResult) continue;
    const Tensor& t = call.outs[size_t(place.index)];
    Saved& saved = node->outputs[size_t(place.index)].saved;
    saved = save(t, false);
    saved.own_result = (t.impl()->all_flags() & kTapeFlag) != 0;
  }
}

void dispatch_custom(CustomCall& call) {
  if (thread_state.top) return thread_state.top->process_custom(call);
  bool dual = false;
  for (const Tensor& t : call.inputs) {
    if (!t.defined()) continue;
    FX_CHECK(level_of(t) == 0, kAutograd, call.function->name,
             ": a tensor of a function transform was used after the transform ended");
    dual = dual || (t.impl()->all_flags() & kDualFlag);
  }
  if (dual && thread_state.forward_grad_mode) return forward_step_custom(call);
  run_custom_forward(call);
  attach_custom_node(call);
}

}  // namespace fornax
