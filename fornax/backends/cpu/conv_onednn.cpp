#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "fornax/backends/cpu/conv_engines.h"
#include "fornax/backends/cpu/lru_cache.h"
#include "fornax/backends/cpu/onednn.h"
#include "fornax/backends/cpu/scratch.h"

namespace fornax::cpu {
namespace {

using Md = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;
using Args = std::unordered_map<int, dnnl::memory>;

// Everything that a primitive depends on.
struct Key {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in_size[3], kernel[3], out_size[3], stride[3], pad[3], pad_right[3], dilation[3];
  uint64_t flags;  // dtype, layouts, spatial, pass, bias, threads
};

Key key_of(const Conv& c, ConvPass pass, bool has_bias, int threads) {
  Key k{};
  k.batch = c.batch;
  k.in_channels = c.in_channels;
  k.out_channels = c.out_channels;
  k.groups = c.groups;
  for (int i = 0; i < c.spatial; i++) {
    k.in_size[i] = c.in_size[i];
    k.kernel[i] = c.kernel[i];
    k.out_size[i] = c.out_size[i];
    k.stride[i] = c.stride[i];
    k.pad[i] = c.pad[i];
    k.pad_right[i] = c.pad_right[i];
    k.dilation[i] = c.dilation[i];
  }
  k.flags = uint64_t(c.dtype) | uint64_t(c.spatial) << 8 | uint64_t(pass) << 16 |
            uint64_t(has_bias) << 24 | uint64_t(c.in_layout) << 32 | uint64_t(c.out_layout) << 33 |
            uint64_t(c.weight_layout) << 34 | uint64_t(threads) << 40;
  return k;
}

Type type_of(Dtype d) {
  return d == Dtype::kF32 ? Type::f32 : d == Dtype::kBF16 ? Type::bf16 : Type::f16;
}

// Strides of a dense tensor [a, b, spatial...] in a layout.
Dims dense_strides(const Dims& dims, size_t channel, ConvLayout layout) {
  Dims strides(dims.size());
  int64_t next = 1;
  if (layout == ConvLayout::kChannelsLast) {
    strides[channel] = 1;
    next = dims[channel];
  }
  for (size_t i = dims.size(); i-- > 0;) {
    if (layout == ConvLayout::kChannelsLast && i == channel) continue;
    strides[i] = next;
    next *= dims[i];
  }
  return strides;
}

Dims with_sizes(Dims front, const int64_t* sizes, int spatial) {
  for (int i = 0; i < spatial; i++) front.push_back(sizes[i]);
  return front;
}

// One operand: how the caller stores it, how the primitive wants it, and the reorder between.
struct Operand {
  Md user, wanted;
  dnnl::memory outer, inner;
  dnnl::reorder reorder;  // empty: the primitive works on the caller's memory

  void prepare(const Md& user_md, const Md& wanted_md, bool written, const dnnl::engine& engine) {
    user = user_md;
    wanted = wanted_md;
    outer = dnnl::memory(user, engine, nullptr);
    if (user == wanted) {
      inner = outer;
      return;
    }
    inner = dnnl::memory(wanted, engine, nullptr);
    reorder = written ? dnnl::reorder(dnnl::reorder::primitive_desc(engine, wanted, engine, user))
                      : dnnl::reorder(dnnl::reorder::primitive_desc(engine, user, engine, wanted));
  }
  int64_t bytes() const { return reorder ? int64_t(wanted.get_size()) : 0; }
};

struct Primitive {
  dnnl::primitive primitive;  // empty: oneDNN has nothing fast
  Operand in, weight, out, bias;
  dnnl::memory scratch;
  int64_t scratch_bytes = 0;
  Args args;
};

// Descriptors of one convolution.
struct Description {
  Md in, weight, out, bias;        // the caller's
  Md any_in, any_weight, any_out;  // what the primitive may choose
  Dims stride, dilation, pad, pad_right;

