// Kernels of indexing by tensors and masks, of joins and of flips.
#include <cstring>

#include "fornax/backends/cpu/index_plan.h"
#include "fornax/backends/cpu/pointwise.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/expr/loops.h"
#include "fornax/ops/index.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

// ---- truth values
template <class T>
int64_t count_truths(const T* p, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += p[i] != T(0);
  return count;
}

constexpr int64_t kMaskGrain = 64 * 1024;

// Truth values of a contiguous tensor as bytes: t itself if it is bool or uint8.
Tensor truths_of(const Tensor& t) {
  if (is_mask(t)) return t;
  return converted(t, Dtype::kBool);
}

// Flat places of all true elements, in order.
std::vector<int64_t> true_places(const Tensor& mask) {
  const uint8_t* p = static_cast<const uint8_t*>(mask.impl()->data());
  int64_t n = mask.numel(), parts = parallel_range_count(n, kMaskGrain);
  if (parts < 1) parts = 1;
  std::vector<int64_t> starts(size_t(parts) + 1, 0);
  auto bound = [&](int64_t k) { return n * k / parts; };
  parallel_for(0, parts, 1, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k)
      starts[size_t(k) + 1] = count_truths(p + bound(k), bound(k + 1) - bound(k));
  });
  for (int64_t k = 0; k < parts; ++k) starts[size_t(k) + 1] += starts[size_t(k)];
  std::vector<int64_t> places(size_t(starts[size_t(parts)]));
  parallel_for(0, parts, 1, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k) {
      int64_t* to = places.data() + starts[size_t(k)];
      for (int64_t i = bound(k); i < bound(k + 1); ++i)
        if (p[i]) *to++ = i;
    }
  });
  return places;
}

void nonzero_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  std::vector<int64_t> places = true_places(truths_of(x));
  Dims sizes;
  sizes.push_back(int64_t(places.size()));
  sizes.push_back(x.dim());
  Tensor& out = const_cast<Tensor&>(outs[0]);
  out = make_tensor(Meta(Dtype::kI64, sizes, x.device()));
  int64_t* to = static_cast<int64_t*>(out.impl()->data());
  int64_t rank = x.dim();
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t rest = places[i];
    for (int64_t d = rank; d-- > 0;) {
      int64_t n = x.sizes()[size_t(d)];
      to[int64_t(i) * rank + d] = rest % n;
      rest /= n;
    }
  }
}

RowPlan plan_of_places(std::vector<int64_t> places) {
  RowPlan plan;
  plan.places = std::move(places);
  plan.outer = {0};
  plan.small_place = 1;
  return plan;
}

void masked_select_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Dims sizes = broadcast_sizes(args.tensor(0).sizes(), args.tensor(1).sizes());
  Tensor x = expanded_contiguous(args.tensor(0), sizes);
  RowPlan plan = plan_of_places(true_places(expanded_contiguous(args.tensor(1), sizes)));
  Dims out_sizes;
  out_sizes.push_back(int64_t(plan.places.size()));
  Tensor& out = const_cast<Tensor&>(outs[0]);
  out = make_tensor(Meta(x.dtype(), out_sizes, x.device()));
  if (out.numel()) read_rows(plan, x, out);
}

void masked_scatter_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &out = outs[0], &source = args.tensor(2);
  RowPlan plan = plan_of_places(true_places(expanded_contiguous(args.tensor(1), out.sizes())));
  int64_t n = int64_t(plan.places.size());
  FX_CHECK(n <= source.numel(), kShape, "masked_scatter: the mask has ", n,
           " true elements, source only ", source.numel());
  if (out.impl()->data() != args.tensor(0).impl()->data() && out.numel())
    copy_elements(out, expanded_contiguous(args.tensor(0), out.sizes()));
  if (n == 0) return;
  Tensor part = make_tensor(Meta(source.dtype(), {n}));
  std::memcpy(part.impl()->data(), source.impl()->data(), part.nbytes());
  write_rows(plan, out, part);
}

// ---- index and index_put
// One index tensor per dimension of self, masks replaced by the places where they are true.
Tensors integer_indices(const Tensor& self, TensorList indices, std::string_view call) {
  Tensors out;
  for (const Tensor& t : indices) {
    if (!is_mask(t)) {
      int64_t d = int64_t(out.size());
      out.push_back(t.defined() ? checked_indices(t, self.sizes()[size_t(d)], d, true, call) : t);
      continue;
    }
    std::vector<int64_t> places = true_places(t);
    int64_t unit = t.numel();
    for (int64_t d = 0; d < t.dim(); ++d) {
      int64_t n = t.sizes()[size_t(d)];
      unit = n ? unit / n : 0;
      Tensor column = make_tensor(Meta(Dtype::kI64, {int64_t(places.size())}));
      int64_t* to = static_cast<int64_t*>(column.impl()->data());
      for (size_t i = 0; i < places.size(); ++i) to[i] = places[i] / unit % n;
      out.push_back(column);
    }
  }
  return out;
}

