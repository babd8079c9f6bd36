#include "fornax/data/dataset.h"

#include "fornax/ops/functions.h"

namespace fornax::data::datasets {

TensorDataset::TensorDataset(const std::vector<Tensor>& tensors) : tensor_(stack(tensors, 0)) {}

}  // namespace fornax::data::datasets