  Description(const Conv& c, ConvPass pass, bool has_bias) {
    const Type type = type_of(c.dtype);
    const int64_t g = c.groups;
    const Dims in_dims = with_sizes({c.batch, c.in_channels}, c.in_size, c.spatial);
    const Dims out_dims = with_sizes({c.batch, c.out_channels}, c.out_size, c.spatial);
    const Dims flat = with_sizes({c.out_channels, c.in_channels / g}, c.kernel, c.spatial);
    in = Md(in_dims, type, dense_strides(in_dims, 1, c.in_layout));
    out = Md(out_dims, type, dense_strides(out_dims, 1, c.out_layout));
    Dims weight_dims = flat, weight_strides = dense_strides(flat, 1, c.weight_layout);
    if (g > 1) {
      weight_dims[0] /= g;
      weight_dims.insert(weight_dims.begin(), g);
      weight_strides.insert(weight_strides.begin(), weight_strides[0] * (c.out_channels / g));
    }
    weight = Md(weight_dims, type, weight_strides);
    any_weight = Md(weight_dims, type, dnnl::memory::format_tag::any);
    choose_activations(c, pass, in_dims, out_dims, type);
    if (has_bias) bias = Md({c.out_channels}, type, Dims{1});
    for (int i = 0; i < c.spatial; i++) {
      stride.push_back(c.stride[i]);
      dilation.push_back(c.dilation[i] - 1);
      pad.push_back(c.pad[i]);
      // What the last window leaves unread is no padding: oneDNN wants the exact amount.
      pad_right.push_back((c.out_size[i] - 1) * c.stride[i] + c.dilation[i] * (c.kernel[i] - 1) +
                          1 - c.in_size[i] - c.pad[i]);
    }
  }

