// Negative log likelihood and cross entropy.
//
// The core operators take rows [rows, classes]; more dimensions are moved there. Cross entropy of
// class numbers never makes the log-probabilities: it keeps one log-sum-exp a row.
#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/loss.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/reduce.h"

namespace fornax {
namespace {

void check_rows(const Infer& f, const Tensor& x, const Tensor& target, const Tensor& weight) {
  FX_CHECK(is_float(x.dtype()), kType, f.op.name(), ": expected a floating input, got ", x.dtype());
  FX_CHECK(x.dim() == 2 && target.dim() == 1 && target.size(0) == x.size(0), kShape, f.op.name(),
           ": target ", target.sizes(), " does not fit an input of ", x.sizes());
  FX_CHECK(is_integer(target.dtype()), kType, f.op.name(),
           ": expected a target of class numbers (int64), got ", target.dtype());
  FX_CHECK(!weight.defined() || (weight.dim() == 1 && weight.size(0) == x.size(1)), kShape,
           f.op.name(), ": expected a weight for each of ", x.size(1), " classes, got ",
           weight.sizes());
}

// Results: the loss, and the sum of the weights that the mean divides by.
void nll_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  check_rows(f, x, f.args.tensor(1), f.args.optional(2));
  bool each = reduction_of(f.args, 3, f.op.name()) == Reduction::kNone;
  f.outs.push_back(Meta(x.dtype(), each ? Dims{x.size(0)} : Dims{}, x.device()));
  f.outs.push_back(Meta(x.dtype(), {}, x.device()));
}

void nll_vjp(Vjp& v) {
  Args a = v.args();
  if (!v.grad().defined()) return;
  Tensor weight = v.is_tensor(2) ? v.in(2) : Tensor();
  v.set(0, call1(_nll_backward_op,
                 {v.grad(), v.in(1), weight, a[3], a[4], v.out(1), v.meta(0).sizes[1]}));
}

void nll_backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &target = f.args.tensor(1);
  f.outs.push_back(Meta(g.dtype(), {target.size(0), f.args.integer(6)}, g.device()));
}

// Linear in the gradient: its own gradient is the loss again.
void nll_backward_vjp(Vjp& v) {
  Args a = v.args();
  Tensor weight = v.is_tensor(2) ? v.in(2) : Tensor();
  v.set(0, call(_nll_op, Form::kNew, {v.grad(), v.in(1), weight, a[3], a[4]})[0]);
}

// Results: the loss, log-sum-exp of each row, and the sum of weights that the mean divides by.
void cross_entropy_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  check_rows(f, x, f.args.tensor(1), f.args.optional(2));
  bool each = reduction_of(f.args, 3, f.op.name()) == Reduction::kNone;
  Dtype wide = x.dtype() == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
  f.outs.push_back(Meta(x.dtype(), each ? Dims{x.size(0)} : Dims{}, x.device()));
  f.outs.push_back(Meta(wide, {x.size(0)}, x.device()));
  f.outs.push_back(Meta(wide, {}, x.device()));
}

// log-sum-exp is a result with a gradient of its own: a second derivative flows through it.
void cross_entropy_vjp(Vjp& v) {
  Args a = v.args();
  Tensor x = v.in(0), gx;
  Tensor weight = v.is_tensor(2) ? v.in(2) : Tensor();
  if (v.grad().defined())
    gx = call1(_cross_entropy_backward_op,
               {v.grad(), x, v.in(1), weight, v.out(1), v.out(2), a[3], a[4], a[5]});
  if (v.grad(1).defined()) {
    Tensor share = x.sub(v.out(1).unsqueeze(1)).exp().mul(v.grad(1).unsqueeze(1));
    gx = gx.defined() ? gx.add(share) : share;
  }
  v.set(0, gx);
}

