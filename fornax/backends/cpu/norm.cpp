// Layer, RMS and batch normalisation.
#include <algorithm>
#include <cmath>

#include "fornax/backends/cpu/fold.h"
#include "fornax/backends/cpu/kernels/norm_kernels.h"
#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/ops/records.h"

namespace fornax {

namespace isa_v3 {
void set_norms(cpu::NormTable& table);
}
namespace isa_v4 {
void set_norms(cpu::NormTable& table);
}

namespace cpu {
namespace {

constexpr int64_t kGrain = int64_t(1) << 14;

const NormLoops& norm_loops(Dtype dtype) {
  static const NormTable table = [] {
    NormTable t;
    active_isa() == Isa::kV4 ? isa_v4::set_norms(t) : isa_v3::set_norms(t);
    return t;
  }();
  return table.loops[int(dtype)];
}

// The type that the loops compute x's dtype in.
Dtype compute_dtype(const Tensor& x) {
  return x.dtype() == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
}
Tensor parameter(const Tensor& t, Dtype d) { return t.defined() ? cast_to(t, d) : t; }

// `out` if it has this dtype, else a temporary that finish() casts into it.
Tensor target_of(const Tensor& out, Dtype d) {
  return out.dtype() == d ? out : make_tensor(Meta(d, out.sizes(), out.device()));
}
void finish(const Tensor& out, const Tensor& target) {
  if (!target.is_same(out)) copy_elements(out, target);
}

// ---- layer norm

int64_t row_length(IntArrayRef shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

void run_layer_norm(const Tensor& x, IntArrayRef shape, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& out, const Tensor* mean, const Tensor& rstd) {
  Dtype d = compute_dtype(x);
  int64_t n = row_length(shape), rows = rstd.numel();
  if (x.numel() == 0) {
    // Statistics of no elements.
    if (mean && mean->numel()) mean->fill_(Scalar(0));
    if (rstd.numel()) rstd.fill_(Scalar(n == 0 ? NAN : 1 / std::sqrt(eps)));
    return;
  }
  Tensor w = parameter(weight, d), b = parameter(bias, d);
  Tensor means = mean ? target_of(*mean, d) : Tensor(), rstds = target_of(rstd, d);
  const NormLoops& loops = norm_loops(x.dtype());
  parallel_for(0, rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    loops.layer_norm(element_at(out, begin * n), element_at(means, begin), element_at(rstds, begin),
                     element_at(x, begin * n), element_at(w), element_at(b), end - begin, n, eps,
                     !mean);
  });
  if (mean) finish(*mean, means);
  finish(rstd, rstds);
}

void layer_norm_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  run_layer_norm(a.tensor(0), a.ints(1), a.optional(2), a.optional(3), a.real(4), outs[0], &outs[1],
                 outs[2]);
}
void rms_norm_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  run_layer_norm(a.tensor(0), a.ints(1), a.optional(2), {}, a.real(3), outs[0], nullptr, outs[1]);
}

// Sums `pieces` rows of n numbers into the first, pairwise.
template <class T>
void add_pieces(T* sums, int64_t pieces, int64_t n) {
  for (int64_t step = 1; step < pieces; step *= 2)
    for (int64_t p = 0; p + step < pieces; p += 2 * step) {
      T* to = sums + p * n;
      const T* from = sums + (p + step) * n;
      for (int64_t i = 0; i < n; ++i) to[i] += from[i];
    }
}
void add_pieces(void* sums, int64_t pieces, int64_t n, Dtype d) {
  d == Dtype::kF64 ? add_pieces(static_cast<double*>(sums), pieces, n)
                   : add_pieces(static_cast<float*>(sums), pieces, n);
}

struct LayerNormBackward {
  const Tensor &g, &x;
  Tensor mean, rstd, weight;  // of the compute dtype; mean undefined: RMS
  int64_t n;
  const Tensor& gx;
  const Tensor& g_weight;
  Tensor g_bias;  // undefined: none

