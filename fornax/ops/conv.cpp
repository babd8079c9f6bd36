// Convolutions of one to three dimensions. One record and its gradient, which is differentiable
// itself; conv1d … are spellings of it.
#include "fornax/ops/conv.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

// Argument positions: convolution(input, weight, bias, stride, padding, dilation, transposed,
// output_padding, groups) and convolution_backward(grad_output, input, weight, bias_sizes, stride,
// ...): the same, one further on.
constexpr size_t kForwardStride = 3, kBackwardStride = 4, kOutputMask = 10;

int64_t at(IntArrayRef list, size_t d) { return list.size() == 1 ? list[0] : list[d]; }

void check_list(std::string_view name, const char* what, IntArrayRef list, int64_t spatial,
                int64_t least) {
  FX_CHECK(list.size() == 1 || int64_t(list.size()) == spatial, kShape, name, ": ", what, " has ",
           list.size(), " values for ", spatial, " spatial dimensions");
  for (int64_t v : list)
    FX_CHECK(v >= least && v <= (int64_t(1) << 31), kValue, name, ": ", what, " must be at least ",
             least, ", got ", list);
}

}  // namespace

ConvParams conv_params(Args args, size_t first, int64_t spatial) {
  ConvParams p;
  p.stride = args.ints(first);
  p.padding = args.ints(first + 1);
  p.dilation = args.ints(first + 2);
  p.transposed = args.flag(first + 3);
  p.output_padding = args.ints(first + 4);
  p.groups = args.integer(first + 5);
  check_list("convolution", "stride", p.stride, spatial, 1);
  check_list("convolution", "padding", p.padding, spatial, 0);
  check_list("convolution", "dilation", p.dilation, spatial, 1);
  if (p.transposed) check_list("convolution", "output_padding", p.output_padding, spatial, 0);
  FX_CHECK(p.groups > 0, kValue, "convolution: groups must be positive, got ", p.groups);
  return p;
}

Dims conv_output_sizes(const Tensor& x, const Tensor& w, const ConvParams& p) {
  int64_t spatial = x.dim() - 2;
  Dims out;
  out.push_back(x.size(0));
  out.push_back(p.transposed ? w.size(1) * p.groups : w.size(0));
  for (int64_t d = 0; d < spatial; ++d) {
    size_t i = size_t(d);
    int64_t in = x.size(d + 2), reach = at(p.dilation, i) * (w.size(d + 2) - 1) + 1, size;
    if (p.transposed) {
      int64_t extra = at(p.output_padding, i), stride = at(p.stride, i);
      FX_CHECK(extra < stride || extra < at(p.dilation, i), kValue, "convolution: output_padding ",
               extra, " must be smaller than stride ", stride, " or dilation ", at(p.dilation, i));
      size = (in - 1) * stride - 2 * at(p.padding, i) + reach + extra;
    } else {
      int64_t padded = in + 2 * at(p.padding, i);
      FX_CHECK(padded >= reach, kShape, "convolution: the kernel reaches over ", reach,
               " elements at spatial dimension ", d, ", the padded input has ", padded);
      size = (padded - reach) / at(p.stride, i) + 1;
    }
    FX_CHECK(size > 0 || in == 0, kShape, "convolution: the output would have size ", size,
             " at spatial dimension ", d);
    out.push_back(size);
  }
  return out;
}

