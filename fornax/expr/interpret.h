// The reference: evaluates an Expr for one element in double, node by node. For tests and
// documentation; complex nodes are computed as such, independently of lower().
#pragma once

#include "fornax/expr/expr.h"

namespace fornax::expr {

struct Value {
  Kind kind = Kind::kReal;
  double re = 0;  // kBool: 0 or 1
  double im = 0;
  int64_t integer = 0;  // kInt only

  Value() = default;
  Value(double real) : re(real) {}
  Value(double real, double imag) : kind(Kind::kComplex), re(real), im(imag) {}
  static Value of_int(int64_t value);
  static Value of_bool(bool value);
};

// Input i is inputs[i], converted to the node's kind; parts 1 and 2 are the parts of a complex one.
// An empty root is 0. Throws Error(kUnsupported) for a primitive that has no such operand kind, and
// Error(kIndex) for an input that was not given.
Value eval(Expr root, ArrayRef<Value> inputs);

// The real part of eval().
double eval_real(Expr root, ArrayRef<Value> inputs);

}  // namespace fornax::expr
