#include "fornax/nn/activation.h"

#include <ostream>

#include "fornax/nn/init.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::nn {

namespace functional {

Tensor celu(const Tensor& input, const CELUFuncOptions& options) {
  return options.inplace() ? input.celu_(options.alpha()) : input.celu(options.alpha());
}
Tensor elu(const Tensor& input, const ELUFuncOptions& options) {
  return options.inplace() ? input.elu_(options.alpha()) : input.elu(options.alpha());
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& options) {
  return input.gelu(options.approximate());
}
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options) {
  return input.hardshrink(options.lambda());
}
Tensor hardsigmoid(const Tensor& input, const InplaceOptions& options) {
  return options.inplace() ? input.hardsigmoid_() : input.hardsigmoid();
}
Tensor hardswish(const Tensor& input, const InplaceOptions& options) {
  return options.inplace() ? input.hardswish_() : input.hardswish();
}
Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& options) {
  FX_CHECK(options.min_val() < options.max_val(), kValue, "hardtanh: max_val ", options.max_val(),
           " must be greater than min_val ", options.min_val());
  return options.inplace() ? input.hardtanh_(options.min_val(), options.max_val())
                           : input.hardtanh(options.min_val(), options.max_val());
}
Tensor leaky_relu(const Tensor& input, const LeakyReLUFuncOptions& options) {
  return options.inplace() ? input.leaky_relu_(options.negative_slope())
                           : input.leaky_relu(options.negative_slope());
}
Tensor logsigmoid(const Tensor& input) { return input.log_sigmoid(); }
Tensor mish(const Tensor& input) { return input.mish(); }
Tensor prelu(const Tensor& input, const Tensor& weight) { return input.prelu(weight); }
Tensor relu(const Tensor& input, const ReLUFuncOptions& options) {
  return options.inplace() ? input.relu_() : input.relu();
}
Tensor relu6(const Tensor& input, const ReLU6FuncOptions& options) {
  return options.inplace() ? input.relu6_() : input.relu6();
}
Tensor rrelu(const Tensor& input, const RReLUFuncOptions& options) {
  return options.inplace() ? input.rrelu_(options.lower(), options.upper(), options.training())
                           : input.rrelu(options.lower(), options.upper(), options.training());
}
Tensor selu(const Tensor& input, const SELUFuncOptions& options) {
  return options.inplace() ? input.selu_() : input.selu();
}
Tensor sigmoid(const Tensor& input) { return input.sigmoid(); }
Tensor silu(const Tensor& input, const InplaceOptions& options) {
  return options.inplace() ? input.silu_() : input.silu();
}
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options) {
  return input.softplus(options.beta(), options.threshold());
}
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options) {
  return input.softshrink(options.lambda());
}
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor tanh(const Tensor& input) { return input.tanh(); }
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
Tensor threshold(const Tensor& input, const ThresholdFuncOptions& options) {
  return options.inplace() ? input.threshold_(options.threshold(), options.value())
                           : input.threshold(options.threshold(), options.value());
}

}  // namespace functional

namespace F = functional;

#define FX_MAKE(Name) \
  Name##Impl::Name##Impl(const decltype(options)& options) : options(options) {}
FX_MAKE(CELU)
FX_MAKE(ELU)
FX_MAKE(GELU)
FX_MAKE(Hardshrink)
FX_MAKE(Hardsigmoid)
FX_MAKE(Hardswish)
FX_MAKE(Hardtanh)
FX_MAKE(LeakyReLU)
FX_MAKE(ReLU)
FX_MAKE(ReLU6)
FX_MAKE(RReLU)
FX_MAKE(SELU)
FX_MAKE(SiLU)
FX_MAKE(Softplus)
FX_MAKE(Softshrink)
FX_MAKE(Threshold)
#undef FX_MAKE
ThresholdImpl::ThresholdImpl(double threshold, double value)
    : ThresholdImpl(ThresholdOptions(threshold, value)) {}

