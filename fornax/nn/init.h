// Initial values of parameters: torch::nn::init. Every function writes its tensor in place, outside
// autograd, and returns it. Random numbers come from the default generator.
#pragma once

#include <tuple>

#include "fornax/nn/options.h"

namespace fornax::nn::init {

// The recommended gain for a nonlinearity (kLinear, kConv*, kSigmoid, kTanh, kReLU, kLeakyReLU with
// its slope as `param`, kSELU). Throws Error(kValue) for another word.
double calculate_gain(Choice nonlinearity, double param = 0.01);

Tensor constant_(Tensor tensor, const Scalar& value);
Tensor ones_(Tensor tensor);
Tensor zeros_(Tensor tensor);
// U(low, high).
Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
// N(mean, std) restricted to [a, b].
Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
// The identity; 2-D only.
Tensor eye_(Tensor matrix);
// Kernels that keep their input channels; 3-D to 5-D.
Tensor dirac_(Tensor tensor);
// A (semi-)orthogonal matrix of the tensor seen as [size(0), rest], times gain; at least 2-D.
Tensor orthogonal_(Tensor tensor, double gain = 1.0);
// N(0, std) where the given fraction of each column is zero; 2-D only.
Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01);

// He initialisation: std = gain(nonlinearity, a) / sqrt(fan); mode is kFanIn or kFanOut.
Tensor kaiming_uniform_(Tensor tensor, double a = 0, Choice mode = kFanIn,
                        Choice nonlinearity = kLeakyReLU);
Tensor kaiming_normal_(Tensor tensor, double a = 0, Choice mode = kFanIn,
                       Choice nonlinearity = kLeakyReLU);
// Glorot initialisation: std = gain * sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(Tensor tensor, double gain = 1.0);
Tensor xavier_normal_(Tensor tensor, double gain = 1.0);

// (fan in, fan out) of a weight [out, in, kernel...]. Throws Error(kShape) below 2-D.
std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace fornax::nn::init
