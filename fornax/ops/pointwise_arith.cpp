// Arithmetic and comparison.
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

// alpha * b without the product where alpha is one; integers stay exact.
Expr scaled(const Body& b, int operand, int alpha) {
  if (!b.has(alpha) || b.is_one(alpha)) return b.in(operand);
  Expr factor = b.in(alpha);
  FX_CHECK(b.kind() >= factor.kind() || factor.kind() == expr::Kind::kBool, kType, b.op.name(),
           ": alpha must not be of a higher kind than the operands' dtype ", b.common);
  return b.in(operand)*expr::cast(factor,
                                  b.kind() == expr::Kind::kBool ? expr::Kind::kInt : b.kind());
}

void refuse_bool_subtraction(const Body& b) {
  FX_CHECK(b.common != Dtype::kBool, kType,
           "sub: bool tensors can't be subtracted; use logical_xor or logical_not");
}

void div_body(Body& b) {
  std::string_view mode = b.has(2) ? b.text(2) : "";
  Expr x = b.in(0), y = b.in(1);
  if (mode == "floor") return b.out(0, expr::floor_divide(x, y));
  if (mode == "trunc")
    return b.out(0, b.kind() == expr::Kind::kReal ? expr::trunc(b.stored(x / y)) : x / y);
  FX_CHECK(mode.empty(), kValue, "div: rounding_mode must be trunc or floor, got '", mode, "'");
  b.out(0, x / y);
}

}  // namespace

constexpr Op add_op = pointwise(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "self + alpha * other.", Promote::kDefault,
    [](Body& b) { b.out(0, b.in(0) + scaled(b, 1, 2)); });
constexpr Op sub_op = pointwise(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "self - alpha * other.", Promote::kDefault, [](Body& b) {
      refuse_bool_subtraction(b);
      b.out(0, b.in(0) - scaled(b, 1, 2));
    });
constexpr Op mul_op = pointwise(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
    "self * other.", Promote::kDefault, [](Expr a, Expr b) { return a * b; });
constexpr Op div_op = pointwise(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor\n"
    "div.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "div.Scalar(Tensor self, Scalar other) -> Tensor\n"
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    "self / other; rounding_mode trunc or floor keeps integers.", Promote::kFloatUnlessText,
    div_body);
constexpr Op neg_op =
    pointwise("neg(Tensor self) -> Tensor", "-self.", Promote::kDefault, [](Expr a) { return -a; });
constexpr Op exp_op = saves_result(pointwise("exp(Tensor self) -> Tensor", "e^self.",
                                             Promote::kFloat, [](Expr a) { return expr::exp(a); }));
constexpr Op tanh_op =
    saves_result(pointwise("tanh(Tensor self) -> Tensor", "Hyperbolic tangent.", Promote::kFloat,
                           [](Expr a) { return expr::tanh(a); }));
constexpr Op relu_op =
    saves_result(pointwise("relu(Tensor self) -> Tensor", "max(self, 0).", Promote::kDefault,
                           [](Expr a) { return expr::relu(a); }));
constexpr Op gt_op = pointwise(
    "gt.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "gt.Scalar(Tensor self, Scalar other) -> Tensor",
    "self > other.", Promote::kBool, [](Expr a, Expr b) { return a > b; });

constexpr Op isnan_op = pointwise("isnan(Tensor self) -> Tensor", "Whether each element is NaN.",
                                  Promote::kBool, [](Expr a) { return expr::is_nan(a); });

}  // namespace fornax