void cross_entropy_backward_infer(Infer& f) {
  const Tensor& x = f.args.tensor(1);
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

// Loss of row r per unit: share[r] * (lse - x[target]) + smoothing / classes * sum(lse - x).
void cross_entropy_backward_body(Call& c) {
  Args a = c.args;
  const Tensor &g = a.tensor(0), &x = a.tensor(1), &target = a.tensor(2), &weight = a.optional(3);
  int64_t classes = x.size(1);
  double smoothing = a.real(8);
  Tensor scale = a.integer(6) == int64_t(Reduction::kMean) ? g.div(a.tensor(5)) : g;
  Tensor used = target.ne(a.integer(7));
  Tensor place = target.masked_fill(used.logical_not(), 0);
  Tensor share = weight.defined() ? weight.index_select(0, place).mul(1 - smoothing)
                                  : full_like(a.tensor(4), 1 - smoothing);
  Tensor p = x.sub(a.tensor(4).unsqueeze(1)).exp();
  Tensor places = arange(classes, TensorOptions(Dtype::kI64).device(x.device()));
  Tensor hit = places.eq(place.unsqueeze(1));
  Tensor wide = share.unsqueeze(1);
  Tensor gx = p.mul(wide.add(smoothing)).sub(hit.mul(wide)).sub(smoothing / double(classes));
  c.outs = {gx.mul(scale.mul(used).unsqueeze(1)).to(x.dtype())};
}

// [N, C, d...] as [N * d..., C] and back for one value per row.
Tensor as_rows(const Tensor& x) {
  if (x.dim() == 1) return x.unsqueeze(0);
  if (x.dim() == 2) return x;
  return x.movedim(1, -1).reshape({x.size(1) ? x.numel() / x.size(1) : 0, x.size(1)});
}

struct Shapes {
  Tensor rows, target;
  Dims each;  // sizes of unreduced losses
};
Shapes shapes_of(const Tensor& x, const Tensor& target, std::string_view call) {
  FX_CHECK(x.dim() > 0, kShape, call,
           ": expected an input of at least 1 dimension, got a 0-dim one");
  Dims each(x.sizes().begin(), x.sizes().end());
  each.erase(each.begin() + (x.dim() == 1 ? 0 : 1));
  FX_CHECK(target.sizes() == IntArrayRef(each), kShape, call, ": expected a target of ", each,
           " for an input of ", x.sizes(), ", got ", target.sizes());
  return {as_rows(x), target.reshape({target.numel()}), each};
}

void nll_body(Call& c) {
  Args a = c.args;
  Shapes s = shapes_of(a.tensor(0), a.tensor(1), "nll_loss");
  Tensor y = call(_nll_op, Form::kNew, {s.rows, s.target, a[2], a[3], a[4]})[0];
  c.outs = {a.integer(3) == 0 ? y.reshape(s.each) : y};
}

// vmap: members become rows; a mean over each is taken from unreduced losses.
Tensor weighted_rows(Vmapped& v, const Op& op, std::initializer_list<Arg> more) {
  Args a = v.args();
  FX_CHECK(!v.is(2), kUnsupported, op.name(), ": class weights can't be batched");
  Tensor x = v.dim0(0), target = v.dim0(1);
  int64_t rows = x.size(1), classes = x.size(2);
  SmallVec<Arg, 8> args;
  Tensor flat = x.reshape({v.size * rows, classes}), flat_target = target.reshape({v.size * rows});
  args.push_back(Arg(flat));
  args.push_back(Arg(flat_target));
  args.push_back(a[2]);
  args.push_back(Arg(int64_t(0)));
  args.append(more.begin(), more.end());
  Tensor each = call(op, Form::kNew, Args(args.data(), args.size()))[0];
  return each.reshape({v.size, rows});
}

// The divisor of each member's mean.
Tensor total_weight(Vmapped& v, int64_t ignored) {
  Tensor target = v.dim0(1);
  Tensor used = target.ne(ignored);
  if (!v.args().has(2)) return used.sum({1}).to(v.args().tensor(0).dtype());
  const Tensor& w = v.args().tensor(2);
  Tensor place = target.masked_fill(used.logical_not(), 0);
  return w.index_select(0, place.reshape({place.numel()}))
      .reshape(place.sizes())
      .mul(used)
      .sum({1});
}

void rows_vmap(Vmapped& v) {
  Args a = v.args();
  bool entropy = &v.call.op == &_cross_entropy_op;
  Tensor each =
      entropy ? weighted_rows(v, v.call.op, {a[4], a[5]}) : weighted_rows(v, v.call.op, {a[4]});
  Tensor total = total_weight(v, a.integer(4));
  Reduction r = Reduction(a.integer(3));
  Tensor loss = r == Reduction::kNone ? each : each.sum({1});
  if (r == Reduction::kMean) loss = loss.div(total);
  v.call.outs = {loss};
  if (entropy) v.call.outs.push_back(v.dim0(0).logsumexp({2}));
  v.call.outs.push_back(total);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

// Probabilities as targets.
Tensor soft_cross_entropy(const Tensor& x, Tensor target, const Tensor& weight, Reduction r,
                          double smoothing) {
  int64_t dim = x.dim() == 1 ? 0 : 1, classes = x.size(dim);
  if (smoothing > 0) target = target.mul(1 - smoothing).add(smoothing / double(classes));
  Tensor terms = x.log_softmax(dim).mul(target);
  if (weight.defined()) {
    Dims sizes(size_t(x.dim()), 1);
    sizes[size_t(dim)] = classes;
    terms = terms.mul(weight.reshape(sizes));
  }
  if (r == Reduction::kNone) return terms.sum({dim}).neg();
  Tensor sum = terms.sum().neg();
  return r == Reduction::kSum ? sum : sum.div(double(x.numel()) / double(classes));
}

// Smoothing with class weights: each class's term has its weight.
Tensor smoothed_weighted(const Shapes& s, const Tensor& weight, Reduction r, int64_t ignored,
                         double smoothing) {
  Tensor logs = s.rows.log_softmax(1);
  Tensor used = s.target.ne(ignored);
  Tensor place = s.target.masked_fill(used.logical_not(), 0);
  Tensor picked = weight.index_select(0, place).mul(used);
  Tensor hit = logs.gather(1, place.unsqueeze(1)).reshape({s.target.numel()}).mul(picked);
  Tensor spread = logs.mul(weight).sum({1}).mul(used);
  Tensor each = hit.mul(-(1 - smoothing)).sub(spread.mul(smoothing / double(s.rows.size(1))));
  if (r == Reduction::kNone) return each.reshape(s.each);
  return r == Reduction::kSum ? each.sum() : each.sum().div(picked.sum());
}

void cross_entropy_body(Call& c) {
  Args a = c.args;
  const Tensor &x = a.tensor(0), &target = a.tensor(1), &weight = a.optional(2);
  Reduction r = reduction_of(a, 3, "cross_entropy_loss");
  double smoothing = a.real(5, 0.0);
  FX_CHECK(smoothing >= 0 && smoothing <= 1, kValue,
           "cross_entropy_loss: label_smoothing must lie in [0, 1], got ", smoothing);
  if (x.sizes() == target.sizes()) {
    FX_CHECK(is_float(target.dtype()), kType,
             "cross_entropy_loss: a target of the input's sizes holds probabilities, got ",
             target.dtype());
    FX_CHECK(a.integer(4, -100) < 0, kValue,
             "cross_entropy_loss: ignore_index has no meaning for probabilities");
    c.outs = {soft_cross_entropy(x, target, weight, r, smoothing)};
    return;
  }
  Shapes s = shapes_of(x, target, "cross_entropy_loss");
  if (weight.defined() && smoothing > 0) {
    c.outs = {smoothed_weighted(s, weight, r, a.integer(4, -100), smoothing)};
    return;
  }
  Tensor y = call(_cross_entropy_op, Form::kNew,
                  {s.rows, s.target, weight, int64_t(r), a.integer(4, -100), smoothing})[0];
  c.outs = {r == Reduction::kNone ? y.reshape(s.each) : y};
}

}  // namespace

constexpr Op _nll_op{
    .schema =
        "_nll(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
        "(Tensor, Tensor)",
    .doc = "-weight[target] * self[row, target] over rows, and the sum of those weights.",
    .infer = nll_infer,
    .nondiff = 0b10,
    .vjp = nll_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0b110, 0b10};
        },
    .vmap = rows_vmap};
