// What a fold is made of, and a row folded in lanes. For kernel sources only.
//
// The number of lanes is fixed, so the result is the same for every instruction set; blocks of
// lanes are summed in double, pairwise.
#pragma once

#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of the compiler's own intrinsics
#include <type_traits>

#include "fornax/backends/cpu/kernels/lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

// Elements folded in lanes before they go to the accumulator: integer lanes of 32 bits hold the sum
// of as many 16-bit numbers.
constexpr int64_t kBlock = 4096;

template <class S>
inline constexpr bool kIsFloat = std::is_same_v<S, float> || std::is_same_v<S, double> ||
                                 std::is_same_v<S, BF16> || std::is_same_v<S, F16>;
// What a storage type is computed in.
template <class S>
using Value = std::conditional_t<
    std::is_same_v<S, double>, double,
    std::conditional_t<kIsFloat<S>, float,
                       std::conditional_t<std::is_same_v<S, int64_t>, int64_t, int32_t>>>;
template <class S>
using Wide = std::conditional_t<kIsFloat<S>, double, int64_t>;

template <class T>
inline constexpr bool kIsScalar = std::is_arithmetic_v<T>;
template <class T>
FX_INLINE T lowest() {
  if constexpr (std::is_same_v<T, float>) return -__builtin_inff();
  if constexpr (std::is_same_v<T, double>) return -__builtin_inf();
  if constexpr (std::is_same_v<T, int32_t>) return INT32_MIN;
  return T(INT64_MIN);
}
template <class T>
FX_INLINE T highest() {
  if constexpr (std::is_same_v<T, float>) return __builtin_inff();
  if constexpr (std::is_same_v<T, double>) return __builtin_inf();
  if constexpr (std::is_same_v<T, int32_t>) return INT32_MAX;
  return T(INT64_MAX);
}

// A fold F gives: Lane<S>, the type of its lanes; identity<T>(); map(x) from Value lanes to Lane
// lanes and combine(a, b), both for scalars and vectors.
struct Sum {
  template <class S>
  using Lane = std::conditional_t<std::is_same_v<S, int32_t>, int64_t, Value<S>>;
  template <class T>
  FX_INLINE T identity() {
    return T(0);
  }
  template <class V>
  FX_INLINE V map(V x) {
    return x;
  }
  template <class V>
  FX_INLINE V combine(V a, V b) {
    return a + b;
  }
};
struct NanSum : Sum {
  template <class V>
  FX_INLINE V map(V x) {
    return x == x ? x : V{};
  }
};
struct AbsSum : Sum {
  template <class V>
  FX_INLINE V map(V x) {
    return x < 0 ? -x : x;
  }
};
struct SquareSum : Sum {
  template <class S>
  using Lane = Wide<S>;
  template <class V>
  FX_INLINE V map(V x) {
    return x * x;
  }
};
struct Nonzero : Sum {
  template <class S>
  using Lane = std::conditional_t<sizeof(Value<S>) == 8, int64_t, int32_t>;
  template <class V>
  FX_INLINE auto map(V x) {
    if constexpr (kIsScalar<V>)
      return int64_t(x != 0);
    else
      return (x != 0) & 1;
  }
};
struct Prod : Sum {
  template <class S>
  using Lane = Wide<S>;
  template <class T>
  FX_INLINE T identity() {
    return T(1);
  }
  template <class V>
  FX_INLINE V combine(V a, V b) {
    return a * b;
  }
};
struct Max : Sum {
  template <class S>
  using Lane = Value<S>;
  template <class T>
  FX_INLINE T identity() {
    return lowest<T>();
  }
  template <class V>
  FX_INLINE V combine(V a, V b) {
    return (b > a) | (b != b) ? b : a;
  }
};
struct Min : Max {
  template <class T>
  FX_INLINE T identity() {
    return highest<T>();
  }
  template <class V>
  FX_INLINE V combine(V a, V b) {
    return (b < a) | (b != b) ? b : a;
  }
};
struct MaxAbs : Max {
  template <class V>
  FX_INLINE V map(V x) {
    return x < 0 ? -x : x;
  }
};
struct MinAbs : Min {
  template <class V>
  FX_INLINE V map(V x) {
    return x < 0 ? -x : x;
  }
};

// The integer state of Nonzero counts floats too.
template <class F, class S>
using Acc = std::conditional_t<std::is_same_v<F, Nonzero>, int64_t, Wide<S>>;

// The value lanes a fold's map takes: its lane type, except where the map gives another type.
template <class F, class S>
using Mapped =
    std::conditional_t<std::is_same_v<F, Nonzero>, Value<S>, typename F::template Lane<S>>;

template <class F, class S, int N>
FX_INLINE auto load_mapped(const S* p) {
  return F::map(load_lanes<Mapped<F, S>, N>(p));
}
template <class F, class S>
FX_INLINE typename F::template Lane<S> map_one(S x) {
  return typename F::template Lane<S>(F::map(Mapped<F, S>(widen(x))));
}

template <class F, class S>
[[gnu::noinline]] Acc<F, S> fold_few(const S* x, int64_t n, int64_t stride) {
  using A = Acc<F, S>;
  A a[4] = {F::template identity<A>(), F::template identity<A>(), F::template identity<A>(),
            F::template identity<A>()};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) a[k] = F::combine(a[k], A(map_one<F>(x[(i + k) * stride])));
  for (; i < n; ++i) a[0] = F::combine(a[0], A(map_one<F>(x[i * stride])));
  return F::combine(F::combine(a[0], a[1]), F::combine(a[2], a[3]));
}

template <class F, class S>
[[gnu::noinline]] Acc<F, S> fold_block(const S* x, int64_t n) {
  using L = typename F::template Lane<S>;
  constexpr int kN = kWidth<L>, kRegisters = 256 / kVectorBytes, kLanes = kN * kRegisters;
  Vector<L, kN> v[kRegisters];
#pragma GCC unroll 8
  for (int k = 0; k < kRegisters; ++k) v[k] = Vector<L, kN>{} + F::template identity<L>();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 8
    for (int k = 0; k < kRegisters; ++k)
      v[k] = F::combine(v[k], load_mapped<F, S, kN>(x + i + k * kN));
  }
  L lanes[kLanes];
  __builtin_memcpy(lanes, v, sizeof(lanes));
  for (int64_t k = 0; i + k < n; ++k) lanes[k] = F::combine(lanes[k], map_one<F>(x[i + k]));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k] = F::combine(lanes[k], lanes[k + half]);
  return Acc<F, S>(lanes[0]);
}

// Blocks are combined pairwise: `sums` holds one entry per set bit of their number.
template <class F, class S>
FX_INLINE Acc<F, S> fold_run(const S* x, int64_t n, int64_t stride) {
  using A = Acc<F, S>;
  if (n < 32 || stride != 1) return fold_few<F>(x, n, stride);
  if (n <= kBlock) return fold_block<F>(x, n);
  A sums[64];
  int depth = 0;
  int64_t blocks = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    sums[depth++] = fold_block<F>(x + i, n - i < kBlock ? n - i : kBlock);
    for (int64_t bits = ++blocks; !(bits & 1); bits >>= 1) {
      --depth;
      sums[depth - 1] = F::combine(sums[depth - 1], sums[depth]);
    }
  }
  while (depth > 1) {
    --depth;
    sums[depth - 1] = F::combine(sums[depth - 1], sums[depth]);
  }
  return sums[0];
}

}  // namespace
}  // namespace fornax::FX_ISA_NS
