// Activation functions and dropout's gradient.
#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise_macros.h"

namespace fornax {
namespace {

// A number argument in the kind the operand is computed in.
Expr bound(const Body& b, int i) { return expr::cast(b.in(i), b.kind()); }
Expr number(const Body& b, int i, double absent) {
  return b.has(i) ? expr::to_real(b.in(i)) : Expr(absent);
}

// The gradient reads the result, so that relu_ needs no copy of its input.
Expr relu_body(Expr x) {
  Expr r = expr::relu(x);
  return expr::with_grad(r, {{x, expr::where(r <= 0, 0.0, 1.0)}});
}

void hardtanh_body(Body& b) {
  Expr lo = b.has(1) ? bound(b, 1) : expr::cast(Expr(-1), b.kind());
  Expr hi = b.has(2) ? bound(b, 2) : expr::cast(Expr(1), b.kind());
  b.out(0, expr::hardtanh(b.in(0), lo, hi));
}

void gelu_infer(Infer& f) {
  std::string_view form = f.args.has(1) ? f.args.text(1) : "none";
  FX_CHECK(form == "none" || form == "tanh", kValue,
           "gelu: approximate must be none or tanh, got '", form, "'");
  pointwise_infer(f);
}

// One weight per channel (dimension 1) of self, or one in all.
void prelu_body(Call& c) {
  const Tensor &self = c.args.tensor(0), &weight = c.args.tensor(1);
  FX_CHECK(weight.dim() <= 1, kShape, "prelu: the weight must be 0-D or 1-D, got ", weight.dim(),
           "-D");
  FX_CHECK(self.dtype() == weight.dtype(), kType, "prelu: self is of ", self.dtype(),
           ", the weight of ", weight.dtype());
  Tensor w = weight;
  if (weight.numel() != 1) {
    FX_CHECK(self.dim() > 0, kShape, "prelu: a 0-D input takes one weight, got ", weight.numel());
    int64_t channels = self.dim() >= 2 ? self.size(1) : 1;
    FX_CHECK(channels == weight.numel(), kShape, "prelu: ", channels, " channels, but ",
             weight.numel(), " weights");
  }
  if (self.dim() != w.dim()) {
    Dims sizes;
    for (int64_t d = 0; d < self.dim(); ++d) sizes.push_back(d == 1 ? w.numel() : 1);
    w = w.reshape(sizes);
  }
  Arg args[] = {Arg(self), Arg(w)};
  c.outs = call(_prelu_kernel_op, Form::kNew, Args(args, 2));
}

}  // namespace

constexpr Op relu_op =
    accepts(kInts | kReals, saves_result(pointwise("relu(Tensor self) -> Tensor", "max(self, 0).",
                                                   Promote::kDefault, relu_body)));
FX_UNARY_OF(kInts | kReals, relu6, Promote::kDefault, "min(max(self, 0), 6).",
            expr::hardtanh(x, 0, 6))
constexpr Op sigmoid_op = saves_result(pointwise(
    "sigmoid(Tensor self) -> Tensor\nspecial_expit(Tensor self) -> Tensor", "1 / (1 + e^-self).",
    Promote::kFloat, [](Expr x) -> Expr { return expr::sigmoid(x); }));
FX_UNARY_OF(kReals, log_sigmoid, Promote::kDefault, "log(sigmoid(self)).", expr::log_sigmoid(x))
FX_UNARY_OF(kFloating, silu, Promote::kDefault, "self * sigmoid(self).", expr::silu(x))
FX_UNARY_OF(kReals, mish, Promote::kDefault, "self * tanh(softplus(self)).", expr::mish(x))
FX_UNARY_OF(kReals, selu, Promote::kDefault, "elu scaled for self-normalising networks.",
            expr::selu(x))
FX_UNARY_OF(kReals, hardsigmoid, Promote::kDefault, "clamp(self / 6 + 1/2, 0, 1).",
            expr::hardsigmoid(x))
FX_UNARY_OF(kReals, hardswish, Promote::kDefault, "self * hardsigmoid(self).", expr::hardswish(x))
FX_UNARY(softsign, Promote::kFloat, "self / (1 + |self|).", expr::softsign(x))
FX_UNARY(tanhshrink, Promote::kFloat, "self - tanh(self).", expr::tanhshrink(x))
constexpr Op gelu_op = accepts(
    kReals, inferred_by(gelu_infer,
                        pointwise("gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
                                  "self * ndtr(self), or its tanh approximation.",
                                  Promote::kDefault, [](Body& b) {
                                    b.out(0, expr::gelu(b.in(0), b.has(1) && b.text(1) == "tanh"));
                                  })));
constexpr Op elu_op = accepts(
    kReals,
    pointwise("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> "
              "Tensor",
              "scale * (self > 0 ? self : alpha * expm1(input_scale * self)).", Promote::kDefault,
              [](Body& b) {
                b.out(0, expr::elu(b.in(0), number(b, 1, 1), number(b, 2, 1), number(b, 3, 1)));
              }));
constexpr Op celu_op = accepts(
    kReals, inferred_by(
                [](Infer& f) {
                  FX_CHECK(!f.args.has(1) || f.args.number(1).to_double() != 0, kValue,
                           "celu: alpha must not be 0");
                  pointwise_infer(f);
                },
                pointwise("celu(Tensor self, Scalar alpha=1.0) -> Tensor",
                          "max(self, 0) + min(0, alpha * expm1(self / alpha)).", Promote::kDefault,
                          [](Body& b) { b.out(0, expr::celu(b.in(0), number(b, 1, 1))); })));
constexpr Op leaky_relu_op = accepts(
    kReals, pointwise("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
                      "self > 0 ? self : negative_slope * self.", Promote::kDefault,
                      [](Body& b) { b.out(0, expr::leaky_relu(b.in(0), number(b, 1, 0.01))); }));
constexpr Op hardtanh_op = accepts(
    kInts | kReals, pointwise("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> "
                              "Tensor",
                              "clamp(self, min_val, max_val), with gradient 0 at the bounds.",
                              Promote::kDefault, hardtanh_body));
constexpr Op hardshrink_op = accepts(
    kReals, pointwise("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
                      "0 where |self| <= lambd, else self.", Promote::kDefault,
                      [](Body& b) { b.out(0, expr::hardshrink(b.in(0), number(b, 1, 0.5))); }));
constexpr Op softshrink_op = accepts(
    kReals,
    inferred_by(
        [](Infer& f) {
          FX_CHECK(!f.args.has(1) || f.args.number(1).to_double() >= 0, kValue,
                   "softshrink: lambd must not be negative, got ", f.args.number(1).to_double());
          pointwise_infer(f);
        },
        pointwise("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
                  "self moved towards 0 by lambd.", Promote::kDefault,
                  [](Body& b) { b.out(0, expr::softshrink(b.in(0), number(b, 1, 0.5))); })));
constexpr Op softplus_op = accepts(
    kReals, pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
                      "log(1 + e^(beta self)) / beta; self where beta * self > threshold.",
                      Promote::kDefault, [](Body& b) {
                        b.out(0, expr::softplus(b.in(0), number(b, 1, 1), number(b, 2, 20)));
                      }));
constexpr Op threshold_op = accepts(
    kInts | kReals, pointwise("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
                              "self > threshold ? self : value.", Promote::kDefault, [](Body& b) {
                                b.out(0, expr::threshold(b.in(0), bound(b, 1), bound(b, 2)));
                              }));
constexpr Op _prelu_kernel_op = accepts(
    kReals, pointwise("_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
                      "self > 0 ? self : weight * self, weight broadcast.", Promote::kDefault,
                      [](Expr x, Expr w) -> Expr { return expr::where(x > 0.0, x, w * x); }));
constexpr Op prelu_op{.schema = "prelu(Tensor self, Tensor weight) -> Tensor",
                      .doc = "self > 0 ? self : weight * self, one weight per channel or in all.",
                      .kind = OpKind::kComposite,
                      .body = prelu_body};
constexpr Op native_dropout_backward_op = pointwise(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    "grad_output * mask * scale.", Promote::kFloat,
    [](Body& b) { b.out(0, b.in(0) * expr::cast(b.in(1), expr::Kind::kReal) * b.in(2)); }, 0b1);

}  // namespace fornax
