// Optimiser steps: one parallel loop over the elements of all parameters.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fornax/backends/cpu/kernels/optim_kernels.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/expr/loops.h"
#include "fornax/ops/records.h"

namespace fornax {

#if defined(__x86_64__)
namespace isa_v3 {
extern const cpu::OptimKernels optim_kernels;
}
namespace isa_v4 {
extern const cpu::OptimKernels optim_kernels;
}
#else
namespace isa_neon {
extern const cpu::OptimKernels optim_kernels;
}
#endif

namespace cpu {
namespace {

const OptimKernels& kernels() {
#if defined(__x86_64__)
  return active_isa() == Isa::kV4 ? isa_v4::optim_kernels : isa_v3::optim_kernels;
#else
  return isa_neon::optim_kernels;
#endif
}

template <class T>
const OptimLoops<T>& loops() {
  if constexpr (sizeof(T) == 4)
    return kernels().f32;
  else
    return kernels().f64;
}

constexpr int kStreams = 5;        // parameter, gradient and up to three states
constexpr int64_t kGrain = 16384;  // some 10 us of work
constexpr int64_t kBlock = 512;    // 16-bit elements computed at a time, in f32

struct Part {
  int64_t begin = 0;  // place of its first element in the whole list
  int64_t n = 0;
  void* stream[kStreams] = {};
  Dtype dtype = Dtype::kF32;
  int index = 0;
};

struct Plan {
  SmallVec<Part, 16> parts;
  int64_t total = 0;
  SmallVec<Tensor, 2> kept;                           // copies in another order of elements
  SmallVec<std::pair<Tensor, Tensor>, 2> write_back;  // where results of such copies go
};

bool same_order(const Tensor& a, const Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return true;
  for (size_t d = 0; d < a.sizes().size(); ++d)
    if (a.sizes()[d] != 1 && a.strides()[d] != b.strides()[d]) return false;
  return a.is_non_overlapping_and_dense();
}

// Fills part.stream. `given[s]` is what the kernel was handed, `target[s]` where the result goes.
void place(Plan& plan, Part& part, const Tensor* const* given, const Tensor* const* target) {
  bool flat = true;
  for (int s = 0; s < kStreams; ++s) {
    if (!given[s]) continue;
    bool in_place = !target[s] || given[s]->impl()->data() == target[s]->impl()->data();
    flat = flat && in_place && same_order(*given[0], *given[s]);
  }
  for (int s = 0; s < kStreams; ++s) {
    if (!given[s]) continue;
    if (flat) {
      part.stream[s] = given[s]->impl()->data();
      continue;
    }
    plan.kept.push_back(contiguous_copy(*given[s]));
    part.stream[s] = plan.kept.back().impl()->data();
    if (target[s]) plan.write_back.emplace_back(*target[s], plan.kept.back());
  }
}

// Where a stream's tensors are: argument, and the first of its flat results (-1: only read).
struct Source {
  TensorList list;
  int64_t out;
};

Plan plan_of(ArrayRef<Source> sources, ArrayRef<Tensor> outs) {
  Plan plan;
  size_t n = sources[0].list.size();
  plan.parts.reserve(n);
  for (size_t k = 0; k < n; ++k) {
    const Tensor *given[kStreams] = {}, *target[kStreams] = {};
    for (size_t s = 0; s < sources.size(); ++s) {
      if (sources[s].list.empty()) continue;
      given[s] = &sources[s].list[k];
      if (sources[s].out >= 0) target[s] = &outs[size_t(sources[s].out) + k];
    }
    if (given[0]->numel() == 0) continue;
    Part& part = plan.parts.emplace_back();
    part.begin = plan.total;
    part.dtype = to_real(given[0]->dtype());
    part.n = given[0]->numel() * (given[0]->is_complex() ? 2 : 1);
    part.index = int(k);
    place(plan, part, given, target);
    plan.total += part.n;
  }
  return plan;
}

// The lists of a call in the order parameter, gradient, states; flat results follow the written
// ones.
SmallVec<Source, kStreams> sources_of(Args args, size_t lists) {
  SmallVec<Source, kStreams> sources;
  int64_t out = 0;
  for (size_t a = 0; a < lists; ++a) {
    bool written = a != 1;
    sources.push_back({args.list(a), written ? out : -1});
    if (written) out += int64_t(args.list(a).size());
  }
  return sources;
}

template <class T>
T* at(const Part& part, int stream, int64_t from) {
  return part.stream[stream] ? static_cast<T*>(part.stream[stream]) + from : nullptr;
}

template <class Half16>
struct Widths;
template <>
struct Widths<BFloat16> {
  static void widen(float* d, const BFloat16* a, int64_t n) {
    expr::direct_loops().bf16_to_f32(d, a, n);
  }
  static void narrow(BFloat16* d, const float* a, int64_t n) {
    expr::direct_loops().f32_to_bf16(d, a, n);
  }
};
template <>
struct Widths<Half> {
  static void widen(float* d, const Half* a, int64_t n) {
    expr::direct_loops().f16_to_f32(d, a, n);
  }
  static void narrow(Half* d, const float* a, int64_t n) {
    expr::direct_loops().f32_to_f16(d, a, n);
  }
};

// Computes in f32 through buffers on the stack.
template <class S, class Update>
void update_narrow(const Part& part, int64_t from, int64_t n, const Update& update) {
  alignas(64) float buffer[kStreams][kBlock];
  for (int64_t done = 0; done < n; done += kBlock) {
    int64_t count = std::min(kBlock, n - done);
    Part block = part;
    for (int s = 0; s < kStreams; ++s) {
      if (!part.stream[s]) continue;
      Widths<S>::widen(buffer[s], at<S>(part, s, from + done), count);
      block.stream[s] = buffer[s];
    }
    update(block, 0, count, float());
    for (int s = 0; s < kStreams; ++s)
      if (part.stream[s] && s != 1)
        Widths<S>::narrow(at<S>(part, s, from + done), buffer[s], count);
  }
}

template <class Update>
void update_part(const Part& part, int64_t from, int64_t n, const Update& update) {
  switch (part.dtype) {
    case Dtype::kF32: return update(part, from, n, float());
    case Dtype::kF64: return update(part, from, n, double());
    case Dtype::kBF16: return update_narrow<BFloat16>(part, from, n, update);
    case Dtype::kF16: return update_narrow<Half>(part, from, n, update);
    default: fail(ErrorKind::kInternal, "optimiser step: no kernel for ", part.dtype);
  }
}

// update(part, first element, count, T()) on all elements, in parallel.
template <class Update>
void run_plan(const Plan& plan, const Update& update) {
  parallel_for(0, plan.total, kGrain, [&](int64_t first, int64_t last) {
    auto part = std::upper_bound(plan.parts.begin(), plan.parts.end(), first,
                                 [](int64_t at, const Part& p) { return at < p.begin; }) -
                1;
    for (; part != plan.parts.end() && part->begin < last; ++part) {
      int64_t from = std::max<int64_t>(first - part->begin, 0);
      int64_t to = std::min(last - part->begin, part->n);
      update_part(*part, from, to - from, update);
    }
  });
  for (auto& [target, value] : plan.write_back) copy_elements(target, value);
}

double value_of(const Tensor& t) {
  const void* p = t.impl()->data();
  switch (t.dtype()) {
    case Dtype::kF32: return double(*static_cast<const float*>(p));
    case Dtype::kF64: return *static_cast<const double*>(p);
    case Dtype::kI64: return double(*static_cast<const int64_t*>(p));
    default:
      fail(ErrorKind::kType,
           "optimiser step: state_steps, grad_scale and found_inf must be f32, "
           "f64 or i64, got ",
           t.dtype());
  }
}

// False: the gradients overflowed, the step is skipped.
bool begin_step(Args args, size_t scale_at, bool maximize, double& factor) {
  const Tensor &scale = args.optional(scale_at), &found_inf = args.optional(scale_at + 1);
  if (found_inf.defined() && value_of(found_inf) != 0) return false;
  factor = (maximize ? -1.0 : 1.0) / (scale.defined() ? value_of(scale) : 1.0);
  return true;
}

void sgd_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  SgdStep step{};
  if (!begin_step(args, 10, args.flag(8), step.factor)) return;
  step.weight_decay = args.real(3);
  step.momentum = args.real(4);
  step.lr = args.real(5);
  step.dampening = args.real(6);
  step.nesterov = args.flag(7);
  step.first = args.flag(9);
  bool momentum = step.momentum != 0;
  Plan plan = plan_of(sources_of(args, momentum ? 3 : 2), outs);
  run_plan(plan, [&](const Part& part, int64_t from, int64_t n, auto t) {
    using T = decltype(t);
    loops<T>().sgd(step, at<T>(part, 0, from), at<T>(part, 1, from), at<T>(part, 2, from), n);
  });
}

// The numbers of one step differ between parameters only by how many steps each has had.
template <class Step, class Fill>
SmallVec<Step, 16> steps_of_each(TensorList counts, const Step& common, Fill fill) {
  SmallVec<Step, 16> steps;
  steps.reserve(counts.size());
  double last = -1;
  for (const Tensor& count : counts) {
    double t = value_of(count);
    if (!steps.empty() && t == last) {
      steps.push_back(steps.back());
      continue;
    }
    last = t;
    Step step = common;
    fill(step, t);
    steps.push_back(step);
  }
  return steps;
}

template <bool kDecoupled>
void adam_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  AdamStep common{};
  if (!begin_step(args, 13, args.flag(12), common.factor)) return;
  common.lr = args.real(6);
  common.beta1 = args.real(7);
  common.beta2 = args.real(8);
  common.weight_decay = args.real(9);
  common.eps = args.real(10);
  common.decoupled = kDecoupled;
  auto steps = steps_of_each(args.list(5), common, [](AdamStep& s, double t) {
    s.step_size = s.lr / (1 - std::pow(s.beta1, t));
    s.bias2_root = std::sqrt(1 - std::pow(s.beta2, t));
  });
  Plan plan = plan_of(sources_of(args, args.flag(11) ? 5 : 4), outs);
  run_plan(plan, [&](const Part& part, int64_t from, int64_t n, auto t) {
    using T = decltype(t);
    loops<T>().adam(steps[size_t(part.index)], at<T>(part, 0, from), at<T>(part, 1, from),
                    at<T>(part, 2, from), at<T>(part, 3, from), at<T>(part, 4, from), n);
  });
}

void adagrad_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  AdagradStep common{};
  if (!begin_step(args, 9, args.flag(8), common.factor)) return;
  double lr = args.real(4), lr_decay = args.real(5);
  common.weight_decay = args.real(6);
  common.eps = args.real(7);
  auto steps = steps_of_each(args.list(3), common, [&](AdagradStep& s, double t) {
    s.rate = lr / (1 + (t - 1) * lr_decay);
  });
  Plan plan = plan_of(sources_of(args, 3), outs);
  run_plan(plan, [&](const Part& part, int64_t from, int64_t n, auto t) {
    using T = decltype(t);
    loops<T>().adagrad(steps[size_t(part.index)], at<T>(part, 0, from), at<T>(part, 1, from),
                       at<T>(part, 2, from), n);
  });
}

