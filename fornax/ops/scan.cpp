// Running sums, products and extrema along a dimension.
#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void same_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  wrap_dim(f.args.integer(1), x.dim(), f.op.name());
  Dtype d = f.args.dtype(2, is_integral(x.dtype()) ? Dtype::kI64 : x.dtype());
  f.outs.push_back(Meta(d, x.sizes(), x.device()));
}

void logcumsumexp_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_differentiable(x.dtype()), kType, "logcumsumexp: expected a floating tensor, got ",
           x.dtype());
  FX_CHECK(!x.is_complex(), kUnsupported, "logcumsumexp: no complex kernel, got ", x.dtype());
  wrap_dim(f.args.integer(1), x.dim(), "logcumsumexp");
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void extremum_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(!x.is_complex(), kType, f.op.name(), ": complex numbers have no order");
  wrap_dim(f.args.integer(1), x.dim(), f.op.name());
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
  f.outs.push_back(Meta(Dtype::kI64, x.sizes(), x.device()));
}

// f along the dimension from its end.
template <class F>
Tensor reversed(const Tensor& x, int64_t dim, F f) {
  if (x.dim() == 0) return f(x);
  return f(x.flip({dim})).flip({dim});
}

Tensor reverse_cumsum(const Tensor& x, int64_t dim) {
  return reversed(x, dim, [&](const Tensor& t) { return t.cumsum(dim); });
}

void cumsum_vjp(Vjp& v) { v.set(0, reverse_cumsum(v.grad(), v.args().integer(1))); }

// x shifted by one place along dim, `first` (of size 1 there) coming in at the start or the end.
Tensor shifted(const Tensor& x, const Tensor& first, int64_t dim, bool from_end) {
  int64_t n = x.size(dim);
  if (from_end) return cat({x.narrow(dim, 1, n - 1), first}, dim);
  return cat({first, x.narrow(dim, 0, n - 1)}, dim);
}

// Exclusive products times h, where h[k] = g[k] + x[k + 1] h[k + 1]: right where x has zeros.
void cumprod_vjp(Vjp& v) {
  Tensor g = v.grad(), x = v.in(0).to(g.dtype());
  if (x.numel() == 0 || x.dim() == 0) return v.set(0, g);
  int64_t dim = wrap_dim(v.args().integer(1), x.dim());
  Tensor edge = x.narrow(dim, 0, 1);
  Tensor before = shifted(x.cumprod(dim), ones_like(edge), dim, false).conj();
  Tensor factor = shifted(x.conj(), zeros_like(edge), dim, true);
  Tensor h = _linear_recurrence(factor.flip({dim}), g.flip({dim}), dim).flip({dim});
  v.set(0, before.mul(h));
}

