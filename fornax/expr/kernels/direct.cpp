// The loops of fornax/expr/loops.h but for copies.
#include "fornax/expr/kernels/convert.h"
#include "fornax/expr/kernels/table.h"

namespace fornax::FX_ISA_NS {
namespace {

#define FX_LOOP(name, parameters, expression)                                 \
  template <class T>                                                          \
  void name parameters {                                                      \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; ++i) d[i] = (expression); \
  }
FX_LOOP(add, (T * d, const T* a, const T* b, int64_t n), a[i] + b[i])
FX_LOOP(sub, (T * d, const T* a, const T* b, int64_t n), a[i] - b[i])
FX_LOOP(mul, (T * d, const T* a, const T* b, int64_t n), a[i] * b[i])
FX_LOOP(div, (T * d, const T* a, const T* b, int64_t n), a[i] / b[i])
FX_LOOP(add_scaled, (T * d, const T* a, const T* b, T alpha, int64_t n), a[i] + alpha * b[i])
FX_LOOP(add_scalar, (T * d, const T* a, T value, int64_t n), a[i] + value)
FX_LOOP(mul_scalar, (T * d, const T* a, T value, int64_t n), a[i] * value)
FX_LOOP(neg, (T * d, const T* a, int64_t n), -a[i])
FX_LOOP(relu, (T * d, const T* a, int64_t n), a[i] <= T(0) ? T(0) : a[i])
#undef FX_LOOP

template <class T>
expr::ArithmeticLoops<T> arithmetic() {
  return {add<T>,        sub<T>,        mul<T>, div<T>, add_scaled<T>,
          add_scalar<T>, mul_scalar<T>, neg<T>, relu<T>};
}

void bf16_to_f32(float* d, const BFloat16* a_, int64_t n) {
  const BF16* a = reinterpret_cast<const BF16*>(a_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = widen(a[i]);
}
void f32_to_bf16(BFloat16* d_, const float* a, int64_t n) {
  BF16* d = reinterpret_cast<BF16*>(d_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) d[i] = to_bf16(a[i]);
}
void f16_to_f32(float* d, const Half* a, int64_t n) {
  halves_to_floats(d, reinterpret_cast<const F16*>(a), n);
}
void f32_to_f16(Half* d, const float* a, int64_t n) {
  floats_to_halves(reinterpret_cast<F16*>(d), a, n);
}

}  // namespace

void set_direct_loops(expr::DirectLoops& loops) {
  loops.f32 = arithmetic<float>();
  loops.f64 = arithmetic<double>();
  loops.bf16_to_f32 = bf16_to_f32;
  loops.f32_to_bf16 = f32_to_bf16;
  loops.f16_to_f32 = f16_to_f32;
  loops.f32_to_f16 = f32_to_f16;
}

}  // namespace fornax::FX_ISA_NS
