#include "fornax/backends/cpu/index_plan.h"

#include <algorithm>
#include <bit>

#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/core/op.h"
#include "fornax/ops/index.h"

namespace fornax {

#if defined(__x86_64__)
namespace isa_v3 {
extern const cpu::IndexKernels index_kernels;
}
namespace isa_v4 {
extern const cpu::IndexKernels index_kernels;
}
#else
namespace isa_neon {
extern const cpu::IndexKernels index_kernels;
}
#endif

namespace cpu {
namespace {

constexpr int64_t kGrain = 16 * 1024;  // elements moved by one range, some 10 us

int size_class(const Tensor& t) { return std::countr_zero(uint64_t(t.element_size())); }

char* at(const Tensor& t, int64_t element) {
  return static_cast<char*>(t.impl()->data()) + element * t.element_size();
}

int64_t grain_of(int64_t elements_each) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements_each));
}

// Splits writes so that no two ranges write one place, and each sees its writes in order: by outer
// position where there are enough, else by places. body(first outer, last outer, low, high).
template <class F>
void split_writes(int64_t outer, int64_t per_outer, int64_t extent, F body) {
  int64_t threads = get_num_threads();
  if (outer * per_outer <= kGrain || threads == 1) return body(0, outer, 0, INT64_MAX);
  if (outer >= threads)
    return parallel_for(0, outer, grain_of(per_outer),
                        [&](int64_t a, int64_t b) { body(a, b, 0, INT64_MAX); });
  parallel_for(0, extent, std::max<int64_t>(1, extent / threads),
               [&](int64_t a, int64_t b) { body(0, outer, a, b); });
}

int64_t extent_of(const std::vector<int64_t>& places) {
  int64_t most = 0;
  for (int64_t p : places) most = std::max(most, p + 1);
  return most;
}

// Widened copies for dtypes without loops of their own; `run` works on these, then large gets the
// result.
template <class F>
bool run_widened(const Tensor& large, const Tensor& small, F run) {
  Dtype wide = combining_dtype(large.dtype());
  if (wide == large.dtype()) return false;
  Tensor to = converted(large, wide);
  run(to, converted(small, wide));
  copy_elements(large, to);
  return true;
}

void check_combinable(const Tensor& large, Combine how) {
  FX_CHECK(!large.is_complex() || how == Combine::kSum || how == Combine::kProd, kUnsupported,
           "complex numbers have no order: amax and amin are not defined for ", large.dtype());
}

}  // namespace

const IndexKernels& index_loops() {
#if defined(__x86_64__)
  return active_isa() == Isa::kV4 ? isa_v4::index_kernels : isa_v3::index_kernels;
#else
  return isa_neon::index_kernels;
#endif
}

Dtype combining_dtype(Dtype d) {
  if (d == Dtype::kF16 || d == Dtype::kBF16) return Dtype::kF32;
  return d == Dtype::kC32 ? Dtype::kC64 : d;
}

Tensor converted(const Tensor& t, Dtype dtype) {
  Tensor r = make_tensor(Meta(dtype, t.sizes(), t.device()));
  copy_elements(r, t);
  return r;
}

Tensor expanded_contiguous(const Tensor& t, IntArrayRef sizes) {
  if (t.sizes() == sizes && t.is_contiguous()) return t;
  Tensor view = t.alias();
  TensorImpl& impl = *view.impl();
  size_t shift = sizes.size() - t.sizes().size();
  Dims strides(sizes.size(), 0);
  for (size_t d = shift; d < sizes.size(); ++d)
    if (t.sizes()[d - shift] == sizes[d]) strides[d] = t.strides()[d - shift];
  impl.sizes.assign(sizes.begin(), sizes.end());
  impl.strides = strides;
  impl.numel = checked_numel(sizes);
  return contiguous_copy(view);
}

Tensor checked_indices(const Tensor& index, int64_t size, int64_t dim, bool wrap,
                       std::string_view call) {
  Tensor r = index;
  if (r.dtype() != Dtype::kI64) r = converted(r, Dtype::kI64);
  if (!r.is_contiguous()) r = contiguous_copy(r);
  const int64_t* p = static_cast<const int64_t*>(r.impl()->data());
  int64_t low = wrap ? -size : 0;
  bool negative = false;
  for (int64_t i = 0; i < r.numel(); ++i) {
    if (p[i] < low || p[i] >= size) [[unlikely]]
      index_out_of_range(call, p[i], dim, size);
    negative = negative || p[i] < 0;
  }
  if (!negative) return r;
  if (r.is_same(index)) r = contiguous_copy(r);
  int64_t* q = static_cast<int64_t*>(r.impl()->data());
  for (int64_t i = 0; i < r.numel(); ++i) q[i] += q[i] < 0 ? size : 0;
  return r;
}

// ---- rows
void read_rows(const RowPlan& plan, const Tensor& large, const Tensor& small) {
  auto loop = index_loops().read_rows[size_class(large)];
  int64_t n = int64_t(plan.places.size()), total = int64_t(plan.outer.size()) * n;
  parallel_for(0, total, grain_of(plan.q), [&](int64_t first, int64_t last) {
    while (first < last) {
      int64_t r = first / n, b = first % n, count = std::min(n - b, last - first);
      RowWalk walk{plan.places.data() + b, count, plan.q, plan.small_place};
      loop(at(small, r * plan.small_outer + b * plan.small_place), at(large, plan.outer[size_t(r)]),
           walk);
      first += count;
    }
  });
}

