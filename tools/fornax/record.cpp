#include "tools/fornax/record.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "fornax/base/compress.h"
#include "fornax/base/error.h"

namespace fornax::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxFileBytes = uint64_t(1) << 30;
constexpr int kMaxDepth = 16;  // the records have 3
constexpr int kMaxKeys = 64;

// Errors of this file say only what is wrong; next() puts file and line in front.
template <class... T>
[[noreturn]] void bad(const T&... parts) {
  fail(ErrorKind::kIo, parts...);
}

const Json& member(const Json& object, const char* key) {
  auto at = object.find(key);
  if (at == object.end()) bad("key '", key, "' missing");
  return *at;
}

const Json& array(const Json& value, const char* what) {
  if (!value.is_array()) bad(what, " is no list");
  return value;
}

const std::string& text(const Json& value, const char* what) {
  if (!value.is_string()) bad(what, " is no string");
  return value.get_ref<const std::string&>();
}

int64_t integer(const Json& value, const char* what) {
  bool fits = value.is_number_integer() &&
              (!value.is_number_unsigned() ||
               value.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()));
  if (!fits) bad(what, " is no 64-bit integer");
  return value.get<int64_t>();
}

// A number, or "nan", "inf", "-inf".
double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string& name = text(value, "a value");
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf") return kInfinity;
  if (name == "-inf") return -kInfinity;
  bad("unknown value '", name, "'");
}

Dtype dtype(const Json& value) {
  Dtype d = dtype_of_name(text(value, "dtype"));
  if (d == Dtype::kUndefined) bad("unknown dtype '", text(value, "dtype"), "'");
  return d;
}