  // Rows are cut into pieces by their number alone; each piece sums parameter gradients by itself.
  void run() {
    Dtype d = compute_dtype(x);
    int64_t rows = rstd.numel();
    int64_t piece = std::clamp<int64_t>((rows + 63) / 64, 16, 512);
    int64_t pieces = (rows + piece - 1) / piece, bytes = size_of(d);
    Scratch sums(2 * pieces * n * bytes);
    std::fill_n(sums.as<char>(), 2 * pieces * n * bytes, char(0));
    char* bias_sums = sums.as<char>() + pieces * n * bytes;
    const NormLoops& loops = norm_loops(x.dtype());
    int64_t grain = std::max<int64_t>(1, kGrain / (n * piece));
    parallel_for(0, pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        int64_t first = p * piece, count = std::min(piece, rows - first);
        loops.layer_norm_backward(element_at(gx, first * n), sums.as<char>() + p * n * bytes,
                                  g_bias.defined() ? bias_sums + p * n * bytes : nullptr,
                                  element_at(g, first * n), element_at(x, first * n),
                                  element_at(weight), element_at(mean, first),
                                  element_at(rstd, first), count, n, !mean.defined());
      }
    });
    store(sums.as<char>(), pieces, d, g_weight);
    if (g_bias.defined()) store(bias_sums, pieces, d, g_bias);
  }

  void store(char* sums, int64_t pieces, Dtype d, const Tensor& out) const {
    add_pieces(sums, pieces, n, d);
    Tensor to = target_of(out, d);
    std::copy_n(sums, n * size_of(d), element_at(to));
    finish(out, to);
  }
};

void layer_norm_backward_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  const Tensor& x = a.tensor(1);
  if (x.numel() == 0) {
    for (const Tensor& t : outs) t.fill_(Scalar(0));
    return;
  }
  Dtype d = compute_dtype(x);
  bool rms = outs.size() == 2;
  Tensor g = cast_to(a.tensor(0), x.dtype());
  LayerNormBackward{g,
                    x,
                    rms ? Tensor() : cast_to(a.tensor(3), d),
                    cast_to(a.tensor(rms ? 3 : 4), d),
                    parameter(a.optional(rms ? 4 : 5), d),
                    row_length(a.ints(2)),
                    outs[0],
                    outs[1],
                    rms ? Tensor() : outs[2]}
      .run();
}

// ---- batch norm

// How channels lie: runs of `area` elements of one channel each, or rows of all channels.
struct Channels {
  bool columns;
  int64_t batch, channels, area;
  int64_t rows() const { return batch * area; }
};

bool is_channels_last(const Tensor& x) {
  return (x.dim() == 4 && x.is_contiguous(MemoryFormat::ChannelsLast)) ||
         (x.dim() == 5 && x.is_contiguous(MemoryFormat::ChannelsLast3d));
}

Channels layout_of(const Tensor& x) {
  Channels c;
  c.batch = x.size(0);
  c.channels = x.size(1);
  c.area = c.batch && c.channels ? x.numel() / (c.batch * c.channels) : 0;
  c.columns = c.area == 1 || (!x.is_contiguous() && is_channels_last(x));
  return c;
}

// x itself where its layout is one of the two (and `like`'s, if given), else a copy.
Tensor laid_out(const Tensor& x, const Tensor* like = nullptr) {
  if (like && !(x.strides() == like->strides())) {
    Meta m(x.dtype(), x.sizes(), x.device());
    m.strides = Dims(like->strides().begin(), like->strides().end());
    Tensor copy = make_tensor(m);
    copy_elements(copy, x);
    return copy;
  }
  return x.is_contiguous() || is_channels_last(x) ? x : contiguous_copy(x);
}

// Numbers per channel in the compute type.
class PerChannel {
 public:
  PerChannel(Dtype d, int64_t n) : double_(d == Dtype::kF64), memory_(n * (double_ ? 8 : 4)) {}
  void set(int64_t i, double v) {
    double_ ? memory_.as<double>()[i] = v : double(memory_.as<float>()[i] = float(v));
  }
  double operator[](int64_t i) const {
    return double_ ? memory_.as<double>()[i] : double(memory_.as<float>()[i]);
  }
  const void* data() const { return memory_.data(); }

 private:
  bool double_;
  Scratch memory_;
};

// A parameter as doubles; `absent` where it is undefined.
class Parameter {
 public:
  Parameter(const Tensor& t, double absent)
      : tensor_(t.defined() ? cast_to(t, Dtype::kF64).contiguous() : t), absent_(absent) {}
  double operator[](int64_t i) const {
    return tensor_.defined() ? static_cast<const double*>(tensor_.impl()->data())[i] : absent_;
  }

 private:
  Tensor tensor_;
  double absent_;
};

// y = (x - mean) * factor + bias
void affine(const Tensor& y, const Tensor& x, const PerChannel& mean, const PerChannel& factor,
            const PerChannel& bias) {
  Channels c = layout_of(x);
  const NormLoops& loops = norm_loops(x.dtype());
  if (c.columns) {
    int64_t grain = std::max<int64_t>(1, kGrain / c.channels);
    return parallel_for(0, c.rows(), grain, [&](int64_t begin, int64_t end) {
      int64_t first = begin * c.channels;
      loops.affine_columns(element_at(y, first), element_at(x, first), end - begin, c.channels,
                           mean.data(), factor.data(), bias.data());
    });
  }
  int64_t grain = std::max<int64_t>(1, kGrain / c.area);
  parallel_for(0, c.batch * c.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t k = i % c.channels;
      loops.affine_run(element_at(y, i * c.area), element_at(x, i * c.area), c.area, mean[k],
                       factor[k], bias[k]);
    }
  });
}

