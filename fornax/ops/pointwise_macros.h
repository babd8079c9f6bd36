// Short forms for the tables of pointwise operators: ATen's schema is made from the name. Only for
// fornax/ops/pointwise_*.cpp.
#pragma once

#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"

// clang-format off
// name(Tensor self): the expression is in x.
#define FX_UNARY(name, promote, doc, ...)                                                          \
  constexpr Op name##_op = pointwise(#name "(Tensor self) -> Tensor", doc, promote,                \
                                     [](Expr x) -> Expr { return __VA_ARGS__; });
// The same under a second ATen name.
#define FX_UNARY_AS(name, alias, promote, doc, ...)                                                \
  constexpr Op name##_op =                                                                         \
      pointwise(#name "(Tensor self) -> Tensor\n" #alias "(Tensor self) -> Tensor", doc, promote,  \
                [](Expr x) -> Expr { return __VA_ARGS__; });
// Whose gradient reads the result.
#define FX_UNARY_SAVES(name, promote, doc, ...)                                                    \
  constexpr Op name##_op =                                                                         \
      saves_result(pointwise(#name "(Tensor self) -> Tensor", doc, promote,                        \
                             [](Expr x) -> Expr { return __VA_ARGS__; }));
// Restricted to dtypes.
#define FX_UNARY_OF(kinds, name, promote, doc, ...)                                                \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name "(Tensor self) -> Tensor", doc, promote,                      \
                               [](Expr x) -> Expr { return __VA_ARGS__; }));
// name(Tensor self, Tensor other): the expression is in a and b.
#define FX_BINARY_OF(kinds, name, promote, doc, ...)                                               \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name "(Tensor self, Tensor other) -> Tensor", doc, promote,        \
                               [](Expr a, Expr b) -> Expr { return __VA_ARGS__; }));
// The same, whose overload is called Tensor.
#define FX_BINARY_TENSOR_OF(kinds, name, promote, doc, ...)                                        \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name ".Tensor(Tensor self, Tensor other) -> Tensor", doc, promote, \
                               [](Expr a, Expr b) -> Expr { return __VA_ARGS__; }));
// name.Tensor and name.Scalar.
#define FX_BINARY_SCALAR_OF(kinds, name, promote, doc, ...)                                        \
  constexpr Op name##_op =                                                                         \
      accepts(kinds, pointwise(#name ".Tensor(Tensor self, Tensor other) -> Tensor\n"              \
                               #name ".Scalar(Tensor self, Scalar other) -> Tensor",               \
                               doc, promote, [](Expr a, Expr b) -> Expr { return __VA_ARGS__; }));
// clang-format on