constexpr Op _nll_backward_op{
    .schema =
        "_nll_backward(Tensor grad_output, Tensor target, Tensor? weight, int reduction, int "
        "ignore_index, Tensor total_weight, int classes) -> Tensor",
    .doc = "Gradient of _nll by self.",
    .infer = nll_backward_infer,
    .vjp = nll_backward_vjp,
    .saves = [](const SaveQuery&) {
      return Saves{0b110, 0};
    }};
constexpr Op _cross_entropy_op{
    .schema =
        "_cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, int "
        "ignore_index, float label_smoothing) -> (Tensor, Tensor, Tensor)",
    .doc =
        "_nll of log_softmax(self) with label smoothing, log-sum-exp of each row, and the sum "
        "of weights.",
    .infer = cross_entropy_infer,
    .nondiff = 0b100,
    .vjp = cross_entropy_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0b111, 0b110};
        },
    .vmap = rows_vmap};
constexpr Op _cross_entropy_backward_op{
    .schema =
        "_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, "
        "Tensor logsumexp, Tensor total_weight, int reduction, int ignore_index, float "
        "label_smoothing) -> Tensor",
    .doc = "Gradient of _cross_entropy by self.",
    .kind = OpKind::kComposite,
    .infer = cross_entropy_backward_infer,
    .body = cross_entropy_backward_body};
constexpr Op nll_loss_op{
    .schema =
        "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int "
        "ignore_index=-100) -> Tensor\n"
        "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int "
        "ignore_index=-100) -> Tensor\n"
        "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int "
        "ignore_index=-100) -> Tensor",
    .doc =
        "-weight[target] * self[target], classes lying in dimension 1 (or 0 of a 1-D input); "
        "the mean divides by the sum of weights.",
    .kind = OpKind::kComposite,
    .body = nll_body};
constexpr Op cross_entropy_loss_op{
    .schema =
        "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    .doc =
        "nll_loss of log_softmax(self); the target holds class numbers, or probabilities of "
        "self's sizes.",
    .kind = OpKind::kComposite,
    .body = cross_entropy_body};

}  // namespace fornax
