// The general matrix product: both operands are copied (and converted) in cache-sized blocks into
// the layouts the inner kernel reads, so any strides and any storage type run at the speed of the
// compute type. Sums run over k in order, in the compute type, whatever the number of threads.
#include "fornax/backends/cpu/kernels/gemm_parts.h"

namespace fornax::FX_ISA_NS {
namespace {

// Block sizes: a B block (kDepth x kBlockCols) and an A block (kBlockRows x kDepth) share L2; sums
// of a row chunk (kChunkRows x kBlockCols) wait in L3 while k is cut.
template <class T>
inline constexpr int64_t kDepth = 1536 / sizeof(T);
template <class T>
inline constexpr int64_t kBlockCols = 16 * kTileCols<T>;
template <class T>
inline constexpr int64_t kBlockRows = kTileRows<T>*(kWide ? 14 : 32);
template <class T>
inline constexpr int64_t kChunkRows = 5 * kBlockRows<T>;
// Row distance of packed A: not a power of two, so rows do not share cache sets.
template <class T>
inline constexpr int64_t kPackedRow = kDepth<T> + 64 / int64_t(sizeof(T));

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// tile[Rows][2 vectors] (+)= A[Rows x depth] B[depth x Vecs vectors]; A's rows are kPackedRow
// apart, B's kTileCols.
template <class T, int Rows, int Vecs>
void multiply_tile(const T* a, const T* b, int64_t depth, T* tile, bool accumulate) {
  using X = Vec<T>;
  typename X::V acc[Rows][Vecs];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++)
      acc[r][v] = accumulate ? X::load(tile + r * kTileCols<T> + v * X::kLanes) : X::zero();
  for (int64_t p = 0; p < depth; p++) {
    typename X::V bv[Vecs];
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++) bv[v] = X::load(b + p * kTileCols<T> + v * X::kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; r++) {
      const auto av = X::set(a[r * kPackedRow<T> + p]);
#pragma GCC unroll 2
      for (int v = 0; v < Vecs; v++) acc[r][v] = X::fma(av, bv[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++) X::store(tile + r * kTileCols<T> + v * X::kLanes, acc[r][v]);
}

template <class T>
using TileFunction = void (*)(const T*, const T*, int64_t, T*, bool);

template <class T, int Rows>
TileFunction<T> tile_function(int64_t rows, bool one_vector) {
  if (rows == Rows) return one_vector ? multiply_tile<T, Rows, 1> : multiply_tile<T, Rows, 2>;
  if constexpr (Rows > 1) return tile_function<T, Rows - 1>(rows, one_vector);
  return nullptr;
}

// Sizes of one call and the places of its parts in scratch.
template <class T>
struct Plan {
  int64_t chunk_rows, block_cols, depth, tile_rows;
  int64_t a_bytes, b_bytes, sum_bytes;

  explicit Plan(const GemmTask& t) {
    constexpr int64_t tile_cols = kTileCols<T>;
    // Rows are cut evenly: 16 rows run as 8 + 8, not as 14 + 2.
    tile_rows = ceil_div(t.m, ceil_div(t.m, kTileRows<T>));
    chunk_rows = min_of(ceil_div(t.m, tile_rows), kChunkRows<T> / kTileRows<T>) * tile_rows;
    block_cols = min_of(ceil_div(t.n, tile_cols) * tile_cols, kBlockCols<T>);
    depth = ceil_div(t.k, ceil_div(t.k, kDepth<T>));
    const int64_t block_rows = min_of(chunk_rows, kBlockRows<T> + kTileRows<T>);
    a_bytes = block_rows * kPackedRow<T> * int64_t(sizeof(T));
    b_bytes = block_cols * depth * int64_t(sizeof(T));
    sum_bytes =
        (depth < t.k ? chunk_rows * block_cols : tile_rows * tile_cols) * int64_t(sizeof(T));
  }
  int64_t total() const { return a_bytes + b_bytes + sum_bytes + 3 * 64; }
};

template <class T>
T* take(char*& scratch, int64_t bytes) {
  T* p = reinterpret_cast<T*>(scratch);
  scratch += (bytes + 63) & ~int64_t(63);
  return p;
}

// Packs depth x cols of B into panels of kTileCols columns; a narrow last panel is filled with
// zeros up to a whole vector.
template <class T, class S>
void pack_b(const GemmTask& t, int64_t p0, int64_t depth, int64_t j0, int64_t cols, T* dst) {
  constexpr int64_t width = kTileCols<T>;
  for (int64_t j = 0; j < cols; j += width) {
    const int64_t n = min_of(width, cols - j);
    if (n % Vec<T>::kLanes != 0) {
      const int64_t whole = n / Vec<T>::kLanes * Vec<T>::kLanes;
      for (int64_t p = 0; p < depth; p++) Vec<T>::store(dst + p * width + whole, Vec<T>::zero());
    }
    const S* src = static_cast<const S*>(t.b) + p0 * t.b_row + (j0 + j) * t.b_col;
    pack(dst, width, src, depth, n, t.b_row, t.b_col);
    dst += depth * width;
  }
}

// One call's blocks, walked from the outside in.
template <class T, class S>
struct Walk {
  const GemmTask& t;
  Plan<T> plan;
  T *packed_a, *packed_b, *sums;

  void run() {
    for (int64_t i0 = 0; i0 < t.m; i0 += plan.chunk_rows) {
      const int64_t rows = min_of(plan.chunk_rows, t.m - i0);
      for (int64_t j0 = 0; j0 < t.n; j0 += plan.block_cols) {
        const int64_t cols = min_of(plan.block_cols, t.n - j0);
        for (int64_t p0 = 0; p0 < t.k; p0 += plan.depth) {
          const int64_t depth = min_of(plan.depth, t.k - p0);
          pack_b<T, S>(t, p0, depth, j0, cols, packed_b);
          run_chunk(i0, rows, j0, cols, p0, depth);
        }
      }
    }
  }

  void run_chunk(int64_t i0, int64_t rows, int64_t j0, int64_t cols, int64_t p0, int64_t depth) {
    const int64_t step = kBlockRows<T> / plan.tile_rows * plan.tile_rows;
    for (int64_t i = 0; i < rows; i += step) {
      const int64_t block = min_of(step, rows - i);
      const S* src = static_cast<const S*>(t.a) + (i0 + i) * t.a_row + p0 * t.a_col;
      pack(packed_a, kPackedRow<T>, src, block, depth, t.a_row, t.a_col);
      run_block(i0, i, block, j0, cols, p0, depth);
    }
  }

  void run_block(int64_t i0, int64_t i, int64_t rows, int64_t j0, int64_t cols, int64_t p0,
                 int64_t depth) {
    constexpr int64_t width = kTileCols<T>;
    const bool whole_k = plan.depth >= t.k;
    const bool first = p0 == 0, last = p0 + depth == t.k;
    for (int64_t j = 0; j < cols; j += width) {
      const int64_t n = min_of(width, cols - j);
      const T* b = packed_b + j * depth;
      for (int64_t r = 0; r < rows; r += plan.tile_rows) {
        const int64_t m = min_of(plan.tile_rows, rows - r);
        // Sums of a chunk: column panels, each with its rows one below the other.
        T* tile = whole_k ? sums : sums + (j * plan.chunk_rows) + (i + r) * width;
        auto multiply = tile_function<T, kTileRows<T>>(m, n <= Vec<T>::kLanes);
        multiply(packed_a + r * kPackedRow<T>, b, depth, tile, !first);
        if (last) store_tile<S>(t, tile, i0 + i + r, j0 + j, m, n);
      }
    }
  }
};

}  // namespace

template <class S>
void gemm_packed(const GemmTask& t, void* scratch) {
  using T = typename ComputeOf<S>::type;
  Plan<T> plan(t);
  char* place = static_cast<char*>(scratch);
  T* a = take<T>(place, plan.a_bytes);
  T* b = take<T>(place, plan.b_bytes);
  T* sums = take<T>(place, plan.sum_bytes);
  Walk<T, S>{t, plan, a, b, sums}.run();
}

int64_t gemm_packed_scratch(const GemmTask& t) {
  const int64_t single = Plan<float>(t).total(), wide = Plan<double>(t).total();
  return single > wide ? single : wide;
}

template void gemm_packed<float>(const GemmTask&, void*);
template void gemm_packed<double>(const GemmTask&, void*);
template void gemm_packed<Bf16>(const GemmTask&, void*);
template void gemm_packed<F16>(const GemmTask&, void*);

}  // namespace fornax::FX_ISA_NS
