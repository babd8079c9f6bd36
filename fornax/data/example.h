// One item of a dataset, or a batch of them after Stack.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax::data {

struct NoTarget {};

template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, NoTarget> {
  using DataType = Data;
  using TargetType = NoTarget;
  Data data;
};
using TensorExample = Example<Tensor, NoTarget>;

}  // namespace fornax::data