void recurrence_infer(Infer& f) {
  const Tensor &a = f.args.tensor(0), &x = f.args.tensor(1);
  FX_CHECK(a.sizes() == x.sizes() && a.dtype() == x.dtype(), kShape, "_linear_recurrence: factor ",
           a.sizes(), " ", a.dtype(), " and values ", x.sizes(), " ", x.dtype(), " differ");
  wrap_dim(f.args.integer(2), x.dim(), "_linear_recurrence");
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void recurrence_vjp(Vjp& v) {
  Tensor g = v.grad();
  if (g.numel() == 0 || g.dim() == 0) return v.set(1, g);
  int64_t dim = wrap_dim(v.args().integer(2), g.dim());
  Tensor a = v.in(0), edge = zeros_like(a.narrow(dim, 0, 1));
  Tensor next = shifted(a.conj(), edge, dim, true);
  Tensor h = _linear_recurrence(next.flip({dim}), g.flip({dim}), dim).flip({dim});
  v.set(1, h);
  if (v.need(0)) v.set(0, h.mul(shifted(v.out(0), edge, dim, false).conj()));
}

// Sum over later results of g exp(x - result), in logarithms, by the sign of g.
void logcumsumexp_vjp(Vjp& v) {
  Tensor x = v.in(0), result = v.out(0), g = v.grad();
  int64_t dim = v.args().integer(1);
  if (x.numel() == 0) return v.set(0, g);
  // Logarithms of what is absent are the lowest finite number: minus infinity would meet itself.
  double lowest = x.dtype() == kHalf ? -65504.0 : x.dtype() == kDouble ? -1e300 : -1e38;
  auto part = [&](const Tensor& mask, const Tensor& magnitude) {
    Tensor logs = where(mask, where(mask, magnitude, ones_like(g)).log(), full_like(g, lowest));
    Tensor sum =
        reversed(logs.sub(result), dim, [&](const Tensor& t) { return t.logcumsumexp(dim); });
    return sum.add(x).exp();
  };
  Tensor positive = part(g.gt(0), g), negative = part(g.lt(0), g.neg());
  v.set(0, positive.sub(negative));
}

void cum_extremum_vjp(Vjp& v) {
  if (!v.grad().defined()) return;
  Tensor g = v.grad();
  if (g.dim() == 0 || g.numel() == 0) return v.set(0, g);
  v.set(0, zeros_like(g).scatter_add(v.args().integer(1), v.out(1), g));
}

// A batched 0-dim operand is scanned along a dimension of one.
void scan_vmap(Vmapped& v) {
  if (v.dim(0) > 0) return shift_dim_rule(v);
  SmallVec<Arg, 4> args(v.args().begin(), v.args().end());
  Tensor x = v.args().tensor(0).reshape({v.size, 1});
  args[0] = Arg(x);
  args[1] = Arg(int64_t(1));
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  for (Tensor& t : v.call.outs) t = t.reshape({v.size});
  v.out_bdims.assign(v.call.outs.size(), 0);
}

}  // namespace

constexpr Op cumsum_op{
    .schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Running sum along a dimension; integers and bools give int64.",
    .traits = kLinearOp,
    .infer = same_infer,
    .vjp = cumsum_vjp,
    .vmap = scan_vmap};
constexpr Op cumprod_op{
    .schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Running product along a dimension; integers and bools give int64.",
    .infer = same_infer,
    .vjp = cumprod_vjp,
    .saves = saves_input,
    .vmap = scan_vmap};
constexpr Op logcumsumexp_op{.schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
                             .doc = "log(cumsum(exp(x))) along a dimension without overflow.",
                             .infer = logcumsumexp_infer,
                             .vjp = logcumsumexp_vjp,
                             .saves = saves_both,
                             .vmap = scan_vmap};
constexpr Op cummax_op{
    .schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running maximum along a dimension and its place, the latest of equal ones.",
    .infer = extremum_infer,
    .nondiff = 0b10,
    .vjp = cum_extremum_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0, 0b10};
        },
    .vmap = scan_vmap};
constexpr Op cummin_op{
    .schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running minimum along a dimension and its place, the latest of equal ones.",
    .infer = extremum_infer,
    .nondiff = 0b10,
    .vjp = cum_extremum_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0, 0b10};
        },
    .vmap = scan_vmap};
constexpr Op linear_recurrence_op{
    .schema = "_linear_recurrence(Tensor factor, Tensor self, int dim) -> Tensor",
    .doc = "y[k] = factor[k] y[k - 1] + self[k] along a dimension, y before the first being 0.",
    .infer = recurrence_infer,
    .vjp = recurrence_vjp,
    .saves =
        [](const SaveQuery& q) {
          return Saves{1, uint32_t(q.need & 1)};
        },
    .vmap =
        [](Vmapped& v) {
          Tensor a = v.dim0(0), x = v.dim0(1);
          if (x.dim() == 1)
            return v.run({a.reshape({v.size, 1}), x.reshape({v.size, 1}), int64_t(1)});
          v.run({a, x, wrap_dim(v.args().integer(2), x.dim() - 1) + 1});
        }};

}  // namespace fornax
