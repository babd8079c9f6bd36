// What the sources of this folder share.
#pragma once

#include "fornax/expr/expr.h"

namespace fornax::expr::detail {

// Interns a node as it is, without simplification.
Expr put(const Node& node);

// A constant of exactly this value; +0 is not -0 for reals.
bool is_value(Expr e, double value);

// A simpler node with the same value for every operand, or empty. Operands have the kind `kind`
// already.
Expr simplify_unary(Prim prim, Expr a);
Expr simplify_binary(Prim prim, Expr a, Expr b, Kind kind);

// The node with other operands, simplified anew. Unused operands are empty.
Expr rebuild(const Node& node, Expr a, Expr b, Expr c);

inline Expr operand(int32_t id) { return Expr::at(id); }

}  // namespace fornax::expr::detail
