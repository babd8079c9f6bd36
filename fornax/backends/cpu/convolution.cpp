// Kernels of convolution and its gradient: tensors to the Conv interface.
#include "fornax/backends/cpu/conv.h"

#include <cstring>

#include "fornax/backends/cpu/gemm.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/core/copy.h"
#include "fornax/ops/conv.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

MemoryFormat channels_last(const Tensor& t) {
  return t.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast;
}

// A dense tensor in one of the two layouts, and which.
struct Laid {
  Tensor tensor;
  ConvLayout layout;
};

Laid lay(const Tensor& t) {
  bool plain = !t.is_conj() && !t.is_neg();
  if (plain && t.is_contiguous()) return {t, ConvLayout::kContiguous};
  if (plain && t.dim() >= 4 && t.is_contiguous(channels_last(t)))
    return {t, ConvLayout::kChannelsLast};
  return {contiguous_copy(t), ConvLayout::kContiguous};
}

int64_t at(IntArrayRef list, size_t d) { return list.size() == 1 ? list[0] : list[d]; }

// The geometry with `in` convolved to `out`; for a transposed convolution the caller has swapped
// the two.
Conv geometry(const Tensor& in, const Tensor& out, const Tensor& weight, const ConvParams& p) {
  Conv c;
  c.dtype = in.dtype();
  c.spatial = int(in.dim()) - 2;
  c.batch = in.size(0);
  c.in_channels = in.size(1);
  c.out_channels = out.size(1);
  c.groups = p.groups;
  for (int d = 0; d < c.spatial; ++d) {
    size_t i = size_t(d);
    c.in_size[d] = in.size(d + 2);
    c.out_size[d] = out.size(d + 2);
    c.kernel[d] = weight.size(d + 2);
    c.stride[d] = at(p.stride, i);
    c.dilation[d] = at(p.dilation, i);
    c.pad[d] = at(p.padding, i);
    // Symmetric where that gives the output's size; output_padding beyond the stride needs less on
    // the right.
    int64_t reach = c.dilation[d] * (c.kernel[d] - 1) + 1;
    bool symmetric = (c.in_size[d] + 2 * c.pad[d] - reach) / c.stride[d] + 1 == c.out_size[d];
    c.pad_right[d] =
        symmetric ? c.pad[d] : (c.out_size[d] - 1) * c.stride[d] + reach - c.in_size[d] - c.pad[d];
  }
  return c;
}

void zero(const Tensor& t) { std::memset(t.impl()->data(), 0, t.nbytes()); }

void fill_bias(const Tensor& out, const Tensor& bias) {
  if (!bias.defined()) return zero(out);
  Dims sizes(size_t(out.dim()), 1), strides(size_t(out.dim()), 0);
  Tensor row = bias.alias();
  sizes[1] = bias.size(0);
  strides[1] = bias.stride(0);
  row.impl()->sizes = sizes;
  row.impl()->strides = strides;
  copy_elements(out, row);
}

// Results are written straight into `target` if it lies in one of the layouts, else through a copy.
struct Result {
  Laid laid;
  const Tensor& target;
  explicit Result(const Tensor& t)
      : laid(can_write(t) ? lay(t)
                          : Laid{make_tensor(Meta(t.dtype(), t.sizes())), ConvLayout::kContiguous}),
        target(t) {}
  static bool can_write(const Tensor& t) {
    return t.is_contiguous() || (t.dim() >= 4 && t.is_contiguous(channels_last(t)));
  }
  void* data() const { return laid.tensor.impl()->data(); }
  void finish() const {
    if (!laid.tensor.is_same(target)) copy_elements(target, laid.tensor);
  }
};

void convolution_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &w = args.tensor(1), &b = args.optional(2), &y = outs[0];
  if (y.numel() == 0) return;
  if (x.numel() == 0 || w.numel() == 0) return fill_bias(y, b);
  ConvParams p = conv_params(args, 3, x.dim() - 2);
  Laid in = lay(x), weight = lay(w);
  Result out(y);
  Tensor bias =
      !b.defined() || (b.is_contiguous() && !b.is_conj() && !b.is_neg()) ? b : contiguous_copy(b);
  const void* bias_data = bias.defined() ? bias.impl()->data() : nullptr;
  Conv c = p.transposed ? geometry(y, x, w, p) : geometry(x, y, w, p);
  c.in_layout = p.transposed ? out.laid.layout : in.layout;
  c.out_layout = p.transposed ? in.layout : out.laid.layout;
  c.weight_layout = weight.layout;
  const void *in_data = in.tensor.impl()->data(), *weight_data = weight.tensor.impl()->data();
  if (p.transposed)
    conv_backward_data(c, in_data, weight_data, bias_data, out.data());
  else
    conv_forward(c, in_data, weight_data, bias_data, out.data());
  out.finish();
}

