// Layer, RMS and group normalisation.
//
// mean and rstd are results with gradients of their own: the reverse rule reads them, so a second
// derivative flows through them and the backward formulas may treat them as independent.
#include "fornax/ops/norm.h"

#include <limits>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {

Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a.add(b) : a;
}

void check_weight(const Tensor& weight, IntArrayRef sizes, std::string_view call,
                  std::string_view what) {
  FX_CHECK(!weight.defined() || weight.sizes() == sizes, kShape, call, ": expected ", what, " of ",
           sizes, ", got ", weight.sizes());
}

namespace {

// Arguments 0, 1, 2, 3 of the forward records.
constexpr size_t kShapeArg = 1, kWeight = 2, kBias = 3;

// Leading dimensions that stay; checks that `shape` is what x ends with.
int64_t kept_dims(const Tensor& x, IntArrayRef shape, std::string_view call) {
  int64_t kept = x.dim() - int64_t(shape.size());
  FX_CHECK(!shape.empty(), kShape, call, ": normalized_shape is empty");
  FX_CHECK(kept >= 0 && x.sizes().slice(size_t(kept), shape.size()) == shape, kShape, call,
           ": input ", x.sizes(), " does not end with normalized_shape ", shape);
  return kept;
}

Dims statistic_sizes(const Tensor& x, int64_t kept) {
  Dims sizes(x.sizes().begin(), x.sizes().begin() + kept);
  for (int64_t d = kept; d < x.dim(); ++d) sizes.push_back(1);
  return sizes;
}

// 16-bit inputs keep their statistics in the weight's dtype.
Dtype statistic_dtype(const Tensor& x, const Tensor& weight) {
  return weight.defined() && is_reduced_float(x.dtype()) ? weight.dtype() : x.dtype();
}

void layer_norm_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_float(x.dtype()), kType, f.op.name(), ": expected a floating input, got ", x.dtype());
  IntArrayRef shape = f.args.ints(kShapeArg);
  int64_t kept = kept_dims(x, shape, f.op.name());
  check_weight(f.args.optional(kWeight), shape, f.op.name(), "a weight");
  bool rms = f.op.n_returns == 2;
  if (!rms) check_weight(f.args.optional(kBias), shape, f.op.name(), "a bias");
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
  Meta statistic(statistic_dtype(x, f.args.optional(kWeight)), statistic_sizes(x, kept),
                 x.device());
  for (int k = 1; k < f.op.n_returns; ++k) f.outs.push_back(statistic);
}

Dims trailing_dims(const Tensor& x, IntArrayRef shape) {
  Dims dims;
  for (int64_t d = x.dim() - int64_t(shape.size()); d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

Tensor scaled(const Tensor& y, const Tensor& weight, const Tensor& bias) {
  Tensor r = weight.defined() ? y.mul(weight) : y;
  return bias.defined() ? r.add(bias) : r;
}

// The dtype that 16-bit inputs are computed in.
Tensor widened(const Tensor& x) { return is_reduced_float(x.dtype()) ? x.to(Dtype::kF32) : x; }

void layer_norm_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  const Tensor& weight = c.args.optional(kWeight);
  Tensor wide = widened(x);
  auto [variance, mean] = var_mean(wide, trailing_dims(x, c.args.ints(kShapeArg)), Scalar(0), true);
  Tensor rstd = variance.add(c.args.real(4)).rsqrt();
  Tensor y = scaled(wide.sub(mean).mul(rstd), weight, c.args.optional(kBias));
  Dtype d = statistic_dtype(x, weight);
  c.outs = {y.to(x.dtype()), mean.to(d), rstd.to(d)};
}

void rms_norm_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  const Tensor& weight = c.args.optional(kWeight);
  Tensor wide = widened(x);
  Tensor square = wide.square().mean(trailing_dims(x, c.args.ints(kShapeArg)), true);
  Tensor rstd = square.add(c.args.real(3)).rsqrt();
  c.outs = {scaled(wide.mul(rstd), weight, {}).to(x.dtype()), rstd.to(statistic_dtype(x, weight))};
}

