// Comparison, logic, bits, classification and selection.
#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise_macros.h"

namespace fornax {
namespace {

constexpr int kNotComplex = kOrdered;

// Bounds that are numbers: NaN in any place gives NaN, the upper bound wins where they cross, and
// the gradient is 1 at a bound.
void clamp_to_numbers(Body& b, Expr x, Expr lo, Expr hi) {
  Expr value = x, inside = expr::boolean(true);
  if (!lo.empty()) {
    value = expr::max(value, lo);
    inside = inside & (x >= lo);
  }
  if (!hi.empty()) {
    value = expr::min(value, hi);
    inside = inside & (x <= hi);
  }
  b.out(0, expr::with_grad(value, {{x, expr::where(inside, 1.0, 0.0)}}));
}

void clamp_body(Body& b) {
  Expr lo = b.has(1) ? b.in(1) : Expr(), hi = b.has(2) ? b.in(2) : Expr();
  if (b.args[1].is_tensor() || b.args[2].is_tensor()) return b.out(0, expr::clamp(b.in(0), lo, hi));
  clamp_to_numbers(b, b.in(0), lo, hi);
}

void clamp_infer(Infer& f) {
  FX_CHECK(f.args.has(1) || f.args.has(2), kValue, "clamp: at least one of min and max is needed");
  pointwise_infer(f);
}

void clamp_min_body(Body& b) {
  if (b.args[1].is_tensor()) return b.out(0, expr::max(b.in(0), b.in(1)));
  clamp_to_numbers(b, b.in(0), b.in(1), Expr());
}
void clamp_max_body(Body& b) {
  if (b.args[1].is_tensor()) return b.out(0, expr::min(b.in(0), b.in(1)));
  clamp_to_numbers(b, b.in(0), Expr(), b.in(1));
}

void nan_to_num_body(Body& b) {
  Dtype d = to_real(b.common);
  double largest = d == Dtype::kF64    ? 1.7976931348623157e308
                   : d == Dtype::kF32  ? 3.4028234663852886e38
                   : d == Dtype::kBF16 ? 3.3895313892515355e38
                                       : 65504.0;
  auto given = [&](int i, double absent) -> Expr {
    return b.has(i) ? expr::to_real(b.in(i)) : Expr(absent);
  };
  b.out(0, expr::nan_to_num(b.in(0), given(1, 0.0), given(2, largest), given(3, -largest)));
}

// |self - other| <= atol + |rtol * other|; integers with no tolerance compare exactly.
void isclose_body(Body& b) {
  Expr x = b.in(0), y = b.in(1), equal = x == y;
  bool integral = b.kind() < expr::Kind::kReal;
  if (integral && b.has(2) && b.is_zero(2) && b.has(3) && b.is_zero(3)) return b.out(0, equal);
  Expr rtol = b.has(2) ? expr::to_real(b.in(2)) : Expr(1e-5);
  Expr atol = b.has(3) ? expr::to_real(b.in(3)) : Expr(1e-8);
  Expr reference = expr::to_real(y);
  Expr distance = expr::abs(expr::to_real(x) - reference);
  Expr allowed = atol + expr::abs(rtol * reference);
  Expr close = equal | (expr::is_finite(distance) & (distance <= allowed));
  if (b.has(4) && b.flag(4)) close = close | (expr::is_nan(x) & expr::is_nan(y));
  b.out(0, close);
}

void isclose_infer(Infer& f) {
  for (size_t i : {2, 3})
    FX_CHECK(f.args.real(i, 0) >= 0, kValue, "isclose: ", i == 2 ? "rtol" : "atol",
             " must not be negative, got ", f.args.real(i, 0));
  pointwise_infer(f);
}

void where_infer(Infer& f) {
  const Tensor& condition = f.args.tensor(0);
  FX_CHECK(condition.dtype() == Dtype::kBool || condition.dtype() == Dtype::kU8, kType,
           "where: the condition must be bool or uint8, got ", condition.dtype());
  pointwise_infer(f);
}

void masked_fill_infer(Infer& f) {
  const Tensor& mask = f.args.tensor(1);
  FX_CHECK(mask.dtype() == Dtype::kBool, kType, "masked_fill: the mask must be bool, got ",
           mask.dtype());
  Dtype self = f.args.tensor(0).dtype();
  if (f.args[2].is_tensor()) {
    const Tensor& value = f.args.tensor(2);
    FX_CHECK(value.dim() == 0, kShape, "masked_fill: the value must be a 0-D tensor, got ",
             value.dim(), "-D");
    FX_CHECK(can_cast(value.dtype(), self), kType, "masked_fill: a value of ", value.dtype(),
             " can't be stored in a tensor of ", self);
  } else {
    FX_CHECK(!f.args.number(2).is_complex() || is_complex(self), kType,
             "masked_fill: a complex value can't be stored in a tensor of ", self);
  }
  pointwise_infer(f);
}

// A batched value is no 0-D tensor one level down: where() takes any.
void masked_fill_vmap(Vmapped& v) {
  if (!v.is(2)) return pointwise_vmap(v);
  int64_t rank = std::max(v.dim(0), v.dim(1));
  auto aligned = [&](int arg) {
    const Tensor& t = v.call.args.tensor(size_t(arg));
    if (!v.is(arg) || v.dim(arg) == rank) return t;
    Dims sizes;
    sizes.push_back(v.size);
    for (int64_t d = v.dim(arg); d < rank; ++d) sizes.push_back(1);
    for (size_t d = 1; d < t.sizes().size(); ++d) sizes.push_back(t.sizes()[d]);
    return t.reshape(sizes);
  };
  Tensor self = aligned(0);
  Tensor result = where(aligned(1), aligned(2).to(self.dtype()), self);
  if (v.call.form == Form::kInplace) {
    self.copy_(result);
    result = v.call.args.tensor(0);
  }
  v.call.outs = {result};
  v.out_bdims = {0};
}

constexpr Op batched_by(void (*vmap)(Vmapped&), Op op) {
  op.vmap = vmap;
  return op;
}

}  // namespace

// ---- comparison: computed in the common dtype, the result is bool
// clang-format off
#define FX_COMPARISON(kinds, name, alias, doc, ...)                                                \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name ".Tensor(Tensor self, Tensor other) -> Tensor\n"              \
                               #name ".Scalar(Tensor self, Scalar other) -> Tensor\n"              \
                               #alias ".Tensor(Tensor self, Tensor other) -> Tensor\n"             \
                               #alias ".Scalar(Tensor self, Scalar other) -> Tensor",              \
                               doc, Promote::kBool,                                                \
                               [](Expr a, Expr b) -> Expr { return __VA_ARGS__; }));
