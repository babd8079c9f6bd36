#include "fornax/nn/linear.h"

#include <cmath>
#include <ostream>

#include "fornax/nn/init.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::nn {

namespace functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return fornax::linear(input, weight, bias);
}
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  FX_CHECK(weight.dim() == 3 && input1.dim() > 0 && input1.dim() == input2.dim() &&
               input1.size(-1) == weight.size(1) && input2.size(-1) == weight.size(2),
           kShape, "bilinear: inputs ", input1.sizes(), " and ", input2.sizes(),
           " don't fit a weight of ", weight.sizes());
  int64_t out = weight.size(0), in1 = weight.size(1), in2 = weight.size(2);
  Dims sizes(input1.sizes().begin(), input1.sizes().end() - 1);
  sizes.push_back(out);
  Tensor left =
      input1.reshape({-1, in1}).matmul(weight.permute({1, 0, 2}).reshape({in1, out * in2}));
  Tensor y = left.reshape({-1, out, in2}).matmul(input2.reshape({-1, in2, 1})).reshape(sizes);
  return bias.defined() ? y + bias : y;
}

}  // namespace functional

namespace {
const char* text_of(bool value) { return value ? "true" : "false"; }
}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features)
    : LinearImpl(LinearOptions(in_features, out_features)) {}
LinearImpl::LinearImpl(const LinearOptions& options) : options(options) { LinearImpl::reset(); }

void LinearImpl::reset() {
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? empty({options.out_features()}) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  double bound = options.in_features() > 0 ? 1 / std::sqrt(double(options.in_features())) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Tensor& input) { return fornax::linear(input, weight, bias); }

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Linear(in_features=" << options.in_features()
         << ", out_features=" << options.out_features() << ", bias=" << text_of(options.bias())
         << ")";
}

BilinearImpl::BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
    : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
BilinearImpl::BilinearImpl(const BilinearOptions& options) : options(options) {
  BilinearImpl::reset();
}

void BilinearImpl::reset() {
  weight = register_parameter(
      "weight", empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? empty({options.out_features()}) : Tensor());
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  double bound = 1 / std::sqrt(double(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::bilinear(input1, input2, weight, bias);
}

void BilinearImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Bilinear(in1_features=" << options.in1_features()
         << ", in2_features=" << options.in2_features()
         << ", out_features=" << options.out_features() << ", bias=" << text_of(options.bias())
         << ")";
}

void IdentityImpl::pretty_print(std::ostream& stream) const { stream << "fornax::nn::Identity()"; }

FlattenImpl::FlattenImpl(const FlattenOptions& options) : options(options) {}
Tensor FlattenImpl::forward(const Tensor& input) {
  return input.flatten(options.start_dim(), options.end_dim());
}
void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Flatten(start_dim=" << options.start_dim()
         << ", end_dim=" << options.end_dim() << ")";
}

UnflattenImpl::UnflattenImpl(const UnflattenOptions& options) : options(options) {}
UnflattenImpl::UnflattenImpl(int64_t dim, std::vector<int64_t> sizes)
    : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
Tensor UnflattenImpl::forward(const Tensor& input) {
  return input.unflatten(options.dim(), options.sizes());
}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
  for (size_t i = 0; i < options.sizes().size(); ++i)
    stream << (i ? ", " : "") << options.sizes()[i];
  stream << "})";
}

}  // namespace fornax::nn