struct IndexPlan {
  RowPlan rows;
  IndexShape shape;
};

IndexShape shape_for(const Tensor& self, const Tensors& indices) {
  SmallVec<Dims, 4> sizes;
  SmallVec<bool, 8> given;
  for (const Tensor& t : indices) {
    given.push_back(t.defined());
    sizes.push_back(t.defined() ? Dims(t.sizes().begin(), t.sizes().end()) : Dims());
  }
  return index_shape(self.sizes(), sizes, given);
}

// Offsets of all positions of some dimensions, row-major.
void append_dimension(std::vector<int64_t>& offsets, int64_t size, int64_t stride) {
  std::vector<int64_t> next;
  next.reserve(offsets.size() * size_t(size));
  for (int64_t base : offsets)
    for (int64_t i = 0; i < size; ++i) next.push_back(base + i * stride);
  offsets = std::move(next);
}

std::vector<int64_t> places_of_indices(const Tensors& indices, const Dims& broadcast,
                                       const Dims& strides) {
  std::vector<int64_t> places(size_t(checked_numel(broadcast)), 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    Tensor wide = expanded_contiguous(indices[d], broadcast);
    const int64_t* p = static_cast<const int64_t*>(wide.impl()->data());
    for (size_t i = 0; i < places.size(); ++i) places[i] += p[i] * strides[d];
  }
  return places;
}

IndexPlan plan_index(const Tensor& self, TensorList given, std::string_view call) {
  Tensors indices = integer_indices(self, given, call);
  IndexPlan plan{{}, shape_for(self, indices)};
  size_t rank = size_t(self.dim()), last = 0;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d].defined()) last = d + 1;
  Dims strides = contiguous_strides(self.sizes());
  for (size_t d = last; d < rank; ++d) plan.rows.q *= self.sizes()[d];
  plan.rows.outer = {0};
  for (size_t d = 0; d < last; ++d)
    if (!indices[d].defined()) append_dimension(plan.rows.outer, self.sizes()[d], strides[d]);
  plan.rows.places = places_of_indices(indices, plan.shape.broadcast, strides);
  // Kept dimensions before the indices' come first in the result; all lie there, or none.
  int64_t n = int64_t(plan.rows.places.size()), outer = int64_t(plan.rows.outer.size());
  bool indices_first = plan.shape.place == 0;
  plan.rows.small_place = indices_first ? outer * plan.rows.q : plan.rows.q;
  plan.rows.small_outer = indices_first ? plan.rows.q : n * plan.rows.q;
  return plan;
}

void index_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  IndexPlan plan = plan_index(x, args.list(1), "index");
  Tensor& out = const_cast<Tensor&>(outs[0]);
  if (!out.defined()) out = make_tensor(Meta(x.dtype(), plan.shape.result, x.device()));
  if (out.numel()) read_rows(plan.rows, x, out);
}

void store_rows(const RowPlan& plan, const Tensor& out, const Tensor& values, bool accumulate) {
  if (accumulate)
    combine_rows(plan, out, values, Combine::kSum);
  else
    write_rows(plan, out, values);
}

void index_put_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  IndexPlan plan = plan_index(x, args.list(1), "index_put");
  Tensor values = args.tensor(2);
  Dims sizes = broadcast_sizes(plan.shape.result, values.sizes(), "index_put");
  FX_CHECK(sizes == plan.shape.result, kShape, "index_put: values of sizes ", values.sizes(),
           " don't broadcast to ", plan.shape.result);
  if (out.impl()->data() != x.impl()->data() && out.numel())
    std::memcpy(out.impl()->data(), x.impl()->data(), out.nbytes());
  if (checked_numel(sizes) == 0) return;
  if (values.numel() != 1) {
    bool inside = values.impl()->storage == out.impl()->storage;
    values = expanded_contiguous(inside ? contiguous_copy(values) : values, sizes);
  }
  store_rows(plan.rows, out, values, args.flag(3));
}

void put_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  Tensor at = checked_indices(args.tensor(1), x.numel(), 0, true, "put");
  if (out.impl()->data() != x.impl()->data() && out.numel())
    std::memcpy(out.impl()->data(), x.impl()->data(), out.nbytes());
  if (at.numel() == 0) return;
  const int64_t* p = static_cast<const int64_t*>(at.impl()->data());
  Tensor source = args.tensor(2);
  if (source.impl()->storage == out.impl()->storage) source = contiguous_copy(source);
  store_rows(plan_of_places(std::vector<int64_t>(p, p + at.numel())), out, source, args.flag(3));
}

