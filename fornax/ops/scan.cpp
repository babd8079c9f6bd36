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

void recurrence_infer(Infer& f) {
  const Tensor &a = f.args.tensor(0), &x = f.args.tensor(1);
  FX_CHECK(a.sizes() == x.sizes() && a.dtype() == x.dtype(), kShape, "_linear_recurrence: factor ",
           a.sizes(), " ", a.dtype(), " and values ", x.sizes(), " ", x.dtype(), " differ");
  wrap_dim(f.args.integer(2), x.dim(), "_linear_recurrence");
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
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
    .traits = kLinear,
    .infer = same_infer,
    .vmap = scan_vmap};
constexpr Op cumprod_op{
    .schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Running product along a dimension; integers and bools give int64.",
    .infer = same_infer,
    .vmap = scan_vmap};
constexpr Op logcumsumexp_op{.schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
                             .doc = "log(cumsum(exp(x))) along a dimension without overflow.",
                             .infer = logcumsumexp_infer,
                             .vmap = scan_vmap};
constexpr Op cummax_op{
    .schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running maximum along a dimension and its place, the latest of equal ones.",
    .infer = extremum_infer,
    .nondiff = 0b10,
    .vmap = scan_vmap};
constexpr Op cummin_op{
    .schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Running minimum along a dimension and its place, the latest of equal ones.",
    .infer = extremum_infer,
    .nondiff = 0b10,
    .vmap = scan_vmap};
constexpr Op linear_recurrence_op{
    .schema = "_linear_recurrence(Tensor factor, Tensor self, int dim) -> Tensor",
    .doc = "y[k] = factor[k] y[k - 1] + self[k] along a dimension, y before the first being 0.",
    .infer = recurrence_infer,
    .vmap = [](Vmapped& v) {
      Tensor a = v.dim0(0), x = v.dim0(1);
      if (x.dim() == 1) return v.run({a.reshape({v.size, 1}), x.reshape({v.size, 1}), int64_t(1)});
      v.run({a, x, wrap_dim(v.args().integer(2), x.dim() - 1) + 1});
    }};

}  // namespace fornax