// The kernel's own output where `out` lies as x does.
Tensor output_like(const Tensor& out, const Tensor& x) {
  if (out.dtype() == x.dtype() && out.strides() == x.strides()) return out;
  Meta m(x.dtype(), x.sizes(), x.device());
  m.strides = Dims(x.strides().begin(), x.strides().end());
  return make_tensor(m);
}

void normalise_channels(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const PerChannel& mean, const PerChannel& invstd, const Tensor& out) {
  Dtype d = compute_dtype(x);
  int64_t channels = x.size(1);
  Parameter w(weight, 1), b(bias, 0);
  PerChannel factor(d, channels), offset(d, channels);
  for (int64_t i = 0; i < channels; ++i) {
    factor.set(i, invstd[i] * w[i]);
    offset.set(i, b[i]);
  }
  Tensor y = output_like(out, x);
  affine(y, x, mean, factor, offset);
  finish(out, y);
}

void store_channels(const PerChannel& values, const Tensor& out) {
  Tensor wide = make_tensor(Meta(Dtype::kF64, out.sizes()));
  for (int64_t i = 0; i < out.numel(); ++i)
    static_cast<double*>(wide.impl()->data())[i] = values[i];
  copy_elements(out, wide);
}

// running = (1 - momentum) * running + momentum * value
template <class F>
void move_running(const Tensor& running, double momentum, F value) {
  Parameter old(running, 0);
  Tensor next = make_tensor(Meta(Dtype::kF64, running.sizes()));
  for (int64_t i = 0; i < running.numel(); ++i)
    static_cast<double*>(next.impl()->data())[i] = (1 - momentum) * old[i] + momentum * value(i);
  copy_elements(running, next);
}

void evaluate(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
              const Tensor& var, double eps, const Tensor& out) {
  int64_t channels = x.size(1);
  PerChannel means(compute_dtype(x), channels), invstd(compute_dtype(x), channels);
  Parameter m(mean, 0), v(var, 1);
  for (int64_t i = 0; i < channels; ++i) {
    means.set(i, m[i]);
    invstd.set(i, 1 / std::sqrt(v[i] + eps));
  }
  normalise_channels(x, weight, bias, means, invstd, out);
}

void train(const Tensor& x, Args a, ArrayRef<Tensor> outs) {
  int64_t channels = x.size(1);
  double n = double(x.numel() / channels), eps = a.real(7);
  Folded moments = fold(FoldKind::kMoments, x, ~uint64_t(2) & (~uint64_t(0) >> (64 - x.dim())));
  const double *mean = moments.reals(1), *squares = moments.reals(2);
  PerChannel means(compute_dtype(x), channels), invstd(compute_dtype(x), channels);
  for (int64_t i = 0; i < channels; ++i) {
    means.set(i, mean[i]);
    invstd.set(i, 1 / std::sqrt(squares[i] / n + eps));
  }
  normalise_channels(x, a.optional(1), a.optional(2), means, invstd, outs[0]);
  store_channels(means, outs[1]);
  store_channels(invstd, outs[2]);
  double momentum = a.real(6);
  if (a.has(3)) move_running(outs[3], momentum, [&](int64_t i) { return mean[i]; });
  if (a.has(4)) move_running(outs[4], momentum, [&](int64_t i) { return squares[i] / (n - 1); });
}

void batch_norm_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  Tensor x = laid_out(a.tensor(0));
  if (!a.flag(5)) {
    if (x.numel())
      evaluate(x, a.optional(1), a.optional(2), a.tensor(3), a.tensor(4), a.real(7), outs[0]);
    return;
  }
  if (x.numel()) return train(x, a, outs);
  PlainCalls plain;
  outs[1].fill_(Scalar(0));
  outs[2].fill_(Scalar(0));
}

void inference_kernel(const KernelContext&, Args a, ArrayRef<Tensor> outs) {
  Tensor x = laid_out(a.tensor(0));
  if (x.numel() == 0) return;
  evaluate(x, a.optional(1), a.optional(2), a.tensor(3), a.tensor(4), a.real(5), outs[0]);
}