void repeat_indices_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor repeats = converted(args.tensor(0), Dtype::kI64);
  const int64_t* p = static_cast<const int64_t*>(repeats.impl()->data());
  int64_t total = 0;
  for (int64_t i = 0; i < repeats.numel(); ++i) {
    FX_CHECK(p[i] >= 0, kValue, "repeat_interleave: repeats ", p[i], " is negative");
    total += p[i];
  }
  FX_CHECK(!args.has(1) || args.integer(1) == total, kValue, "repeat_interleave: output_size is ",
           args.integer(1, total), ", the repeats sum to ", total);
  Tensor& out = const_cast<Tensor&>(outs[0]);
  out = make_tensor(Meta(Dtype::kI64, {total}));
  int64_t* to = static_cast<int64_t*>(out.impl()->data());
  for (int64_t i = 0; i < repeats.numel(); ++i)
    for (int64_t k = 0; k < p[i]; ++k) *to++ = i;
}

// ---- joins
// The part of `out` that elements [start, start + length) of a dimension cover.
Tensor part_of(const Tensor& out, int64_t dim, int64_t start, int64_t length) {
  Tensor part = out.alias();
  TensorImpl& impl = *part.impl();
  impl.offset += start * impl.strides[size_t(dim)];
  impl.sizes[size_t(dim)] = length;
  impl.numel = 1;
  for (int64_t s : impl.sizes) impl.numel *= s;
  return part;
}

// Contiguous tensors of one dtype: whole runs of bytes, one thread per share of the rows.
void cat_runs(TensorList tensors, int64_t dim, const Tensor& out) {
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= out.sizes()[size_t(d)];
  int64_t row = outer ? int64_t(out.nbytes()) / outer : 0;
  char* to = static_cast<char*>(out.impl()->data());
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    const char* from = static_cast<const char*>(t.impl()->data());
    int64_t run = int64_t(t.nbytes()) / outer;
    if (outer == 1) {
      parallel_for(0, run, 256 * 1024,
                   [&](int64_t a, int64_t b) { std::memcpy(to + a, from + a, size_t(b - a)); });
    } else {
      int64_t grain = run ? (256 * 1024 + run - 1) / run : 1;
      parallel_for(0, outer, grain, [&](int64_t a, int64_t b) {
        for (int64_t r = a; r < b; ++r) std::memcpy(to + r * row, from + r * run, size_t(run));
      });
    }
    to += run;
  }
}

void cat_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  TensorList tensors = args.list(0);
  int64_t dim = wrap_dim(args.integer(1, 0), out.dim(), "cat"), start = 0;
  bool runs = out.is_contiguous() && !out.is_conj() && !out.is_neg();
  for (const Tensor& t : tensors)
    runs = runs && t.is_contiguous() && t.dtype() == out.dtype() && !t.is_conj() && !t.is_neg();
  if (runs) return cat_runs(tensors, dim, out);
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    int64_t length = t.sizes()[size_t(dim)];
    copy_elements(part_of(out, dim, start, length), t);
    start += length;
  }
}

// A view with negative strides never leaves this kernel.
void flip_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  if (x.numel() == 0) return;
  Tensor view = x.alias();
  TensorImpl& impl = *view.impl();
  for (int64_t d : args.ints(1)) {
    if (x.dim() == 0) continue;
    size_t k = size_t(wrap_dim(d, x.dim(), "flip"));
    impl.offset += (impl.sizes[k] - 1) * impl.strides[k];
    impl.strides[k] = -impl.strides[k];
  }
  Arg copy_args[] = {Arg(out), Arg(view)};
  pointwise_kernel({copy_op, {}}, Args(copy_args, 2), ArrayRef<Tensor>(out));
}

}  // namespace

void register_index_tensor(const KernelTable& table) {
  table.set(nonzero_op, nonzero_kernel);
  table.set(masked_select_op, masked_select_kernel);
  table.set(masked_scatter_op, masked_scatter_kernel, kAliasSafe);
  table.set(index_op, index_kernel);
  table.set(index_put_op, index_put_kernel, kAliasSafe);
  table.set(put_op, put_kernel, kAliasSafe);
  table.set(repeat_indices_op, repeat_indices_kernel);
  table.set(cat_op, cat_kernel, kAnyStrides | kCastsOnStore | kConjAware);
  table.set(flip_op, flip_kernel, kAnyStrides | kCastsOnStore | kConjAware);
}

}  // namespace fornax::cpu