// Sum of the gradient over everything but channels, as a product with ones where the layout allows.
void bias_gradient(const Laid& g, const Tensor& out) {
  int64_t channels = g.tensor.size(1), batch = g.tensor.size(0);
  int64_t inner = channels && batch ? g.tensor.numel() / (channels * batch) : 0;
  if (inner == 0) return zero(out);
  bool last = g.layout == ConvLayout::kChannelsLast;
  int64_t rows = last ? batch * inner : inner;
  Tensor ones = make_tensor(Meta(out.dtype(), {rows}));
  Tensor one = make_tensor(Meta(out.dtype(), IntArrayRef()));
  Arg full_args[] = {Arg(IntArrayRef()), Arg(int64_t(1))};
  full_op.kernels[int(kCPU)].fn({full_op, {}}, Args(full_args, 2), ArrayRef<Tensor>(one));
  copy_elements(ones, one);
  Gemm sum;
  sum.dtype = out.dtype();
  sum.m = channels, sum.n = 1, sum.k = rows;
  sum.a_row = last ? 1 : inner, sum.a_col = last ? channels : 1;
  sum.b = ones.impl()->data(), sum.b_row = 1, sum.b_col = 1;
  sum.c = out.impl()->data(), sum.c_row = 1, sum.c_col = 1;
  const char* data = static_cast<const char*>(g.tensor.impl()->data());
  for (int64_t n = 0; n < (last ? 1 : batch); ++n) {
    sum.a = data + n * channels * inner * g.tensor.element_size();
    sum.beta = n ? 1 : 0;
    gemm(sum);
  }
}

void convolution_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &g = args.tensor(0), &x = args.tensor(1), &w = args.tensor(2);
  IntArrayRef mask = args.ints(10);
  ConvParams p = conv_params(args, 4, x.dim() - 2);
  if (g.numel() == 0 || x.numel() == 0 || w.numel() == 0) {
    for (const Tensor& t : outs)
      if (t.numel()) zero(t);
    if (mask[2] && g.numel()) bias_gradient(lay(g), outs[2]);
    return;
  }
  Laid grad = lay(g);
  Conv c = p.transposed ? geometry(g, x, w, p) : geometry(x, g, w, p);
  (p.transposed ? c.in_layout : c.out_layout) = grad.layout;
  const void* grad_data = grad.tensor.impl()->data();
  if (mask[0]) {
    Laid weight = lay(w);
    Result out(outs[0]);
    c.weight_layout = weight.layout;
    (p.transposed ? c.out_layout : c.in_layout) = out.laid.layout;
    if (p.transposed)
      conv_forward(c, grad_data, weight.tensor.impl()->data(), nullptr, out.data());
    else
      conv_backward_data(c, grad_data, weight.tensor.impl()->data(), nullptr, out.data());
    out.finish();
  }
  bool bias_done = false;
  if (mask[1]) {
    Laid in = lay(x);
    Result out(outs[1]);
    c.weight_layout = out.laid.layout;
    (p.transposed ? c.out_layout : c.in_layout) = in.layout;
    bias_done = !p.transposed && mask[2];
    if (p.transposed)
      conv_backward_weights(c, grad_data, in.tensor.impl()->data(), out.data(), nullptr);
    else
      conv_backward_weights(c, in.tensor.impl()->data(), grad_data, out.data(),
                            bias_done ? outs[2].impl()->data() : nullptr);
    out.finish();
  }
  if (mask[2] && !bias_done) bias_gradient(grad, outs[2]);
}

}  // namespace

void register_convolution(const KernelTable& table) {
  table.set(convolution_op, convolution_kernel, kAnyStrides | kConjAware);
  table.set(convolution_backward_op, convolution_backward_kernel, kAnyStrides | kConjAware);
}

}  // namespace fornax::cpu
