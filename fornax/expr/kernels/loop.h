// The shapes that a VM loop can take. For kernel sources only.
#pragma once

#include <cstdint>

#include "fornax/base/isa.h"
#include "fornax/expr/kernels/table.h"

namespace fornax::FX_ISA_NS {

using expr::Loop;

// F::of(a). A in, R out.
template <class R, class A, class F>
void unary_loop(void* d_, const void* a_, const void*, const void*, int64_t n) {
  R* d = static_cast<R*>(d_);
  const A* a = static_cast<const A*>(a_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F::of(a[i]);
}

// Operands that do not vary are read once and stay in a register.
template <class R, class A, class F, bool kA, bool kB>
void binary_loop(void* d_, const void* a_, const void* b_, const void*, int64_t n) {
  R* d = static_cast<R*>(d_);
  const A* a = static_cast<const A*>(a_);
  const A* b = static_cast<const A*>(b_);
  const A a0 = a[0], b0 = b[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F::of(kA ? a[i] : a0, kB ? b[i] : b0);
}

template <class T, class F, bool kA, bool kB, bool kC>
void ternary_loop(void* d_, const void* a_, const void* b_, const void* c_, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  const T* c = static_cast<const T*>(c_);
  const T a0 = a[0], b0 = b[0], c0 = c[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = F::of(kA ? a[i] : a0, kB ? b[i] : b0, kC ? c[i] : c0);
}

// A mask chooses between two values of any type, by their width.
template <class T, class M, bool kA, bool kB>
void select_loop(void* d_, const void* m_, const void* a_, const void* b_, int64_t n) {
  T* d = static_cast<T*>(d_);
  const M* m = static_cast<const M*>(m_);
  const T* a = static_cast<const T*>(a_);
  const T* b = static_cast<const T*>(b_);
  const T a0 = a[0], b0 = b[0];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T x = kA ? a[i] : a0, y = kB ? b[i] : b0;
    d[i] = m[i] ? x : y;
  }
}

// `varies` has bit 0 for a, 1 for b, 2 for c; a loop with no varying operand runs on one element.
template <class R, class A, class F>
Loop pick_binary(int varies) {
  if (varies == 1) return binary_loop<R, A, F, true, false>;
  if (varies == 2) return binary_loop<R, A, F, false, true>;
  return binary_loop<R, A, F, true, true>;
}

template <class T, class F>
Loop pick_ternary(int varies) {
  switch (varies) {
    case 1: return ternary_loop<T, F, true, false, false>;
    case 2: return ternary_loop<T, F, false, true, false>;
    case 3: return ternary_loop<T, F, true, true, false>;
    case 4: return ternary_loop<T, F, false, false, true>;
    case 5: return ternary_loop<T, F, true, false, true>;
    case 6: return ternary_loop<T, F, false, true, true>;
    default: return ternary_loop<T, F, true, true, true>;
  }
}

}  // namespace fornax::FX_ISA_NS
