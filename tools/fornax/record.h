// Recorded operator calls: what `fornax replay` reads.
//
// A file NAME.jsonl.gz holds one JSON object a line: operator, arguments, results, gradients and
// tangents as another implementation gave them. Nothing here knows the library's operators.
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fornax/serialize/raw_tensor.h"

namespace fornax::replay {

// The values lie row by row in `tensor.bytes` whatever the strides are; a caller that wants the
// recorded layout spreads them by `strides`.
struct RecordTensor {
  RawTensor tensor;
  std::vector<int64_t> strides;  // empty: contiguous
  bool requires_grad = false;
};

struct RecordDevice {
  std::string name;
};
struct RecordLayout {
  std::string name;
};
struct RecordMemoryFormat {
  std::string name;
};

struct RecordValue;
using RecordList = std::vector<RecordValue>;

// None (std::monostate), a scalar, a tensor, a name of PyTorch's, or a list of these.
struct RecordValue {
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, Dtype,
               RecordDevice, RecordLayout, RecordMemoryFormat, RecordTensor, RecordList>
      value;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return value.index() == 0; }
};

// A gradient or tangent that is null in the record is absent: it equals zeros.
using OptionalTensors = std::vector<std::optional<RecordTensor>>;

struct RecordVjp {
  std::vector<RecordTensor> grad_out;  // one per differentiable result
  OptionalTensors grads;               // one per tensor marked requires_grad, args then kwargs
};

struct RecordJvp {
  std::vector<RecordTensor> tangents;  // one per tensor marked requires_grad
  OptionalTensors out;                 // one per result
};

struct Record {
  std::string op;      // "aten::add.Tensor", or "torch::NAME" for a function written in Python
  std::string schema;  // empty for "torch::NAME"
  Dtype dtype = Dtype::kUndefined;
  RecordList args;
  std::vector<std::pair<std::string, RecordValue>> kwargs;
  std::vector<RecordTensor> out;
  std::optional<RecordVjp> vjp;
  std::optional<RecordJvp> jvp;
  std::string case_name;
};

// The tensors marked requires_grad in the order that grads and tangents have.
std::vector<const RecordTensor*> differentiable_inputs(const Record& record);

// Reads a file's records one after another.
class RecordReader {
 public:
  // Unpacks FILE (gzipped or plain). Throws Error(kIo).
  explicit RecordReader(const std::string& path);
  // Lines that are already in memory; `name` stands in error texts.
  RecordReader(std::string name, Bytes lines);

  // The next record, or nullopt after the last. Throws Error(kIo) naming file and line for one that
  // does not follow the format; the next call goes on behind it.
  std::optional<Record> next();
  int line() const { return line_; }

 private:
  std::string name_;
  Bytes content_;
  size_t at_ = 0;
  int line_ = 0;
};

}  // namespace fornax::replay
