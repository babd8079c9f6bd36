// Scans in order of the elements: floats are accumulated in double, one state per row or column.
// Rows are taken several at a time, so their chains of dependent steps overlap.
#include "fornax/backends/cpu/kernels/scan_kernels.h"

#include "fornax/backends/cpu/kernels/lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

struct Complex128 {
  double re, im;
};
FX_INLINE Complex128 operator+(Complex128 a, Complex128 b) { return {a.re + b.re, a.im + b.im}; }
FX_INLINE Complex128 operator*(Complex128 a, Complex128 b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
struct Complex64 {
  float re, im;
};

template <class S>
struct AccOf {
  using type = double;
};
template <>
struct AccOf<int64_t> {
  using type = int64_t;
};
template <>
struct AccOf<Complex64> {
  using type = Complex128;
};
template <>
struct AccOf<Complex128> {
  using type = Complex128;
};
template <class S>
using Acc = typename AccOf<S>::type;

template <class S>
FX_INLINE Acc<S> widen_acc(S x) {
  if constexpr (std::is_same_v<S, Complex64>)
    return {double(x.re), double(x.im)};
  else if constexpr (std::is_same_v<S, Complex128>)
    return x;
  else
    return Acc<S>(x);
}
template <class S>
FX_INLINE S narrow_acc(Acc<S> x) {
  if constexpr (std::is_same_v<S, Complex64>)
    return {float(x.re), float(x.im)};
  else if constexpr (std::is_same_v<S, Complex128>)
    return x;
  else
    return S(x);
}
template <class A>
FX_INLINE A number(double v) {
  if constexpr (std::is_same_v<A, Complex128>)
    return {v, 0};
  else
    return A(v);
}

// Each: the state before the first element, and one step. `k` counts elements.
template <class S>
struct SumStep {
  using State = Acc<S>;
  static constexpr double kFirst = 0;
  FX_INLINE State step(State s, Acc<S> x, Acc<S>) { return s + x; }
};
template <class S>
struct ProdStep {
  using State = Acc<S>;
  static constexpr double kFirst = 1;
  FX_INLINE State step(State s, Acc<S> x, Acc<S>) { return s * x; }
};
template <class S>
struct RecurrenceStep {
  using State = Acc<S>;
  static constexpr double kFirst = 0;
  FX_INLINE State step(State s, Acc<S> x, Acc<S> a) { return a * s + x; }
};
template <class S>
struct LogSumExpStep {
  using State = Acc<S>;
  static constexpr double kFirst = -__builtin_inf();
  FX_INLINE State step(State s, Acc<S> x, Acc<S>) {
    double high = s > x || s != s ? s : x, low = s > x || s != s ? x : s;
    if (high != high || high == __builtin_inf() || high == -__builtin_inf()) return high;
    return low != low ? low : high + log1p(exp(low - high));
  }
};

template <class S, class F>
struct ValueScan {
  using A = Acc<S>;
  static constexpr bool kFactor = std::is_same_v<F, RecurrenceStep<S>>;

  template <int kRows>
  FX_INLINE void few_rows(S* y, const S* x, const S* a, int64_t n) {
    A state[kRows];
    for (int r = 0; r < kRows; ++r) state[r] = number<A>(F::kFirst);
    for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = r * n + k;
        state[r] = F::step(state[r], widen_acc(x[i]), kFactor ? widen_acc(a[i]) : A{});
        y[i] = narrow_acc<S>(state[r]);
      }
    }
  }
  static void rows(void* y_, int64_t*, const void* x_, const void* a_, int64_t n, int64_t,
                   int64_t begin, int64_t end) {
    S* y = static_cast<S*>(y_);
    const S* x = static_cast<const S*>(x_);
    const S* a = static_cast<const S*>(a_);
    int64_t r = begin;
    for (; r + 8 <= end; r += 8) few_rows<8>(y + r * n, x + r * n, kFactor ? a + r * n : a, n);
    for (; r < end; ++r) few_rows<1>(y + r * n, x + r * n, kFactor ? a + r * n : a, n);
  }
  static constexpr int64_t kTile = 1024;
  static void columns(void* y_, int64_t*, const void* x_, const void* a_, int64_t n, int64_t inner,
                      int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c += kTile) {
      const int64_t cols = end - c < kTile ? end - c : kTile;
      S* y = static_cast<S*>(y_) + c;
      const S* x = static_cast<const S*>(x_) + c;
      const S* a = kFactor ? static_cast<const S*>(a_) + c : x;
      A state[kTile];
      for (int64_t i = 0; i < cols; ++i) state[i] = number<A>(F::kFirst);
      for (int64_t k = 0; k < n; ++k, y += inner, x += inner, a += inner) {
#pragma GCC ivdep
        for (int64_t i = 0; i < cols; ++i) {
          state[i] = F::step(state[i], widen_acc(x[i]), kFactor ? widen_acc(a[i]) : A{});
          y[i] = narrow_acc<S>(state[i]);
        }
      }
    }
  }
};

