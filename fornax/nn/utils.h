// torch::nn::utils: gradients clipped, parameters as one vector.
#pragma once

#include <vector>

#include "fornax/core/tensor.h"

namespace fornax::nn::utils {

// Scales all gradients so that their common norm is at most max_norm; returns the norm before. With
// error_if_nonfinite a norm that isn't finite throws Error(kValue).
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       double norm_type = 2.0, bool error_if_nonfinite = false);
double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
// Clamps every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
void clip_grad_value_(Tensor parameter, double clip_value);

// One vector of all elements, and back into the parameters (in place, outside autograd).
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace fornax::nn::utils
