#include "fornax/graph/capture.h"

#include <unordered_map>

#include "fornax/autograd/custom.h"
#include "fornax/ops/functions.h"
#include "fornax/transforms/functionalize.h"

namespace fornax::graph {
namespace {

Meta meta_for_graph(const Tensor& t) {
  Meta m = meta_of(t);
  m.offset = 0;
  return m;
}

// Writes calls down. Sits below FunctionalizeInterp, so every call makes new values.
struct RecordInterp final : Interp {
  Graph graph;

  void process(Call& call) override;
  void process_custom(CustomCall& call) override { run_custom_forward(call); }
  Tensor lower_for_query(const Tensor&) override {
    fail(ErrorKind::kUnsupported,
         "capture: the value of a tensor was asked for (item, a condition on it); the graph can't "
         "depend on it");
  }

  Value* value_of(const Tensor& t);
  Tensor wrap(const Tensor& t, Value* value);

 private:
  std::vector<Value*> by_id_;  // Rare::id - 1 -> value
  std::unordered_map<TensorImpl*, Value*> captured_;
};

Tensor RecordInterp::wrap(const Tensor& t, Value* value) {
  Tensor w = wrap_tensor(t, level);
  by_id_.push_back(value);
  rare_of(w).id = int(by_id_.size());
  return w;
}

Value* RecordInterp::value_of(const Tensor& t) {
  if (!t.defined()) return nullptr;
  if (level_of(t) == level) return by_id_[size_t(rare_or_null(t)->id) - 1];
  auto [it, fresh] = captured_.try_emplace(t.impl(), nullptr);
  if (fresh) it->second = graph.add_input(meta_for_graph(t), t);
  return it->second;
}

void RecordInterp::process(Call& call) {
  const Op& op = call.op;
  FX_ASSERT(call.form == Form::kNew);
  bool from_data = op.is(kShapeFromData) && (!op.shape_from_data || op.shape_from_data(call.args));
  FX_CHECK(!op.is(kSync) && !from_data, kUnsupported, "capture: ", op.name(),
           " reads values, on which the graph can't depend");
  SmallVec<Value*, 4> inputs;
  for_each_tensor(call.args, [&](const Tensor& t, int, int) { inputs.push_back(value_of(t)); });
  Tensors outs;
  {
    LoweredArgs lowered(call.args, level);
    Lower down(*this);
    size_t at = 0;
    for_each_tensor(call.args, [&](const Tensor& t, int, int) {
      Tensor& below = lowered.flat[at++];
      if (op.writes.any && t.defined() && is_written(call, t)) below = below.clone();
    });
    Call k{op, Form::kNew, lowered.args(), outs};
    dispatch(k);
  }
  SmallVec<Meta, 2> metas;
  for (const Tensor& t : outs) {
    metas.push_back(t.defined() ? meta_for_graph(t) : Meta());
    if (!t.defined()) metas.back().dtype = Dtype::kUndefined;
  }
  Node* node = graph.add_node(op, OwnedArgs::make(call.args, false), inputs, metas);
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].defined()) outs[i] = wrap(outs[i], node->outputs[i]);
  call.outs = std::move(outs);
}

}  // namespace

Graph capture_flat(func::detail::Erased f, TensorList arguments) {
  RecordInterp record;
  PushLevel push_record(record);
  FunctionalizeInterp functional(true);
  PushLevel push(functional);
  Tensors wrapped;
  std::unordered_map<const TensorImpl*, size_t> numbers;  // arguments
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& t = arguments[i];
    FX_CHECK(t.defined(), kValue, "capture: argument tensor ", i, " is undefined");
    Tensor below = record.wrap(t, record.graph.add_input(meta_for_graph(t)));
    wrapped.push_back(functional.add_input(t, below));
    numbers.emplace(t.impl(), i);
  }
  Graph& graph = record.graph;
  for (const Tensor& y : f(wrapped))
    graph.outputs.push_back(record.value_of(functional.value_of(y)));
  for (const auto& w : functional.writes()) {
    Value* value = record.value_of(w.value);
    auto it = numbers.find(w.original.impl());
    size_t input = it == numbers.end() ? graph.inputs().size() : it->second;
    if (it == numbers.end()) {
      for (size_t i = 0; i < graph.inputs().size(); ++i)
        if (graph.inputs()[i].captured.is_same(w.original)) input = i;
      if (input == graph.inputs().size()) {  // written without being read
        graph.add_input(meta_for_graph(w.original), w.original);
      }
    }
    graph.writes.push_back({input, value});
  }
  return std::move(graph);
}

}  // namespace fornax::graph
