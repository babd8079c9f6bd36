// Kernels of the pooling records: tensors to the Pool interface.
#include "fornax/backends/cpu/pool.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/core/copy.h"
#include "fornax/ops/pool.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

bool is_channels_last(const Tensor& t) {
  if (t.is_contiguous()) return false;
  return (t.dim() == 4 && t.is_contiguous(MemoryFormat::ChannelsLast)) ||
         (t.dim() == 5 && t.is_contiguous(MemoryFormat::ChannelsLast3d));
}

// `t` in the layout of `like`, copied if it isn't.
Tensor in_layout(const Tensor& t, const Tensor& like, bool last) {
  bool plain = !t.is_conj() && !t.is_neg();
  if (plain && (last ? is_channels_last(t) : t.is_contiguous())) return t;
  Meta m(t.dtype(), t.sizes());
  if (last)
    m.strides = strides_of(
        like.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, t.sizes());
  Tensor copy = make_tensor(m);
  copy_elements(copy, t);
  return copy;
}

Pool geometry(IntArrayRef in, IntArrayRef out, const PoolParams& p, Dtype dtype, bool last) {
  Pool pool;
  pool.dtype = dtype;
  pool.layout = last ? ConvLayout::kChannelsLast : ConvLayout::kContiguous;
  pool.spatial = int(p.spatial);
  pool.adaptive = p.adaptive();
  size_t lead = in.size() - size_t(p.spatial);
  pool.batch = lead == 2 ? in[0] : 1;
  pool.channels = in[lead - 1];
  for (size_t d = 0; d < size_t(p.spatial); ++d) {
    pool.in_size[d] = in[lead + d];
    pool.out_size[d] = out[lead + d];
    if (p.adaptive()) continue;
    pool.kernel[d] = p.kernel[d];
    pool.stride[d] = p.stride[d];
    pool.pad[d] = p.padding[d];
    pool.dilation[d] = p.dilation[d];
  }
  pool.count_include_pad = p.count_include_pad;
  pool.divisor = p.divisor;
  return pool;
}

void pool_max_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  if (outs[0].numel() == 0) return;
  bool last = is_channels_last(outs[0]);
  Tensor x = in_layout(args.tensor(0), outs[0], last);
  Pool p = geometry(x.sizes(), outs[0].sizes(), max_pool_params(args), x.dtype(), last);
  max_pool_forward(p, x.impl()->data(), outs[0].impl()->data(),
                   static_cast<int64_t*>(outs[1].impl()->data()));
}

void pool_max_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  bool last = is_channels_last(out);
  Tensor g = in_layout(args.tensor(0), out, last), indices = in_layout(args.tensor(1), out, last);
  PoolParams p;
  p.spatial = args.integer(3);
  p.output.assign(g.sizes().end() - p.spatial, g.sizes().end());
  Pool pool = geometry(out.sizes(), g.sizes(), p, out.dtype(), last);
  max_pool_backward(pool, g.impl()->data(), static_cast<const int64_t*>(indices.impl()->data()),
                    out.impl()->data());
}

void pool_average_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  if (outs[0].numel() == 0) return;
  bool last = is_channels_last(outs[0]);
  Tensor x = in_layout(args.tensor(0), outs[0], last);
  Pool p = geometry(x.sizes(), outs[0].sizes(), average_pool_params(args, 1), x.dtype(), last);
  avg_pool_forward(p, x.impl()->data(), outs[0].impl()->data());
}

void pool_average_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  if (outs[0].numel() == 0) return;
  bool last = is_channels_last(outs[0]);
  Tensor g = in_layout(args.tensor(0), outs[0], last);
  Pool p = geometry(outs[0].sizes(), g.sizes(), average_pool_params(args, 2), g.dtype(), last);
  avg_pool_backward(p, g.impl()->data(), outs[0].impl()->data());
}

// Results are dense in one of the two layouts; any other target gets a copy of them.
template <KernelFn kernel>
void into_dense(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  bool dense = true;
  for (const Tensor& t : outs) dense = dense && (t.is_contiguous() || is_channels_last(t));
  // Several results lie alike.
  for (const Tensor& t : outs) dense = dense && t.is_contiguous() == outs[0].is_contiguous();
  if (dense) return kernel(context, args, outs);
  Tensors plain;
  for (const Tensor& t : outs) plain.push_back(make_tensor(Meta(t.dtype(), t.sizes(), t.device())));
  kernel(context, args, plain);
  for (size_t i = 0; i < outs.size(); ++i) copy_elements(outs[i], plain[i]);
}

}  // namespace

void register_pooling(const KernelTable& table) {
  table.set(pool_max_op, into_dense<pool_max_kernel>, kAnyStrides | kConjAware);
  table.set(pool_max_backward_op, into_dense<pool_max_backward_kernel>, kAnyStrides | kConjAware);
  table.set(pool_average_op, into_dense<pool_average_kernel>, kAnyStrides | kConjAware);
  table.set(pool_average_backward_op, into_dense<pool_average_backward_kernel>,
            kAnyStrides | kConjAware);
}

}  // namespace fornax::cpu
