// The text form read back.
#include <charconv>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "fornax/graph/graph.h"
#include "fornax/ops/records.h"

namespace fornax::graph {

// Recursive descent over one text; every node is one line.
class Parser {
 public:
  Parser(std::string_view text, TensorList captured) : text_(text), captured_(captured) {}
  Graph run();

 private:
  // One argument in the text: an attribute, a value or a list of values.
  struct Argument {
    std::string name;
    Arg attribute;
    bool is_tensor = false, is_list = false;
    SmallVec<Value*, 2> values;
  };
  struct Typed {
    int id = 0;
    bool undefined = false;
    Meta meta;
  };

  [[noreturn]] void wrong(std::string_view what) const;
  void skip();
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool at_name();
  std::string name();
  int64_t integer();
  Value* value();
  Typed typed();
  Meta meta();
  Device device(std::string_view kind);
  Argument argument();
  void literal(Argument& a);
  void number(Argument& a);
  void list(Argument& a);
  void named_literal(Argument& a, const std::string& word);
  void node();
  void add_node(const std::string& op_name, SmallVec<Typed, 2> outs, std::vector<Argument>& args);
  void add_scatter(const Op& view, SmallVec<Typed, 2> outs, std::vector<Argument>& args);
  Ref<OwnedArgs> place(const Op& op, std::vector<Argument>& args, size_t first,
                       SmallVec<Value*, 4>& inputs);
  void bind(Node* n, const SmallVec<Typed, 2>& outs);
  void inputs(bool captured);