namespace {

void check_operands(const Tensor& x, const Tensor& w, const ConvParams& p) {
  FX_CHECK(w.dim() == x.dim(), kShape, "convolution: input of sizes ", x.sizes(),
           " and weight of sizes ", w.sizes(), " differ in rank");
  FX_CHECK(x.dtype() == w.dtype(), kType, "convolution: input is of ", x.dtype(), ", weight of ",
           w.dtype(), "; convert one with to()");
  int64_t channels = x.size(1);
  if (p.transposed) {
    FX_CHECK(w.size(0) == channels, kShape, "convolution: a transposed weight of sizes ", w.sizes(),
             " takes ", w.size(0), " channels, the input has ", channels);
    FX_CHECK(w.size(0) % p.groups == 0, kShape, "convolution: ", w.size(0),
             " channels can't be cut into ", p.groups, " groups");
  } else {
    FX_CHECK(w.size(1) * p.groups == channels, kShape, "convolution: weight of sizes ", w.sizes(),
             " with ", p.groups, " groups takes ", w.size(1) * p.groups,
             " channels, the input of sizes ", x.sizes(), " has ", channels);
    FX_CHECK(w.size(0) % p.groups == 0, kShape, "convolution: ", w.size(0),
             " output channels can't be cut into ", p.groups, " groups");
  }
}

Dims layout_strides(const Tensor& x, const Tensor& w, const Dims& sizes) {
  MemoryFormat format = x.suggest_memory_format();
  if (format == MemoryFormat::Contiguous) format = w.suggest_memory_format();
  return format == MemoryFormat::Contiguous ? Dims() : strides_of(format, sizes);
}

void convolution_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &w = f.args.tensor(1), &b = f.args.optional(2);
  FX_CHECK(x.dim() >= 3 && x.dim() <= 5, kShape,
           "convolution: expected an input of 3 to 5 dimensions (batch, channels, "
           "spatial ...), got sizes ",
           x.sizes());
  ConvParams p = conv_params(f.args, kForwardStride, x.dim() - 2);
  check_operands(x, w, p);
  Meta m(x.dtype(), conv_output_sizes(x, w, p), x.device());
  if (b.defined()) {
    FX_CHECK(b.dim() == 1 && b.size(0) == m.sizes[1], kShape, "convolution: bias of sizes ",
             b.sizes(), " for ", m.sizes[1], " output channels");
    FX_CHECK(b.dtype() == x.dtype(), kType, "convolution: bias is of ", b.dtype(),
             ", the input of ", x.dtype());
  }
  m.strides = layout_strides(x, w, m.sizes);
  f.outs.push_back(std::move(m));
}

void convolution_backward_infer(Infer& f) {
  const Tensor &x = f.args.tensor(1), &w = f.args.tensor(2), &g = f.args.tensor(0);
  ConvParams p = conv_params(f.args, kBackwardStride, x.dim() - 2);
  check_operands(x, w, p);
  Dims expected = conv_output_sizes(x, w, p);
  FX_CHECK(g.sizes() == IntArrayRef(expected), kShape, "convolution_backward: gradient of sizes ",
           g.sizes(), ", expected ", expected);
  IntArrayRef mask = f.args.ints(kOutputMask);
  Meta gx(x.dtype(), mask[0] ? x.sizes() : IntArrayRef({int64_t(0)}), x.device());
  Meta gw(x.dtype(), mask[1] ? w.sizes() : IntArrayRef({int64_t(0)}), x.device());
  Dims bias{mask[2] ? expected[1] : 0};
  if (mask[0]) gx.strides = layout_strides(x, w, gx.sizes);
  if (mask[1] && w.suggest_memory_format() != MemoryFormat::Contiguous)
    gw.strides = strides_of(w.suggest_memory_format(), gw.sizes);
  f.outs.push_back(std::move(gx));
  f.outs.push_back(std::move(gw));
  f.outs.push_back(Meta(x.dtype(), bias, x.device()));
}

Tensor conjugate(const Tensor& t) { return t.is_complex() ? t.conj() : t; }

