#include "tools/fornax/call.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"

namespace fornax::replay {
namespace {

using Named = std::vector<std::pair<std::string, const RecordValue*>>;

std::optional<Schema> parse_line(std::string_view line) {
  try {
    return parse_schema(line);
  } catch (const char*) {
    return std::nullopt;
  }
}

// The record's arguments by their parameters' names.
Named named_values(const Record& record, const Schema& schema) {
  Named named;
  for (size_t i = 0; i < record.args.size() && int(i) < schema.n_params; ++i)
    named.emplace_back(std::string(schema.params[i].name), &record.args[i]);
  for (const auto& [name, value] : record.kwargs) named.emplace_back(name, &value);
  return named;
}

const RecordValue* find_value(const Named& named, std::string_view name) {
  for (const auto& [n, v] : named)
    if (n == name) return v;
  return nullptr;
}

Scalar to_scalar(const RecordValue& value) {
  if (auto b = value.as<bool>()) return Scalar(*b);
  if (auto i = value.as<int64_t>()) return Scalar(*i);
  if (auto d = value.as<double>()) return Scalar(*d);
  if (auto c = value.as<std::complex<double>>()) return Scalar(complex128(c->real(), c->imag()));
  fail(ErrorKind::kType, "a number was expected in the record");
}

Arg parse_default(PreparedCall& call, std::string_view text) {
  if (text.empty() || text == "None") return Arg();
  if (text == "True") return Arg(true);
  if (text == "False") return Arg(false);
  if (text == "Mean") return Arg(int64_t(1));
  if (text == "contiguous_format") return Arg(MemoryFormat::Contiguous);
  if (text[0] == '"' || text[0] == '\'') {
    auto& s = call.storage.texts.emplace_back(text.substr(1, text.size() - 2));
    return Arg(std::string_view(s));
  }
  if (text[0] == '[') {
    auto& list = call.storage.ints.emplace_back();
    const char* p = text.data() + 1;
    while (*p && *p != ']') {
      char* end = nullptr;
      list.push_back(std::strtoll(p, &end, 10));
      if (end == p) break;
      p = end;
      while (*p == ',' || *p == ' ') ++p;
    }
    return Arg(IntArrayRef(list));
  }
  std::string number(text);
  if (number == "inf") return Arg(double(INFINITY));
  if (number == "-inf") return Arg(-double(INFINITY));
  if (number.find_first_of(".e") == std::string::npos)
    return Arg(int64_t(std::strtoll(number.c_str(), nullptr, 10)));
  return Arg(std::strtod(number.c_str(), nullptr));
}

Arg list_arg(PreparedCall& call, const RecordList& list, const Param& param, bool with_grad) {
  if (param.type == "Tensor") {
    auto& out = call.storage.lists.emplace_back();
    out.reserve(list.size());  // addresses of the elements are kept
    for (const RecordValue& v : list) {
      const RecordTensor* t = v.as<RecordTensor>();
      if (!t) {
        out.emplace_back();
        continue;
      }
      out.push_back(to_tensor(*t));
      if (!t->requires_grad) continue;
      if (with_grad) out.back().requires_grad_();
      call.inputs.push_back(&out.back());
    }
    return Arg(TensorList(out));
  }
  bool real = param.type == "float";
  for (const RecordValue& v : list) real = real || v.as<double>();
  if (real) {
    auto& out = call.storage.reals.emplace_back();
    for (const RecordValue& v : list) out.push_back(to_scalar(v).to_double());
    return Arg(ArrayRef<double>(out));
  }
  auto& out = call.storage.ints.emplace_back();
  for (const RecordValue& v : list) out.push_back(v.is_none() ? -1 : to_scalar(v).to_int());
  return Arg(IntArrayRef(out));
}

Arg tensor_arg(PreparedCall& call, const RecordTensor& t, const Param& param, bool with_grad) {
  if (param.type != "Tensor" && (param.list || t.tensor.sizes.empty())) {
    Tensor value = to_tensor(t);
    if (param.list) {  // a tensor of indices where ATen has an overload for it
      auto& list = call.storage.ints.emplace_back();
      for (int64_t i = 0; i < value.numel(); ++i) list.push_back(value[i].item<int64_t>());
      return Arg(IntArrayRef(list));
    }
    Scalar s = value.item();
    if (param.type == "int") return Arg(s.to_int());
    return Arg(call.storage.scalars.emplace_back(s));
  }
  Tensor& out = call.storage.tensors.emplace_back(to_tensor(t));
  if (t.requires_grad) {
    if (with_grad) out.requires_grad_();
    call.inputs.push_back(&out);
  }
  return Arg(out);
}

bool prepare_function(PreparedCall& call, const Record& record, bool with_grad,
                      std::string& reason) {
  std::string_view name = std::string_view(record.op).substr(7);
  for (const PythonFunction& f : python_functions()) {
    if (f.name != name) continue;
    static std::deque<std::string> kept;
    std::string& text = kept.emplace_back("f(" + std::string(f.signature) + ") -> Tensor");
    auto schema = parse_line(text);
    FX_ASSERT(schema);
    Named named = named_values(record, *schema);
    if (record.args.size() > size_t(schema->n_params)) {
      // Trailing positional integers of a list parameter: roll(x, 1, 2), new_empty(x, 2, 3).
      reason = "more arguments than the signature";
      return false;
    }
    for (int i = 0; i < schema->n_params; ++i) {
      const Param& p = schema->params[i];
      const RecordValue* v = find_value(named, p.name);
      call.args.push_back(v ? to_arg(call, *v, p, with_grad) : parse_default(call, p.fallback));
    }
    for (const auto& [n, v] : record.kwargs)
      if (schema->find(n) < 0) {
        reason = "keyword " + n;
        return false;
      }
    call.run_python = f.run;
    return true;
  }
  reason = "no function " + std::string(name);
  return false;
}

bool prepare_operator(PreparedCall& call, const Record& record, bool with_grad,
                      std::string& reason) {
  std::string_view full = std::string_view(record.op).substr(6);
  std::string_view base = full.substr(0, full.find('.'));
  const Op* op = find_op(full);
  if (!op) op = find_op(base);
  std::string functional(base);
  if (!op && base.ends_with('_')) {
    functional.pop_back();
    op = find_op(functional);
    if (op) call.form = Form::kInplace;
  }
  if (!op) {
    reason = "no operator " + std::string(base);
    return false;
  }
  std::string_view recorded_text = record.schema;
  if (recorded_text.starts_with("aten::")) recorded_text.remove_prefix(6);
  auto recorded = parse_line(recorded_text);
  if (!recorded) {
    reason = "a schema of unknown types";
    return false;
  }
  Schema own = schema_of(*op);
  Named named = named_values(record, *recorded);
  // A parameter that our first line does not know stands where it stands in the line of its
  // overload.
  std::vector<const RecordValue*> values(size_t(own.n_params), nullptr);
  for (const auto& [name, value] : named) {
    int at = own.find(name);
    if (at < 0) {
      std::string_view rest = op->schema;
      while (!rest.empty() && at < 0) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        auto s = parse_line(line);
        if (s && s->overload == recorded->overload) at = s->find(name);
      }
    }
    if (at >= 0 && at < own.n_params) {
      values[size_t(at)] = value;
      continue;
    }
    if (value->is_none()) continue;
    reason = "overload " + std::string(full) + " (parameter " + name + ")";
    return false;
  }
  call.op = op;
  for (int i = 0; i < own.n_params; ++i) {
    const Param& p = own.params[i];
    const RecordValue* v = values[size_t(i)];
    call.args.push_back(v ? to_arg(call, *v, p, with_grad) : parse_default(call, p.fallback));
  }
  return true;
}

}  // namespace

