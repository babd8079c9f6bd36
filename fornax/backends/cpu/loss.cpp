// Negative log likelihood and cross entropy over rows of classes.
#include <algorithm>
#include <cmath>

#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/backends/cpu/softmax.h"
#include "fornax/base/threads.h"
#include "fornax/ops/loss.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

constexpr int64_t kGrain = int64_t(1) << 14;

// What both losses read of a call: targets as int64, weights as double.
struct Targets {
  Tensor target, weight;
  int64_t rows, classes, ignored;

  Targets(const Tensor& t, const Tensor& w, int64_t n_classes, int64_t ignore_index)
      : target(cast_to(t, Dtype::kI64)),
        weight(w.defined() ? cast_to(w, Dtype::kF64) : w),
        rows(t.numel()),
        classes(n_classes),
        ignored(ignore_index) {
    for (int64_t r = 0; r < rows; ++r)
      FX_CHECK(is_ignored(r) || (class_of(r) >= 0 && class_of(r) < classes), kIndex,
               "cross entropy or nll_loss: target ", class_of(r), " of row ", r,
               " is out of range for ", classes, " classes");
  }
  int64_t class_of(int64_t r) const {
    return static_cast<const int64_t*>(target.impl()->data())[r];
  }
  bool is_ignored(int64_t r) const { return class_of(r) == ignored; }
  // Weight of the row's class; 0 for an ignored row.
  double weight_of(int64_t r) const {
    if (is_ignored(r)) return 0;
    return weight.defined() ? static_cast<const double*>(weight.impl()->data())[class_of(r)] : 1;
  }
  double total() const {
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += weight_of(r);
    return sum;
  }
};

double read(const Tensor& t, int64_t i) {
  switch (t.dtype()) {
    case Dtype::kF32: return static_cast<const float*>(t.impl()->data())[i];
    case Dtype::kF64: return static_cast<const double*>(t.impl()->data())[i];
    case Dtype::kBF16: return float(static_cast<const BFloat16*>(t.impl()->data())[i]);
    default: return float(static_cast<const Half*>(t.impl()->data())[i]);
  }
}
void write(const Tensor& t, int64_t i, double v) {
  switch (t.dtype()) {
    case Dtype::kF32: static_cast<float*>(t.impl()->data())[i] = float(v); return;
    case Dtype::kF64: static_cast<double*>(t.impl()->data())[i] = v; return;
    case Dtype::kBF16: static_cast<BFloat16*>(t.impl()->data())[i] = BFloat16(float(v)); return;
    default: static_cast<Half*>(t.impl()->data())[i] = Half(float(v)); return;
  }
}

// Stores the losses of rows, or their sum or mean.
void store_losses(const double* losses, int64_t rows, double total, Reduction r,
                  const Tensor& out) {
  if (r == Reduction::kNone) {
    for (int64_t i = 0; i < rows; ++i) write(out, i, losses[i]);
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i) sum += losses[i];
  write(out, 0, r == Reduction::kMean ? sum / total : sum);
}

void nll_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  const Tensor& x = a.tensor(0);
  Targets t(a.tensor(1), a.optional(2), x.size(1), a.integer(4));
  Scratch losses(t.rows * 8);
  for (int64_t r = 0; r < t.rows; ++r)
    losses.as<double>()[r] =
        t.is_ignored(r) ? 0 : -t.weight_of(r) * read(x, r * t.classes + t.class_of(r));
  double total = t.total();
  store_losses(losses.as<double>(), t.rows, total, Reduction(a.integer(3)), outs[0]);
  write(outs[1], 0, total);
}

// The gradient of one unit of row r's loss.
double row_gradient(const Tensor& g, int64_t r, Reduction reduction, const Tensor& total) {
  if (reduction == Reduction::kNone) return read(g, r);
  return reduction == Reduction::kMean ? read(g, 0) / read(total, 0) : read(g, 0);
}

void nll_backward_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  Targets t(a.tensor(1), a.optional(2), a.integer(6), a.integer(4));
  std::fill_n(element_at(outs[0]), outs[0].nbytes(), char(0));
  for (int64_t r = 0; r < t.rows; ++r) {
    if (t.is_ignored(r)) continue;
    double g = row_gradient(a.tensor(0), r, Reduction(a.integer(3)), a.tensor(5));
    write(outs[0], r * t.classes + t.class_of(r), -g * t.weight_of(r));
  }
}

void cross_entropy_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  const Tensor& x = a.tensor(0);
  Targets t(a.tensor(1), a.optional(2), x.size(1), a.integer(4));
  double smoothing = a.real(5), n = double(t.classes);
  Scratch memory(3 * t.rows * 8);
  double *losses = memory.as<double>(), *lse = losses + t.rows, *sums = lse + t.rows;
  const SoftmaxLoops& loops = softmax_loops(x.dtype());
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(t.classes, 1));
  parallel_for(0, t.rows, grain, [&](int64_t begin, int64_t end) {
    loops.log_sum_exp(lse + begin, smoothing > 0 ? sums + begin : nullptr,
                      element_at(x, begin * t.classes), end - begin, t.classes);
    for (int64_t r = begin; r < end; ++r) {
      write(outs[1], r, lse[r]);
      losses[r] = 0;
      if (t.is_ignored(r)) continue;
      double hit = lse[r] - read(x, r * t.classes + t.class_of(r));
      losses[r] = (1 - smoothing) * t.weight_of(r) * hit;
      if (smoothing > 0) losses[r] += smoothing * (lse[r] - sums[r] / n);
    }
  });
  double total = t.total();
  store_losses(losses, t.rows, total, Reduction(a.integer(3)), outs[0]);
  write(outs[2], 0, total);
}

void cross_entropy_backward_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  const Tensor& x = a.tensor(1);
  const Tensor& gx = outs[0];
  Targets t(a.tensor(2), a.optional(3), x.size(1), a.integer(7));
  Reduction reduction = Reduction(a.integer(6));
  double smoothing = a.real(8), n = double(t.classes);
  const SoftmaxLoops& loops = softmax_loops(x.dtype());
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(t.classes, 1));
  parallel_for(0, t.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t first = r * t.classes;
      if (t.is_ignored(r)) {
        std::fill_n(element_at(gx, first), t.classes * gx.element_size(), char(0));
        continue;
      }
      double g = row_gradient(a.tensor(0), r, reduction, a.tensor(5));
      double share = (1 - smoothing) * t.weight_of(r), lse = read(a.tensor(4), r);
      int64_t k = first + t.class_of(r);
      double hit = std::exp(read(x, k) - lse) * (share + smoothing) - smoothing / n - share;
      loops.cross_entropy_backward(element_at(gx, first), element_at(x, first), t.classes, lse,
                                   g * (share + smoothing), g * smoothing / n);
      write(gx, k, g * hit);
    }
  });
}

}  // namespace

void register_loss(const KernelTable& table) {
  table.set(_nll_op, nll_kernel);
  table.set(_nll_backward_op, nll_backward_kernel);
  table.set(_cross_entropy_op, cross_entropy_kernel);
  table.set(_cross_entropy_backward_op, cross_entropy_backward_kernel);
}

}  // namespace fornax::cpu