void convolution_vjp(Vjp& v) {
  Args a = v.args();
  Tensor x = v.in(0), w = v.in(1);
  // What isn't needed isn't saved; its place is taken by a tensor of the same geometry that is
  // never read.
  auto stand_in = [&](const Tensor& t, int arg) {
    return t.defined() ? conjugate(t) : empty(v.meta(arg).sizes, TensorOptions(v.meta(arg).dtype));
  };
  int64_t mask[3] = {v.need(0), v.need(1), v.need(2)};
  auto [gx, gw, gb] = convolution_backward(v.grad(), stand_in(x, 0), stand_in(w, 1), std::nullopt,
                                           a.ints(3), a.ints(4), a.ints(5), a.flag(6), a.ints(7),
                                           a.integer(8), IntArrayRef(mask, 3));
  if (mask[0]) v.set(0, gx);
  if (mask[1]) v.set(1, gw);
  if (mask[2]) v.set(2, gb);
}
Saves convolution_saves(const SaveQuery& q) {
  return {(q.need & 1 ? 2u : 0u) | (q.need & 2 ? 1u : 0u), 0};
}

// convolution_backward is bilinear in (grad, weight), (grad, input) and linear in grad; so its
// gradient is made of convolutions and of itself.
void convolution_backward_vjp(Vjp& v) {
  Args a = v.args();
  const Tensor &gx = v.grad(0), &gw = v.grad(1), &gb = v.grad(2);
  Tensor g = v.in(0), x = v.in(1), w = v.in(2);
  auto conv = [&](const Tensor& in, const Tensor& weight, const Tensor& bias) {
    return convolution(in, weight, bias, a.ints(4), a.ints(5), a.ints(6), a.flag(7), a.ints(8),
                       a.integer(9));
  };
  auto back = [&](const Tensor& grad, const Tensor& in, const Tensor& weight, IntArrayRef mask) {
    return convolution_backward(grad, in, weight, std::nullopt, a.ints(4), a.ints(5), a.ints(6),
                                a.flag(7), a.ints(8), a.integer(9), mask);
  };
  if (v.need(0)) {
    Tensor sum;
    auto plus = [&sum](const Tensor& t) { sum = sum.defined() ? sum + t : t; };
    if (gx.defined() && gx.numel()) plus(conv(gx, conjugate(w), {}));
    if (gw.defined() && gw.numel()) plus(conv(conjugate(x), gw, {}));
    if (gb.defined() && gb.numel()) {
      Dims sizes(v.meta(0).sizes.size(), 1);
      sizes[1] = gb.numel();
      plus(gb.reshape(sizes).expand(v.meta(0).sizes));
    }
    v.set(0, sum);
  }
  if (v.need(1) && gw.defined() && gw.numel()) {
    Tensor shape = empty(v.meta(1).sizes, TensorOptions(v.meta(1).dtype));
    v.set(1, std::get<0>(back(conjugate(g), shape, gw, {1, 0, 0})));
  }
  if (v.need(2) && gx.defined() && gx.numel()) {
    Tensor shape = empty(v.meta(2).sizes, TensorOptions(v.meta(2).dtype));
    v.set(2, std::get<1>(back(conjugate(g), gx, shape, {0, 1, 0})));
  }
}
Saves convolution_backward_saves(const SaveQuery& q) {
  Saves s;
  if (q.need & 1) s.in |= 0b110;
  if (q.need & 0b110) s.in |= 0b001;
  return s;
}

// Tangents: bilinear in input and weight, linear in bias.
void convolution_jvp(Jvp& j) {
  Args a = j.call.args;
  Tensor sum;
  auto add_term = [&](const Tensor& x, const Tensor& w) {
    Tensor t =
        convolution(x, w, {}, a.ints(3), a.ints(4), a.ints(5), a.flag(6), a.ints(7), a.integer(8));
    sum = sum.defined() ? sum + t : t;
  };
  if (j.tangent(0).defined()) add_term(j.tangent(0), j.primal(1));
  if (j.tangent(1).defined()) add_term(j.primal(0), j.tangent(1));
  if (j.first[2] >= 0 && j.tangent(2).defined()) {
    Dims sizes(size_t(j.primal(0).dim()), 1);
    sizes[1] = j.tangent(2).numel();
    Tensor t = j.tangent(2).reshape(sizes);
    sum = sum.defined() ? sum + t : t.expand_as(j.outs[0]);
  }
  j.set(0, sum);
}

