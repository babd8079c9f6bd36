// Reductions: the fold of each, and what its result is made from the fold's state.
#include "fornax/ops/reduce.h"

#include "fornax/backends/cpu/fold.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/ops/internal.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

// x as a dtype the fold reads: itself if it can.
Tensor foldable(FoldKind kind, const Tensor& x, Dtype wanted) {
  Dtype d =
      is_complex(x.dtype()) == is_complex(wanted) && !is_integral(wanted) ? x.dtype() : wanted;
  if (is_integral(x.dtype()) && is_integral(wanted)) d = x.dtype();
  if (!has_fold(kind, d))
    d = is_integral(d) ? Dtype::kI64 : is_complex(d) ? Dtype::kC128 : Dtype::kF32;
  if (d == x.dtype()) return x;
  Tensor cast = make_tensor(Meta(d, x.sizes(), x.device()));
  copy_elements(cast, x);
  return cast;
}

void store_values(const Folded& folded, const Tensor& out, int plane = 0) {
  if (folded.integer)
    store_integers(folded, folded.integers(plane), out);
  else
    store_reals(folded, folded.reals(plane), out);
}

void sum_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(FoldKind::kSum, args.tensor(0), outs[0].dtype());
  store_values(fold(FoldKind::kSum, x, dim_mask(args, 1, x.dim(), "sum")), outs[0]);
}

void mean_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(FoldKind::kSum, args.tensor(0), outs[0].dtype());
  uint64_t mask = dim_mask(args, 1, x.dim(), "mean");
  Folded folded = fold(FoldKind::kSum, x, mask);
  double n = double(reduced_count(x.sizes(), mask));
  double* values = folded.memory.as<double>();
  for (int64_t i = 0; i < folded.count; ++i) values[i] /= n;
  store_values(folded, outs[0]);
}

template <FoldKind kind>
void extremum_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(kind, args.tensor(0), outs[0].dtype());
  store_values(fold(kind, x, dim_mask(args, 1, x.dim(), context.op.name())), outs[0]);
}

}  // namespace

void register_reduce(const KernelTable& table) {
  table.set(sum_op, sum_kernel, kAnyStrides);
  table.set(mean_op, mean_kernel, kAnyStrides);
  table.set(amax_op, extremum_kernel<FoldKind::kMax>, kAnyStrides);
  table.set(amin_op, extremum_kernel<FoldKind::kMin>, kAnyStrides);
}

}  // namespace fornax::cpu
