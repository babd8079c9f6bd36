// Batch and instance normalisation.
//
// mean and invstd are results with gradients of their own (see norm.cpp); running statistics are
// results that are stored into arguments.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/norm.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

// Arguments of native_batch_norm.
constexpr size_t kWeight = 1, kBias = 2, kMean = 3, kVar = 4, kTraining = 5, kMomentum = 6,
                 kEps = 7;

int64_t check_input(Args args, std::string_view call) {
  const Tensor& x = args.tensor(0);
  FX_CHECK(x.dim() >= 2, kShape, call, ": expected at least 2 dimensions, got ", x.sizes());
  FX_CHECK(is_float(x.dtype()), kType, call, ": expected a floating input, got ", x.dtype());
  int64_t channels = x.size(1);
  check_weight(args.optional(kWeight), channels, call, "a weight");
  check_weight(args.optional(kBias), channels, call, "a bias");
  check_weight(args.optional(kMean), channels, call, "a running mean");
  check_weight(args.optional(kVar), channels, call, "a running variance");
  return channels;
}

Meta like_input(const Tensor& x) {
  Meta m(x.dtype(), x.sizes(), x.device());
  MemoryFormat format = x.suggest_memory_format();
  if (!x.is_contiguous() && format != MemoryFormat::Contiguous)
    m.strides = strides_of(format, x.sizes());
  return m;
}

// 16-bit inputs keep their statistics in the parameters' dtype.
Dtype statistic_dtype(const Tensor& x, const Tensor& parameter) {
  return parameter.defined() && is_reduced_float(x.dtype()) ? parameter.dtype() : x.dtype();
}

void batch_norm_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  int64_t channels = check_input(f.args, "native_batch_norm");
  bool training = f.args.flag(kTraining);
  const Tensor &mean = f.args.optional(kMean), &var = f.args.optional(kVar);
  FX_CHECK(training || (mean.defined() && var.defined()), kValue,
           "native_batch_norm: evaluation needs running_mean and running_var");
  f.outs.push_back(like_input(x));
  Dtype d =
      statistic_dtype(x, f.args.optional(kWeight).defined() ? f.args.optional(kWeight) : mean);
  Meta statistic(d, {training ? channels : 0}, x.device());
  f.outs.push_back(statistic);
  f.outs.push_back(statistic);
  for (const Tensor* t : {&mean, &var})
    f.outs.push_back(Meta(t->defined() ? t->dtype() : d, {channels}, x.device()));
}

void inference_infer(Infer& f) {
  check_input(f.args, "batch_norm");
  f.outs.push_back(like_input(f.args.tensor(0)));
}

// {1, C, 1, ...}
Tensor per_channel(const Tensor& t, int64_t rank) {
  Dims sizes(size_t(rank), 1);
  sizes[1] = t.numel();
  return t.reshape(sizes);
}
Dims other_dims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}
Tensor widened(const Tensor& x) { return is_reduced_float(x.dtype()) ? x.to(Dtype::kF32) : x; }

// Gradients of (x - mean) * invstd * weight + bias; `train`: mean and invstd are x's own.
void backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &x = f.args.tensor(1), &weight = f.args.optional(2);
  FX_CHECK(g.sizes() == x.sizes(), kShape, "_native_batch_norm_backward: gradient ", g.sizes(),
           " and input ", x.sizes(), " differ");
  f.outs.push_back(like_input(x));
  Meta parameter(weight.defined() ? weight.dtype() : f.args.tensor(3).dtype(), {x.size(1)},
                 x.device());
  f.outs.push_back(parameter);
  f.outs.push_back(parameter);
}

void backward_body(Call& c) {
  Args a = c.args;
  const Tensor& weight = a.optional(2);
  Tensor g = widened(a.tensor(0)), x = widened(a.tensor(1));
  int64_t rank = x.dim();
  Dims others = other_dims(rank);
  Tensor mean = per_channel(widened(a.tensor(3)), rank);
  Tensor invstd = per_channel(widened(a.tensor(4)), rank);
  Tensor xhat = x.sub(mean).mul(invstd);
  Tensor gw = weight.defined() ? g.mul(per_channel(widened(weight), rank)) : g;
  Tensor gx = gw;
  if (a.flag(5)) gx = gx.sub(gw.mean(others, true)).sub(xhat.mul(gw.mul(xhat).mean(others, true)));
  Dtype d = weight.defined() ? weight.dtype() : a.tensor(3).dtype();
  c.outs = {gx.mul(invstd).to(a.tensor(1).dtype()), g.mul(xhat).sum(others).to(d),
            g.sum(others).to(d)};
}

void set_gradients(Vjp& v, const Tensor& x, const Tensor& mean, const Tensor& invstd, bool train) {
  Tensor weight = v.is_tensor(kWeight) ? v.in(kWeight) : Tensor();
  auto [gx, gw, gb] = _native_batch_norm_backward(v.grad(), x, weight, mean, invstd, train);
  v.set(0, gx);
  if (v.need(kWeight)) v.set(kWeight, gw);
  if (v.need(kBias)) v.set(kBias, gb);
}

