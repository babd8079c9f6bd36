#include "fornax/data/transforms.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"

namespace fornax::data::transforms {

Tensor channel_values(ArrayRef<double> values) {
  FX_CHECK(!values.empty(), kValue, "Normalize: expected at least one value");
  Tensor t = tensor(values.vec(), TensorOptions(kFloat));
  return t.numel() == 1 ? t.reshape(IntArrayRef()) : t.reshape({t.numel(), 1, 1});
}

Tensor normalize(const Tensor& data, const Tensor& mean, const Tensor& stddev) {
  return (data - mean).div_(stddev);
}

Tensor stack_all(const std::vector<Tensor>& tensors) { return stack(tensors, 0); }

}  // namespace fornax::data::transforms
