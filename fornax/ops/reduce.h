// Shared by reductions: dimensions, shapes, expanding gradients back.
#pragma once

#include "fornax/core/op.h"
#include "fornax/expr/functions.h"

namespace fornax {

using expr::Expr;

// Op::extra of a kReduction operator, for the compiler: the result is
// finish(combine(... combine(identity, element(x0)) ..., element(xn)), count). Absent functions
// leave the value as it is; the kind of `identity` adapts to the operand's.
struct ReductionSpec {
  Expr (*identity)() = nullptr;
  Expr (*element)(Expr x) = nullptr;
  Expr (*combine)(Expr so_far, Expr element) = nullptr;
  Expr (*finish)(Expr folded, Expr count) = nullptr;
};

// Dimensions of a reduction as a mask; absent or empty means all. Throws on repeated or wrong ones.
uint64_t dim_mask(Args args, size_t at, int64_t rank, std::string_view call);
// Sizes after reducing `mask`.
Dims reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim);
// Elements that one result of reducing `mask` is made of.
int64_t reduced_count(IntArrayRef sizes, uint64_t mask);
Dims dims_of_mask(uint64_t mask, int64_t rank);
// The batching rule of reductions whose argument 1 holds the dimensions.
void reduction_vmap(Vmapped& v);
// Puts the reduced dimensions back as size 1 where keepdim dropped them.
Tensor restore_dims(const Tensor& reduced, uint64_t mask, int64_t rank, bool keepdim);

// Reductions that select one element along argument 1 and give (value, place): shape rule, and the
// reverse rule from the saved place.
void selection_infer(Infer& f);
void selection_vjp(Vjp& v);
// In a reverse rule: something of the result's sizes, broadcastable against argument 0.
Tensor spread(Vjp& v, const Tensor& result_like, size_t dim_arg, size_t keepdim_arg);
inline Saves saves_input(const SaveQuery&) { return {1, 0}; }
inline Saves saves_result_only(const SaveQuery&) { return {0, 1}; }
inline Saves saves_both(const SaveQuery&) { return {1, 1}; }

}  // namespace fornax