  std::string_view text_;
  TensorList captured_;
  size_t at_ = 0, next_captured_ = 0;
  Graph graph_;
  std::unordered_map<int, Value*> values_;
  // What Args point to while a line is read.
  std::deque<std::string> strings_;
  std::deque<Dims> ints_;
  std::deque<std::vector<double>> reals_;
  std::deque<Scalar> scalars_;
};

void Parser::wrong(std::string_view what) const {
  size_t line = 1;
  for (char c : text_.substr(0, at_)) line += c == '\n';
  fail(ErrorKind::kValue, "graph text, line ", line, ": ", what);
}

void Parser::skip() {
  while (at_ < text_.size() && std::strchr(" \t\n", text_[at_])) ++at_;
}
bool Parser::accept(std::string_view token) {
  skip();
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}
void Parser::expect(std::string_view token) {
  if (!accept(token)) wrong("expected " + std::string(token));
}
bool Parser::at_name() {
  skip();
  return at_ < text_.size() && (std::isalpha(text_[at_]) || text_[at_] == '_');
}
std::string Parser::name() {
  skip();
  size_t from = at_;
  while (at_ < text_.size() && (std::isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
  if (from == at_) wrong("expected a name");
  return std::string(text_.substr(from, at_ - from));
}
int64_t Parser::integer() {
  skip();
  int64_t v = 0;
  auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
  if (r.ec != std::errc()) wrong("expected an integer");
  at_ = size_t(r.ptr - text_.data());
  return v;
}

Value* Parser::value() {
  if (accept("none")) return nullptr;
  expect("%");
  auto it = values_.find(int(integer()));
  if (it == values_.end()) wrong("a value is used before it is computed");
  return it->second;
}

Device Parser::device(std::string_view kind) {
  DeviceType type = kind == "meta" ? DeviceType::kMeta : DeviceType::kCPU;
  if (kind != "meta" && kind != "cpu") wrong("unknown device " + std::string(kind));
  return accept(":") ? Device(type, int8_t(integer())) : Device(type);
}

Meta Parser::meta() {
  Meta m;
  std::string dtype = name();
  m.dtype = dtype_of_name(dtype);
  if (m.dtype == Dtype::kUndefined) wrong("unknown dtype " + dtype);
  expect("[");
  bool strides = false;
  while (!accept("]")) {
    if (accept("|")) {
      strides = true;
      continue;
    }
    (strides ? m.strides : m.sizes).push_back(integer());
    if (m.sizes.back() < 0) wrong("a size is negative");
    accept(",");
  }
  if (!strides) m.strides = contiguous_strides(m.sizes);
  if (m.strides.size() != m.sizes.size()) wrong("as many strides as sizes are needed");
  if (accept("@")) m.device = device(name());
  return m;
}

Parser::Typed Parser::typed() {
  Typed t;
  if (accept("none")) {
    t.undefined = true;
    t.meta.dtype = Dtype::kUndefined;
    return t;
  }
  expect("%");
  t.id = int(integer());
  expect(":");
  t.meta = meta();
  return t;
}

// ---- literals
void Parser::number(Argument& a) {
  skip();
  size_t end = text_.find_first_of(",)]", at_);
  if (end == text_.npos) wrong("expected a number");
  std::string_view word = text_.substr(at_, end - at_);
  if (word.find_first_of(".enai") == word.npos) {
    a.attribute = Arg(integer());
    return;
  }
  double v = 0;
  auto r = std::from_chars(text_.data() + at_, text_.data() + end, v);
  if (r.ec != std::errc()) wrong("expected a number");
  at_ = size_t(r.ptr - text_.data());
  a.attribute = Arg(v);
}

void Parser::list(Argument& a) {
  skip();
  if (text_[at_] == '%' || text_.substr(at_, 4) == "none") {
    a.is_tensor = a.is_list = true;
    while (!accept("]")) {
      a.values.push_back(value());
      accept(",");
    }
    return;
  }
  Dims ints;
  std::vector<double> reals;
  bool real = false;
  while (!accept("]")) {
    Argument one;
    literal(one);
    real = real || one.attribute.tag == Tag::kReal;
    if (one.attribute.tag == Tag::kInt) ints.push_back(one.attribute.i);
    reals.push_back(one.attribute.tag == Tag::kReal ? one.attribute.d : double(one.attribute.i));
    accept(",");
  }
  if (real)
    a.attribute = Arg(ArrayRef<double>(reals_.emplace_back(std::move(reals))));
  else
    a.attribute = Arg(IntArrayRef(ints_.emplace_back(std::move(ints))));
}

void Parser::named_literal(Argument& a, const std::string& word) {
  auto enumerator = [&] {
    expect("(");
    int64_t v = integer();
    expect(")");
    return v;
  };
  if (word == "true" || word == "false") {
    a.attribute = Arg(word == "true");
  } else if (word == "nan" || word == "inf") {
    a.attribute = Arg(word == "nan" ? std::nan("") : HUGE_VAL);
  } else if (word == "complex") {
    Argument re, im;
    expect("(");
    number(re);
    expect(",");
    number(im);
    expect(")");
    auto of = [](const Arg& x) { return x.tag == Tag::kReal ? x.d : double(x.i); };
    a.attribute = Arg(scalars_.emplace_back(complex128(of(re.attribute), of(im.attribute))));
  } else if (word == "layout") {
    a.attribute = Arg(Layout(enumerator()));
  } else if (word == "format") {
    a.attribute = Arg(MemoryFormat(enumerator()));
  } else if (word == "cpu" || word == "meta") {
    a.attribute = Arg(device(word));
  } else if (Dtype d = dtype_of_name(word); d != Dtype::kUndefined) {
    a.attribute = Arg(d);
  } else {
    wrong("unknown word " + word);
  }
}

void Parser::literal(Argument& a) {
  skip();
  if (accept("[")) return list(a);
  if (text_.substr(at_, 4) == "none" || text_[at_] == '%') {
    a.is_tensor = true;
    a.values.push_back(value());
    return;
  }
  if (accept("\"")) {
    size_t end = text_.find('"', at_);
    if (end == text_.npos) wrong("a text has no end");
    a.attribute = Arg(std::string_view(strings_.emplace_back(text_.substr(at_, end - at_))));
    at_ = end + 1;
    return;
  }
  if (at_name()) return named_literal(a, name());
  if (text_.substr(at_, 4) == "-inf") {
    at_ += 4;
    a.attribute = Arg(-HUGE_VAL);
    return;
  }
  number(a);
}

Parser::Argument Parser::argument() {
  Argument a;
  size_t back = at_;
  if (at_name()) {
    a.name = name();
    if (!accept("=")) {
      a.name.clear();
      at_ = back;
    }
  }
  literal(a);
  return a;
}

// ---- nodes
// Puts arguments into the schema's places from `first` on.
Ref<OwnedArgs> Parser::place(const Op& op, std::vector<Argument>& args, size_t first,
                             SmallVec<Value*, 4>& inputs) {
  Schema schema = schema_of(op);
  std::vector<Arg> placed(size_t(schema.n_params));
  std::vector<const Argument*> at(size_t(schema.n_params), nullptr);
  size_t next = first;
  for (const Argument& a : args) {
    int i = a.name.empty() ? int(next) : schema.find(a.name);
    if (i < 0 || i >= schema.n_params) wrong("no argument " + a.name);
    at[size_t(i)] = &a;
    next = size_t(i) + 1;
  }
  static const Tensor none;
  std::deque<Tensors> lists;
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!at[i]) continue;
    const Argument& a = *at[i];
    if (!a.is_tensor) {
      placed[i] = a.attribute;
      continue;
    }
    inputs.append(a.values.begin(), a.values.end());
    placed[i].tag = a.is_list ? Tag::kTensors : Tag::kTensor;
    placed[i].n = uint32_t(a.values.size());
    Tensors& list = lists.emplace_back(a.values.size());
    placed[i].t = a.is_list ? list.data() : &none;
  }
  return OwnedArgs::make(Args(placed.data(), placed.size()), false);
}

void Parser::bind(Node* n, const SmallVec<Typed, 2>& outs) {
  for (size_t i = 0; i < outs.size(); ++i)
    if (!outs[i].undefined && !values_.emplace(outs[i].id, n->outputs[i]).second)
      wrong("a value is computed twice");
}

void Parser::add_scatter(const Op& view, SmallVec<Typed, 2> outs, std::vector<Argument>& args) {
  if (args.size() < 2 || !args[0].is_tensor || !args[1].is_tensor || !args[0].values[0] ||
      !args[1].values[0])
    wrong("a scatter needs two tensors");
  Value *base = args[0].values[0], *part = args[1].values[0];
  std::vector<Argument> rest(args.begin() + 2, args.end());
  Ref<Step> step(new Step);
  step->op = &view;
  if (!rest.empty() && rest.back().name == "result") {
    step->out = int(rest.back().attribute.i);
    rest.pop_back();
  }
  // Argument 0 of a step is the tensor it is applied to.
  Argument self;
  self.is_tensor = true;
  self.values.push_back(base);
  rest.insert(rest.begin(), self);
  SmallVec<Value*, 4> ignored;
  step->args = place(view, rest, 0, ignored);
  step->in = base->meta;
  step->in.alias = 0;
  step->result = part->meta;
  static const Tensor none;
  Arg owned[3];
  for (int i = 0; i < 2; ++i) {
    owned[i].tag = Tag::kTensor;
    owned[i].n = 1;
    owned[i].t = &none;
  }
  owned[2] = Arg(*step);
  SmallVec<Meta, 2> metas;
  for (const Typed& o : outs) metas.push_back(o.meta);
  SmallVec<Value*, 4> both;
  both.push_back(base);
  both.push_back(part);
  bind(graph_.add_node(view_scatter_op, OwnedArgs::make(Args(owned, 3), false), both, metas), outs);
}

void Parser::add_node(const std::string& op_name, SmallVec<Typed, 2> outs,
                      std::vector<Argument>& args) {
  constexpr std::string_view kSuffix = "_scatter";
  const Op* op = find_op(op_name);
  if (op_name.size() > kSuffix.size() && op_name.ends_with(kSuffix)) {
    const Op* view = find_op(op_name.substr(0, op_name.size() - kSuffix.size()));
    if (view && view->kind == OpKind::kView) return add_scatter(*view, std::move(outs), args);
  }
  if (!op) wrong("unknown operator " + op_name);
  SmallVec<Value*, 4> inputs;
  Ref<OwnedArgs> owned = place(*op, args, 0, inputs);
  SmallVec<Meta, 2> metas;
  for (const Typed& o : outs) metas.push_back(o.meta);
  bind(graph_.add_node(*op, owned, inputs, metas), outs);
}

void Parser::node() {
  SmallVec<Typed, 2> outs;
  while (!accept("=")) {
    outs.push_back(typed());
    accept(",");
  }
  std::string op_name = name();
  expect("(");
  std::vector<Argument> args;
  while (!accept(")")) {
    args.push_back(argument());
    accept(",");
  }
  add_node(op_name, std::move(outs), args);
}

void Parser::inputs(bool captured) {
  while (!accept(")")) {
    Typed t = typed();
    Tensor held;
    if (captured) {
      if (next_captured_ >= captured_.size()) wrong("a captured tensor was not given");
      held = captured_[next_captured_++];
    }
    Value* v = graph_.add_input(t.meta, held);
    if (!values_.emplace(t.id, v).second) wrong("a value is computed twice");
    accept(",");
  }
}

Graph Parser::run() {
  expect("graph(");
  inputs(false);
  if (accept("captured(")) inputs(true);
  expect("{");
  while (!accept("return")) node();
  skip();
  while (at_ < text_.size() && text_[at_] != '}' && text_.substr(at_, 5) != "write") {
    graph_.outputs.push_back(value());
    accept(",");
    skip();
  }
  while (accept("write")) {
    Value* input = value();
    expect("=");
    Value* v = value();
    size_t i = 0;
    while (i < graph_.inputs().size() && graph_.inputs()[i].value != input) ++i;
    if (i == graph_.inputs().size()) wrong("only inputs are written");
    graph_.writes.push_back({i, v});
  }
  expect("}");
  return std::move(graph_);
}

Graph parse(std::string_view text, TensorList captured) { return Parser(text, captured).run(); }

}  // namespace fornax::graph