// clang-format on
constexpr Op eq_op = pointwise(
    "eq.Tensor(Tensor self, Tensor other) -> Tensor\n"
    "eq.Scalar(Tensor self, Scalar other) -> Tensor",
    "self == other.", Promote::kBool, [](Expr a, Expr b) -> Expr { return a == b; });
FX_COMPARISON(kAllKinds, ne, not_equal, "self != other.", a != b)
FX_COMPARISON(kNotComplex, lt, less, "self < other.", a < b)
FX_COMPARISON(kNotComplex, le, less_equal, "self <= other.", a <= b)
FX_COMPARISON(kNotComplex, gt, greater, "self > other.", a > b)
FX_COMPARISON(kNotComplex, ge, greater_equal, "self >= other.", a >= b)
#undef FX_COMPARISON
constexpr Op isclose_op = inferred_by(
    isclose_infer,
    pointwise("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
              "equal_nan=False) -> Tensor",
              "Whether |self - other| <= atol + |rtol * other|.", Promote::kBool, isclose_body));

// ---- logic and bits
FX_UNARY(logical_not, Promote::kBool, "Whether self is zero.", ~expr::truth(x))
FX_BINARY_OF(kAllKinds, logical_and, Promote::kBool, "Whether both are nonzero.",
             expr::truth(a) & expr::truth(b))
FX_BINARY_OF(kAllKinds, logical_or, Promote::kBool, "Whether one is nonzero.",
             expr::truth(a) | expr::truth(b))
FX_BINARY_OF(kAllKinds, logical_xor, Promote::kBool, "Whether exactly one is nonzero.",
             expr::truth(a) ^ expr::truth(b))
constexpr int kBits = kBools | kInts;
FX_UNARY_OF(kBits, bitwise_not, Promote::kDefault, "All bits flipped; logical not for bools.", ~x)
// clang-format off
#define FX_BITWISE(kinds, name, operator_name, doc, ...)                                           \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name ".Tensor(Tensor self, Tensor other) -> Tensor\n"              \
                               #name ".Scalar(Tensor self, Scalar other) -> Tensor\n"              \
                               #name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor\n"       \
                               #operator_name ".Tensor(Tensor self, Tensor other) -> Tensor\n"     \
                               #operator_name ".Scalar(Tensor self, Scalar other) -> Tensor",      \
                               doc, Promote::kDefault,                                             \
                               [](Expr a, Expr b) -> Expr { return __VA_ARGS__; }));