Arg to_arg(PreparedCall& call, const RecordValue& value, const Param& param, bool with_grad) {
  if (value.is_none()) return Arg();
  if (auto t = value.as<RecordTensor>()) return tensor_arg(call, *t, param, with_grad);
  if (auto list = value.as<RecordList>()) return list_arg(call, *list, param, with_grad);
  if (auto s = value.as<std::string>()) {
    if (param.type == "Device") return Arg(Device(*s));
    return Arg(std::string_view(call.storage.texts.emplace_back(*s)));
  }
  if (auto d = value.as<Dtype>()) return Arg(*d);
  if (auto d = value.as<RecordDevice>()) return Arg(Device(d->name));
  if (value.as<RecordLayout>()) return Arg(kStrided);
  if (auto m = value.as<RecordMemoryFormat>()) {
    if (m->name == "torch.channels_last") return Arg(MemoryFormat::ChannelsLast);
    if (m->name == "torch.channels_last_3d") return Arg(MemoryFormat::ChannelsLast3d);
    return Arg(m->name == "torch.preserve_format" ? MemoryFormat::Preserve
                                                  : MemoryFormat::Contiguous);
  }
  Scalar s = to_scalar(value);
  if (param.list && param.type == "int")
    return Arg(IntArrayRef(call.storage.ints.emplace_back(1, s.to_int())));
  if (s.is_complex()) return Arg(call.storage.scalars.emplace_back(s));
  return Arg(s);
}

