// Graphs as text.
#include <charconv>
#include <cmath>

#include "fornax/graph/graph.h"
#include "fornax/ops/records.h"

namespace fornax::graph {
namespace {

template <class List>
void append_list(std::string& s, const List& list,
                 void (*one)(std::string&, const typename List::value_type&)) {
  s += "[";
  bool first = true;
  for (const auto& e : list) {
    if (!first) s += ", ";
    first = false;
    one(s, e);
  }
  s += "]";
}

void append_int(std::string& s, const int64_t& v) { s += std::to_string(v); }

// Shortest text that reads back as the same number; never one that looks like an integer.
void append_real(std::string& s, const double& v) {
  if (std::isnan(v)) {
    s += "nan";
    return;
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string_view text(buffer, size_t(end - buffer));
  s += text;
  if (text.find_first_of(".en") == text.npos) s += ".0";
}

// f64[2, 3], strides behind a bar where they aren't contiguous, device where it isn't the CPU.
void append_meta(std::string& s, const Meta& m) {
  s += short_name_of(m.dtype);
  s += "[";
  for (size_t i = 0; i < m.sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(m.sizes[i]);
  if (!m.strides.empty() && !(m.strides == contiguous_strides(m.sizes))) {
    s += " |";
    for (int64_t d : m.strides) s += " " + std::to_string(d);
  }
  s += "]";
  if (!m.device.is_cpu()) s += "@" + str(m.device);
}

void append_attribute(std::string& s, const Arg& a) {
  switch (a.tag) {
    case Tag::kNone: s += "none"; break;
    case Tag::kBool: s += a.i ? "true" : "false"; break;
    case Tag::kInt: s += std::to_string(a.i); break;
    case Tag::kReal: append_real(s, a.d); break;
    case Tag::kComplex: {
      Scalar z = a.number();
      s += "complex(";
      append_real(s, z.to_complex().real());
      s += ", ";
      append_real(s, z.to_complex().imag());
      s += ")";
      break;
    }
    case Tag::kInts: append_list(s, IntArrayRef(a.ints, a.n), append_int); break;
    case Tag::kReals: append_list(s, ArrayRef<double>(a.reals, a.n), append_real); break;
    case Tag::kString: s += "\"" + std::string(a.s, a.n) + "\""; break;
    case Tag::kDtype: s += std::string(short_name_of(Dtype(a.i))); break;
    case Tag::kDevice: s += str(Device(DeviceType(a.i >> 8), int8_t(a.i & 0xff))); break;
    case Tag::kLayout: s += str("layout(", a.i, ")"); break;
    case Tag::kMemoryFormat: s += str("format(", a.i, ")"); break;
    case Tag::kGenerator: s += "generator"; break;
    default: FX_ASSERT(false);
  }
}

std::string_view parameter_name(const Schema& schema, size_t i) {
  return int(i) < schema.n_params ? schema.params[i].name : "extra";
}

// Values are numbered in the order of the text: inputs first, then results.
class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph), numbers_(graph.value_count(), -1) {}
  std::string run();

 private:
  void number(const Value* v) {
    if (v) numbers_[size_t(v->id)] = next_++;
  }
  void name(const Value* v) { text_ += v ? "%" + std::to_string(numbers_[size_t(v->id)]) : "none"; }
  void typed(const Value* v) {
    number(v);
    name(v);
    if (!v) return;
    text_ += ": ";
    append_meta(text_, v->meta);
  }
  void arguments(const Op& op, Args args, size_t first, ArrayRef<Value*> inputs);
  void tensors(const Arg& a, ArrayRef<Value*> inputs);
  void scatter(const Node& n);
  void node(const Node& n);
  void inputs();

  const Graph& graph_;
  std::string text_;
  std::vector<int> numbers_;
  int next_ = 0;
};

void Writer::tensors(const Arg& a, ArrayRef<Value*> inputs) {
  if (a.tag == Tag::kTensor) return name(inputs[0]);
  text_ += "[";
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (k) text_ += ", ";
    name(inputs[k]);
  }
  text_ += "]";
}

// Arguments from `first` on; tensors lead without names, absent ones are left out.
void Writer::arguments(const Op& op, Args args, size_t first, ArrayRef<Value*> inputs) {
  Schema schema = schema_of(op);
  size_t flat = 0;
  bool plain = first == 0, any = first > 0;
  for (size_t i = first; i < args.size(); ++i) {
    const Arg& a = args[i];
    bool tensor = a.tag == Tag::kTensor || a.tag == Tag::kTensors;
    plain = plain && tensor;
    if (a.tag == Tag::kNone) continue;
    if (any) text_ += ", ";
    any = true;
    if (!plain) text_ += std::string(parameter_name(schema, i)) + "=";
    size_t count = a.tensors().size();
    if (tensor)
      tensors(a, inputs.slice(flat, count));
    else
      append_attribute(text_, a);
    flat += count;
  }
}

// view_scatter is spelled by its view: slice_scatter(%base, %part, the view's arguments).
void Writer::scatter(const Node& n) {
  const Step& step = n.args->args().step(2);
  text_ += std::string(step.op->name()) + "_scatter(";
  name(n.inputs[0]);
  text_ += ", ";
  name(n.inputs[1]);
  arguments(*step.op, step.args->args(), 1, {});
  if (step.op->is(kMultiView)) text_ += str(", result=", step.out);
  text_ += ")";
}

void Writer::node(const Node& n) {
  text_ += "  ";
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (i) text_ += ", ";
    typed(n.outputs[i]);
  }
  text_ += " = ";
  if (n.op == &view_scatter_op) {
    scatter(n);
  } else {
    text_ += std::string(n.op->name()) + "(";
    arguments(*n.op, n.args->args(), 0, n.inputs);
    text_ += ")";
  }
  text_ += "\n";
}

// Arguments, then what was captured.
void Writer::inputs() {
  text_ += "graph(";
  for (bool captured : {false, true}) {
    bool first = true;
    for (const Input& in : graph_.inputs()) {
      if (in.captured.defined() != captured) continue;
      if (first && captured) text_ += " captured(";
      if (!first) text_ += ", ";
      first = false;
      typed(in.value);
    }
    if (!captured || !first) text_ += ")";
  }
  text_ += " {\n";
}

std::string Writer::run() {
  inputs();
  for (const Node* n : graph_.nodes()) node(*n);
  text_ += "  return";
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    text_ += i ? ", " : " ";
    name(graph_.outputs[i]);
  }
  text_ += "\n";
  for (const Write& w : graph_.writes) {
    text_ += "  write ";
    name(graph_.inputs()[w.input].value);
    text_ += " = ";
    name(w.value);
    text_ += "\n";
  }
  return text_ + "}\n";
}

}  // namespace

std::string Graph::text() const { return Writer(*this).run(); }

}  // namespace fornax::graph
