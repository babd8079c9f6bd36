// Elementwise losses, and those made of a few operators.
#include "fornax/ops/loss.h"

#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"

namespace fornax {

Reduction reduction_of(Args args, size_t at, std::string_view call) {
  int64_t r = args.integer(at, 1);
  FX_CHECK(r >= 0 && r <= 2, kValue, call,
           ": reduction must be 0 (none), 1 (mean) or 2 (sum), got ", r);
  return Reduction(r);
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::kNone) return loss;
  return reduction == Reduction::kMean ? loss.mean() : loss.sum();
}

namespace {

// The common case: one pointwise operator, then the reduction at argument `at`.
void reduce_elements(Call& c, const Op& elements, std::initializer_list<Arg> args, size_t at) {
  Reduction r = reduction_of(c.args, at, c.op.name());
  c.outs = {reduced(call1(elements, args), r)};
}

Tensor clamped(const Tensor& x) { return x.clamp_min(Scalar(0)); }

void kl_div_body(Call& c) {
  const Tensor &x = c.args.tensor(0), &target = c.args.tensor(1);
  Tensor loss =
      c.args.flag(3) ? target.exp().mul(target.sub(x)) : xlogy(target, target).sub(target.mul(x));
  c.outs = {reduced(loss, reduction_of(c.args, 2, "kl_div"))};
}

void hinge_embedding_body(Call& c) {
  const Tensor &x = c.args.tensor(0), &target = c.args.tensor(1);
  Tensor zero = zeros_like(x);
  Tensor far = where(target.eq(1), zero, clamped(x.neg().add(c.args.real(2))));
  Tensor near = where(target.eq(-1), zero, x);
  c.outs = {reduced(far.add(near), reduction_of(c.args, 3, "hinge_embedding_loss"))};
}

void margin_ranking_body(Call& c) {
  Args a = c.args;
  const Tensor &x = a.tensor(0), &y = a.tensor(1), &target = a.tensor(2);
  FX_CHECK(x.dim() == y.dim() && x.dim() == target.dim(), kShape,
           "margin_ranking_loss: inputs and target must have as many dimensions, got ", x.sizes(),
           ", ", y.sizes(), " and ", target.sizes());
  Tensor loss = clamped(target.neg().mul(x.sub(y)).add(a.real(3)));
  c.outs = {reduced(loss, reduction_of(a, 4, "margin_ranking_loss"))};
}

// Each vector is divided by its own length, at least eps.
void cosine_similarity_body(Call& c) {
  Args a = c.args;
  Dtype d = promote_types(a.tensor(0).dtype(), a.tensor(1).dtype());
  FX_CHECK(is_float(d), kType, "cosine_similarity: expected floating tensors, got ", d);
  Tensor x = a.tensor(0).to(d), y = a.tensor(1).to(d);
  Dims sizes = broadcast_sizes(x.sizes(), y.sizes(), "cosine_similarity");
  x = x.expand(sizes);
  y = y.expand(sizes);
  int64_t dim = a.integer(2);
  auto unit = [&](const Tensor& t) {
    return t.div(linalg_vector_norm(t, 2, dim, true).clamp_min(Scalar(a.real(3))));
  };
  c.outs = {unit(x).mul(unit(y)).sum(dim)};
}

void cosine_embedding_body(Call& c) {
  Args a = c.args;
  const Tensor &x = a.tensor(0), &y = a.tensor(1), &target = a.tensor(2);
  FX_CHECK(target.dim() <= 1 && x.dim() == target.dim() + 1 && y.dim() == x.dim(), kShape,
           "cosine_embedding_loss: inputs ", x.sizes(), " and ", y.sizes(),
           " do not fit a target of ", target.sizes());
  int64_t dim = target.dim();
  constexpr double kEps = 1e-12;
  Tensor square_x = x.square().sum(dim).add(kEps), square_y = y.square().sum(dim).add(kEps);
  Tensor cosine = x.mul(y).sum(dim).div(square_x.mul(square_y).sqrt());
  Tensor zero = zeros_like(cosine);
  Tensor same = where(target.eq(1), cosine.rsub(1), zero);
  Tensor other = where(target.eq(-1), clamped(cosine.sub(a.real(3))), zero);
  c.outs = {reduced(same.add(other), reduction_of(a, 4, "cosine_embedding_loss"))};
}

void pairwise_distance_body(Call& c) {
  Args a = c.args;
  Tensor d = a.tensor(0).sub(a.tensor(1)).add(a.real(3));
  c.outs = {d.norm(Scalar(a.real(2)), d.dim() - 1, a.flag(4))};
}

void triplet_margin_body(Call& c) {
  Args a = c.args;
  const Tensor &anchor = a.tensor(0), &positive = a.tensor(1), &negative = a.tensor(2);
  FX_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), kShape,
           "triplet_margin_loss: anchor, positive and negative must have as many dimensions, got ",
           anchor.sizes(), ", ", positive.sizes(), " and ", negative.sizes());
  double p = a.real(4), eps = a.real(5);
  Tensor near = pairwise_distance(anchor, positive, p, eps);
  Tensor far = pairwise_distance(anchor, negative, p, eps);
  if (a.flag(6)) far = minimum(far, pairwise_distance(positive, negative, p, eps));
  Tensor loss = clamped(near.sub(far).add(a.real(3)));
  c.outs = {reduced(loss, reduction_of(a, 7, "triplet_margin_loss"))};
}

