// Pointwise operators: one Expr body gives kernels, derivatives of any order, forward mode and
// batching.
//
//   constexpr Op logaddexp_op = pointwise("logaddexp(Tensor self, Tensor other) -> Tensor",
//   "log(e^self + e^other).",
//                                         Promote::kFloat, [](Expr a, Expr b) { ... });
#pragma once

#include "fornax/core/op.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/functions.h"

namespace fornax {

using expr::Expr;

// What a body sees: operands as expressions, and everything that is structure (presence, text,
// integers, dtypes). Floating attributes and Scalars are inputs of the program, never constants: a
// new learning rate compiles nothing.
struct Body {
  const Op& op;
  Args args;
  Dtype common;           // dtype the operands are promoted to and computed in
  const int16_t* inputs;  // argument -> program input
  Expr* outs;             // one per result

  // Operand or number `i` in the kind of the common dtype (in its own kind if it takes no part in
  // promotion).
  Expr in(int i) const;
  // The program input behind in(i), before any cast: what derivatives are taken by.
  Expr operand(int i) const;
  bool has(int i) const { return args.has(size_t(i)); }
  int64_t integer(int i) const { return args.integer(size_t(i)); }
  bool flag(int i) const { return args.flag(size_t(i)); }
  std::string_view text(int i) const {
    return args[size_t(i)].tag == Tag::kString ? args.text(size_t(i)) : "";
  }
  // Number `i` where it is one of a few that bodies treat apart (0, +-1, +-2, 3, +-0.5): those are
  // part of the program's key.
  std::optional<double> exact(int i) const;
  bool is_one(int i) const { return exact(i) == 1.0; }
  bool is_zero(int i) const { return exact(i) == 0.0; }
  expr::Kind kind() const;
  // The value as it would be after a store in the common dtype (bf16 and f16 round; others
  // unchanged).
  Expr stored(Expr e) const;
  void out(int k, Expr e) const { outs[k] = e; }
};

// The dtype of a result whose operands are computed in `common`.
Dtype result_dtype(Promote promote, Dtype common);
void pointwise_infer(Infer& f);
void pointwise_vjp(Vjp& v);
Saves pointwise_saves(const SaveQuery& q);
void pointwise_jvp(Jvp& j);
void pointwise_vmap(Vmapped& v);

constexpr Op pointwise_base(std::string_view schema, std::string_view doc, Promote promote,
                            uint32_t promoted) {
  Op op{.schema = schema,
        .doc = doc,
        .kind = OpKind::kPointwise,
        .infer = pointwise_infer,
        .vjp = pointwise_vjp,
        .saves = pointwise_saves,
        .jvp = pointwise_jvp,
        .vmap = pointwise_vmap};
  op.pointwise.promote = promote;
  Schema s = parse_schema(schema);
  if (promoted == 0)
    for (int i = 0; i < s.n_params; ++i)
      if (s.params[i].type == "Tensor") promoted |= 1u << i;
  op.pointwise.promoted = promoted;
  for (int i = 0; i < s.n_params; ++i) {
    std::string_view type = s.params[i].type;
    if (type == "int" || type == "bool" || type == "str" || type == "ScalarType")
      op.pointwise.structural |= uint64_t(1) << i;
  }
  if (promote == Promote::kBool) op.traits |= kNoGrad;
  return op;
}
constexpr Op pointwise(std::string_view schema, std::string_view doc, Promote promote,
                       Expr (*f)(Expr), uint32_t promoted = 0) {
  Op op = pointwise_base(schema, doc, promote, promoted);
  op.pointwise.unary = f;
  return op;
}
constexpr Op pointwise(std::string_view schema, std::string_view doc, Promote promote,
                       Expr (*f)(Expr, Expr), uint32_t promoted = 0) {
  Op op = pointwise_base(schema, doc, promote, promoted);
  op.pointwise.binary = f;
  return op;
}
constexpr Op pointwise(std::string_view schema, std::string_view doc, Promote promote,
                       Expr (*f)(Expr, Expr, Expr), uint32_t promoted = 0) {
  Op op = pointwise_base(schema, doc, promote, promoted);
  op.pointwise.ternary = f;
  return op;
}
constexpr Op pointwise(std::string_view schema, std::string_view doc, Promote promote,
                       void (*f)(Body&), uint32_t promoted = 0) {
  Op op = pointwise_base(schema, doc, promote, promoted);
  op.pointwise.body = f;
  return op;
}

// The same operator, whose gradient may read the result.
constexpr Op saves_result(Op op) {
  op.traits |= kSavesResult;
  return op;
}
// The same operator, refusing other dtypes to compute in: a set of KindSet.
constexpr Op accepts(int kinds, Op op) {
  op.pointwise.kinds = uint8_t(kinds);
  return op;
}
// The same operator with more to check or another geometry; `infer` calls pointwise_infer itself.
constexpr Op inferred_by(void (*infer)(Infer&), Op op) {
  op.infer = infer;
  return op;
}

// ---- for kernels, interpreters and the compiler
// The dtype a call's operands are promoted to (before Promote is applied to the result): PyTorch's
// categories.
Dtype promoted_dtype(const Op& op, Args args);
// The compute dtype of a pointwise call: promoted_dtype, integers to the default dtype where the
// operator says so.
Dtype common_dtype(const Op& op, Args args);
// Builds the body's roots in the current arena. `inputs` maps arguments to program inputs.
void build_body(const Op& op, Args args, Dtype common, const int16_t* inputs, Expr* outs);
// Place of a number among those that bodies treat apart (Body::exact), from 1; 0 for all others.
uint64_t number_class(const Arg& a);
// What makes two calls of `op` share a body: presence, text, integers, numbers that are exactly 0
// or 1.
uint64_t structure_hash(const Op& op, Args args);
// Broadcast sizes of all tensor operands.
Dims pointwise_sizes(const Op& op, Args args);

}  // namespace fornax
