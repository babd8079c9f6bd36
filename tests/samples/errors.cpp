// Error samples: calls (open tensors are float32) with the kind of their error and a part of its
// text.
#include "tests/samples/sample.h"

namespace fornax::samples {

const std::vector<ErrorRow>& error_rows() {
  using enum ErrorKind;
  static const auto* all = new std::vector<ErrorRow>{
      {"add", "[2,3] [4]", kShape, "[2, 3]"},
      {"add", "[2,3]:i64 [3]:i64 alpha=0.5", kType, "alpha"},
      {"mul", "[2,3] [2,2]", kShape, "[2, 2]"},
      {"sub", "[2]:bool [2]:bool", kType, "bool"},
  };
  return *all;
}

}  // namespace fornax::samples