void poisson_nll_body(Call& c) {
  Args a = c.args;
  const Tensor &x = a.tensor(0), &target = a.tensor(1);
  Tensor loss = a.flag(2) ? x.exp().sub(target.mul(x)) : x.sub(target.mul(x.add(a.real(4)).log()));
  if (a.flag(3)) {  // Stirling's approximation of log(target!)
    Tensor stirling = target.mul(target.log()).sub(target).add(target.mul(2 * M_PI).log().mul(0.5));
    loss = loss.add(stirling.masked_fill(target.le(1), 0));
  }
  c.outs = {reduced(loss, reduction_of(a, 5, "poisson_nll_loss"))};
}

// x as [batch, classes], and whether a batch was there.
Tensor as_batch(const Tensor& x, std::string_view call) {
  FX_CHECK(x.dim() <= 2 && (x.dim() == 0 || x.sizes().back() > 0), kShape, call,
           ": expected an input of [classes] or [batch, classes], got ", x.sizes());
  return x.dim() == 2 ? x : x.reshape({1, x.numel()});
}

void multi_margin_body(Call& c) {
  Args a = c.args;
  Tensor x = as_batch(a.tensor(0), "multi_margin_loss");
  int64_t p = a.has(2) ? a.number(2).to_int() : 1;
  FX_CHECK(p == 1 || p == 2, kValue, "multi_margin_loss: p must be 1 or 2, got ", p);
  double margin = a.has(3) ? a.number(3).to_double() : 1.0;
  int64_t batch = x.size(0), classes = x.size(1);
  FX_CHECK(a.tensor(1).numel() == batch, kShape, "multi_margin_loss: target ", a.tensor(1).sizes(),
           " does not fit an input of ", a.tensor(0).sizes());
  Tensor target = a.tensor(1).reshape({batch, 1});
  Tensor loss = clamped(x.sub(x.gather(1, target)).add(margin));
  if (p == 2) loss = loss.square();
  if (a.has(4))
    loss = loss.mul(a.tensor(4).index_select(0, target.reshape({batch})).reshape({batch, 1}));
  Tensor places = arange(classes, TensorOptions(Dtype::kI64).device(x.device()));
  loss = loss.masked_fill(places.eq(target), 0).sum({1}).div(double(classes));
  Reduction r = reduction_of(a, 5, "multi_margin_loss");
  if (r == Reduction::kNone && a.tensor(1).dim() == 0) loss = loss.reshape(IntArrayRef());
  c.outs = {reduced(loss, r)};
}

// Targets of a row are the class numbers before its first -1.
void multilabel_margin_body(Call& c) {
  Args a = c.args;
  Tensor x = as_batch(a.tensor(0), "multilabel_margin_loss");
  int64_t batch = x.size(0), classes = x.size(1);
  FX_CHECK(a.tensor(1).sizes() == a.tensor(0).sizes(), kShape, "multilabel_margin_loss: target ",
           a.tensor(1).sizes(), " does not fit an input of ", a.tensor(0).sizes());
  Tensor target = a.tensor(1).reshape({batch, classes});
  Tensor listed = target.lt(0).to(Dtype::kI64).cumsum(1).eq(0);
  Tensor place = target.masked_fill(listed.logical_not(), 0);
  Tensor is_target = zeros({batch, classes}, TensorOptions(Dtype::kI64).device(x.device()))
                         .scatter_add(1, place, listed.to(Dtype::kI64))
                         .gt(0);
  // [batch, target, class]
  Tensor terms = clamped(
      x.reshape({batch, 1, classes}).sub(x.gather(1, place).reshape({batch, classes, 1})).add(1));
  terms = terms.mul(listed.reshape({batch, classes, 1}))
              .mul(is_target.logical_not().reshape({batch, 1, classes}));
  Tensor loss = terms.sum({1, 2}).div(double(classes));
  Reduction r = reduction_of(a, 2, "multilabel_margin_loss");
  if (r == Reduction::kNone && a.tensor(0).dim() < 2) loss = loss.reshape(IntArrayRef());
  c.outs = {reduced(loss, r)};
}

