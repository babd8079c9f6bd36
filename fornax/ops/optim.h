// Optimiser steps over lists of tensors: one call updates every parameter of a group.
//
// Element k of every list belongs to parameter k and has its sizes and dtype (real floating or
// complex; complex numbers are updated as pairs of reals). The lists named first are written in
// place. Under grad mode a parameter that requires grad is an error: call within NoGradGuard.
// `grad_scale` divides the gradients as they are read; where `found_inf` is not zero nothing
// happens. Formulas and names: torch.optim, ATen's _fused_*_ operators.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

// Momentum buffers may be an empty list when momentum is 0; on the first step they are set, not
// read.
void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                 double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                 bool maximize, bool is_first_step, const Tensor& grad_scale = {},
                 const Tensor& found_inf = {});

// `state_steps` are one-element tensors that hold the number of this step, counted from 1;
// max_exp_avg_sqs is empty unless amsgrad.
void _fused_adam_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                  TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                  double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                  const Tensor& grad_scale = {}, const Tensor& found_inf = {});

// Adam with decoupled weight decay.
void _fused_adamw_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                   TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                   double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                   const Tensor& grad_scale = {}, const Tensor& found_inf = {});

void _fused_adagrad_(TensorList self, TensorList grads, TensorList state_sums,
                     TensorList state_steps, double lr, double lr_decay, double weight_decay,
                     double eps, bool maximize, const Tensor& grad_scale = {},
                     const Tensor& found_inf = {});

// Not in ATen. grad_avgs is empty unless centered, momentum_buffer_list unless momentum > 0.
void _fused_rmsprop_(TensorList self, TensorList grads, TensorList square_avgs,
                     TensorList grad_avgs, TensorList momentum_buffer_list, double lr, double alpha,
                     double eps, double weight_decay, double momentum, bool maximize,
                     const Tensor& grad_scale = {}, const Tensor& found_inf = {});

// Adds a number to every tensor, in place.
void _foreach_add_(TensorList self, const Scalar& scalar);

}  // namespace fornax