Tensor CELUImpl::forward(const Tensor& input) { return F::celu(input, options); }
Tensor ELUImpl::forward(const Tensor& input) { return F::elu(input, options); }
Tensor GELUImpl::forward(const Tensor& input) { return F::gelu(input, options); }
Tensor HardshrinkImpl::forward(const Tensor& input) { return F::hardshrink(input, options); }
Tensor HardsigmoidImpl::forward(const Tensor& input) { return F::hardsigmoid(input, options); }
Tensor HardswishImpl::forward(const Tensor& input) { return F::hardswish(input, options); }
Tensor HardtanhImpl::forward(const Tensor& input) { return F::hardtanh(input, options); }
Tensor LeakyReLUImpl::forward(const Tensor& input) { return F::leaky_relu(input, options); }
Tensor LogSigmoidImpl::forward(const Tensor& input) { return F::logsigmoid(input); }
Tensor MishImpl::forward(const Tensor& input) { return F::mish(input); }
Tensor ReLUImpl::forward(const Tensor& input) { return F::relu(input, options); }
Tensor ReLU6Impl::forward(const Tensor& input) { return F::relu6(input, options); }
Tensor RReLUImpl::forward(const Tensor& input) {
  return F::rrelu(input, RReLUOptions(options).training(is_training()));
}
Tensor SELUImpl::forward(const Tensor& input) { return F::selu(input, options); }
Tensor SiLUImpl::forward(const Tensor& input) { return F::silu(input, options); }
Tensor SigmoidImpl::forward(const Tensor& input) { return input.sigmoid(); }
Tensor SoftplusImpl::forward(const Tensor& input) { return F::softplus(input, options); }
Tensor SoftshrinkImpl::forward(const Tensor& input) { return F::softshrink(input, options); }
Tensor SoftsignImpl::forward(const Tensor& input) { return F::softsign(input); }
Tensor TanhImpl::forward(const Tensor& input) { return input.tanh(); }
Tensor TanhshrinkImpl::forward(const Tensor& input) { return F::tanhshrink(input); }
Tensor ThresholdImpl::forward(const Tensor& input) { return F::threshold(input, options); }

PReLUImpl::PReLUImpl(const PReLUOptions& options) : options(options) { PReLUImpl::reset(); }
void PReLUImpl::reset() {
  weight = register_parameter("weight", empty({options.num_parameters()}));
  init::constant_(weight, options.init());
}
Tensor PReLUImpl::forward(const Tensor& input) { return F::prelu(input, weight); }

// ---- text --------------------------------------------------------------------------------------

namespace {

const char* inplace_text(bool inplace, bool first = false) {
  if (!inplace) return "";
  return first ? "inplace=true" : ", inplace=true";
}

}  // namespace

#define FX_PRINT(Name, ...)                                               \
  void Name##Impl::pretty_print(std::ostream& stream) const {             \
    stream << "fornax::nn::" #Name "(" __VA_OPT__(<<) __VA_ARGS__ << ")"; \
  }
FX_PRINT(CELU, "alpha=" << options.alpha() << inplace_text(options.inplace()))
FX_PRINT(ELU, "alpha=" << options.alpha() << inplace_text(options.inplace()))
FX_PRINT(Hardshrink, options.lambda())
FX_PRINT(Hardsigmoid, inplace_text(options.inplace(), true))
FX_PRINT(Hardswish, inplace_text(options.inplace(), true))
FX_PRINT(Hardtanh, "min_val=" << options.min_val() << ", max_val=" << options.max_val()
                              << inplace_text(options.inplace()))
FX_PRINT(LeakyReLU,
         "negative_slope=" << options.negative_slope() << inplace_text(options.inplace()))
FX_PRINT(LogSigmoid)
FX_PRINT(Mish)
FX_PRINT(PReLU, "num_parameters=" << options.num_parameters())
FX_PRINT(ReLU, inplace_text(options.inplace(), true))
FX_PRINT(ReLU6, inplace_text(options.inplace(), true))
FX_PRINT(RReLU, "lower=" << options.lower() << ", upper=" << options.upper()
                         << inplace_text(options.inplace()))
FX_PRINT(SELU, inplace_text(options.inplace(), true))
FX_PRINT(SiLU, inplace_text(options.inplace(), true))
FX_PRINT(Sigmoid)
FX_PRINT(Softplus, "beta=" << options.beta() << ", threshold=" << options.threshold())
FX_PRINT(Softshrink, options.lambda())
FX_PRINT(Softsign)
FX_PRINT(Tanh)
FX_PRINT(Tanhshrink)
FX_PRINT(Threshold, "threshold=" << options.threshold() << ", value=" << options.value()
                                 << inplace_text(options.inplace()))
#undef FX_PRINT

void GELUImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::GELU(";
  if (options.approximate() != "none") stream << "approximate=" << options.approximate();
  stream << ")";
}

}  // namespace fornax::nn