void check_probability_target(const Infer& f) {
  const Tensor &x = f.args.tensor(0), &target = f.args.tensor(1);
  FX_CHECK(x.sizes() == target.sizes(), kShape, "binary_cross_entropy: target ", target.sizes(),
           " differs from the input ", x.sizes());
}

}  // namespace

// ---- elements

constexpr Op _squared_error_op =
    pointwise("_squared_error(Tensor self, Tensor target) -> Tensor", "(self - target)^2.",
              Promote::kDefault, [](Expr a, Expr b) { return (a - b) * (a - b); });
constexpr Op _absolute_error_op =
    pointwise("_absolute_error(Tensor self, Tensor target) -> Tensor", "|self - target|.",
              Promote::kToReal, [](Expr a, Expr b) { return expr::abs(a - b); });
constexpr Op _smooth_l1_op = pointwise(
    "_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor",
    "d^2 / (2 beta) for |d| < beta, else |d| - beta / 2, of d = self - target.", Promote::kDefault,
    [](Body& b) { b.out(0, expr::smooth_l1(b.in(0), b.in(1), b.in(2))); });
constexpr Op _huber_op =
    pointwise("_huber(Tensor self, Tensor target, float delta) -> Tensor",
              "d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2), of d = self - target.",
              Promote::kDefault, [](Body& b) { b.out(0, expr::huber(b.in(0), b.in(1), b.in(2))); });
constexpr Op with_checked_target(Op op) {
  op.infer = [](Infer& f) {
    check_probability_target(f);
    pointwise_infer(f);
  };
  return op;
}
constexpr Op _bce_op = with_checked_target(pointwise(
    "_bce(Tensor self, Tensor target, Tensor? weight) -> Tensor",
    "-weight (target log(self) + (1 - target) log(1 - self)), logarithms being at least -100.",
    Promote::kDefault, [](Body& b) {
      b.out(0, expr::binary_cross_entropy(b.in(0), b.in(1), b.has(2) ? b.in(2) : Expr()));
    }));
constexpr Op _bce_with_logits_op = pointwise(
    "_bce_with_logits(Tensor self, Tensor target, Tensor? weight, Tensor? pos_weight) -> Tensor",
    "_bce of sigmoid(self), with pos_weight on the positive term.", Promote::kDefault, [](Body& b) {
      b.out(0, expr::binary_cross_entropy_with_logits(b.in(0), b.in(1), b.has(2) ? b.in(2) : Expr(),
                                                      b.has(3) ? b.in(3) : Expr()));
    });
constexpr Op _soft_margin_op =
    pointwise("_soft_margin(Tensor self, Tensor target) -> Tensor", "log(1 + e^(-target self)).",
              Promote::kFloat, [](Expr a, Expr b) { return expr::softplus(-(a * b)); });

// ---- losses

constexpr Op mse_loss_op{
    .schema = "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "Squared error.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      reduce_elements(c, _squared_error_op, {c.args[0], c.args[1]}, 2);
    }};
constexpr Op l1_loss_op{
    .schema = "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "Absolute error.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      reduce_elements(c, _absolute_error_op, {c.args[0], c.args[1]}, 2);
    }};
constexpr Op smooth_l1_loss_op{
    .schema =
        "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.) -> Tensor",
    .doc = "d^2 / (2 beta) for |d| < beta, else |d| - beta / 2.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      double beta = c.args.real(3, 1.0);
      FX_CHECK(beta >= 0, kValue, "smooth_l1_loss: beta must not be negative, got ", beta);
      if (beta == 0) return reduce_elements(c, _absolute_error_op, {c.args[0], c.args[1]}, 2);
      reduce_elements(c, _smooth_l1_op, {c.args[0], c.args[1], Arg(beta)}, 2);
    }};
