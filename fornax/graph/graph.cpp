#include "fornax/graph/graph.h"

#include <unordered_set>

#include "fornax/ops/records.h"

namespace fornax::graph {

Value* Graph::add_value(Node* node, int result, Meta meta) {
  Value& v = values_.emplace_back();
  v.id = int(values_.size()) - 1;
  v.node = node;
  v.result = result;
  v.meta = std::move(meta);
  return &v;
}

Value* Graph::add_input(Meta meta, Tensor captured) {
  Value* v = add_value(nullptr, 0, std::move(meta));
  inputs_.push_back({v, std::move(captured)});
  return v;
}

Node* Graph::add_node(const Op& op, Ref<OwnedArgs> args, ArrayRef<Value*> inputs,
                      ArrayRef<Meta> metas) {
  Node& n = nodes_.emplace_back();
  n.op = &op;
  n.args = std::move(args);
  n.inputs.append(inputs.begin(), inputs.end());
  for (size_t i = 0; i < metas.size(); ++i) {
    bool undefined = metas[i].dtype == Dtype::kUndefined;
    n.outputs.push_back(undefined ? nullptr : add_value(&n, int(i), metas[i]));
  }
  order_.push_back(&n);
  return &n;
}

size_t Graph::argument_count() const {
  size_t n = 0;
  for (const Input& in : inputs_) n += !in.captured.defined();
  return n;
}

// ---- verifier
namespace {

// A tensor without memory for shape rules.
Tensor shadow_of(const Meta& meta) {
  Meta m = meta;
  m.device = Device(DeviceType::kMeta);
  m.offset = 0;
  m.alias = -1;
  return make_tensor(m);
}

// What the operator's rule says about its results; empty where it has none for this call.
Metas inferred(const Node& n) {
  if (!n.op->infer || n.op->is(kShapeFromData)) return {};
  Args stored = n.args->args();
  SmallVec<Arg, 8> args(stored.begin(), stored.end());
  Tensors flat;
  flat.reserve(n.inputs.size());
  for (const Value* v : n.inputs) flat.push_back(v ? shadow_of(v->meta) : Tensor());
  size_t at = 0;
  for (Arg& a : args) {
    size_t count = a.tensors().size();
    if (count) a.t = flat.data() + at;
    at += count;
  }
  StateGuard plain;
  thread_state.top = nullptr;
  Infer infer{*n.op, Args(args.data(), args.size()), {}};
  n.op->infer(infer);
  return std::move(infer.outs);
}

std::string place_of(const Node& n, size_t at) {
  return str("graph: node ", at, " (", n.op->name(), ")");
}

void verify_results(const Node& n, size_t at) {
  Metas metas = inferred(n);
  if (metas.empty()) return;
  FX_CHECK(metas.size() == n.outputs.size(), kInternal, place_of(n, at), " has ", n.outputs.size(),
           " results, its shape rule gives ", metas.size());
  for (size_t i = 0; i < metas.size(); ++i) {
    if (!n.outputs[i]) continue;
    const Meta& m = n.outputs[i]->meta;
    FX_CHECK(m.dtype == metas[i].dtype && m.sizes == metas[i].sizes, kInternal, place_of(n, at),
             ": result ", i, " is ", m.dtype, m.sizes, ", its shape rule gives ", metas[i].dtype,
             metas[i].sizes);
  }
}

}  // namespace

void Graph::verify() const {
  std::unordered_set<const Value*> known;
  for (const Input& in : inputs_) {
    FX_CHECK(in.value && !in.value->node, kInternal, "graph: an input is computed by a node");
    known.insert(in.value);
  }
  for (size_t at = 0; at < order_.size(); ++at) {
    const Node& n = *order_[at];
    size_t places = n.args->tensors().size();
    FX_CHECK(n.inputs.size() == places, kInternal, place_of(n, at), " has ", n.inputs.size(),
             " inputs for ", places, " tensor arguments");
    for (const Value* v : n.inputs)
      FX_CHECK(!v || known.count(v), kInternal, place_of(n, at), " uses %", v->id,
               " before it is computed");
    verify_results(n, at);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!n.outputs[i]) continue;
      FX_CHECK(n.outputs[i]->node == &n && n.outputs[i]->result == int(i), kInternal,
               place_of(n, at), ": result ", i, " belongs to another node");
      FX_CHECK(known.insert(n.outputs[i]).second, kInternal, place_of(n, at), " computes %",
               n.outputs[i]->id, " a second time");
    }
  }
  for (const Value* v : outputs)
    FX_CHECK(!v || known.count(v), kInternal, "graph: the returned %", v->id, " is not computed");
  for (const Write& w : writes) {
    FX_CHECK(w.input < inputs_.size(), kInternal, "graph: input ", w.input, " is written, but ",
             "there are ", inputs_.size());
    FX_CHECK(w.value && known.count(w.value), kInternal, "graph: a written value is not computed");
  }
}