// ---- reverse rules

// Gradients that reach the statistics themselves.
Tensor through_statistics(Vjp& v, Tensor gx, const Tensor& x, IntArrayRef shape, int mean,
                          int rstd) {
  double n = 1;
  for (int64_t s : shape) n *= double(s);
  if (v.grad(rstd).defined()) {
    Tensor r = v.out(rstd), centered = mean ? x.sub(v.out(mean)) : x;
    gx = plus(gx, centered.mul(v.grad(rstd).mul(r.mul(r).mul(r)).mul(-1 / n)));
  }
  if (mean && v.grad(mean).defined()) gx = plus(gx, v.grad(mean).div(n).expand(x.sizes()));
  return gx;
}

void layer_norm_vjp(Vjp& v) {
  Tensor x = v.in(0), weight = v.is_tensor(kWeight) ? v.in(kWeight) : Tensor(), gx;
  if (v.grad().defined()) {
    auto [a, b, c] = _native_layer_norm_backward(v.grad(), x, v.args().ints(kShapeArg), v.out(1),
                                                 v.out(2), weight, {});
    gx = a;
    if (v.need(kWeight)) v.set(kWeight, b);
    if (v.need(kBias)) v.set(kBias, c);
  }
  v.set(0, through_statistics(v, gx, x, v.args().ints(kShapeArg), 1, 2));
}

void rms_norm_vjp(Vjp& v) {
  Tensor x = v.in(0), weight = v.is_tensor(kWeight) ? v.in(kWeight) : Tensor(), gx;
  if (v.grad().defined()) {
    auto [a, b] = _fused_rms_norm_backward(v.grad(), x, v.args().ints(kShapeArg), v.out(1), weight);
    gx = a;
    if (v.need(kWeight)) v.set(kWeight, b);
  }
  v.set(0, through_statistics(v, gx, x, v.args().ints(kShapeArg), 0, 1));
}

// Results: gradients of input, weight, bias (the last two whether there are any or not).
void backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &x = f.args.tensor(1);
  FX_CHECK(g.sizes() == x.sizes(), kShape, f.op.name(), ": gradient ", g.sizes(), " and input ",
           x.sizes(), " differ");
  IntArrayRef shape = f.args.ints(2);
  kept_dims(x, shape, f.op.name());
  bool rms = f.op.n_returns == 2;
  const Tensor& weight = f.args.optional(rms ? 4 : 5);
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
  Meta parameter(weight.defined() ? weight.dtype() : x.dtype(), shape, x.device());
  for (int k = 1; k < f.op.n_returns; ++k) f.outs.push_back(parameter);
}

void layer_norm_backward_body(Call& c) {
  Args a = c.args;
  const Tensor& weight = a.optional(5);
  Tensor g = widened(a.tensor(0)), x = widened(a.tensor(1)), rstd = widened(a.tensor(4));
  Dims dims = trailing_dims(x, a.ints(2));
  Tensor xhat = x.sub(a.tensor(3)).mul(rstd);
  Tensor gw = weight.defined() ? g.mul(weight) : g;
  Tensor first = gw.mean(dims, true), second = gw.mul(xhat).mean(dims, true);
  Tensor gx = gw.sub(first).sub(xhat.mul(second)).mul(rstd);
  Dtype d = weight.defined() ? weight.dtype() : a.tensor(1).dtype();
  c.outs = {gx.to(a.tensor(1).dtype()), g.mul(xhat).sum_to_size(a.ints(2)).to(d),
            g.sum_to_size(a.ints(2)).to(d)};
}