// Gradients that reach mean and invstd themselves.
Tensor through_statistics(Vjp& v, const Tensor& x) {
  double n = x.size(1) ? double(x.numel() / x.size(1)) : 1;
  Tensor gx;
  if (v.grad(2).defined()) {
    Tensor r = v.out(2), factor = v.grad(2).mul(r.mul(r).mul(r)).mul(-1 / n);
    gx = x.sub(per_channel(v.out(1), x.dim())).mul(per_channel(factor, x.dim()));
  }
  if (v.grad(1).defined()) gx = plus(gx, per_channel(v.grad(1).div(n), x.dim()).expand(x.sizes()));
  return gx;
}

void batch_norm_vjp(Vjp& v) {
  Tensor x = v.in(0);
  if (!v.args().flag(kTraining)) {
    if (v.grad().defined())
      set_gradients(v, x, v.in(kMean), widened(v.in(kVar)).add(v.args().real(kEps)).rsqrt(), false);
    return;
  }
  if (v.grad().defined()) set_gradients(v, x, v.out(1), v.out(2), true);
  Tensor more = through_statistics(v, x);
  if (more.defined()) v.set(0, plus(v.results[0], more));
}

Saves batch_norm_saves(const SaveQuery& q) {
  return q.args.flag(kTraining) ? Saves{0b11, 0b110} : Saves{0b11011, 0};
}

void inference_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  int64_t rank = x.dim();
  Tensor factor = widened(a.tensor(kVar)).add(a.real(5)).rsqrt();
  if (a.has(kWeight)) factor = factor.mul(a.tensor(kWeight));
  Tensor y = widened(x).sub(per_channel(a.tensor(kMean), rank)).mul(per_channel(factor, rank));
  if (a.has(kBias)) y = y.add(per_channel(a.tensor(kBias), rank));
  c.outs = {y.to(x.dtype())};
}

void inference_vjp(Vjp& v) {
  Tensor invstd = widened(v.in(kVar)).add(v.args().real(5)).rsqrt();
  set_gradients(v, v.in(0), v.in(kMean), invstd, false);
}

// Batch members become channels of their own.
Tensor fold_channels(Vmapped& v, int arg) {
  Tensor t = v.dim0(arg);
  if (t.dim() == 2) return t.reshape({v.size * t.size(1)});
  Tensor moved = t.movedim(0, 1);  // [N, batch, C, ...]
  Dims sizes(moved.sizes().begin(), moved.sizes().end());
  sizes.erase(sizes.begin() + 1);
  sizes[1] *= v.size;
  return moved.reshape(sizes);
}
Tensor unfold_channels(const Tensor& t, int64_t batch) {
  Dims sizes(t.sizes().begin(), t.sizes().end());
  size_t at = sizes.size() == 1 ? 0 : 1;
  int64_t channels = sizes[at] / batch;
  sizes[at] = batch;
  sizes.insert(sizes.begin() + at + 1, channels);
  return t.reshape(sizes).movedim(int64_t(at), 0);
}

void batch_norm_vmap(Vmapped& v) {
  Args a = v.args();
  FX_CHECK(!a.flag(kTraining) || !a.has(kMean) || (v.is(kMean) && v.is(kVar)), kValue,
           "batch_norm: running statistics that are not batched can't be updated by a batched "
           "input; vmap over them, or drop them");
  SmallVec<Tensor, 5> folded;
  SmallVec<Arg, 8> args(a.begin(), a.end());
  for (int i = 0; i < 5; ++i) folded.push_back(a.has(size_t(i)) ? fold_channels(v, i) : Tensor());
  for (size_t i = 0; i < 5; ++i) args[i] = Arg(folded[i]);
  Tensors outs;
  Call k{v.call.op, Form::kNew, Args(args.data(), args.size()), outs};
  dispatch(k);
  v.call.outs.clear();
  for (const Tensor& t : outs)
    v.call.outs.push_back(t.numel() || t.dim() > 1 ? unfold_channels(t, v.size)
                                                   : t.reshape({v.size, 0}));
  if (v.call.op.writes.any && a.flag(kTraining) && a.has(kMean)) {
    a.tensor(kMean).copy_(v.call.outs[3]);
    a.tensor(kVar).copy_(v.call.outs[4]);
    v.call.outs[3] = a.tensor(kMean);
    v.call.outs[4] = a.tensor(kVar);
  }
  v.out_bdims.assign(v.call.outs.size(), 0);
}

// ---- what users call

void batch_norm_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  bool training = a.flag(kTraining);
  if (x.numel() == 0 && x.dim() < 2) {
    c.outs = {x.clone()};
    return;
  }
  if (training) {
    FX_CHECK(x.dim() < 2 || x.size(1) == 0 || x.numel() / x.size(1) != 1 || x.numel() == 0, kValue,
             "batch_norm: expected more than 1 value per channel when training, got input ",
             x.sizes());
    c.outs = {call(native_batch_norm_op, Form::kNew,
                   {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]})[0]};
    return;
  }
  FX_CHECK(a.has(kMean) && a.has(kVar), kValue,
           "batch_norm: evaluation needs running_mean and running_var");
  c.outs = {call1(_batch_norm_inference_op, {a[0], a[1], a[2], a[3], a[4], a[kEps]})};
}