// clang-format on
FX_BITWISE(kBits, bitwise_and, __and__, "Bits set in both.", a& b)
FX_BITWISE(kBits, bitwise_or, __or__, "Bits set in one of both.", a | b)
FX_BITWISE(kBits, bitwise_xor, __xor__, "Bits set in exactly one.", a ^ b)
FX_BITWISE(kInts, bitwise_left_shift, __lshift__, "self * 2^other, bits lost on the left.",
           expr::shl(a, b))
FX_BITWISE(kInts, bitwise_right_shift, __rshift__, "floor(self / 2^other).", expr::shr(a, b))
#undef FX_BITWISE

// ---- classification
FX_UNARY(isnan, Promote::kBool, "Whether each element is NaN.", expr::is_nan(x))
FX_UNARY(isinf, Promote::kBool, "Whether each element is infinite.", expr::is_inf(x))
FX_UNARY(isfinite, Promote::kBool, "Whether each element is neither NaN nor infinite.",
         expr::is_finite(x))
FX_UNARY_OF(kNotComplex, isposinf, Promote::kBool, "Whether each element is +inf.",
            expr::is_positive_inf(x))
FX_UNARY_OF(kNotComplex, isneginf, Promote::kBool, "Whether each element is -inf.",
            expr::is_negative_inf(x))
FX_UNARY(isreal, Promote::kBool, "Whether each element's imaginary part is zero.",
         x.kind() == expr::Kind::kComplex ? expr::imag(x) == 0.0 : expr::boolean(true))
FX_UNARY_OF(kNotComplex, signbit, Promote::kBool, "Whether the sign is negative, -0 included.",
            expr::sign_bit(x))
constexpr Op nan_to_num_op = pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    "NaN and infinities replaced: by 0 and the largest numbers unless given.", Promote::kDefault,
    nan_to_num_body);

// ---- extremes
constexpr Op maximum_op =
    accepts(kNotComplex, pointwise("maximum(Tensor self, Tensor other) -> Tensor\n"
                                   "max.other(Tensor self, Tensor other) -> Tensor",
                                   "The larger of both; NaN wins.", Promote::kDefault,
                                   [](Expr a, Expr b) -> Expr { return expr::max(a, b); }));
constexpr Op minimum_op =
    accepts(kNotComplex, pointwise("minimum(Tensor self, Tensor other) -> Tensor\n"
                                   "min.other(Tensor self, Tensor other) -> Tensor",
                                   "The smaller of both; NaN wins.", Promote::kDefault,
                                   [](Expr a, Expr b) -> Expr { return expr::min(a, b); }));
FX_BINARY_OF(kNotComplex, fmax, Promote::kDefault, "The larger of both; a number wins over NaN.",
             expr::fmax(a, b))
FX_BINARY_OF(kNotComplex, fmin, Promote::kDefault, "The smaller of both; a number wins over NaN.",
             expr::fmin(a, b))
constexpr Op clamp_op = accepts(
    kNotComplex,
    inferred_by(clamp_infer,
                pointwise("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> "
                          "Tensor\n"
                          "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor\n"
                          "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor\n"
                          "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                          "min(max(self, min), max).", Promote::kDefault, clamp_body)));
constexpr Op clamp_min_op =
    accepts(kNotComplex, pointwise("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor\n"
                                   "clamp_min(Tensor self, Scalar min) -> Tensor",
                                   "max(self, min).", Promote::kDefault, clamp_min_body));
constexpr Op clamp_max_op =
    accepts(kNotComplex, pointwise("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor\n"
                                   "clamp_max(Tensor self, Scalar max) -> Tensor",
                                   "min(self, max).", Promote::kDefault, clamp_max_body));
constexpr Op heaviside_op =
    accepts(kNotComplex, pointwise("heaviside(Tensor self, Tensor values) -> Tensor",
                                   "0 below zero, 1 above, values at zero.", Promote::kDefault,
                                   [](Expr x, Expr v) -> Expr { return expr::heaviside(x, v); }));

// ---- selection
constexpr Op where_op = inferred_by(
    where_infer,
    pointwise(
        "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor\n"
        "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor\n"
        "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor\n"
        "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
        "condition ? self : other.", Promote::kDefault,
        [](Body& b) { b.out(0, expr::where(expr::truth(b.in(0)), b.in(1), b.in(2))); }, 0b110));
constexpr Op masked_fill_op = batched_by(
    masked_fill_vmap,
    inferred_by(masked_fill_infer,
                pointwise(
                    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor\n"
                    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
                    "value where mask, else self.", Promote::kFirst,
                    [](Body& b) { b.out(0, expr::where(expr::truth(b.in(1)), b.in(2), b.in(0))); },
                    0b101)));

}  // namespace fornax