// sums[c] = sum g, sums[channels + c] = sum g (x - mean)
void gradient_sums(const Tensor& g, const Tensor& x, const PerChannel& mean, double* sums) {
  Channels c = layout_of(x);
  const NormLoops& loops = norm_loops(x.dtype());
  if (!c.columns) {
    int64_t grain = std::max<int64_t>(1, kGrain / (c.area * c.batch));
    return parallel_for(0, c.channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        double pair[2] = {};
        for (int64_t b = 0; b < c.batch; ++b) {
          int64_t first = (b * c.channels + k) * c.area;
          loops.gradient_sums_run(pair, element_at(g, first), element_at(x, first), c.area,
                                  mean[k]);
        }
        sums[k] = pair[0];
        sums[c.channels + k] = pair[1];
      }
    });
  }
  int64_t piece = std::max<int64_t>(256, (c.rows() + 63) / 64);
  int64_t pieces = (c.rows() + piece - 1) / piece, width = 2 * c.channels;
  Scratch partial(pieces * width * 8);
  std::fill_n(partial.as<double>(), pieces * width, 0.0);
  parallel_for(0, pieces, std::max<int64_t>(1, kGrain / (piece * c.channels)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p) {
                   int64_t first = p * piece * c.channels;
                   loops.gradient_sums_columns(
                       partial.as<double>() + p * width, element_at(g, first), element_at(x, first),
                       std::min(piece, c.rows() - p * piece), c.channels, mean.data());
                 }
               });
  add_pieces(partial.as<double>(), pieces, width);
  std::copy_n(partial.as<double>(), width, sums);
}

// gx = a g + b (x - mean) + c
void combine(const Tensor& gx, const Tensor& g, const Tensor& x, const PerChannel& mean,
             const PerChannel& a, const PerChannel& b, const PerChannel& c) {
  Channels l = layout_of(x);
  const NormLoops& loops = norm_loops(x.dtype());
  if (l.columns) {
    int64_t grain = std::max<int64_t>(1, kGrain / l.channels);
    return parallel_for(0, l.rows(), grain, [&](int64_t begin, int64_t end) {
      int64_t first = begin * l.channels;
      loops.combine_columns(element_at(gx, first), element_at(g, first), element_at(x, first),
                            end - begin, l.channels, mean.data(), a.data(), b.data(), c.data());
    });
  }
  int64_t grain = std::max<int64_t>(1, kGrain / l.area);
  parallel_for(0, l.batch * l.channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t k = i % l.channels, first = i * l.area;
      loops.combine_run(element_at(gx, first), element_at(g, first), element_at(x, first), l.area,
                        mean[k], a[k], b[k], c[k]);
    }
  });
}

void batch_norm_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  if (args.tensor(1).numel() == 0) {
    for (const Tensor& t : outs) t.fill_(Scalar(0));
    return;
  }
  Tensor x = laid_out(args.tensor(1)), g = laid_out(cast_to(args.tensor(0), x.dtype()), &x);
  Dtype d = compute_dtype(x);
  int64_t channels = x.size(1);
  double n = double(x.numel() / channels);
  Parameter weight(args.optional(2), 1), means(args.tensor(3), 0), invstds(args.tensor(4), 1);
  PerChannel mean(d, channels), a(d, channels), b(d, channels), c(d, channels);
  for (int64_t k = 0; k < channels; ++k) mean.set(k, means[k]);
  Scratch memory(2 * channels * 8);
  double *sums = memory.as<double>(), *products = sums + channels;
  gradient_sums(g, x, mean, sums);
  PerChannel g_weight(Dtype::kF64, channels), g_bias(Dtype::kF64, channels);
  bool train = args.flag(5);
  for (int64_t k = 0; k < channels; ++k) {
    double r = invstds[k], factor = weight[k] * r;
    a.set(k, factor);
    b.set(k, train ? -factor * r * r * products[k] / n : 0);
    c.set(k, train ? -factor * sums[k] / n : 0);
    g_weight.set(k, products[k] * r);
    g_bias.set(k, sums[k]);
  }
  Tensor gx = output_like(outs[0], x);
  combine(gx, g, x, mean, a, b, c);
  finish(outs[0], gx);
  store_channels(g_weight, outs[1]);
  store_channels(g_bias, outs[2]);
}

}  // namespace

void register_norm(const KernelTable& table) {
  table.set(native_layer_norm_op, layer_norm_kernel);
  table.set(_fused_rms_norm_op, rms_norm_kernel);
  table.set(native_layer_norm_backward_op, layer_norm_backward_kernel);
  table.set(_fused_rms_norm_backward_op, layer_norm_backward_kernel);
  table.set(native_batch_norm_op, batch_norm_kernel, kAnyStrides | kAliasSafe);
  table.set(_batch_norm_inference_op, inference_kernel, kAnyStrides);
  table.set(native_batch_norm_backward_op, batch_norm_backward_kernel, kAnyStrides);
}

}  // namespace cpu
}  // namespace fornax