template <class S, bool kMax>
struct ExtremumScan {
  FX_INLINE void step(S* y, int64_t* places, const S* x, int64_t n, int64_t stride) {
    S best = x[0];
    int64_t place = 0;
    for (int64_t k = 0; k < n; ++k) {
      const S v = x[k * stride];
      const bool better = kMax ? v >= best : v <= best;
      if (v != v || (best == best && better)) {
        best = v;
        place = k;
      }
      y[k * stride] = best;
      places[k * stride] = place;
    }
  }
  static void rows(void* y, int64_t* places, const void* x, const void*, int64_t n, int64_t,
                   int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      step(static_cast<S*>(y) + r * n, places + r * n, static_cast<const S*>(x) + r * n, n, 1);
  }
  static constexpr int64_t kTile = 512;
  static void columns(void* y_, int64_t* places, const void* x_, const void*, int64_t n,
                      int64_t inner, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c += kTile) {
      const int64_t cols = end - c < kTile ? end - c : kTile;
      const S* x = static_cast<const S*>(x_) + c;
      S* y = static_cast<S*>(y_) + c;
      int64_t* p = places + c;
      S best[kTile];
      int64_t place[kTile] = {};
      for (int64_t i = 0; i < cols; ++i) best[i] = x[i];
      for (int64_t k = 0; k < n; ++k, x += inner, y += inner, p += inner) {
#pragma GCC ivdep
        for (int64_t i = 0; i < cols; ++i) {
          const S v = x[i], b = best[i];
          const bool take = (v != v) | ((b == b) & (kMax ? v >= b : v <= b));
          y[i] = best[i] = take ? v : b;
          p[i] = place[i] = take ? k : place[i];
        }
      }
    }
  }
};

template <template <class> class F, class S>
void set(cpu::ScanTable& table, cpu::ScanKind kind, Dtype dtype) {
  table.rows[int(kind)][int(dtype)] = ValueScan<S, F<S>>::rows;
  table.columns[int(kind)][int(dtype)] = ValueScan<S, F<S>>::columns;
}
template <template <class> class F>
void set_numbers(cpu::ScanTable& table, cpu::ScanKind kind) {
  set<F, float>(table, kind, Dtype::kF32);
  set<F, double>(table, kind, Dtype::kF64);
  set<F, int64_t>(table, kind, Dtype::kI64);
  set<F, Complex64>(table, kind, Dtype::kC64);
  set<F, Complex128>(table, kind, Dtype::kC128);
}
template <class S>
void set_extrema(cpu::ScanTable& table) {
  using cpu::ScanKind;
  table.rows[int(ScanKind::kMax)][int(kStored<S>)] = ExtremumScan<S, true>::rows;
  table.columns[int(ScanKind::kMax)][int(kStored<S>)] = ExtremumScan<S, true>::columns;
  table.rows[int(ScanKind::kMin)][int(kStored<S>)] = ExtremumScan<S, false>::rows;
  table.columns[int(ScanKind::kMin)][int(kStored<S>)] = ExtremumScan<S, false>::columns;
}

}  // namespace

void set_scans(cpu::ScanTable& table) {
  using cpu::ScanKind;
  set_numbers<SumStep>(table, ScanKind::kSum);
  set_numbers<ProdStep>(table, ScanKind::kProd);
  set_numbers<RecurrenceStep>(table, ScanKind::kRecurrence);
  set<LogSumExpStep, float>(table, ScanKind::kLogSumExp, Dtype::kF32);
  set<LogSumExpStep, double>(table, ScanKind::kLogSumExp, Dtype::kF64);
  set_extrema<float>(table);
  set_extrema<double>(table);
  set_extrema<int64_t>(table);
}

}  // namespace fornax::FX_ISA_NS
