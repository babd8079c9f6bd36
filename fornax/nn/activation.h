// Activations: nn::functional's functions and the modules that call them.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"
#include "fornax/nn/plain_modules.h"

namespace fornax::nn {

namespace functional {

using CELUFuncOptions = CELUOptions;
using ELUFuncOptions = ELUOptions;
using GELUFuncOptions = GELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using ReLUFuncOptions = ReLUOptions;
using RReLUFuncOptions = RReLUOptions;
using SELUFuncOptions = SELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using ThresholdFuncOptions = ThresholdOptions;

Tensor celu(const Tensor& input, const CELUFuncOptions& options = {});
Tensor elu(const Tensor& input, const ELUFuncOptions& options = {});
Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
Tensor hardsigmoid(const Tensor& input, const InplaceOptions& options = {});
Tensor hardswish(const Tensor& input, const InplaceOptions& options = {});
Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& options = {});
Tensor leaky_relu(const Tensor& input, const LeakyReLUFuncOptions& options = {});
Tensor logsigmoid(const Tensor& input);
Tensor mish(const Tensor& input);
Tensor prelu(const Tensor& input, const Tensor& weight);
Tensor relu(const Tensor& input, const ReLUFuncOptions& options = {});
Tensor relu6(const Tensor& input, const ReLU6FuncOptions& options = {});
Tensor rrelu(const Tensor& input, const RReLUFuncOptions& options = {});
Tensor selu(const Tensor& input, const SELUFuncOptions& options = {});
Tensor sigmoid(const Tensor& input);
Tensor silu(const Tensor& input, const InplaceOptions& options = {});
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
Tensor softsign(const Tensor& input);
Tensor tanh(const Tensor& input);
Tensor tanhshrink(const Tensor& input);
Tensor threshold(const Tensor& input, const ThresholdFuncOptions& options);

}  // namespace functional

FX_ACTIVATION(CELU, CELUOptions, = {});
FX_ACTIVATION(ELU, ELUOptions, = {});
FX_ACTIVATION(GELU, GELUOptions, = {});
FX_ACTIVATION(Hardshrink, HardshrinkOptions, = {});
FX_ACTIVATION(Hardsigmoid, HardsigmoidOptions, = {});
FX_ACTIVATION(Hardswish, HardswishOptions, = {});
FX_ACTIVATION(Hardtanh, HardtanhOptions, = {});
FX_ACTIVATION(LeakyReLU, LeakyReLUOptions, = {});
FX_ACTIVATION(ReLU, ReLUOptions, = {});
FX_ACTIVATION(ReLU6, ReLU6Options, = {});
FX_ACTIVATION(RReLU, RReLUOptions, = {});
FX_ACTIVATION(SELU, SELUOptions, = {});
FX_ACTIVATION(SiLU, SiLUOptions, = {});
FX_ACTIVATION(Softplus, SoftplusOptions, = {});
FX_ACTIVATION(Softshrink, SoftshrinkOptions, = {});
FX_PLAIN_ACTIVATION(LogSigmoid);
FX_PLAIN_ACTIVATION(Mish);
FX_PLAIN_ACTIVATION(Sigmoid);
FX_PLAIN_ACTIVATION(Softsign);
FX_PLAIN_ACTIVATION(Tanh);
FX_PLAIN_ACTIVATION(Tanhshrink);

class ThresholdImpl : public Cloneable<ThresholdImpl> {
 public:
  ThresholdImpl(double threshold, double value);
  explicit ThresholdImpl(const ThresholdOptions& options);
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  ThresholdOptions options;
};
FORNAX_MODULE(Threshold);

// A learned slope for negative inputs, one or one per channel.
class PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& options = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  PReLUOptions options;
  Tensor weight;
};
FORNAX_MODULE(PReLU);

}  // namespace fornax::nn

#undef FX_ACTIVATION
#undef FX_PLAIN_ACTIVATION