template <class T>
void store(Bytes& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

// Integers are stored exactly, and must fit.
void store_integer(Bytes& bytes, size_t index, Dtype d, const Json& value) {
  int64_t v = value.is_boolean() ? int64_t(value.get<bool>()) : integer(value, "a value");
  bool is_signed = d != Dtype::kU8 && d != Dtype::kBool;
  int64_t low = is_signed ? INT64_MIN >> (64 - 8 * size_of(d)) : 0;
  int64_t high = d == Dtype::kBool ? 1 : d == Dtype::kU8 ? 255 : ~low;
  if (v < low || v > high) bad("value ", v, " does not fit ", d);
  std::memcpy(bytes.data() + index * size_t(size_of(d)), &v, size_t(size_of(d)));
}

void store_real(Bytes& bytes, size_t index, Dtype d, double v) {
  switch (d) {
    case Dtype::kF16: return store(bytes, index, Half(float(v)));
    case Dtype::kBF16: return store(bytes, index, BFloat16(float(v)));
    case Dtype::kF32: return store(bytes, index, float(v));
    default: return store(bytes, index, v);
  }
}

std::vector<int64_t> integers(const Json& list, const char* what) {
  std::vector<int64_t> out;
  for (const Json& v : array(list, what)) out.push_back(integer(v, what));
  if (out.size() > kMaxRank) bad(what, " has ", out.size(), " entries, the most is ", kMaxRank);
  return out;
}

RecordTensor tensor(const Json& value) {
  if (!value.is_object()) bad("a tensor is no object");
  RecordTensor out;
  Dtype d = out.tensor.dtype = dtype(member(value, "t"));
  out.tensor.sizes = integers(member(value, "s"), "a shape");
  const Json& data = array(member(value, "d"), "the values of a tensor");
  size_t parts = is_complex(d) ? 2 : 1;
  std::optional<int64_t> bytes = checked_bytes(out.tensor.sizes, size_of(d));
  if (!bytes || uint64_t(*bytes) / size_t(size_of(d)) * parts != data.size())
    bad("a tensor of shape ", IntArrayRef(out.tensor.sizes), " and dtype ", d, " has ", data.size(),
        " values");
  out.tensor.bytes.resize(size_t(*bytes));
  for (size_t i = 0; i < data.size(); ++i) {
    if (is_integral(d)) {
      store_integer(out.tensor.bytes, i, d, data[i]);
    } else {
      store_real(out.tensor.bytes, i, to_real(d), number(data[i]));
    }
  }
  if (auto strides = value.find("st"); strides != value.end()) {
    out.strides = integers(*strides, "strides");
    if (out.strides.size() != out.tensor.sizes.size())
      bad(out.strides.size(), " strides for shape ", IntArrayRef(out.tensor.sizes));
  }
  out.requires_grad = value.contains("g");
  return out;
}

RecordValue object(const Json& value) {
  if (value.contains("t")) return {tensor(value)};
  if (value.size() != 1) bad("unknown kind of value");
  const std::string& kind = value.begin().key();
  const Json& content = value.begin().value();
  if (kind == "f") return {number(content)};
  if (kind == "c") {
    if (array(content, "a complex number").size() != 2) bad("a complex number needs two parts");
    return {std::complex<double>(number(content[0]), number(content[1]))};
  }
  if (kind == "dtype") return {dtype(content)};
  if (kind == "device") return {RecordDevice{text(content, "device")}};
  if (kind == "layout") return {RecordLayout{text(content, "layout")}};
  if (kind == "memory_format") return {RecordMemoryFormat{text(content, "memory_format")}};
  bad("unknown kind of value '", kind, "'");
}

RecordValue any_value(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return {value.get<bool>()};
  if (value.is_number_integer()) return {integer(value, "a value")};
  if (value.is_number()) return {value.get<double>()};
  if (value.is_string()) return {text(value, "a value")};
  if (value.is_object()) return object(value);
  RecordList list;
  for (const Json& v : value) list.push_back(any_value(v));
  return {std::move(list)};
}

std::vector<RecordTensor> tensors(const Json& list, const char* what) {
  std::vector<RecordTensor> out;
  for (const Json& v : array(list, what)) out.push_back(tensor(v));
  return out;
}

OptionalTensors optional_tensors(const Json& list, const char* what) {
  OptionalTensors out;
  for (const Json& v : array(list, what)) {
    if (v.is_null()) {
      out.emplace_back();
    } else {
      out.emplace_back(tensor(v));
    }
  }
  return out;
}

// Stops the parser early: ordered objects look keys up one by one, and trees are freed recursively.
struct ParseLimits {
  int keys[kMaxDepth + 1] = {};

  bool operator()(int depth, Json::parse_event_t event, Json&) {
    using Event = Json::parse_event_t;
    if (depth > kMaxDepth) bad("values are nested deeper than ", kMaxDepth);
    if (event == Event::object_start && depth < kMaxDepth) keys[depth + 1] = 0;
    if (event == Event::key && ++keys[depth] > kMaxKeys) bad("more than ", kMaxKeys, " keys");
    return true;
  }
};

Record record(const Json& row) {
  if (!row.is_object()) bad("the line is no object");
  Record out;
  out.op = text(member(row, "op"), "op");
  if (const Json& schema = member(row, "schema"); !schema.is_null())
    out.schema = text(schema, "schema");
  out.dtype = dtype(member(row, "dtype"));
  for (const Json& v : array(member(row, "args"), "args")) out.args.push_back(any_value(v));
  const Json& kwargs = member(row, "kwargs");
  if (!kwargs.is_object()) bad("kwargs is no object");
  for (const auto& [name, v] : kwargs.items()) out.kwargs.emplace_back(name, any_value(v));
  out.out = tensors(member(row, "out"), "out");
  if (auto vjp = row.find("vjp"); vjp != row.end()) {
    out.vjp = {tensors(member(*vjp, "grad_out"), "grad_out"),
               optional_tensors(member(*vjp, "grads"), "grads")};
  }
  if (auto jvp = row.find("jvp"); jvp != row.end()) {
    out.jvp = {tensors(member(*jvp, "tangents"), "tangents"),
               optional_tensors(member(*jvp, "out"), "tangents of the results")};
  }
  out.case_name = text(member(row, "case"), "case");
  size_t inputs = differentiable_inputs(out).size();
  if (out.vjp && out.vjp->grads.size() != inputs)
    bad(out.vjp->grads.size(), " gradients for ", inputs, " differentiable inputs");
  if (out.jvp && (out.jvp->tangents.size() != inputs || out.jvp->out.size() != out.out.size()))
    bad(out.jvp->tangents.size(), " tangents for ", inputs, " differentiable inputs, ",
        out.jvp->out.size(), " for ", out.out.size(), " results");
  return out;
}

void collect(const RecordValue& value, std::vector<const RecordTensor*>& into) {
  if (const auto* t = value.as<RecordTensor>()) {
    if (t->requires_grad) into.push_back(t);
  } else if (const auto* list = value.as<RecordList>()) {
    for (const RecordValue& v : *list) collect(v, into);
  }
}

}  // namespace

std::vector<const RecordTensor*> differentiable_inputs(const Record& record) {
  std::vector<const RecordTensor*> out;
  for (const RecordValue& v : record.args) collect(v, out);
  for (const auto& [name, v] : record.kwargs) collect(v, out);
  return out;
}

RecordReader::RecordReader(const std::string& path)
    : name_(path), content_(read_file(path, kMaxFileBytes)) {
  if (as_text(content_).starts_with("\x1f\x8b"))
    content_ = inflate(content_, Wrap::kGzip, kMaxFileBytes, path);
}

RecordReader::RecordReader(std::string name, Bytes lines)
    : name_(std::move(name)), content_(std::move(lines)) {}

std::optional<Record> RecordReader::next() {
  std::string_view all = as_text(content_);
  while (at_ < all.size()) {
    size_t end = std::min(all.find('\n', at_), all.size());
    std::string_view line = all.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    if (line.empty()) continue;
    try {
      return record(Json::parse(line.begin(), line.end(), ParseLimits()));
    } catch (Error& error) {
      error.add_context(str(name_, ":", line_));
      throw;
    } catch (const Json::exception& error) {
      fail(ErrorKind::kIo, name_, ":", line_, ": ", error.what());
    }
  }
  return std::nullopt;
}

}  // namespace fornax::replay
