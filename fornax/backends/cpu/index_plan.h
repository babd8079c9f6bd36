// Where indexing reads and writes, and running that on all threads.
#pragma once

#include <vector>

#include "fornax/backends/cpu/kernels/index_kernels.h"
#include "fornax/core/tensor.h"

namespace fornax::cpu {

const IndexKernels& index_loops();

// Contiguous int64 indices in [0, size), negative ones wrapped where `wrap` allows them. Throws
// Error(kIndex) naming the index, dimension and size.
Tensor checked_indices(const Tensor& index, int64_t size, int64_t dim, bool wrap,
                       std::string_view call);

// Runs of q contiguous elements of a large tensor: run (r, b) starts at outer[r] + places[b], and
// lies at r * small_outer + b * small_place of a small one. A negative place is left out.
struct RowPlan {
  std::vector<int64_t> outer, places;
  int64_t q = 1, small_outer = 0, small_place = 0;
};
void read_rows(const RowPlan& plan, const Tensor& large, const Tensor& small);
// Of several runs with one place the last stays. A small tensor of one element fills everything.
void write_rows(const RowPlan& plan, const Tensor& large, const Tensor& small);
void combine_rows(const RowPlan& plan, const Tensor& large, const Tensor& small, Combine how);

// One index per element: (outer, n, q) indices into a large contiguous tensor.
struct ElementPlan {
  Tensor index;                // contiguous int64, checked
  std::vector<int64_t> outer;  // offsets of outer positions in the large tensor
  std::vector<int64_t> inner;  // of inner ones; empty: 0, 1, ...
  int64_t n = 0, q = 1, stride = 1;
};
// For index[...] along dimension `dim` of a contiguous tensor of `sizes`.
ElementPlan element_plan(const Tensor& index, IntArrayRef sizes, int64_t dim,
                         std::string_view call);
void read_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small);
void write_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small);
void combine_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small,
                      Combine how);

// dtype that sums of `d` are kept in: f32 for f16 and bf16.
Dtype combining_dtype(Dtype d);
// A contiguous copy in another dtype, below the operator level.
Tensor converted(const Tensor& t, Dtype dtype);
// t expanded to `sizes`, contiguous.
Tensor expanded_contiguous(const Tensor& t, IntArrayRef sizes);

}  // namespace fornax::cpu
