// Softmax by rows or columns, and cross entropy.
#include <algorithm>
#include <cmath>

#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/backends/cpu/softmax.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/ops/records.h"

namespace fornax {

namespace isa_v3 {
void set_softmax(cpu::SoftmaxTable& table);
}
namespace isa_v4 {
void set_softmax(cpu::SoftmaxTable& table);
}

namespace cpu {

const SoftmaxLoops& softmax_loops(Dtype dtype) {
  static const SoftmaxTable table = [] {
    SoftmaxTable t;
    active_isa() == Isa::kV4 ? isa_v4::set_softmax(t) : isa_v3::set_softmax(t);
    return t;
  }();
  return table.loops[int(dtype)];
}

namespace {

constexpr int64_t kGrain = int64_t(1) << 14;

struct Blocks {
  int64_t outer = 1, n = 1, inner = 1;
};
Blocks blocks_of(const Tensor& x, int64_t dim_arg) {
  Blocks b;
  if (x.dim() == 0) return b;
  int64_t dim = wrap_dim(dim_arg, x.dim());
  for (int64_t d = 0; d < x.dim(); ++d)
    (d < dim ? b.outer : d == dim ? b.n : b.inner) *= x.sizes()[size_t(d)];
  return b;
}

// each(element of the first column, columns) for runs of adjacent columns.
template <class F>
void for_columns(const Blocks& b, F each) {
  parallel_for(0, b.outer * b.inner, std::max<int64_t>(16, kGrain / std::max<int64_t>(b.n, 1)),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   int64_t block = begin / b.inner, from = begin % b.inner;
                   int64_t cols = std::min(b.inner - from, end - begin);
                   each(block * b.n * b.inner + from, cols);
                   begin += cols;
                 }
               });
}
template <class F>
void for_rows(const Blocks& b, F each) {
  parallel_for(0, b.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(b.n, 1)), each);
}

// The dtype the columns kernels work in.
Dtype column_dtype(Dtype d) { return d == Dtype::kF64 ? d : Dtype::kF32; }

template <bool kLog>
void softmax_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  Tensor x = cast_to(args.tensor(0), out.dtype());
  Blocks b = blocks_of(x, args.integer(1));
  if (b.inner == 1) {
    const SoftmaxLoops& loops = softmax_loops(x.dtype());
    return for_rows(b, [&](int64_t begin, int64_t end) {
      loops.rows(element_at(out, begin * b.n), element_at(x, begin * b.n), end - begin, b.n, kLog);
    });
  }
  Dtype d = column_dtype(out.dtype());
  const SoftmaxLoops& loops = softmax_loops(d);
  x = cast_to(x, d);
  Tensor y = d == out.dtype() ? out : make_tensor(Meta(d, out.sizes()));
  for_columns(b, [&](int64_t first, int64_t cols) {
    loops.columns(element_at(y, first), element_at(x, first), b.n, b.inner, cols, kLog);
  });
  if (!y.is_same(out)) copy_elements(out, y);
}

template <bool kLog>
void softmax_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  Tensor y = args.tensor(1);
  Blocks b = blocks_of(y, args.integer(2));
  Dtype d = b.inner == 1 ? y.dtype() : column_dtype(y.dtype());
  y = cast_to(y, d);
  Tensor g = cast_to(args.tensor(0), d);
  Tensor gx = d == out.dtype() ? out : make_tensor(Meta(d, out.sizes()));
  const SoftmaxLoops& loops = softmax_loops(d);
  if (b.inner == 1) {
    for_rows(b, [&](int64_t begin, int64_t end) {
      int64_t first = begin * b.n;
      loops.rows_backward(element_at(gx, first), element_at(g, first), element_at(y, first),
                          end - begin, b.n, kLog);
    });
  } else {
    for_columns(b, [&](int64_t first, int64_t cols) {
      loops.columns_backward(element_at(gx, first), element_at(g, first), element_at(y, first), b.n,
                             b.inner, cols, kLog);
    });
  }
  if (!gx.is_same(out)) copy_elements(out, gx);
}

}  // namespace

void register_softmax(const KernelTable& table) {
  table.set(_softmax_op, softmax_kernel<false>);
  table.set(_log_softmax_op, softmax_kernel<true>);
  table.set(_softmax_backward_data_op, softmax_backward_kernel<false>);
  table.set(_log_softmax_backward_data_op, softmax_backward_kernel<true>);
}

}  // namespace cpu
}  // namespace fornax
