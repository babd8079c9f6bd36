// Arithmetic.
#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise_macros.h"

namespace fornax {
namespace {

// A number argument in the kind the operands are computed in.
Expr attribute(const Body& b, int i) {
  Expr factor = b.in(i);
  FX_CHECK(b.kind() >= factor.kind() || factor.kind() <= expr::Kind::kInt, kType, b.op.name(),
           ": the scalar must not be of a higher kind than the operands' dtype ", b.common);
  return expr::cast(factor, b.kind() == expr::Kind::kBool ? expr::Kind::kInt : b.kind());
}

// alpha * operand without the product where alpha is one; integers stay exact.
Expr scaled(const Body& b, int operand, int alpha) {
  if (!b.has(alpha) || b.is_one(alpha)) return b.in(operand);
  return b.in(operand)*attribute(b, alpha);
}

void div_body(Body& b) {
  std::string_view mode = b.has(2) ? b.text(2) : "";
  Expr x = b.in(0), y = b.in(1);
  if (mode == "floor") return b.out(0, expr::floor_divide(x, y));
  if (mode == "trunc")
    return b.out(0, b.kind() == expr::Kind::kReal ? expr::trunc(b.stored(x / y)) : x / y);
  b.out(0, x / y);
}

void div_infer(Infer& f) {
  if (f.args.has(2)) {
    std::string_view mode = f.args.text(2);
    FX_CHECK(mode == "floor" || mode == "trunc", kValue,
             "div: rounding_mode must be trunc or floor, got '", mode, "'");
    Dtype common = common_dtype(f.op, f.args);
    FX_CHECK(!is_complex(common) && !is_bool(common), kType, "div: rounding_mode ", mode,
             " is not defined for ", common);
  }
  pointwise_infer(f);
}

// The quotient of bf16 and f16 is rounded before it is truncated, as PyTorch's gradient does.
void fmod_body(Body& b) {
  Expr x = b.in(0), y = b.in(1), r = expr::fmod(x, y);
  bool real = b.kind() == expr::Kind::kReal;
  b.out(0, real ? expr::with_grad(r, {{x, Expr(1.0)}, {y, -expr::trunc(b.stored(x / y))}}) : r);
}

// Exponents that have a cheaper form than a logarithm: PyTorch's choice of them.
void pow_body(Body& b) {
  Expr x = b.in(0);
  std::optional<double> e = b.kind() > expr::Kind::kInt ? b.exact(1) : std::nullopt;
  if (!e || *e == 0) return b.out(0, expr::pow(x, b.in(1)));
  Expr value;
  if (*e == 1) value = x;
  if (*e == 2) value = x * x;
  if (*e == 3) value = x * x * x;
  if (*e == -1) value = 1.0 / x;
  if (*e == -2) value = 1.0 / (x * x);
  if (*e == 0.5) value = expr::sqrt(x);
  if (*e == -0.5) value = 1.0 / expr::sqrt(x);
  b.out(0, value);
}

void pow_infer(Infer& f) {
  const Arg& e = f.args[1];
  if (e.tag == Tag::kInt && e.i < 0)
    FX_CHECK(!is_integral(common_dtype(f.op, f.args)), kValue,
             "pow: integers to negative integer powers are not allowed, got ", e.i);
  pointwise_infer(f);
}

void addcmul_body(Body& b) {
  Expr product = scaled(b, 1, 3) * b.in(2);
  b.out(0, b.in(0) + product);
}
void addcdiv_body(Body& b) {
  Expr quotient = scaled(b, 1, 3) / b.in(2);
  b.out(0, b.in(0) + quotient);
}

}  // namespace

constexpr Op add_op = pointwise(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    "self + alpha * other.", Promote::kDefault,
    [](Body& b) { b.out(0, b.in(0) + scaled(b, 1, 2)); });
constexpr Op sub_op = accepts(
    kNumbers, pointwise("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
                        "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor\n"
                        "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
                        "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                        "self - alpha * other; for bools use logical_xor.", Promote::kDefault,
                        [](Body& b) { b.out(0, b.in(0) - scaled(b, 1, 2)); }));
constexpr Op rsub_op =
    accepts(kNumbers, pointwise("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
                                "Tensor\n"
                                "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                                "other - alpha * self.", Promote::kDefault,
                                [](Body& b) { b.out(0, b.in(1) - scaled(b, 0, 2)); }));
constexpr Op mul_op = pointwise(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "mul.Scalar(Tensor self, Scalar other) -> Tensor\n"
    "multiply.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "multiply.Scalar(Tensor self, Scalar other) -> Tensor",
    "self * other.", Promote::kDefault, [](Expr a, Expr b) { return a * b; });
constexpr Op div_op = inferred_by(
    div_infer,
    pointwise("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor\n"
              "div.Tensor(Tensor self, Tensor other) -> Tensor\n"
              "div.Scalar(Tensor self, Scalar other) -> Tensor\n"
              "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor\n"
              "divide.Tensor(Tensor self, Tensor other) -> Tensor\n"
              "divide.Scalar(Tensor self, Scalar other) -> Tensor\n"
              "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor\n"
              "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor\n"
              "true_divide.Tensor(Tensor self, Tensor other) -> Tensor\n"
              "true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
              "self / other; rounding_mode trunc or floor keeps integers.",
              Promote::kFloatUnlessText, div_body));
constexpr Op floor_divide_op = accepts(
    kInts | kReals, pointwise("floor_divide(Tensor self, Tensor other) -> Tensor\n"
                              "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
                              "floor(self / other), as Python's //.", Promote::kDefault,
                              [](Expr a, Expr b) -> Expr { return expr::floor_divide(a, b); }));
constexpr Op fmod_op = accepts(
    kInts | kReals, pointwise("fmod.Tensor(Tensor self, Tensor other) -> Tensor\n"
                              "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
                              "Remainder of self / other with the sign of self, as C's fmod.",
                              Promote::kDefault, fmod_body));
constexpr Op remainder_op =
    accepts(kInts | kReals,
            pointwise("remainder.Tensor(Tensor self, Tensor other) -> Tensor\n"
                      "remainder.Scalar(Tensor self, Scalar other) -> Tensor\n"
                      "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                      "Remainder of self / other with the sign of other, as Python's %.",
                      Promote::kDefault, [](Expr a, Expr b) -> Expr { return expr::mod(a, b); }));
constexpr Op pow_op = saves_result(
    inferred_by(pow_infer, pointwise("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor\n"
                                     "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor\n"
                                     "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                                     "self to the power exponent.", Promote::kDefault, pow_body)));
constexpr Op float_power_op = saves_result(
    pointwise("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor\n"
              "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor\n"
              "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
              "self to the power exponent, in float64 or complex128.", Promote::kDouble, pow_body));
constexpr Op addcmul_op = accepts(
    kNumbers,
    pointwise("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
              "self + value * tensor1 * tensor2.", Promote::kDefault, addcmul_body));
constexpr Op addcdiv_op = accepts(
    kFloating,
    pointwise("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
              "self + value * tensor1 / tensor2.", Promote::kDefault, addcdiv_body));
constexpr Op lerp_op = accepts(
    kFloating, pointwise("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor\n"
                         "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
                         "self + weight * (end - self).", Promote::kDefault,
                         [](Expr a, Expr b, Expr w) -> Expr { return expr::lerp(a, b, w); }));
FX_BINARY_TENSOR_OF(kAllKinds, ldexp, Promote::kFloat, "self * 2^other.", a* expr::exp2(b))
constexpr Op neg_op =
    accepts(kNumbers, pointwise("neg(Tensor self) -> Tensor\nnegative(Tensor self) -> Tensor",
                                "-self.", Promote::kDefault, [](Expr x) { return -x; }));
constexpr Op positive_op{.schema = "positive(Tensor(a) self) -> Tensor(a)",
                         .doc = "self; for bools an error.",
                         .kind = OpKind::kComposite,
                         .body = [](Call& c) {
                           FX_CHECK(c.args.tensor(0).dtype() != Dtype::kBool, kType,
                                    "positive: not defined for bool");
                           c.outs = {c.args.tensor(0)};
                         }};
constexpr Op abs_op =
    accepts(kNumbers, pointwise("abs(Tensor self) -> Tensor\nabsolute(Tensor self) -> Tensor",
                                "|self|; real for complex input.", Promote::kToReal,
                                [](Expr x) -> Expr { return expr::abs(x); }));
FX_UNARY(square, Promote::kIntForBool, "self * self.", x* x)
constexpr Op reciprocal_op =
    saves_result(pointwise("reciprocal(Tensor self) -> Tensor", "1 / self.", Promote::kFloat,
                           [](Expr x) -> Expr { return expr::reciprocal(x); }));
FX_UNARY_OF(kOrdered, sign, Promote::kDefault, "-1, 0 or 1 by the sign of self.", expr::sign(x))
FX_UNARY(sgn, Promote::kDefault, "sign; self / |self| for complex input.", expr::sign(x))
FX_UNARY_OF(kInts | kReals, ceil, Promote::kDefault, "The least integer >= self.", expr::ceil(x))
FX_UNARY_OF(kInts | kReals, floor, Promote::kDefault, "The largest integer <= self.",
            expr::floor(x))
FX_UNARY_OF(kReals, frac, Promote::kDefault, "self - trunc(self).", x - expr::trunc(x))
constexpr Op trunc_op =
    accepts(kInts | kReals, pointwise("trunc(Tensor self) -> Tensor\nfix(Tensor self) -> Tensor",
                                      "self without its fraction.", Promote::kDefault,
                                      [](Expr x) -> Expr { return expr::trunc(x); }));
constexpr Op round_op = accepts(
    kInts | kReals, pointwise("round.decimals(Tensor self, *, int decimals) -> Tensor\n"
                              "round(Tensor self) -> Tensor",
                              "Nearest integer, ties to even; at a decimal place if one is given.",
                              Promote::kDefault, [](Body& b) {
                                int64_t decimals = b.has(1) ? b.integer(1) : 0;
                                b.out(0, expr::round_decimals(b.in(0), int(decimals)));
                              }));
FX_UNARY(conj_physical, Promote::kDefault, "The complex conjugate, in memory.", expr::conj(x))
FX_UNARY_OF(kOrdered | kComplexes, angle, Promote::kFloatToReal,
            "The argument of a complex number; 0 or pi for reals.", expr::angle(x))
constexpr Op polar_op =
    accepts(kReals, pointwise("polar(Tensor abs, Tensor angle) -> Tensor", "abs * e^(i angle).",
                              Promote::kToComplex, [](Expr r, Expr t) -> Expr {
                                return expr::complex(r * expr::cos(t), r * expr::sin(t));
                              }));
constexpr Op complex_op =
    accepts(kReals, pointwise("complex(Tensor real, Tensor imag) -> Tensor", "real + i imag.",
                              Promote::kToComplex,
                              [](Expr re, Expr im) -> Expr { return expr::complex(re, im); }));
FX_BINARY_OF(kOrdered, atan2, Promote::kFloat, "The angle of the point (other, self).",
             expr::atan2(a, b))
FX_BINARY_OF(kReals, hypot, Promote::kDefault, "sqrt(self^2 + other^2) without overflow.",
             expr::hypot(a, b))
FX_BINARY_SCALAR_OF(kOrdered, copysign, Promote::kFloat, "|self| with the sign of other.",
                    expr::copysign(a, b))
FX_BINARY_OF(kInts, gcd, Promote::kDefault, "Greatest common divisor, >= 0.",
             expr::call("gcd", a, b))
FX_BINARY_OF(kInts, lcm, Promote::kDefault, "Least common multiple, >= 0.", expr::lcm(a, b))
constexpr Op nextafter_op =
    accepts(kReals, pointwise("nextafter(Tensor self, Tensor other) -> Tensor",
                              "The next number of this dtype after self towards other.",
                              Promote::kDefault, [](Body& b) {
                                const char* row = b.common == Dtype::kF64    ? "nextafter_f64"
                                                  : b.common == Dtype::kF32  ? "nextafter_f32"
                                                  : b.common == Dtype::kBF16 ? "nextafter_bf16"
                                                                             : "nextafter_f16";
                                b.out(0, expr::call(row, b.in(0), b.in(1)));
                              }));

}  // namespace fornax
