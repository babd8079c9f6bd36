#include "fornax/nn/utils.h"

#include <cmath>

#include "fornax/autograd/autograd.h"
#include "fornax/ops/functions.h"

namespace fornax::nn::utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  NoGradGuard no_grad;
  bool largest = std::isinf(norm_type);
  double total = 0;
  for (const Tensor& p : parameters) {
    if (!p.grad().defined()) continue;
    double norm = p.grad().norm(norm_type).item<double>();
    if (largest)
      total = norm > total || std::isnan(norm) ? norm : total;
    else
      total += std::pow(norm, norm_type);
  }
  if (!largest) total = std::pow(total, 1 / norm_type);
  FX_CHECK(!error_if_nonfinite || std::isfinite(total), kValue,
           "clip_grad_norm_: the total norm of the gradients is not finite");
  double scale = max_norm / (total + 1e-6);
  if (scale < 1)
    for (const Tensor& p : parameters)
      if (p.grad().defined()) p.grad().mul_(scale);
  return total;
}

double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{std::move(parameter)}, max_norm, norm_type,
                         error_if_nonfinite);
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) p.grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
}

void clip_grad_value_(Tensor parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{std::move(parameter)}, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return fornax::cat(flat);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t total = 0, at = 0;
  for (const Tensor& p : parameters) total += p.numel();
  FX_CHECK(vector.dim() == 1 && vector.numel() == total, kShape,
           "vector_to_parameters: expected a 1-D tensor of ", total, " elements, got sizes ",
           vector.sizes());
  NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    p.detach().copy_(vector.narrow(0, at, p.numel()).reshape(p.sizes()));
    at += p.numel();
  }
}

}  // namespace fornax::nn::utils
