// Folds with one number of state: sums, products, extrema.
#include "fornax/backends/cpu/kernels/fold_kernels.h"
#include "fornax/backends/cpu/kernels/fold_lanes.h"

namespace fornax::FX_ISA_NS {
namespace {

template <class F, class S>
struct ValueFold {
  using A = Acc<F, S>;
  using L = typename F::template Lane<S>;

  static void start(void* acc, int64_t, int64_t n) {
    A* a = static_cast<A*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = F::template identity<A>();
  }
  static void merge(void* acc, int64_t, const void* later, int64_t, int64_t n) {
    A* a = static_cast<A*>(acc);
    const A* b = static_cast<const A*>(later);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] = F::combine(a[i], b[i]);
  }
  static void rows(void* acc, int64_t, const void* x_, int64_t count, int64_t row_stride, int64_t n,
                   int64_t stride, int64_t) {
    A* a = static_cast<A*>(acc);
    const S* x = static_cast<const S*>(x_);
    for (int64_t r = 0; r < count; ++r)
      a[r] = F::combine(a[r], fold_run<F>(x + r * row_stride, n, stride));
  }

  // Eight rows at a time: the lanes are combined as a tree before they reach the accumulator.
  static void eight_rows(A* a, const S* x, int64_t row_stride, int64_t cols) {
    constexpr int kN = kWidth<A>;
    int64_t c = 0;
    for (; c + kN <= cols; c += kN) {
      const S* p = x + c;
      Vector<L, kN> v[8];
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) v[k] = load_mapped<F, S, kN>(p + k * row_stride);
      auto low = F::combine(F::combine(v[0], v[1]), F::combine(v[2], v[3]));
      auto high = F::combine(F::combine(v[4], v[5]), F::combine(v[6], v[7]));
      auto sum = __builtin_convertvector((F::combine(low, high)), Vector<A, kN>);
      auto old = load_raw<Vector<A, kN>>(a + c);
      old = F::combine(old, sum);
      __builtin_memcpy(a + c, &old, sizeof(old));
    }
    for (; c < cols; ++c) {
      L v[8];
      for (int k = 0; k < 8; ++k) v[k] = map_one<F>(x[c + k * row_stride]);
      L low = F::combine(F::combine(v[0], v[1]), F::combine(v[2], v[3]));
      L high = F::combine(F::combine(v[4], v[5]), F::combine(v[6], v[7]));
      a[c] = F::combine(a[c], A(F::combine(low, high)));
    }
  }
  static void one_row(A* a, const S* x, int64_t cols) {
    constexpr int kN = kWidth<A>;
    int64_t c = 0;
    for (; c + kN <= cols; c += kN) {
      auto v = __builtin_convertvector((load_mapped<F, S, kN>(x + c)), Vector<A, kN>);
      auto sum = F::combine(load_raw<Vector<A, kN>>(a + c), v);
      __builtin_memcpy(a + c, &sum, sizeof(sum));
    }
    for (; c < cols; ++c) a[c] = F::combine(a[c], A(map_one<F>(x[c])));
  }
  static void columns(void* acc, int64_t, const void* x_, int64_t rows, int64_t row_stride,
                      int64_t cols, int64_t) {
    A* a = static_cast<A*>(acc);
    const S* x = static_cast<const S*>(x_);
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) eight_rows(a, x + r * row_stride, row_stride, cols);
    for (; r < rows; ++r) one_row(a, x + r * row_stride, cols);
  }

  static cpu::FoldLoops loops() {
    return {1, std::is_same_v<A, int64_t>, start, rows, columns, merge};
  }
};

// Storage types without a loop of their own are cast by the caller.
template <class F, class... S>
void set(cpu::FoldTable& table, cpu::FoldKind kind) {
  ((table.loops[int(kind)][int(kStored<S>)] = ValueFold<F, S>::loops()), ...);
}

}  // namespace

void set_value_folds(cpu::FoldTable& table) {
  using cpu::FoldKind;
  set<Sum, float, double, BF16, F16, int64_t, int32_t, uint8_t, Bool8>(table, FoldKind::kSum);
  set<NanSum, float, double>(table, FoldKind::kNanSum);
  set<AbsSum, float, double>(table, FoldKind::kAbsSum);
  set<SquareSum, float, double, BF16>(table, FoldKind::kSquareSum);
  set<Nonzero, float, double, int64_t, Bool8>(table, FoldKind::kNonzero);
  set<Prod, float, double, int64_t>(table, FoldKind::kProd);
  set<Max, float, double, BF16, F16, int64_t, int32_t, uint8_t>(table, FoldKind::kMax);
  set<Min, float, double, BF16, F16, int64_t, int32_t, uint8_t>(table, FoldKind::kMin);
  set<MaxAbs, float, double>(table, FoldKind::kMaxAbs);
  set<MinAbs, float, double>(table, FoldKind::kMinAbs);
}

}  // namespace fornax::FX_ISA_NS
