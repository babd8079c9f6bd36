// Softmax and its kin: nn::functional's functions and the modules that call them.
#pragma once

#include "fornax/nn/options.h"
#include "fornax/nn/plain_modules.h"

namespace fornax::nn {

namespace functional {

using GLUFuncOptions = GLUOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using SoftminFuncOptions = SoftminOptions;

// The first half of a dimension times the sigmoid of the second.
Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);

}  // namespace functional

FX_ACTIVATION(GLU, GLUOptions, = {});
FX_ACTIVATION(LogSoftmax, LogSoftmaxOptions);
FX_ACTIVATION(Softmax, SoftmaxOptions);
FX_ACTIVATION(Softmin, SoftminOptions);
FX_PLAIN_ACTIVATION(Softmax2d);  // over channels of [N, C, H, W] or [C, H, W]

}  // namespace fornax::nn

#undef FX_ACTIVATION
#undef FX_PLAIN_ACTIVATION