constexpr Op huber_loss_op{
    .schema =
        "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.) -> Tensor",
    .doc = "d^2 / 2 for |d| <= delta, else delta (|d| - delta / 2).",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      double delta = c.args.real(3, 1.0);
      FX_CHECK(delta > 0, kValue, "huber_loss: delta must be positive, got ", delta);
      reduce_elements(c, _huber_op, {c.args[0], c.args[1], Arg(delta)}, 2);
    }};
constexpr Op binary_cross_entropy_op{
    .schema =
        "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int "
        "reduction=Mean) -> Tensor",
    .doc = "Cross entropy of probabilities; logarithms are at least -100.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      reduce_elements(c, _bce_op, {c.args[0], c.args[1], c.args[2]}, 3);
    }};
constexpr Op binary_cross_entropy_with_logits_op{
    .schema =
        "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
        "pos_weight=None, int reduction=Mean) -> Tensor",
    .doc = "Cross entropy of sigmoid(self) without overflow.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      reduce_elements(c, _bce_with_logits_op, {c.args[0], c.args[1], c.args[2], c.args[3]}, 4);
    }};
constexpr Op kl_div_op{
    .schema =
        "kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> "
        "Tensor",
    .doc = "target (log(target) - self): self holds log-probabilities, as target does if asked.",
    .kind = OpKind::kComposite,
    .body = kl_div_body};
constexpr Op hinge_embedding_loss_op{
    .schema =
        "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> "
        "Tensor",
    .doc = "self where target is 1, max(0, margin - self) where it is -1.",
    .kind = OpKind::kComposite,
    .body = hinge_embedding_body};
constexpr Op soft_margin_loss_op{
    .schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "log(1 + e^(-target self)).",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      reduce_elements(c, _soft_margin_op, {c.args[0], c.args[1]}, 2);
    }};
constexpr Op margin_ranking_loss_op{
    .schema =
        "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
        "reduction=Mean) -> Tensor",
    .doc = "max(0, margin - target (input1 - input2)).",
    .kind = OpKind::kComposite,
    .body = margin_ranking_body};
constexpr Op cosine_similarity_op{
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .doc = "Scalar product along a dimension of the operands over their lengths (at least eps).",
    .kind = OpKind::kComposite,
    .body = cosine_similarity_body};
constexpr Op cosine_embedding_loss_op{
    .schema =
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
        "reduction=Mean) -> Tensor",
    .doc = "1 - cos where target is 1, max(0, cos - margin) where it is -1.",
    .kind = OpKind::kComposite,
    .body = cosine_embedding_body};
constexpr Op pairwise_distance_op{
    .schema =
        "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) "
        "-> Tensor",
    .doc = "p-norm of x1 - x2 + eps over the last dimension.",
    .kind = OpKind::kComposite,
    .body = pairwise_distance_body};
constexpr Op dist_op{.schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
                     .doc = "p-norm of self - other.",
                     .kind = OpKind::kComposite,
                     .body = [](Call& c) {
                       Scalar p = c.args.has(2) ? c.args.number(2) : Scalar(2);
                       c.outs = {c.args.tensor(0).sub(c.args.tensor(1)).norm(p)};
                     }};
constexpr Op triplet_margin_loss_op{
    .schema =
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
        "float p=2, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
    .doc = "max(0, margin + distance to positive - distance to negative).",
    .kind = OpKind::kComposite,
    .body = triplet_margin_body};
constexpr Op poisson_nll_loss_op{
    .schema =
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
        "reduction) -> Tensor",
    .doc = "e^x - target x (or x - target log(x + eps)), with Stirling's term if full.",
    .kind = OpKind::kComposite,
    .body = poisson_nll_body};
constexpr Op multi_margin_loss_op{
    .schema =
        "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
        "weight=None, int reduction=Mean) -> Tensor",
    .doc = "Mean over other classes of max(0, margin - self[target] + self[class])^p.",
    .kind = OpKind::kComposite,
    .body = multi_margin_body};
constexpr Op multilabel_margin_loss_op{
    .schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .doc = "Mean over pairs of max(0, 1 - self[target] + self[other]); targets end at -1.",
    .kind = OpKind::kComposite,
    .body = multilabel_margin_body};

}  // namespace fornax