// ---- running
namespace {

// The number of the last node that reads a value; SIZE_MAX: needed at the end.
std::vector<size_t> last_uses(const Graph& graph) {
  std::vector<size_t> last(graph.value_count(), 0);
  for (size_t at = 0; at < graph.nodes().size(); ++at) {
    const Node& n = *graph.nodes()[at];
    for (const Value* v : n.outputs)
      if (v) last[size_t(v->id)] = at;
    for (const Value* v : n.inputs)
      if (v) last[size_t(v->id)] = at;
  }
  for (const Value* v : graph.outputs)
    if (v) last[size_t(v->id)] = SIZE_MAX;
  for (const Write& w : graph.writes) last[size_t(w.value->id)] = SIZE_MAX;
  return last;
}

void run_node(const Node& n, std::vector<Tensor>& values) {
  Args stored = n.args->args();
  SmallVec<Arg, 8> args(stored.begin(), stored.end());
  Tensors flat;
  flat.reserve(n.inputs.size());
  for (const Value* v : n.inputs) flat.push_back(v ? values[size_t(v->id)] : Tensor());
  size_t at = 0;
  for (Arg& a : args) {
    size_t count = a.tensors().size();
    if (count) a.t = flat.data() + at;
    at += count;
  }
  // What the record stores into are new values here.
  for (int arg : n.op->writes.arg) {
    if (arg < 0) continue;
    for (const Tensor& t : args[size_t(arg)].tensors())
      if (t.defined()) const_cast<Tensor&>(t) = t.clone();
  }
  Tensors outs;
  Call call{*n.op, Form::kNew, Args(args.data(), args.size()), outs};
  dispatch(call);
  for (size_t i = 0; i < n.outputs.size(); ++i)
    if (n.outputs[i]) values[size_t(n.outputs[i]->id)] = outs[i];
}

void check_argument(const Meta& meta, const Tensor& t, size_t number) {
  FX_CHECK(t.defined(), kValue, "graph: argument ", number, " is undefined");
  FX_CHECK(t.dtype() == meta.dtype && t.sizes() == IntArrayRef(meta.sizes), kValue,
           "graph: argument ", number, " is ", t.dtype(), t.sizes(), ", captured was ", meta.dtype,
           meta.sizes);
}

}  // namespace

std::vector<Tensor> run(const Graph& graph, TensorList arguments) {
  size_t expected = graph.argument_count();
  FX_CHECK(arguments.size() == expected, kValue, "graph: expected ", expected, " arguments, got ",
           arguments.size());
  std::vector<Tensor> values(graph.value_count());
  Tensors inputs;
  size_t next = 0;
  for (const Input& in : graph.inputs()) {
    Tensor t = in.captured;
    if (!t.defined()) {
      t = arguments[next];
      check_argument(in.value->meta, t, next++);
    }
    inputs.push_back(t);
    values[size_t(in.value->id)] = t;
  }
  std::vector<size_t> last = last_uses(graph);
  for (size_t at = 0; at < graph.nodes().size(); ++at) {
    const Node& n = *graph.nodes()[at];
    run_node(n, values);
    for (const auto* list : {&n.inputs})
      for (const Value* v : *list)
        if (v && last[size_t(v->id)] == at) values[size_t(v->id)].reset();
    for (const Value* v : n.outputs)
      if (v && last[size_t(v->id)] == at) values[size_t(v->id)].reset();
  }
  std::vector<Tensor> results;
  for (const Value* v : graph.outputs) results.push_back(v ? values[size_t(v->id)] : Tensor());
  for (const Write& w : graph.writes) inputs[w.input].copy_(values[size_t(w.value->id)]);
  return results;
}

}  // namespace fornax::graph