// Batched input alone: the batch joins the samples. Batched weights: it joins the groups.
void convolution_vmap(Vmapped& v) {
  Args a = v.args();
  Tensor x = a.tensor(0), w = a.tensor(1), b = a.optional(2);
  auto run = [&](const Tensor& in, const Tensor& weight, const Tensor& bias, int64_t groups) {
    return convolution(in, weight, bias, a.ints(3), a.ints(4), a.ints(5), a.flag(6), a.ints(7),
                       groups);
  };
  Tensor y;
  if (!v.is(1)) {
    Tensor bias = v.is(2) ? Tensor() : b;
    Tensor in = v.is(0) ? x.flatten(0, 1) : x;
    y = run(in, w, bias, a.integer(8));
    if (v.is(0)) y = y.unflatten(0, {v.size, x.size(1)});
  } else {
    // [B, N, C, ...] -> [N, B C, ...]; weights [B, O, I, ...] -> [B O, I, ...] under B * groups
    // groups.
    Tensor in = v.dim0(0).transpose(0, 1).flatten(1, 2);
    y = run(in, w.flatten(0, 1), Tensor(), a.integer(8) * v.size);
    y = y.unflatten(1, {v.size, y.size(1) / v.size}).transpose(0, 1);
    if (b.defined() && !v.is(2)) {
      Dims sizes(size_t(y.dim()), 1);
      sizes[2] = b.size(0);
      y = y + b.reshape(sizes);
    }
  }
  if (b.defined() && v.is(2)) {
    Dims sizes(size_t(v.dim(0)) + 1, 1);
    sizes[0] = v.size;
    sizes[2] = b.size(1);
    y = (v.is(0) || v.is(1) ? y : y.unsqueeze(0)) + b.reshape(sizes);
  }
  v.call.outs = {y};
  v.out_bdims = {0};
}

// ---- spellings
// ----------------------------------------------------------------------------------------------------
// padding "same" for stride 1: the output has the input's size; an odd total puts the extra element
// at the end.
Tensor pad_same(Tensor x, const Tensor& w, IntArrayRef dilation, Dims& padding) {
  for (int64_t d = 0; d < x.dim() - 2; ++d) {
    int64_t total = at(dilation, size_t(d)) * (w.size(d + 2) - 1);
    padding.push_back(total / 2);
    if (total % 2 == 0) continue;
    Dims sizes(x.sizes().begin(), x.sizes().end());
    sizes[size_t(d) + 2] = 1;
    x = cat({x, zeros(sizes, x.options())}, d + 2);
  }
  return x;
}

void conv_nd(Call& c, int64_t spatial) {
  Args a = c.args;
  Tensor x = a.tensor(0);
  const Tensor& w = a.tensor(1);
  FX_CHECK(x.dim() == spatial + 2 || x.dim() == spatial + 1, kShape, c.op.name(),
           ": expected an input of ", spatial + 1, " or ", spatial + 2, " dimensions, got sizes ",
           x.sizes());
  FX_CHECK(w.dim() == spatial + 2, kShape, c.op.name(), ": expected a weight of ", spatial + 2,
           " dimensions, got sizes ", w.sizes());
  bool batched = x.dim() == spatial + 2;
  if (!batched) x = x.unsqueeze(0);
  Dims padding;
  if (a[4].tag == Tag::kString) {
    FX_CHECK(a.text(4) == "same" || a.text(4) == "valid", kValue, c.op.name(),
             ": padding must be same, valid or numbers, got '", a.text(4), "'");
    if (a.text(4) == "same") {
      for (int64_t s : a.ints(3))
        FX_CHECK(s == 1, kValue, c.op.name(), ": padding same needs stride 1, got ", a.ints(3));
      x = pad_same(x, w, a.ints(5), padding);
    } else {
      padding.push_back(0);
    }
  } else {
    padding.append(a.ints(4).begin(), a.ints(4).end());
  }
  Tensor y =
      convolution(x, w, a.optional(2), a.ints(3), padding, a.ints(5), false, {0}, a.integer(6));
  c.outs = {batched ? y : y.squeeze(0)};
}
template <int64_t spatial>
void conv_body(Call& c) {
  conv_nd(c, spatial);
}

