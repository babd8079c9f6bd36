#include <dnnl.hpp>
#include <string_view>
#include <unordered_map>

#include "fornax/backends/cpu/gemm_engines.h"
#include "fornax/backends/cpu/lru_cache.h"
#include "fornax/backends/cpu/onednn.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/numeric.h"

namespace fornax::cpu {
namespace {

using Md = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

Type type_of(Dtype d) {
  return d == Dtype::kF32 ? Type::f32 : d == Dtype::kBF16 ? Type::bf16 : Type::f16;
}

// Everything that a primitive depends on.
struct Key {
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row;
  uint64_t beta_bits;
  uint64_t flags;  // dtype, bias, fast_f32, threads
};

struct Matmul {
  dnnl::matmul primitive;  // empty: oneDNN has no implementation
  dnnl::memory a, b, c, bias, scratch;
  int64_t scratch_bytes = 0;
  std::unordered_map<int, dnnl::memory> args;
};

// One stride is 1 and the other spans the rows or columns.
bool is_plain(int64_t rows, int64_t cols, int64_t row, int64_t col) {
  return (col == 1 && row >= cols) || (row == 1 && col >= rows);
}

// A dimension of size 1 may have any stride; oneDNN wants one that fits.
void tidy(int64_t rows, int64_t cols, int64_t& row, int64_t& col) {
  if (cols == 1 && row != 1) col = 1;
  if (rows == 1 && col == 1) row = cols;
  if (cols == 1 && row == 1) col = rows;
}

Matmul make_matmul(const Key& key, Dtype dtype, bool has_bias, bool fast_f32, float beta) {
  Matmul m;
  try {
    const dnnl::engine engine(onednn_engine(), true);
    const Type type = type_of(dtype);
    const auto batch_of = [&key](int64_t stride) { return stride == 0 ? 1 : key.batch; };
    const auto stride_of = [](int64_t stride, int64_t plain) {
      return stride == 0 ? plain : stride;
    };
    const Md a({batch_of(key.a_batch), key.m, key.k}, type,
               {stride_of(key.a_batch, key.m * key.k), key.a_row, key.a_col});
    const Md b({batch_of(key.b_batch), key.k, key.n}, type,
               {stride_of(key.b_batch, key.k * key.n), key.b_row, key.b_col});
    const Md c({key.batch, key.m, key.n}, type,
               {stride_of(key.c_batch, key.m * key.n), key.c_row, 1});
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (fast_f32) attr.set_fpmath_mode(dnnl::fpmath_mode::bf16);
    if (beta != 0) {
      dnnl::post_ops ops;
      ops.append_sum(beta);
      attr.set_post_ops(ops);
    }
    const Md bias = has_bias ? Md({1, 1, key.n}, type, {key.n, key.n, 1}) : Md();
    const auto pd = has_bias ? dnnl::matmul::primitive_desc(engine, a, b, bias, c, attr)
                             : dnnl::matmul::primitive_desc(engine, a, b, c, attr);
    // Only its "brg" kernels: "gemm:jit" (all there is below AVX-512) rounds differently for every
    // number of threads, and "ref" is far slower than our own kernels.
    if (std::string_view(pd.impl_info_str()).substr(0, 3) != "brg") return m;
    m.primitive = dnnl::matmul(pd);
    m.a = dnnl::memory(a, engine, nullptr);
    m.b = dnnl::memory(b, engine, nullptr);
    m.c = dnnl::memory(c, engine, nullptr);
    m.scratch = dnnl::memory(pd.scratchpad_desc(), engine, nullptr);
    m.scratch_bytes = int64_t(pd.scratchpad_desc().get_size());
    m.args = {{DNNL_ARG_SRC, m.a},
              {DNNL_ARG_WEIGHTS, m.b},
              {DNNL_ARG_DST, m.c},
              {DNNL_ARG_SCRATCHPAD, m.scratch}};
    if (has_bias) {
      m.bias = dnnl::memory(bias, engine, nullptr);
      m.args.emplace(DNNL_ARG_BIAS, m.bias);
    }
  } catch (const dnnl::error&) {
    m.primitive = dnnl::matmul();
  }
  return m;
}

void* handle(const void* p) { return const_cast<void*>(p); }

bool run(const Gemm& g, bool fast_f32) {
  const auto threads = uint64_t(onednn_use_threads());
  Key key{g.batch,
          g.m,
          g.n,
          g.k,
          g.a_batch,
          g.a_row,
          g.a_col,
          g.b_batch,
          g.b_row,
          g.b_col,
          g.c_batch,
          g.c_row,
          std::bit_cast<uint64_t>(g.beta.re),
          uint64_t(g.dtype) | uint64_t(g.bias != nullptr) << 8 | uint64_t(fast_f32) << 9 |
              threads << 16};
  tidy(g.m, g.k, key.a_row, key.a_col);
  tidy(g.k, g.n, key.b_row, key.b_col);
  if (g.m == 1) key.c_row = g.n;
  if (g.batch == 1) key.a_batch = key.b_batch = key.c_batch = 0;
  const bool plain = is_plain(g.m, g.k, key.a_row, key.a_col) &&
                     is_plain(g.k, g.n, key.b_row, key.b_col) && key.c_row >= g.n &&
                     key.a_batch >= 0 && key.b_batch >= 0 && (g.c_batch > 0 || g.batch == 1);
  if (!plain) return false;
  thread_local LruCache<Key, Matmul> cache(1024);
  Matmul& matmul = cache.get(key, [&] {
    return make_matmul(key, g.dtype, g.bias != nullptr, fast_f32, float(g.beta.re));
  });
  if (!matmul.primitive) return false;
  Scratch scratch(matmul.scratch_bytes);
  matmul.a.set_data_handle(handle(g.a));
  matmul.b.set_data_handle(handle(g.b));
  matmul.c.set_data_handle(g.c);
  matmul.scratch.set_data_handle(scratch.data());
  if (g.bias != nullptr) matmul.bias.set_data_handle(handle(g.bias));
  dnnl::stream stream(onednn_stream(), true);
  matmul.primitive.execute(stream, matmul.args);
  stream.wait();
  return true;
}

template <class T>
void transpose_into(const T* src, int64_t rows, int64_t cols, T* dst, int64_t dst_row) {
  for (int64_t i = 0; i < cols; i++)
    for (int64_t j = 0; j < rows; j++) dst[i * dst_row + j] = src[j * cols + i];
}

// C^T = B^T A^T through a temporary: few rows times a matrix stored [n, k] needs no repacking of
// the matrix that way.
bool run_transposed(const Gemm& g, bool fast_f32) {
  const int64_t size = size_of(g.dtype);
  Scratch result(g.m * g.n * size);
  Gemm turned = g;
  turned.m = g.n;
  turned.n = g.m;
  turned.a = g.b;
  turned.a_row = g.b_col;
  turned.a_col = g.b_row;
  turned.b = g.a;
  turned.b_row = g.a_col;
  turned.b_col = g.a_row;
  turned.c = result.data();
  turned.c_row = g.m;
  if (!run(turned, fast_f32)) return false;
  if (size == 4)
    transpose_into(result.as<uint32_t>(), g.n, g.m, static_cast<uint32_t*>(g.c), g.c_row);
  else
    transpose_into(result.as<uint16_t>(), g.n, g.m, static_cast<uint16_t*>(g.c), g.c_row);
  return true;
}

}  // namespace

bool gemm_onednn(const Gemm& g, bool fast_f32) {
  const OnednnSupport& has = onednn_support();
  if (g.dtype == Dtype::kBF16 && !has.bf16) return false;
  if (g.dtype == Dtype::kF16 && !has.f16) return false;
  if (g.alpha.re != 1 || g.c_col != 1) return false;
  const bool skinny = g.batch == 1 && g.b_row == 1 && g.b_col >= g.k && g.m <= 64 && g.n >= 8 * g.m;
  if (skinny && g.bias == nullptr && g.beta.re == 0 && run_transposed(g, fast_f32)) return true;
  return run(g, fast_f32);
}

}  // namespace fornax::cpu