std::optional<PreparedCall> prepare_call(const Record& record, bool with_grad,
                                         std::string& reason) {
  std::optional<PreparedCall> call(std::in_place);
  bool python = record.op.starts_with("torch::");
  bool ok = python ? prepare_function(*call, record, with_grad, reason)
                   : prepare_operator(*call, record, with_grad, reason);
  if (!ok) call.reset();
  return call;
}

std::vector<Tensor> run_call(PreparedCall& call) {
  Args args(call.args.data(), call.args.size());
  if (call.run_python) return call.run_python(args);
  if (call.form == Form::kInplace && call.args[0].tag == Tag::kTensor) {
    // A leaf can't be written in place; its copy carries the gradient on.
    Tensor& self = call.storage.tensors.emplace_back(
        call.args[0].t->requires_grad() ? call.args[0].t->clone() : *call.args[0].t);
    call.args[0] = Arg(self);
    args = Args(call.args.data(), call.args.size());
  }
  Tensors outs = fornax::call(*call.op, call.form, args);
  return std::vector<Tensor>(outs.begin(), outs.end());
}

Tensor to_tensor(const RecordTensor& t) {
  const RawTensor& raw = t.tensor;
  Tensor plain = empty(raw.sizes, TensorOptions(raw.dtype));
  if (plain.numel()) std::memcpy(plain.data_ptr(), raw.bytes.data(), plain.nbytes());
  if (t.strides.empty()) return plain;
  int64_t extent = 1;
  for (size_t d = 0; d < raw.sizes.size(); ++d) extent += (raw.sizes[d] - 1) * t.strides[d];
  Tensor memory = empty({plain.numel() ? extent : 0}, TensorOptions(raw.dtype));
  Tensor spread = memory.alias();
  spread.impl()->sizes.assign(raw.sizes.begin(), raw.sizes.end());
  spread.impl()->strides.assign(t.strides.begin(), t.strides.end());
  spread.impl()->numel = plain.numel();
  bool overlapping = false;
  for (size_t d = 0; d < raw.sizes.size(); ++d)
    overlapping = overlapping || (t.strides[d] == 0 && raw.sizes[d] > 1);
  if (!overlapping) {
    spread.copy_(plain);
    return spread;
  }
  // Expanded inputs: equal values share a place; write them one by one.
  Dims index(raw.sizes.size(), 0);
  char* to = static_cast<char*>(memory.data_ptr());
  int64_t item = size_of(raw.dtype);
  for (int64_t i = 0; i < plain.numel(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides[d];
    std::memcpy(to + at * item, reinterpret_cast<const char*>(raw.bytes.data()) + i * item,
                size_t(item));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < raw.sizes[d]) break;
      index[d] = 0;
    }
  }
  return spread;
}

RawTensor to_raw(const Tensor& t) {
  RawTensor raw;
  Tensor plain = t.detach().contiguous();
  raw.dtype = plain.dtype();
  raw.sizes.assign(plain.sizes().begin(), plain.sizes().end());
  raw.bytes.resize(plain.nbytes());
  if (plain.numel()) std::memcpy(raw.bytes.data(), plain.data_ptr(), plain.nbytes());
  return raw;
}

}  // namespace fornax::replay
