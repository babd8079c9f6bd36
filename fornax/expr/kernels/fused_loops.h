// Superinstructions: two arithmetic operations in one pass, each rounded as if alone.
#pragma once

#include "fornax/expr/kernels/loop.h"

namespace fornax::FX_ISA_NS {
namespace {

struct Add {
  template <class T>
  static inline T of(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static inline T of(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static inline T of(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  static inline T of(T a, T b) {
    return a / b;
  }
};

template <class Inner, class Outer, bool kLeft>
struct Two {
  template <class T>
  static inline T of(T a, T b, T c) {
    const T t = Inner::of(a, b);
    return kLeft ? Outer::of(t, c) : Outer::of(c, t);
  }
};

template <class T, class Inner>
Loop fused_outer(Prim outer, bool left, int varies) {
  switch (outer) {
    case Prim::kAdd: return pick_ternary<T, Two<Inner, Add, true>>(varies);
    case Prim::kMul: return pick_ternary<T, Two<Inner, Mul, true>>(varies);
    case Prim::kSub:
      return left ? pick_ternary<T, Two<Inner, Sub, true>>(varies)
                  : pick_ternary<T, Two<Inner, Sub, false>>(varies);
    case Prim::kDiv:
      return left ? pick_ternary<T, Two<Inner, Div, true>>(varies)
                  : pick_ternary<T, Two<Inner, Div, false>>(varies);
    default: return nullptr;
  }
}

template <class T>
Loop fused_of(Prim inner, Prim outer, bool left, int varies) {
  switch (inner) {
    case Prim::kAdd: return fused_outer<T, Add>(outer, left, varies);
    case Prim::kSub: return fused_outer<T, Sub>(outer, left, varies);
    case Prim::kMul: return fused_outer<T, Mul>(outer, left, varies);
    default: return nullptr;
  }
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