template <class Loop>
static void run_rows(const RowPlan& plan, const Tensor& large, const Tensor& small, Loop loop) {
  int64_t n = int64_t(plan.places.size()), outer = int64_t(plan.outer.size());
  if (n == 0 || outer == 0 || plan.q == 0) return;
  bool fill = small.numel() == 1;
  split_writes(outer, n * plan.q, extent_of(plan.places),
               [&](int64_t a, int64_t b, int64_t low, int64_t high) {
                 for (int64_t r = a; r < b; ++r) {
                   RowWalk walk{plan.places.data(),          n,   plan.q,
                                fill ? 0 : plan.small_place, low, high};
                   loop(at(large, plan.outer[size_t(r)]),
                        at(small, fill ? 0 : r * plan.small_outer), fill, walk);
                 }
               });
}

void write_rows(const RowPlan& plan, const Tensor& large, const Tensor& small) {
  run_rows(plan, large, small, index_loops().write_rows[size_class(large)]);
}

void combine_rows(const RowPlan& plan, const Tensor& large, const Tensor& small, Combine how) {
  check_combinable(large, how);
  bool widened = run_widened(large, small, [&](const Tensor& to, const Tensor& from) {
    combine_rows(plan, to, from, how);
  });
  if (!widened)
    run_rows(plan, large, small, index_loops().combine_rows[int(large.dtype())][int(how)]);
}

// ---- elements
namespace {

// Offsets in a contiguous tensor of `sizes` of all positions of an index of `inner` sizes, over
// dimensions [first, last). Empty if they are 0, 1, 2, ...
std::vector<int64_t> offsets_of(IntArrayRef inner, IntArrayRef sizes, size_t first, size_t last,
                                int64_t unit) {
  std::vector<int64_t> offsets = {0};
  int64_t stride = unit;
  Dims strides(sizes.size(), 0);
  for (size_t d = last; d-- > first;) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  for (size_t d = first; d < last; ++d) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * size_t(inner[d]));
    for (int64_t base : offsets)
      for (int64_t i = 0; i < inner[d]; ++i) next.push_back(base + i * strides[d]);
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

ElementPlan element_plan(const Tensor& index, IntArrayRef given, int64_t dim,
                         std::string_view call) {
  Dims sizes(given.begin(), given.end()), inner(index.sizes().begin(), index.sizes().end());
  if (sizes.empty()) sizes.push_back(1);
  if (inner.empty()) inner.push_back(1);
  ElementPlan plan;
  size_t d = size_t(dim), rank = sizes.size();
  plan.index = checked_indices(index, sizes[d], dim, false, call);
  plan.n = inner[d];
  bool dense = true;
  for (size_t k = d + 1; k < rank; ++k) {
    plan.q *= inner[k];
    plan.stride *= sizes[k];
    dense = dense && inner[k] == sizes[k];
  }
  if (!dense) plan.inner = offsets_of(inner, sizes, d + 1, rank, 1);
  plan.outer = offsets_of(inner, sizes, 0, d, plan.stride * sizes[d]);
  return plan;
}

static ElementWalk walk_of(const ElementPlan& plan, int64_t row) {
  const int64_t* index = static_cast<const int64_t*>(plan.index.impl()->data());
  return {index + row * plan.q,
          plan.inner.empty() ? nullptr : plan.inner.data(),
          plan.n,
          plan.q,
          plan.stride,
          0,
          plan.q};
}

void read_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small) {
  auto loop = index_loops().gather[size_class(large)];
  int64_t n = plan.n, rows = int64_t(plan.outer.size()) * n;
  if (plan.q == 0) return;
  parallel_for(0, rows, grain_of(plan.q), [&](int64_t first, int64_t last) {
    while (first < last) {
      int64_t r = first / n, count = std::min(n - first % n, last - first);
      ElementWalk walk = walk_of(plan, first);
      walk.n = count;
      loop(at(small, first * plan.q), at(large, plan.outer[size_t(r)]), walk);
      first += count;
    }
  });
}

template <class Loop>
static void run_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small,
                         int64_t limit, Loop loop) {
  if (plan.index.numel() == 0) return;
  int64_t step = small.numel() == 1 && plan.index.numel() != 1 ? 0 : 1;
  int64_t outer = int64_t(plan.outer.size()), each = plan.n * plan.q;
  split_writes(outer, each, limit, [&](int64_t a, int64_t b, int64_t low, int64_t high) {
    for (int64_t r = a; r < b; ++r) {
      ElementWalk walk = walk_of(plan, r * plan.n);
      walk.low = low;
      walk.high = high;
      loop(at(large, plan.outer[size_t(r)]), at(small, step ? r * each : 0), step, walk);
    }
  });
}

// Size of the indexed dimension: indices lie below it.
static int64_t limit_of(const ElementPlan& plan) {
  const int64_t* p = static_cast<const int64_t*>(plan.index.impl()->data());
  int64_t most = 0;
  for (int64_t i = 0; i < plan.index.numel(); ++i) most = std::max(most, p[i] + 1);
  return most;
}

void write_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small) {
  run_elements(plan, large, small, limit_of(plan), index_loops().scatter[size_class(large)]);
}

void combine_elements(const ElementPlan& plan, const Tensor& large, const Tensor& small,
                      Combine how) {
  check_combinable(large, how);
  bool widened = run_widened(large, small, [&](const Tensor& to, const Tensor& from) {
    combine_elements(plan, to, from, how);
  });
  if (!widened)
    run_elements(plan, large, small, limit_of(plan),
                 index_loops().combine_elements[int(large.dtype())][int(how)]);
}

}  // namespace cpu
}  // namespace fornax
