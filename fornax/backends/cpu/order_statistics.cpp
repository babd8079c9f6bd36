// Medians and modes, from sorted rows.
#include <cmath>

#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

// The element at `place` (size 1 along dim) of sorted rows, and where it came from.
void store_places(const Tensor& values, const Tensor& indices, const Tensor& place, int64_t dim,
                  ArrayRef<Tensor> outs) {
  outs[0].copy_(values.gather(dim, place).reshape(outs[0].sizes()));
  if (outs.size() > 1) outs[1].copy_(indices.gather(dim, place).reshape(outs[1].sizes()));
}

void median_along(const Tensor& x, int64_t dim, bool ignore_nan, ArrayRef<Tensor> outs) {
  int64_t n = x.size(dim);
  auto [values, indices] = x.sort(true, dim, false);
  Tensor nans = x.isnan().sum(dim, true);
  Tensor place;
  if (ignore_nan)
    place = nans.rsub(n - 1).div(2, "floor").clamp_min(Scalar(0));
  else  // NaN is sorted last: the first of them
    place = where(nans.gt(0), nans.rsub(n), full_like(nans, (n - 1) / 2));
  store_places(values, indices, place, dim, outs);
}

template <bool kIgnoreNan>
void median_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  Tensor x = args.tensor(0).reshape({args.tensor(0).numel()});
  if (x.numel() == 0) {
    outs[0].fill_(is_integral(x.dtype()) ? Scalar(0) : Scalar(NAN));
    return;
  }
  median_along(x, 0, kIgnoreNan, outs);
}

template <bool kIgnoreNan>
void median_dim_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  Tensor x = args.tensor(0);
  if (outs[0].numel() == 0) return;
  if (x.dim() == 0) x = x.reshape({1});
  median_along(x, wrap_dim(args.integer(1), x.dim()), kIgnoreNan, outs);
}

// Length of the run of equal elements that ends at each place of sorted rows; the longest one's
// end, the first of several.
void mode_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  Tensor x = args.tensor(0);
  if (outs[0].numel() == 0) return;
  if (x.dim() == 0) x = x.reshape({1});
  int64_t dim = wrap_dim(args.integer(1, -1), x.dim()), n = x.size(dim);
  auto [values, indices] = x.sort(true, dim, false);
  Tensor starts = ones_like(values, TensorOptions(Dtype::kBool));
  if (n > 1)
    starts.narrow(dim, 1, n - 1)
        .copy_(values.narrow(dim, 1, n - 1).ne(values.narrow(dim, 0, n - 1)));
  Dims along(size_t(x.dim()), 1);
  along[size_t(dim)] = n;
  Tensor places = arange(n, TensorOptions(Dtype::kI64)).reshape(along);
  Tensor first = std::get<0>(places.mul(starts).cummax(dim));
  store_places(values, indices, places.sub(first).argmax(dim, true), dim, outs);
}

}  // namespace

void register_order_statistics(const KernelTable& table) {
  table.set(median_op, median_kernel<false>, kAnyStrides);
  table.set(nanmedian_op, median_kernel<true>, kAnyStrides);
  table.set(median_dim_op, median_dim_kernel<false>, kAnyStrides);
  table.set(nanmedian_dim_op, median_dim_kernel<true>, kAnyStrides);
  table.set(mode_op, mode_kernel, kAnyStrides);
}

}  // namespace fornax::cpu
