// The general matrix product: both operands are copied (and converted) in cache-sized blocks into
// the layouts the inner kernel reads, so any strides and any storage type run at the speed of the
// compute type. Sums run over k in order, in the compute type, whatever the number of threads.
#include "fornax/backends/cpu/kernels/gemm_parts.h"

namespace fornax::FX_ISA_NS {
namespace {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

// Block sizes: a B block (kDepth x kBlockCols) and an A block (kBlockRows x kDepth) share L2; sums
// of a row chunk (kChunkRows x kBlockCols) wait in L3 while k is cut.
template <class T>
inline constexpr int64_t kDepth = 1536 / sizeof(T);
template <class T>
inline constexpr int64_t kBlockCols = 32 * kTileCols<T>;
template <class T>
inline constexpr int64_t kBlockRows = kTileRows<T>*(kWide ? 14 : 32);
template <class T>
inline constexpr int64_t kChunkRows = 5 * kBlockRows<T>;
// Row distance of packed A: not a power of two, so rows do not share cache sets.
template <class T>
inline constexpr int64_t kPackedRow = kDepth<T> + 64 / int64_t(sizeof(T));

// What a tile function fetches into the cache while it computes: `rows` runs of memory, `stride`
// bytes apart. None: rows = 0.
struct Ahead {
  const char* data;
  int64_t stride;
  int64_t rows;
};

// tile[Rows][2 vectors] (+)= A[Rows x depth] B[depth x Vecs vectors]; A's rows are kPackedRow
// apart, B's kTileCols.
template <class T, int Rows, int Vecs>
void multiply_tile(const T* a, const T* b, int64_t depth, T* tile, bool accumulate, Ahead ahead) {
  using X = Vec<T>;
  typename X::V acc[Rows][Vecs];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++)
      acc[r][v] = accumulate ? X::load(tile + r * kTileCols<T> + v * X::kLanes) : X::zero();
  // Each run is fetched, a cache line a step, during its share of the steps.
  const int64_t share = ahead.rows == 0 ? depth : (depth + ahead.rows - 1) / ahead.rows;
  for (int64_t p = 0; p < depth;) {
    const int64_t end = min_of(p + share, depth);
    const char* fetch = ahead.data;
    for (; p < end; p++) {
      __builtin_prefetch(fetch, 0, 3);
      fetch += 64;
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
    ahead.data += ahead.stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; r++)
#pragma GCC unroll 2
    for (int v = 0; v < Vecs; v++) X::store(tile + r * kTileCols<T> + v * X::kLanes, acc[r][v]);
}

template <class T>
using TileFunction = void (*)(const T*, const T*, int64_t, T*, bool, Ahead);

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
    b_bytes = block_cols / tile_cols * panel() * int64_t(sizeof(T));
    sum_bytes =
        (depth < t.k ? chunk_rows * block_cols : tile_rows * tile_cols) * int64_t(sizeof(T));
  }
  // Elements from one column panel of packed B to the next; not a power of two.
  int64_t panel() const { return (depth + 1) * kTileCols<T>; }
  int64_t total() const { return a_bytes + b_bytes + sum_bytes + 3 * 64; }
};

template <class T>
T* take(char*& scratch, int64_t bytes) {
  T* p = reinterpret_cast<T*>(scratch);
  scratch += (bytes + 63) & ~int64_t(63);
  return p;
}

// Packs depth x cols of B into panels of kTileCols columns, `panel` elements apart; a narrow last
// panel is filled with zeros up to a whole vector.
template <class T, class S>
void pack_b(const GemmTask& t, int64_t p0, int64_t depth, int64_t j0, int64_t cols, T* dst,
            int64_t panel) {
  constexpr int64_t width = kTileCols<T>;
  const int64_t whole = cols / width * width, rest = cols - whole;
  const S* src = static_cast<const S*>(t.b) + p0 * t.b_row + j0 * t.b_col;
  if (t.b_col == 1) {
    // Row by row over all panels: long contiguous reads.
    for (int64_t p = 0; p < depth; p++)
      for (int64_t j = 0; j < whole; j += width)
        convert_row(dst + j / width * panel + p * width, src + p * t.b_row + j, width);
  } else {
    for (int64_t j = 0; j < whole; j += width)
      pack(dst + j / width * panel, width, src + j * t.b_col, depth, width, t.b_row, t.b_col);
  }
  if (rest == 0) return;
  dst += whole / width * panel;
  for (int64_t p = 0; p < depth && rest % Vec<T>::kLanes != 0; p++)
    Vec<T>::store(dst + p * width + rest / Vec<T>::kLanes * Vec<T>::kLanes, Vec<T>::zero());
  pack(dst, width, src + whole * t.b_col, depth, rest, t.b_row, t.b_col);
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
          pack_b<T, S>(t, p0, depth, j0, cols, packed_b, plan.panel());
          run_chunk(i0, rows, j0, cols, p0, depth);
        }
      }
    }
  }

  const S* a_at(int64_t i, int64_t p) const {
    return static_cast<const S*>(t.a) + i * t.a_row + p * t.a_col;
  }

  void run_chunk(int64_t i0, int64_t rows, int64_t j0, int64_t cols, int64_t p0, int64_t depth) {
    // A that is used for one panel only is packed a tile at a time, the next rows being fetched
    // meanwhile.
    const bool stream = cols <= kTileCols<T> && t.a_col == 1;
    const int64_t step = stream ? plan.tile_rows : kBlockRows<T> / plan.tile_rows * plan.tile_rows;
    for (int64_t i = 0; i < rows; i += step) {
      const int64_t block = min_of(step, rows - i);
      pack(packed_a, kPackedRow<T>, a_at(i0 + i, p0), block, depth, t.a_row, t.a_col);
      Ahead ahead = {reinterpret_cast<const char*>(packed_a), 0, 0};
      if (stream && i + step < rows)
        ahead = {reinterpret_cast<const char*>(a_at(i0 + i + step, p0)),
                 t.a_row * int64_t(sizeof(S)), min_of(step, rows - i - step)};
      run_block(i0, i, block, j0, cols, p0, depth, ahead);
    }
  }

  void run_block(int64_t i0, int64_t i, int64_t rows, int64_t j0, int64_t cols, int64_t p0,
                 int64_t depth, Ahead ahead) {
    constexpr int64_t width = kTileCols<T>;
    const bool whole_k = plan.depth >= t.k;
    const bool first = p0 == 0, last = p0 + depth == t.k;
    for (int64_t j = 0; j < cols; j += width) {
      const int64_t n = min_of(width, cols - j);
      const T* b = packed_b + j / width * plan.panel();
      for (int64_t r = 0; r < rows; r += plan.tile_rows) {
        const int64_t m = min_of(plan.tile_rows, rows - r);
        // Sums of a chunk: column panels, each with its rows one below the other.
        T* tile = whole_k ? sums : sums + (j * plan.chunk_rows) + (i + r) * width;
        auto multiply = tile_function<T, kTileRows<T>>(m, n <= Vec<T>::kLanes);
        multiply(packed_a + r * kPackedRow<T>, b, depth, tile, !first, ahead);
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
