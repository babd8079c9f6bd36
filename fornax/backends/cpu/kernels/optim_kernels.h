// Optimiser updates that are compiled once per instruction set. Serial; the elements of all
// parameters are cut into ranges in backends/cpu/optim.cpp.
#pragma once

#include <cstdint>

namespace fornax::cpu {

// `factor` multiplies the gradient first: -1 to maximise, over the loss scale.
struct SgdStep {
  double factor, weight_decay, momentum, lr, dampening;
  bool nesterov, first;
};
struct AdamStep {
  double factor, lr, beta1, beta2, weight_decay, eps;
  bool decoupled;
  double step_size, bias2_root;  // lr / (1 - beta1^t), sqrt(1 - beta2^t)
};
struct AdagradStep {
  double factor, rate, weight_decay, eps;  // rate: lr / (1 + (t - 1) * lr_decay)
};
struct RmspropStep {
  double factor, lr, alpha, eps, weight_decay, momentum;
};

// State pointers are null where the variant has no such state.
template <class T>
struct OptimLoops {
  void (*sgd)(const SgdStep&, T* p, const T* g, T* momentum, int64_t n);
  void (*adam)(const AdamStep&, T* p, const T* g, T* avg, T* sq, T* max_sq, int64_t n);
  void (*adagrad)(const AdagradStep&, T* p, const T* g, T* sum, int64_t n);
  void (*rmsprop)(const RmspropStep&, T* p, const T* g, T* sq, T* avg, T* momentum, int64_t n);
};
struct OptimKernels {
  OptimLoops<float> f32;
  OptimLoops<double> f64;
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
extern const cpu::OptimKernels optim_kernels;
}
#endif
