// A recorded call made against the library: by schema for operators, by Python signature for
// functions.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fornax/core/op.h"
#include "tools/fornax/record.h"

namespace fornax::replay {

// Values a call borrows; addresses stay while it lives.
struct CallStorage {
  std::deque<Tensor> tensors;
  std::deque<std::vector<Tensor>> lists;
  std::deque<Scalar> scalars;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> reals;
  std::deque<std::string> texts;
};

struct PreparedCall {
  CallStorage storage;
  std::vector<Tensor*>
      inputs;  // those marked requires_grad, in record order; they lie in `storage`
  const Op* op = nullptr;
  Form form = Form::kNew;
  std::vector<Arg> args;
  std::vector<Tensor> (*run_python)(Args) = nullptr;  // torch:: functions
};

// Builds the call, or says in `reason` why there is none (operator or overload missing). With
// `with_grad`, marked inputs require grad.
std::optional<PreparedCall> prepare_call(const Record& record, bool with_grad, std::string& reason);
// The results, lists flattened.
std::vector<Tensor> run_call(PreparedCall& call);

// A tensor with the record's values, dtype and strides.
Tensor to_tensor(const RecordTensor& t);
// Row-major bytes of any tensor.
RawTensor to_raw(const Tensor& t);
// An argument value in the storage of `call`, as the parameter type says ("Tensor", "int",
// "Scalar", ...).
Arg to_arg(PreparedCall& call, const RecordValue& value, const Param& param, bool with_grad);

// Functions that PyTorch writes in Python: their signature and what they are here.
struct PythonFunction {
  std::string_view name;       // "nn.functional.mse_loss"
  std::string_view signature;  // parameters in schema syntax, as Python orders and names them
  std::vector<Tensor> (*run)(Args args);
};
ArrayRef<PythonFunction> python_functions();

}  // namespace fornax::replay
