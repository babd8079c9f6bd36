// Shared by view operators and their batching rules.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// Resolves one -1 in `shape`. Throws Error(kShape) if `numel` elements don't fit.
Dims infer_size(IntArrayRef shape, int64_t numel, std::string_view call);
// Strides that show (sizes, strides) as `wanted` without a copy; false if there are none.
bool view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted, Dims& out);
// Batching rule of views whose argument 1 is a dimension.
void shift_dim_rule(Vmapped& v);
// The same for dimensions at other places. Argument 0 has logical rank 1 or more.
void shift_dims_rule(Vmapped& v, std::initializer_list<int> places);
// {size, rest...}
Dims with_batch(int64_t size, IntArrayRef rest);
// view_scatter runs the views themselves, on any device.
void register_view_kernels(const KernelTable& table);
// self with what `step` shows replaced by src.
inline Tensor view_scatter(const Tensor& self, const Tensor& src, const Step& step);

}  // namespace fornax

#include "fornax/ops/records.h"
namespace fornax {
inline Tensor view_scatter(const Tensor& self, const Tensor& src, const Step& step) {
  return call1(view_scatter_op, {self, src, step});
}
}  // namespace fornax