// conv_transposeNd(input, weight, bias, stride, padding, output_padding, groups, dilation)
template <int64_t spatial>
void conv_transpose_body(Call& c) {
  Args a = c.args;
  Tensor x = a.tensor(0);
  FX_CHECK(x.dim() == spatial + 2 || x.dim() == spatial + 1, kShape, c.op.name(),
           ": expected an input of ", spatial + 1, " or ", spatial + 2, " dimensions, got sizes ",
           x.sizes());
  bool batched = x.dim() == spatial + 2;
  if (!batched) x = x.unsqueeze(0);
  Tensor y = convolution(x, a.tensor(1), a.optional(2), a.ints(3), a.ints(4), a.ints(7), true,
                         a.ints(5), a.integer(6));
  c.outs = {batched ? y : y.squeeze(0)};
}

constexpr Op spelling(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op convolution_op{
    .schema =
        "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
        "dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    .doc =
        "Convolution [N, C, spatial ...] with [O, C / groups, kernel ...]; transposed: its "
        "adjoint.",
    .infer = convolution_infer,
    .vjp = convolution_vjp,
    .saves = convolution_saves,
    .jvp = convolution_jvp,
    .vmap = convolution_vmap};
constexpr Op convolution_backward_op{
    .schema =
        "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, "
        "int[] stride, int[] padding, "
        "int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) "
        "-> (Tensor, Tensor, Tensor)",
    .doc =
        "Gradients of a convolution to input, weight and bias, as output_mask asks; the others are "
        "empty.",
    .infer = convolution_backward_infer,
    .vjp = convolution_backward_vjp,
    .saves = convolution_backward_saves};
constexpr Op conv1d_op = spelling(
    "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
    "int[1] "
    "dilation=1, int groups=1) -> Tensor\nconv1d.padding(Tensor input, Tensor weight, Tensor? "
    "bias=None, "
    "int[1] stride=1, str padding=\"valid\", int[1] dilation=1, int groups=1) -> Tensor",
    "Convolution over [N, C, L] or [C, L].", conv_body<1>);
constexpr Op conv2d_op = spelling(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
    "int[2] "
    "dilation=1, int groups=1) -> Tensor\nconv2d.padding(Tensor input, Tensor weight, Tensor? "
    "bias=None, "
    "int[2] stride=1, str padding=\"valid\", int[2] dilation=1, int groups=1) -> Tensor",
    "Convolution over [N, C, H, W] or [C, H, W].", conv_body<2>);
constexpr Op conv3d_op = spelling(
    "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
    "int[3] "
    "dilation=1, int groups=1) -> Tensor\nconv3d.padding(Tensor input, Tensor weight, Tensor? "
    "bias=None, "
    "int[3] stride=1, str padding=\"valid\", int[3] dilation=1, int groups=1) -> Tensor",
    "Convolution over [N, C, D, H, W] or [C, D, H, W].", conv_body<3>);
constexpr Op conv_transpose1d_op = spelling(
    "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] "
    "padding=0, int[1] output_padding=0, int "
    "groups=1, int[1] dilation=1) -> Tensor",
    "Transposed convolution over [N, C, L] or [C, L].", conv_transpose_body<1>);
constexpr Op conv_transpose2d_op = spelling(
    "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
    "int[2] padding=0, int[2] "
    "output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    "Transposed convolution over [N, C, H, W] or [C, H, W].", conv_transpose_body<2>);
constexpr Op conv_transpose3d_op = spelling(
    "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
    "int[3] padding=0, int[3] "
    "output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
    "Transposed convolution over [N, C, D, H, W] or [C, D, H, W].", conv_transpose_body<3>);

}  // namespace fornax