 private:
  // Plain NCHW on both sides makes oneDNN fall back to im2col: then it may choose, and we reorder.
  void choose_activations(const Conv& c, ConvPass, const Dims& in_dims, const Dims& out_dims,
                          Type type) {
    const auto any = dnnl::memory::format_tag::any;
    const bool in_last = c.in_layout == ConvLayout::kChannelsLast;
    const bool out_last = c.out_layout == ConvLayout::kChannelsLast;
    any_in = in_last ? in : Md(in_dims, type, any);
    any_out = out_last ? out : Md(out_dims, type, any);
    if (in_last == out_last) return;
    // Mixed: both channels-last.
    any_in = Md(in_dims, type, dense_strides(in_dims, 1, ConvLayout::kChannelsLast));
    any_out = Md(out_dims, type, dense_strides(out_dims, 1, ConvLayout::kChannelsLast));
  }
};

bool is_slow(std::string_view name) {
  return name.substr(0, 3) == "ref" || name.find("gemm:ref") != std::string_view::npos;
}

template <class PrimitiveDesc>
void finish(Primitive& p, const PrimitiveDesc& pd, const Description& d, ConvPass pass,
            const dnnl::engine& engine) {
  const bool forward = pass == ConvPass::kForward, data = pass == ConvPass::kBackwardData;
  const Md in = data ? pd.diff_src_desc() : pd.src_desc();
  const Md out = forward ? pd.dst_desc() : pd.diff_dst_desc();
  const Md weight = pass == ConvPass::kBackwardWeights ? pd.diff_weights_desc() : pd.weights_desc();
  p.in.prepare(d.in, in, data, engine);
  p.out.prepare(d.out, out, forward, engine);
  p.weight.prepare(d.weight, weight, pass == ConvPass::kBackwardWeights, engine);
  p.scratch = dnnl::memory(pd.scratchpad_desc(), engine, nullptr);
  p.scratch_bytes = int64_t(pd.scratchpad_desc().get_size());
  p.args = {{data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, p.in.inner},
            {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, p.out.inner},
            {pass == ConvPass::kBackwardWeights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
             p.weight.inner},
            {DNNL_ARG_SCRATCHPAD, p.scratch}};
  if (!d.bias.is_zero()) {
    p.bias.prepare(d.bias, d.bias, !forward, engine);
    p.args.emplace(forward ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, p.bias.inner);
  }
}

Primitive make_primitive(const Conv& c, ConvPass pass, bool has_bias) {
  Primitive p;
  try {
    const dnnl::engine engine(onednn_engine(), true);
    const Description d(c, pass, has_bias);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        engine, dnnl::prop_kind::forward_training, algorithm, d.any_in, d.any_weight, d.bias,
        d.any_out, d.stride, d.dilation, d.pad, d.pad_right, attr);
    if (pass == ConvPass::kForward) {
      if (is_slow(forward.impl_info_str())) return p;
      finish(p, forward, d, pass, engine);
      p.primitive = dnnl::convolution_forward(forward);
    } else if (pass == ConvPass::kBackwardData) {
      const dnnl::convolution_backward_data::primitive_desc pd(
          engine, algorithm, d.any_in, d.any_weight, d.any_out, d.stride, d.dilation, d.pad,
          d.pad_right, forward, attr);
      if (is_slow(pd.impl_info_str())) return p;
      finish(p, pd, d, pass, engine);
      p.primitive = dnnl::convolution_backward_data(pd);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc pd(
          engine, algorithm, d.any_in, d.any_weight, d.bias, d.any_out, d.stride, d.dilation, d.pad,
          d.pad_right, forward, attr);
      if (is_slow(pd.impl_info_str())) return p;
      finish(p, pd, d, pass, engine);
      p.primitive = dnnl::convolution_backward_weights(pd);
    }
  } catch (const dnnl::error&) {
    p.primitive = dnnl::primitive();
  }
  return p;
}

void reorder_in(Operand& o, dnnl::stream& stream) {
  if (o.reorder) o.reorder.execute(stream, o.outer, o.inner);
}
void reorder_out(Operand& o, dnnl::stream& stream) {
  if (o.reorder) o.reorder.execute(stream, o.inner, o.outer);
}

int64_t padded(int64_t bytes) { return (bytes + 63) & ~int64_t(63); }

}  // namespace

bool conv_onednn(const Conv& c, ConvPass pass, const ConvArgs& args) {
  const int threads = onednn_use_threads();
  thread_local LruCache<Key, Primitive> cache(1024);
  Primitive& p = cache.get(key_of(c, pass, args.bias != nullptr, threads),
                           [&] { return make_primitive(c, pass, args.bias != nullptr); });
  if (!p.primitive) return false;
  Scratch space(padded(p.in.bytes()) + padded(p.weight.bytes()) + padded(p.out.bytes()) +
                padded(p.scratch_bytes));
  char* place = space.as<char>();
  const auto attach = [&place](Operand& o, void* data) {
    o.outer.set_data_handle(data);
    if (!o.reorder) return;
    o.inner.set_data_handle(place);
    place += padded(o.bytes());
  };
  attach(p.in, args.in);
  attach(p.weight, args.weight);
  attach(p.out, args.out);
  if (args.bias != nullptr) p.bias.outer.set_data_handle(args.bias);
  p.scratch.set_data_handle(place);
  dnnl::stream stream(onednn_stream(), true);
  if (pass != ConvPass::kBackwardData) reorder_in(p.in, stream);
  if (pass != ConvPass::kBackwardWeights) reorder_in(p.weight, stream);
  if (pass != ConvPass::kForward) reorder_in(p.out, stream);
  p.primitive.execute(stream, p.args);
  if (pass == ConvPass::kBackwardData) reorder_out(p.in, stream);
  if (pass == ConvPass::kBackwardWeights) reorder_out(p.weight, stream);
  if (pass == ConvPass::kForward) reorder_out(p.out, stream);
  stream.wait();
  return true;
}

}  // namespace fornax::cpu
