// Softmax and its logarithm along a dimension.
#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void softmax_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_float(x.dtype()), kType, f.op.name(), ": expected a floating tensor, got ",
           x.dtype());
  wrap_dim(f.args.integer(1), x.dim(), f.op.name());
  bool widen = f.args.flag(2);
  FX_CHECK(!widen || is_reduced_float(x.dtype()), kType, f.op.name(),
           ": half_to_float needs a 16-bit input, got ", x.dtype());
  f.outs.push_back(Meta(widen ? Dtype::kF32 : x.dtype(), x.sizes(), x.device()));
}

void backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &y = f.args.tensor(1);
  FX_CHECK(g.sizes() == y.sizes(), kShape, f.op.name(), ": gradient ", g.sizes(), " and result ",
           y.sizes(), " differ");
  wrap_dim(f.args.integer(2), y.dim(), f.op.name());
  f.outs.push_back(Meta(f.args.dtype(3, y.dtype()), y.sizes(), y.device()));
}

Tensor along(const Tensor& x, int64_t dim) { return x.dim() ? x.sum({dim}, true) : x; }

// What is subtracted before exp: the largest element, which needs no gradient.
Tensor shifted(const Tensor& x, int64_t dim) {
  if (x.numel() == 0) return x;
  Tensor high = x.dim() ? amax(x.detach(), {dim}, true) : x.detach();
  return x.sub(high.masked_fill(high.eq(-INFINITY), 0));
}

void softmax_body(Call& c) {
  Tensor x = c.args.flag(2) ? c.args.tensor(0).to(Dtype::kF32) : c.args.tensor(0);
  Tensor e = shifted(x, c.args.integer(1)).exp();
  c.outs = {e.div(along(e, c.args.integer(1)))};
}
void log_softmax_body(Call& c) {
  Tensor x = c.args.flag(2) ? c.args.tensor(0).to(Dtype::kF32) : c.args.tensor(0);
  Tensor s = shifted(x, c.args.integer(1));
  c.outs = {s.sub(along(s.exp(), c.args.integer(1)).log())};
}
void softmax_backward_body(Call& c) {
  const Tensor &g = c.args.tensor(0), &y = c.args.tensor(1);
  Tensor gy = g.mul(y);
  Tensor r = gy.sub(y.mul(along(gy, c.args.integer(2))));
  c.outs = {r.to(c.args.dtype(3, y.dtype()))};
}
void log_softmax_backward_body(Call& c) {
  const Tensor &g = c.args.tensor(0), &y = c.args.tensor(1);
  c.outs = {g.sub(y.exp().mul(along(g, c.args.integer(2)))).to(c.args.dtype(3, y.dtype()))};
}

template <const Op& backward>
void softmax_vjp(Vjp& v) {
  v.set(0, call1(backward, {v.grad(), v.out(0), v.args()[1], v.meta(0).dtype}));
}

// Dimension argument `at`, shifted by the batch dimension; all tensors batched.
template <int at>
void softmax_vmap(Vmapped& v) {
  SmallVec<Arg, 4> args(v.args().begin(), v.args().end());
  SmallVec<Tensor, 2> operands;
  int64_t rank = v.dim(0);
  for (int i = 0; i < at; ++i) {
    Tensor t = v.dim0(i);
    operands.push_back(rank ? t : t.reshape({v.size, 1}));
  }
  for (int i = 0; i < at; ++i) args[size_t(i)] = Arg(operands[size_t(i)]);
  args[at] = Arg(wrap_dim(args[at].i, rank, v.call.op.name()) + 1);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  if (rank == 0) v.call.outs[0] = v.call.outs[0].reshape({v.size});
  v.out_bdims.assign(1, 0);
}

// The user's forms: convert first; a 16-bit input widens within the kernel.
void call_softmax(Call& c, const Op& op) {
  const Tensor& x = c.args.tensor(0);
  Dtype d = c.args.dtype(2, x.dtype());
  bool widen = is_reduced_float(x.dtype()) && d == Dtype::kF32;
  c.outs = {call1(op, {widen ? x : x.to(d), c.args[1], Arg(widen)})};
}

void safe_softmax_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  int64_t dim = c.args.integer(1);
  Dtype d = c.args.dtype(2, x.dtype());
  Tensor y = x.softmax(dim, d);
  Tensor hidden = x.eq(-INFINITY);
  c.outs = {y.masked_fill(x.dim() ? hidden.all(dim, true) : hidden, 0)};
}

}  // namespace

constexpr Op _softmax_backward_data_op{
    .schema =
        "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype) -> Tensor",
    .doc = "output * (grad - sum(grad * output)).",
    .kind = OpKind::kComposite,
    .infer = backward_infer,
    .body = softmax_backward_body,
    .vmap = softmax_vmap<2>};
constexpr Op _log_softmax_backward_data_op{
    .schema =
        "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype) -> Tensor",
    .doc = "grad - exp(output) * sum(grad).",
    .kind = OpKind::kComposite,
    .infer = backward_infer,
    .body = log_softmax_backward_body,
    .vmap = softmax_vmap<2>};
constexpr Op _softmax_op{
    .schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "exp(x) / sum(exp(x)) along a dimension; half_to_float gives float32 results.",
    .kind = OpKind::kComposite,
    .infer = softmax_infer,
    .body = softmax_body,
    .vjp = softmax_vjp<_softmax_backward_data_op>,
    .saves = saves_result_only,
    .vmap = softmax_vmap<1>};
constexpr Op _log_softmax_op{
    .schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .doc = "x - log(sum(exp(x))) along a dimension; half_to_float gives float32 results.",
    .kind = OpKind::kComposite,
    .infer = softmax_infer,
    .body = log_softmax_body,
    .vjp = softmax_vjp<_log_softmax_backward_data_op>,
    .saves = saves_result_only,
    .vmap = softmax_vmap<1>};
constexpr Op softmax_op{
    .schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "exp(x) / sum(exp(x)) along a dimension, after conversion to dtype.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_softmax(c, _softmax_op); }};
constexpr Op log_softmax_op{
    .schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "x - log(sum(exp(x))) along a dimension, after conversion to dtype.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { call_softmax(c, _log_softmax_op); }};
constexpr Op _safe_softmax_op{
    .schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .doc = "softmax() that is 0 where every element is -inf.",
    .kind = OpKind::kComposite,
    .body = safe_softmax_body};

}  // namespace fornax