void rms_norm_backward_body(Call& c) {
  Args a = c.args;
  const Tensor& weight = a.optional(4);
  Tensor g = widened(a.tensor(0)), x = widened(a.tensor(1)), rstd = widened(a.tensor(3));
  Tensor xhat = x.mul(rstd);
  Tensor gw = weight.defined() ? g.mul(weight) : g;
  Tensor second = gw.mul(xhat).mean(trailing_dims(x, a.ints(2)), true);
  Dtype d = weight.defined() ? weight.dtype() : a.tensor(1).dtype();
  c.outs = {gw.sub(xhat.mul(second)).mul(rstd).to(a.tensor(1).dtype()),
            g.mul(xhat).sum_to_size(a.ints(2)).to(d)};
}

// ---- batching: normalise without weights, then scale each batch member.
Tensor aligned(Vmapped& v, size_t arg, int64_t rank) {
  Tensor w = v.args().optional(arg);
  if (!w.defined() || !v.is(int(arg))) return w;
  Dims sizes;
  sizes.push_back(v.size);
  for (int64_t d = w.dim(); d <= rank; ++d) sizes.push_back(1);
  sizes.append(w.sizes().begin() + 1, w.sizes().end());
  return w.reshape(sizes);
}

void layer_norm_vmap(Vmapped& v) {
  Args a = v.args();
  Tensor x = v.dim0(0);
  bool rms = v.call.op.n_returns == 2;
  bool plain = !v.is(kWeight) && (rms || !v.is(kBias));
  if (plain && rms) return v.run({x, a[1], a[2], a[3]});
  if (plain) return v.run({x, a[1], a[2], a[3], a[4]});
  Tensor weight = aligned(v, kWeight, x.dim() - 1);
  if (rms) {
    auto [y, rstd] = _fused_rms_norm(x, a.ints(1), {}, a.real(3));
    v.call.outs = {scaled(y, weight, {}), rstd};
  } else {
    auto [y, mean, rstd] = native_layer_norm(x, a.ints(1), {}, {}, a.real(4));
    v.call.outs = {scaled(y, weight, aligned(v, kBias, x.dim() - 1)), mean, rstd};
  }
  v.out_bdims.assign(v.call.outs.size(), 0);
}

// ---- what users call

void layer_norm_user_body(Call& c) {
  Args a = c.args;
  Tensors r = call(native_layer_norm_op, Form::kNew, {a[0], a[1], a[2], a[3], a[4]});
  c.outs = {r[0]};
}

double epsilon_of(Dtype d) {
  switch (to_real(d)) {
    case Dtype::kF64: return std::numeric_limits<double>::epsilon();
    case Dtype::kF32: return std::numeric_limits<float>::epsilon();
    case Dtype::kF16: return 0x1p-10;
    default: return 0x1p-7;
  }
}

void rms_norm_user_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  double eps = a.real(3, epsilon_of(x.dtype()));
  if (!x.is_complex()) {
    c.outs = {call(_fused_rms_norm_op, Form::kNew, {a[0], a[1], a[2], Arg(eps)})[0]};
    return;
  }
  IntArrayRef shape = a.ints(1);
  kept_dims(x, shape, "rms_norm");
  check_weight(a.optional(2), shape, "rms_norm", "a weight");
  Tensor rstd = x.square().mean(trailing_dims(x, shape), true).add(eps).rsqrt();
  c.outs = {scaled(x.mul(rstd), a.optional(2), {})};
}

// {1, C, 1, 1, ...}
Tensor per_channel(const Tensor& weight, int64_t rank) {
  if (!weight.defined()) return weight;
  Dims sizes(size_t(rank), 1);
  sizes[1] = weight.numel();
  return weight.reshape(sizes);
}

