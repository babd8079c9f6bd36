// Mean and squared deviations of a row. For kernel sources only.
//
// Each block is read twice while in cache, first for its mean, then for the deviations from it;
// blocks are merged as in Chan, Golub and LeVeque (1983).
#pragma once

#include "fornax/backends/cpu/kernels/fold_lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

struct Moments {
  double count, mean, squares;
};

FX_INLINE void add(Moments& a, Moments b) {
  if (b.count == 0) return;
  if (a.count == 0) {
    a = b;
    return;
  }
  double n = a.count + b.count, delta = b.mean - a.mean;
  a.mean += delta * (b.count / n);
  a.squares += b.squares + delta * delta * (a.count * b.count / n);
  a.count = n;
}

template <class S>
[[gnu::noinline]] Moments moments_of_few(const S* x, int64_t n, int64_t stride) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(widen(x[i * stride]));
  double mean = sum / double(n);
  for (int64_t i = 0; i < n; ++i) {
    double d = double(widen(x[i * stride])) - mean;
    squares += d * d;
  }
  return {double(n), mean, squares};
}

// The deviations are from the rounded mean `center`; their own sum corrects for it.
template <class S>
[[gnu::noinline]] Moments moments_of_block(const S* x, int64_t n) {
  using V = Value<S>;
  constexpr int kN = kWidth<V>, kRegisters = 128 / kVectorBytes, kLanes = kN * kRegisters;
  V center = V(fold_block<Sum>(x, n) / double(n));
  Vector<V, kN> sum[kRegisters] = {}, squares[kRegisters] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kRegisters; ++k) {
      auto d = load_lanes<V, kN>(x + i + k * kN) - center;
      sum[k] += d;
      squares[k] += d * d;
    }
  }
  V sums[kLanes], lanes[kLanes];
  __builtin_memcpy(sums, sum, sizeof(sums));
  __builtin_memcpy(lanes, squares, sizeof(lanes));
  for (int64_t k = 0; i + k < n; ++k) {
    V d = V(widen(x[i + k])) - center;
    sums[k] += d;
    lanes[k] += d * d;
  }
  double total = 0, total_squares = 0;
  for (int k = 0; k < kLanes; ++k) {
    total += double(sums[k]);
    total_squares += double(lanes[k]);
  }
  double shift = total / double(n), rest = total_squares - total * shift;
  return {double(n), double(center) + shift, rest < 0 ? 0 : rest};
}

template <class S>
FX_INLINE void add_row(Moments& m, const S* x, int64_t n, int64_t stride) {
  if (n < 32 || stride != 1) return add(m, moments_of_few(x, n, stride));
  for (int64_t i = 0; i < n; i += kBlock)
    add(m, moments_of_block(x + i, n - i < kBlock ? n - i : kBlock));
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