void rmsprop_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  RmspropStep step{};
  if (!begin_step(args, 11, args.flag(10), step.factor)) return;
  step.lr = args.real(5);
  step.alpha = args.real(6);
  step.eps = args.real(7);
  step.weight_decay = args.real(8);
  step.momentum = args.real(9);
  Plan plan = plan_of(sources_of(args, 5), outs);
  run_plan(plan, [&](const Part& part, int64_t from, int64_t n, auto t) {
    using T = decltype(t);
    loops<T>().rmsprop(step, at<T>(part, 0, from), at<T>(part, 1, from), at<T>(part, 2, from),
                       at<T>(part, 3, from), at<T>(part, 4, from), n);
  });
}

void foreach_add_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  double value = args.number(1).to_double();
  Plan plan = plan_of(sources_of(args, 1), outs);
  run_plan(plan, [&](const Part& part, int64_t from, int64_t n, auto t) {
    using T = decltype(t);
    T* p = at<T>(part, 0, from);
    if constexpr (sizeof(T) == 4)
      expr::direct_loops().f32.add_scalar(p, p, T(value), n);
    else
      expr::direct_loops().f64.add_scalar(p, p, T(value), n);
  });
}

}  // namespace

void register_optim(const KernelTable& table) {
  constexpr int traits = kAnyStrides | kAliasSafe;
  table.set(fused_sgd_op, sgd_kernel, traits);
  table.set(fused_adam_op, adam_kernel<false>, traits);
  table.set(fused_adamw_op, adam_kernel<true>, traits);
  table.set(fused_adagrad_op, adagrad_kernel, traits);
  table.set(fused_rmsprop_op, rmsprop_kernel, traits);
  table.set(foreach_add_op, foreach_add_kernel, traits);
}

}  // namespace cpu
}  // namespace fornax