// x as rows of one group each: (out, mean, rstd) with statistics of [N, groups].
Tensors grouped_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                     double eps) {
  int64_t batch = x.size(0), channels = x.size(1);
  FX_CHECK(groups > 0 && channels % groups == 0, kValue, "group_norm: ", channels,
           " channels can't be split into ", groups, " groups");
  check_weight(weight, channels, "group_norm", "a weight");
  check_weight(bias, channels, "group_norm", "a bias");
  int64_t row = batch && groups ? x.numel() / (batch * groups) : 0;
  auto [y, mean, rstd] = native_layer_norm(x.reshape({batch * groups, row}), row, {}, {}, eps);
  Tensor out =
      scaled(y.reshape(x.sizes()), per_channel(weight, x.dim()), per_channel(bias, x.dim()));
  return {out.to(x.dtype()), mean.reshape({batch, groups}), rstd.reshape({batch, groups})};
}

void group_norm_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  FX_CHECK(x.dim() >= 2, kShape, "group_norm: expected at least 2 dimensions, got ", x.sizes());
  c.outs = {grouped_norm(x, a.integer(1), a.optional(2), a.optional(3), a.real(4))[0]};
}

void native_group_norm_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  int64_t n = a.integer(3), channels = a.integer(4), area = a.integer(5);
  FX_CHECK(x.numel() == n * channels * area, kShape, "native_group_norm: input ", x.sizes(),
           " is not ", n, " x ", channels, " x ", area);
  Tensors r = grouped_norm(x.reshape({n, channels, area}), a.integer(6), a.optional(1),
                           a.optional(2), a.real(7));
  c.outs = {r[0].reshape(x.sizes()), r[1], r[2]};
}

}  // namespace

constexpr Op native_layer_norm_op{
    .schema =
        "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
        "float eps) -> (Tensor, Tensor, Tensor)",
    .doc =
        "(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions, mean, and "
        "1 / sqrt(var + eps).",
    .kind = OpKind::kComposite,
    .infer = layer_norm_infer,
    .body = layer_norm_body,
    .vjp = layer_norm_vjp,
    .saves =
        [](const SaveQuery& q) {
          return Saves{q.need & 0b101 ? 0b101u : 0b001u, 0b110};
        },
    .vmap = layer_norm_vmap};
constexpr Op native_layer_norm_backward_op{
    .schema =
        "_native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
        "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias) -> (Tensor, Tensor, Tensor)",
    .doc = "Gradients of native_layer_norm by input, weight and bias.",
    .kind = OpKind::kComposite,
    .infer = backward_infer,
    .body = layer_norm_backward_body};
constexpr Op layer_norm_op{
    .schema =
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? "
        "bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    .doc = "(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions.",
    .kind = OpKind::kComposite,
    .body = layer_norm_user_body};
constexpr Op _fused_rms_norm_op{
    .schema =
        "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> "
        "(Tensor, Tensor)",
    .doc = "x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions, and the factor.",
    .kind = OpKind::kComposite,
    .infer = layer_norm_infer,
    .body = rms_norm_body,
    .vjp = rms_norm_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0b101, 0b10};
        },
    .vmap = layer_norm_vmap};
constexpr Op _fused_rms_norm_backward_op{
    .schema =
        "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor "
        "rstd, Tensor? weight) -> (Tensor, Tensor)",
    .doc = "Gradients of _fused_rms_norm by input and weight.",
    .kind = OpKind::kComposite,
    .infer = backward_infer,
    .body = rms_norm_backward_body};
constexpr Op rms_norm_op{
    .schema =
        "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) "
        "-> Tensor",
    .doc =
        "x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions; eps is the dtype's "
        "if absent.",
    .kind = OpKind::kComposite,
    .body = rms_norm_user_body};
constexpr Op group_norm_op{
    .schema =
        "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    .doc = "Normalisation over groups of channels (dimension 1) and all positions.",
    .kind = OpKind::kComposite,
    .body = group_norm_body};
constexpr Op native_group_norm_op{
    .schema =
        "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int "
        "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "group_norm with its mean and 1 / sqrt(var + eps).",
    .kind = OpKind::kComposite,
    .body = native_group_norm_body};

}  // namespace fornax
