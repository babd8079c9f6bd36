// Optimiser updates, element by element: one pass over the parameter, its gradient and its state.
#include "fornax/backends/cpu/kernels/optim_kernels.h"

namespace fornax::FX_ISA_NS {
namespace {

using cpu::AdagradStep;
using cpu::AdamStep;
using cpu::RmspropStep;
using cpu::SgdStep;

#define FX_INLINE [[gnu::always_inline]] inline

FX_INLINE float root(float x) { return __builtin_sqrtf(x); }
FX_INLINE double root(double x) { return __builtin_sqrt(x); }

template <class T>
void sgd(const SgdStep& s, T* p, const T* g, T* momentum, int64_t n) {
  const T factor = T(s.factor), decay = T(s.weight_decay), rate = T(s.lr);
  const T mu = T(s.momentum), fresh = T(1 - s.dampening);
  auto gradient = [=](int64_t i) { return g[i] * factor + decay * p[i]; };
  if (!momentum) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) p[i] -= rate * gradient(i);
    return;
  }
  // The first step sets the buffer, so it may hold anything, NaN too.
  if (s.first) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) momentum[i] = gradient(i);
    const T scale = s.nesterov ? rate + rate * mu : rate;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) p[i] -= scale * momentum[i];
    return;
  }
  if (s.nesterov) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const T d = gradient(i);
      const T m = mu * momentum[i] + fresh * d;
      momentum[i] = m;
      p[i] -= rate * (d + mu * m);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T m = mu * momentum[i] + fresh * gradient(i);
    momentum[i] = m;
    p[i] -= rate * m;
  }
}

template <bool kMax, class T>
FX_INLINE void adam_loop(const AdamStep& s, T* p, const T* g, T* avg, T* sq, T* max_sq, int64_t n) {
  // size * m / (root(v) / bias2 + eps) with one division.
  const T factor = T(s.factor), eps = T(s.eps * s.bias2_root);
  const T size = T(s.step_size * s.bias2_root);
  const T beta1 = T(s.beta1), fresh1 = T(1 - s.beta1);
  const T beta2 = T(s.beta2), fresh2 = T(1 - s.beta2);
  const T decay = s.decoupled ? T(0) : T(s.weight_decay);
  const T keep = s.decoupled ? T(1 - s.lr * s.weight_decay) : T(1);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T old = p[i] * keep;
    const T d = g[i] * factor + decay * old;
    const T m = beta1 * avg[i] + fresh1 * d;
    const T v = beta2 * sq[i] + fresh2 * d * d;
    avg[i] = m;
    sq[i] = v;
    T most = v;
    if constexpr (kMax) {
      most = max_sq[i] > v ? max_sq[i] : v;
      max_sq[i] = most;
    }
    p[i] = old - size * m / (root(most) + eps);
  }
}

template <class T>
void adam(const AdamStep& s, T* p, const T* g, T* avg, T* sq, T* max_sq, int64_t n) {
  if (max_sq) return adam_loop<true>(s, p, g, avg, sq, max_sq, n);
  adam_loop<false>(s, p, g, avg, sq, max_sq, n);
}

template <class T>
void adagrad(const AdagradStep& s, T* p, const T* g, T* sum, int64_t n) {
  const T factor = T(s.factor), decay = T(s.weight_decay), rate = T(s.rate), eps = T(s.eps);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T d = g[i] * factor + decay * p[i];
    const T total = sum[i] + d * d;
    sum[i] = total;
    p[i] -= rate * d / (root(total) + eps);
  }
}

template <bool kCentered, bool kMomentum, class T>
FX_INLINE void rmsprop_loop(const RmspropStep& s, T* p, const T* g, T* sq, T* avg, T* momentum,
                            int64_t n) {
  const T factor = T(s.factor), decay = T(s.weight_decay), rate = T(s.lr), eps = T(s.eps);
  const T alpha = T(s.alpha), fresh = T(1 - s.alpha), mu = T(s.momentum);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T d = g[i] * factor + decay * p[i];
    T v = alpha * sq[i] + fresh * d * d;
    sq[i] = v;
    if constexpr (kCentered) {
      const T m = alpha * avg[i] + fresh * d;
      avg[i] = m;
      v -= m * m;
    }
    T step = d / (root(v) + eps);
    if constexpr (kMomentum) {
      step += mu * momentum[i];
      momentum[i] = step;
    }
    p[i] -= rate * step;
  }
}

template <class T>
void rmsprop(const RmspropStep& s, T* p, const T* g, T* sq, T* avg, T* momentum, int64_t n) {
  if (avg && momentum) return rmsprop_loop<true, true>(s, p, g, sq, avg, momentum, n);
  if (avg) return rmsprop_loop<true, false>(s, p, g, sq, avg, momentum, n);
  if (momentum) return rmsprop_loop<false, true>(s, p, g, sq, avg, momentum, n);
  rmsprop_loop<false, false>(s, p, g, sq, avg, momentum, n);
}

template <class T>
constexpr cpu::OptimLoops<T> kLoops = {sgd<T>, adam<T>, adagrad<T>, rmsprop<T>};

}  // namespace

extern const cpu::OptimKernels optim_kernels;
const cpu::OptimKernels optim_kernels = {kLoops<float>, kLoops<double>};

}  // namespace fornax::FX_ISA_NS