void instance_norm_body(Call& c) {
  Args a = c.args;
  const Tensor& x = a.tensor(0);
  bool own = a.flag(kTraining);
  FX_CHECK(x.dim() >= 2, kShape, "instance_norm: expected at least 2 dimensions, got ", x.sizes());
  FX_CHECK(own || (a.has(kMean) && a.has(kVar)), kValue,
           "instance_norm: running_mean and running_var are needed without input statistics");
  int64_t batch = x.size(0), channels = x.size(1);
  auto repeated = [&](size_t i) {
    return a.has(i) ? a.tensor(i).expand({batch, channels}).reshape({batch * channels}) : Tensor();
  };
  Tensor weight = repeated(kWeight), bias = repeated(kBias), mean = repeated(kMean),
         var = repeated(kVar);
  if (mean.defined()) mean = mean.detach().clone();
  if (var.defined()) var = var.detach().clone();
  Dims sizes(x.sizes().begin(), x.sizes().end());
  sizes[0] = 1;
  sizes[1] = batch * channels;
  Tensor y = call(native_batch_norm_op, Form::kNew,
                  {x.reshape(sizes), weight, bias, mean, var, own, a[kMomentum], a[kEps]})[0];
  GradModeGuard no_grad(false);
  if (own && a.has(kMean)) a.tensor(kMean).copy_(mean.reshape({batch, channels}).mean({0}));
  if (own && a.has(kVar)) a.tensor(kVar).copy_(var.reshape({batch, channels}).mean({0}));
  c.outs = {y.reshape(x.sizes())};
}

void no_stats_body(Call& c) {
  Args a = c.args;
  Tensors r =
      call(native_batch_norm_op, Form::kNew, {a[0], a[1], a[2], Arg(), Arg(), a[3], a[4], a[5]});
  c.outs = {r[0], r[1], r[2]};
}

void with_update_body(Call& c) {
  Args a = c.args;
  Tensors r =
      call(native_batch_norm_op, Form::kNew, {a[0], a[1], a[2], a[3], a[4], Arg(true), a[5], a[6]});
  c.outs = {r[0], r[1], r[2], empty({0}, TensorOptions(Dtype::kU8))};
}

}  // namespace

constexpr Op native_batch_norm_op{
    .schema =
        "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, "
        "Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
        "Tensor, Tensor(a!), Tensor(b!))\n"
        "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
        "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor)",
    .doc =
        "(x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1), and when "
        "training the mean and 1 / sqrt(var + eps) of the batch, which also move the running "
        "statistics by momentum.",
    .infer = batch_norm_infer,
    .hidden = 2,
    .nondiff = 0b11000,
    .vjp = batch_norm_vjp,
    .saves = batch_norm_saves,
    .vmap = batch_norm_vmap};
constexpr Op _native_batch_norm_legit_no_stats_op{
    .schema =
        "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
        "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "native_batch_norm without running statistics.",
    .kind = OpKind::kComposite,
    .body = no_stats_body};
constexpr Op _batch_norm_with_update_op{
    .schema =
        "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
        "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    .doc = "native_batch_norm when training; the fourth result is empty.",
    .kind = OpKind::kComposite,
    .body = with_update_body};
constexpr Op _batch_norm_inference_op{
    .schema =
        "_batch_norm_inference(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
        "Tensor running_var, float eps) -> Tensor",
    .doc = "(x - running_mean) / sqrt(running_var + eps) * weight + bias per channel.",
    .kind = OpKind::kComposite,
    .infer = inference_infer,
    .body = inference_body,
    .vjp = inference_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0b11011, 0};
        },
    .vmap =
        [](Vmapped& v) {
          SmallVec<Tensor, 5> f;
          for (int i = 0; i < 5; ++i)
            f.push_back(v.args().has(size_t(i)) ? fold_channels(v, i) : Tensor());
          v.run({f[0], f[1], f[2], f[3], f[4], v.args()[5]});
          v.call.outs[0] = unfold_channels(v.call.outs[0], v.size);
        }};
constexpr Op native_batch_norm_backward_op{
    .schema =
        "_native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean, "
        "Tensor invstd, bool train) -> (Tensor, Tensor, Tensor)",
    .doc =
        "Gradients of batch normalisation by input, weight and bias; `train`: mean and invstd "
        "are those of the input.",
    .kind = OpKind::kComposite,
    .infer = backward_infer,
    .body = backward_body};
constexpr Op batch_norm_op{
    .schema =
        "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .doc =
        "Normalisation per channel (dimension 1) by the batch's statistics, which move the "
        "running ones, or by the running ones.",
    .kind = OpKind::kComposite,
    .body = batch_norm_body};
constexpr Op instance_norm_op{
    .schema =
        "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> "
        "Tensor",
    .doc = "batch_norm of each batch member by itself.",
    .kind = OpKind::kComposite,
    .body = instance_norm_body};

}  // namespace fornax
