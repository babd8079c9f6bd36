// Where the extremum is: of equal elements the first, a NaN before all numbers.
//
// Blocks are first folded for their value alone; only a block that beats the best so far is
// searched.
#include "fornax/backends/cpu/kernels/fold_kernels.h"
#include "fornax/backends/cpu/kernels/fold_lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

// b beats a; also for vectors.
template <class F, class V>
FX_INLINE auto beats(V b, V a) {
  if constexpr (std::is_same_v<F, Max>)
    return (b > a) | ((b != b) & (a == a));
  else
    return (b < a) | ((b != b) & (a == a));
}

#if defined(__AVX512F__)
template <class T>
FX_INLINE bool any_lane(Vector<T, kWidth<T>> mask) {
  auto v = load_raw<__m512i>(&mask);
  return _mm512_test_epi64_mask(v, v) != 0;
}
#else
template <class T>
FX_INLINE bool any_lane(Vector<T, kWidth<T>> mask) {
  auto v = load_raw<__m256i>(&mask);
  return !_mm256_testz_si256(v, v);
}
#endif

template <class F, class S>
struct IndexFold {
  using V = Value<S>;
  using A = Wide<S>;
  using I = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;  // as wide as a value

  static void start(void* acc, int64_t plane, int64_t n) {
    A* values = static_cast<A*>(acc);
    int64_t* places = static_cast<int64_t*>(acc) + plane;
    for (int64_t i = 0; i < n; ++i) values[i] = 0;
    for (int64_t i = 0; i < n; ++i) places[i] = -1;
  }
  FX_INLINE void take(A& value, int64_t& place, A other, int64_t other_place) {
    if (other_place < 0 || (place >= 0 && !beats<F>(other, value))) return;
    value = other;
    place = other_place;
  }
  static void merge(void* acc, int64_t plane, const void* later, int64_t later_plane, int64_t n) {
    A* values = static_cast<A*>(acc);
    int64_t* places = static_cast<int64_t*>(acc) + plane;
    const A* other = static_cast<const A*>(later);
    const int64_t* other_places = static_cast<const int64_t*>(later) + later_plane;
    for (int64_t i = 0; i < n; ++i) take(values[i], places[i], other[i], other_places[i]);
  }

  static void row(A& value, int64_t& place, const S* x, int64_t n, int64_t stride, int64_t first) {
    if (n < 32 || stride != 1) {
      for (int64_t i = 0; i < n; ++i) take(value, place, A(widen(x[i * stride])), first + i);
      return;
    }
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t m = n - i < kBlock ? n - i : kBlock;
      const A best = fold_block<F>(x + i, m);
      if (place >= 0 && !beats<F>(best, value)) continue;
      int64_t k = 0;
      if (best != best)
        while (widen(x[i + k]) == widen(x[i + k])) ++k;
      else
        while (A(widen(x[i + k])) != best) ++k;
      value = best;
      place = first + i + k;
    }
  }
  static void rows(void* acc, int64_t plane, const void* x_, int64_t count, int64_t row_stride,
                   int64_t n, int64_t stride, int64_t first) {
    A* values = static_cast<A*>(acc);
    int64_t* places = static_cast<int64_t*>(acc) + plane;
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < count; ++r)
      row(values[r], places[r], x + r * row_stride, n, stride, first);
  }

  static constexpr int64_t kTile = 16384 / int64_t(sizeof(V));

  // Rows r ... r + 7 of kWidth columns. Most often none of them beats the best.
  FX_INLINE void eight(V* best, I* at, const S* x, int64_t row_stride, I r) {
    constexpr int kN = kWidth<V>;
    auto value = load_raw<Vector<V, kN>>(best);
    Vector<V, kN> v[8];
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) v[k] = load_lanes<V, kN>(x + k * row_stride);
    auto low = F::combine(F::combine(v[0], v[1]), F::combine(v[2], v[3]));
    auto high = F::combine(F::combine(v[4], v[5]), F::combine(v[6], v[7]));
    if (!any_lane<I>(beats<F>(F::combine(low, high), value))) return;
    auto place = load_raw<Vector<I, kN>>(at);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      auto better = beats<F>(v[k], value);
      value = better ? v[k] : value;
      place = better ? Vector<I, kN>{} + I(r + k) : place;
    }
    __builtin_memcpy(best, &value, sizeof(value));
    __builtin_memcpy(at, &place, sizeof(place));
  }
  FX_INLINE void one(V& best, I& at, V x, I r) {
    if (!beats<F>(x, best)) return;
    best = x;
    at = r;
  }

  static void tile(A* values, int64_t* places, const S* x, int64_t rows, int64_t row_stride,
                   int64_t cols, int64_t first) {
    constexpr int kN = kWidth<V>;
    V best[kTile];
    I at[kTile];
    for (int64_t c = 0; c < cols; ++c) {
      best[c] = V(widen(x[c]));
      at[c] = 0;
    }
    int64_t r = 1;
    for (; r + 8 <= rows; r += 8) {
      const S* p = x + r * row_stride;
      int64_t c = 0;
      for (; c + kN <= cols; c += kN) eight(best + c, at + c, p + c, row_stride, I(r));
      for (; c < cols; ++c)
        for (int k = 0; k < 8; ++k) one(best[c], at[c], V(widen(p[c + k * row_stride])), I(r + k));
    }
    for (; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) one(best[c], at[c], V(widen(x[r * row_stride + c])), I(r));
    for (int64_t c = 0; c < cols; ++c) take(values[c], places[c], A(best[c]), first + at[c]);
  }
  static void columns(void* acc, int64_t plane, const void* x_, int64_t rows, int64_t row_stride,
                      int64_t cols, int64_t first) {
    A* values = static_cast<A*>(acc);
    int64_t* places = static_cast<int64_t*>(acc) + plane;
    const S* x = static_cast<const S*>(x_);
    for (int64_t c = 0; c < cols; c += kTile)
      tile(values + c, places + c, x + c, rows, row_stride, cols - c < kTile ? cols - c : kTile,
           first);
  }

  static void set(cpu::FoldTable& table) {
    constexpr auto kind = std::is_same_v<F, Max> ? cpu::FoldKind::kArgMax : cpu::FoldKind::kArgMin;
    table.loops[int(kind)][int(kStored<S>)] = {
        2, std::is_same_v<A, int64_t>, start, rows, columns, merge};
  }
};

template <class... S>
void set(cpu::FoldTable& table) {
  (IndexFold<Max, S>::set(table), ...);
  (IndexFold<Min, S>::set(table), ...);
}

}  // namespace

void set_index_folds(cpu::FoldTable& table) {
  set<float, double, BF16, F16, int64_t, int32_t, uint8_t>(table);
}

}  // namespace fornax::FX_ISA_NS
