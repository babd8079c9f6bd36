// Kernels of indexing along a dimension: gather, scatter, index_select and their families,
// embedding.
#include <cmath>
#include <cstring>
#include <limits>

#include "fornax/backends/cpu/index_plan.h"
#include "fornax/backends/cpu/pointwise.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/ops/index.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

Combine combine_of(ScatterReduce r) {
  switch (r) {
    case ScatterReduce::kProd: return Combine::kProd;
    case ScatterReduce::kMax: return Combine::kMax;
    case ScatterReduce::kMin: return Combine::kMin;
    default: return Combine::kSum;
  }
}

// out starts as self; in place it already is.
void start_from(const Tensor& out, const Tensor& self) {
  if (out.impl()->data() != self.impl()->data() && out.numel())
    std::memcpy(out.impl()->data(), self.impl()->data(), out.nbytes());
}

// A source that lies in the memory being written is read from a copy.
Tensor apart(const Tensor& source, const Tensor& out) {
  return source.impl()->storage == out.impl()->storage ? contiguous_copy(source) : source;
}

// One element of `dtype`.
Tensor one_value(const Scalar& value, Dtype dtype) {
  Tensor t = make_tensor(Meta(dtype, {}));
  Arg args[] = {Arg(t), Arg(value)};
  pointwise_kernel({fill_op, {}}, Args(args, 2), ArrayRef<Tensor>(t));
  return t;
}

void fill_with(const Tensor& t, const Scalar& value) {
  Arg args[] = {Arg(t), Arg(value)};
  if (t.numel()) pointwise_kernel({fill_op, {}}, Args(args, 2), ArrayRef<Tensor>(t));
}

// What a reduction starts from where self does not count.
Scalar identity_of(ScatterReduce how, Dtype d) {
  if (how == ScatterReduce::kProd) return 1;
  if (how == ScatterReduce::kSum || how == ScatterReduce::kMean) return 0;
  bool least = how == ScatterReduce::kMax;
  double infinity = std::numeric_limits<double>::infinity();
  switch (d) {
    case Dtype::kBool: return !least;
    case Dtype::kU8: return least ? 0 : 255;
    case Dtype::kI8: return least ? -128 : 127;
    case Dtype::kI16: return least ? -32768 : 32767;
    case Dtype::kI32: return least ? INT32_MIN : INT32_MAX;
    case Dtype::kI64: return least ? INT64_MIN : INT64_MAX;
    default: return least ? -infinity : infinity;
  }
}

// ---- means
template <class T>
void divide_integers(const Tensor& t, const int64_t* counts) {
  T* p = static_cast<T*>(t.impl()->data());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t n = counts[i] > 1 ? counts[i] : 1, v = int64_t(p[i]), q = v / n;
    p[i] = T(v % n < 0 ? q - 1 : q);
  }
}

template <class T>
void divide_reals(const Tensor& t, const int64_t* counts, int64_t parts) {
  T* p = static_cast<T*>(t.impl()->data());
  for (int64_t i = 0; i < t.numel() * parts; ++i)
    if (int64_t n = counts[i / parts]; n > 1) p[i] /= T(n);
}

// t divided by how many values were added to each element; integers round down.
void divide_by(const Tensor& t, const Tensor& counts) {
  const int64_t* n = static_cast<const int64_t*>(counts.impl()->data());
  switch (t.dtype()) {
    case Dtype::kU8: return divide_integers<uint8_t>(t, n);
    case Dtype::kI8: return divide_integers<int8_t>(t, n);
    case Dtype::kI16: return divide_integers<int16_t>(t, n);
    case Dtype::kI32: return divide_integers<int32_t>(t, n);
    case Dtype::kI64: return divide_integers<int64_t>(t, n);
    case Dtype::kF32: return divide_reals<float>(t, n, 1);
    case Dtype::kF64: return divide_reals<double>(t, n, 1);
    case Dtype::kC64: return divide_reals<float>(t, n, 2);
    case Dtype::kC128: return divide_reals<double>(t, n, 2);
    default: break;
  }
  Dtype wide = combining_dtype(t.dtype());
  FX_CHECK(wide != t.dtype(), kUnsupported, "the mean of ", t.dtype(), " is not defined");
  Tensor w = converted(t, wide);
  divide_by(w, counts);
  copy_elements(t, w);
}

// A reduction into `out`, which holds self. write(large, small), combine(large, small, how) act on
// the call's places.
template <class Write, class Apply>
void reduce_into(const Tensor& out, const Tensor& source, ScatterReduce how, bool include_self,
                 Write write, Apply apply) {
  if (!include_self) write(out, one_value(identity_of(how, out.dtype()), out.dtype()));
  if (how != ScatterReduce::kMean) return apply(out, source, combine_of(how));
  // Sums and their division happen in the wide dtype, so that they round once.
  Dtype wide = combining_dtype(out.dtype());
  Tensor sums = wide == out.dtype() ? out : converted(out, wide);
  apply(sums, wide == out.dtype() ? source : converted(source, wide), Combine::kSum);
  Tensor counts = make_tensor(Meta(Dtype::kI64, out.sizes()));
  fill_with(counts, include_self ? 1 : 0);
  Tensor ones = make_tensor(Meta(Dtype::kI64, source.sizes()));
  fill_with(ones, 1);
  apply(counts, ones, Combine::kSum);
  divide_by(sums, counts);
  if (!sums.is_same(out)) copy_elements(out, sums);
}

// ---- gather and scatter
int64_t dim_of(Args args, const Tensor& x, std::string_view call) {
  return wrap_dim(args.integer(1), x.dim(), call);
}

void gather_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  if (outs[0].numel() == 0) return;
  read_elements(element_plan(args.tensor(2), x.sizes(), dim_of(args, x, "gather"), "gather"), x,
                outs[0]);
}

// The part of src under the index, contiguous, or one value.
Tensor scattered_source(Args args, const Tensor& index, const Tensor& out) {
  if (args[3].is_number()) return one_value(args.number(3), out.dtype());
  const Tensor& src = args.tensor(3);
  if (src.sizes() == index.sizes()) return apart(src, out);
  Tensor part = src.alias();
  part.impl()->sizes = index.impl()->sizes;
  part.impl()->numel = index.numel();
  return contiguous_copy(part);
}

void scatter_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &index = args.tensor(2), &out = outs[0];
  std::string_view name = context.op.name();
  start_from(out, x);
  if (index.numel() == 0) return;
  ElementPlan plan = element_plan(index, x.sizes(), dim_of(args, x, name), name);
  plan.index = apart(plan.index, out);
  Tensor source = scattered_source(args, index, out);
  ScatterReduce how = ScatterReduce::kAssign;
  if (name == "scatter_add") how = ScatterReduce::kSum;
  if (args.has(4)) how = scatter_reduce_of(args.text(4), name);
  if (how == ScatterReduce::kAssign) return write_elements(plan, out, source);
  reduce_into(
      out, source, how, args.flag(5, true),
      [&](const Tensor& to, const Tensor& from) { write_elements(plan, to, from); },
      [&](const Tensor& to, const Tensor& from, Combine c) {
        combine_elements(plan, to, from, c);
      });
}

// ---- rows along a dimension
RowPlan plan_along(const Tensor& x, const Tensor& index, int64_t dim, bool wrap,
                   std::string_view call) {
  int64_t rank = x.dim(), n = rank ? x.sizes()[size_t(dim)] : 1, outer = 1;
  RowPlan plan;
  for (int64_t d = 0; d < dim; ++d) outer *= x.sizes()[size_t(d)];
  for (int64_t d = dim + 1; d < rank; ++d) plan.q *= x.sizes()[size_t(d)];
  Tensor at = checked_indices(index, n, dim, wrap, call);
  const int64_t* p = static_cast<const int64_t*>(at.impl()->data());
  plan.places.resize(size_t(at.numel()));
  for (int64_t i = 0; i < at.numel(); ++i) plan.places[size_t(i)] = p[i] * plan.q;
  plan.outer.resize(size_t(outer));
  for (int64_t r = 0; r < outer; ++r) plan.outer[size_t(r)] = r * n * plan.q;
  plan.small_place = plan.q;
  plan.small_outer = plan.q * at.numel();
  return plan;
}

void index_select_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  RowPlan plan =
      plan_along(x, args.tensor(2), dim_of(args, x, "index_select"), false, "index_select");
  if (outs[0].numel()) read_rows(plan, x, outs[0]);
}

void index_copy_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  RowPlan plan = plan_along(x, args.tensor(2), dim_of(args, x, "index_copy"), false, "index_copy");
  start_from(out, x);
  write_rows(plan, out, apart(args.tensor(3), out));
}

void index_fill_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  RowPlan plan = plan_along(x, args.tensor(2), dim_of(args, x, "index_fill"), true, "index_fill");
  start_from(out, x);
  Tensor value = args[3].is_number() ? one_value(args.number(3), x.dtype())
                                     : converted(args.tensor(3), x.dtype());
  write_rows(plan, out, value);
}

void index_add_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  RowPlan plan = plan_along(x, args.tensor(2), dim_of(args, x, "index_add"), false, "index_add");
  start_from(out, x);
  Tensor source = apart(args.tensor(3), out);
  if (args.has(4) && !(args.number(4) == Scalar(1))) {
    Tensor scaled = make_tensor(Meta(source.dtype(), source.sizes()));
    Arg mul_args[] = {Arg(source), args[4]};
    if (source.numel()) pointwise_kernel({mul_op, {}}, Args(mul_args, 2), ArrayRef<Tensor>(scaled));
    source = scaled;
  }
  if (source.numel()) combine_rows(plan, out, source, Combine::kSum);
}

void index_reduce_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &out = outs[0];
  RowPlan plan =
      plan_along(x, args.tensor(2), dim_of(args, x, "index_reduce"), false, "index_reduce");
  start_from(out, x);
  Tensor source = apart(args.tensor(3), out);
  if (source.numel() == 0) return;
  reduce_into(
      out, source, scatter_reduce_of(args.text(4), "index_reduce"), args.flag(5, true),
      [&](const Tensor& to, const Tensor& from) { write_rows(plan, to, from); },
      [&](const Tensor& to, const Tensor& from, Combine c) { combine_rows(plan, to, from, c); });
}

// ---- embedding
void embedding_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  RowPlan plan = plan_along(args.tensor(0), args.tensor(1), 0, false, "embedding");
  if (outs[0].numel()) read_rows(plan, args.tensor(0), outs[0]);
}

// Rows of g divided by how often their index occurs.
Tensor scaled_by_frequency(const Tensor& g, const RowPlan& plan, int64_t rows) {
  std::vector<int64_t> counts(size_t(rows), 0);
  for (int64_t p : plan.places)
    if (p >= 0) ++counts[size_t(p / plan.q)];
  Tensor n = make_tensor(Meta(Dtype::kI64, g.sizes()));
  int64_t* to = static_cast<int64_t*>(n.impl()->data());
  for (int64_t p : plan.places)
    for (int64_t j = 0; j < plan.q; ++j) *to++ = p >= 0 ? counts[size_t(p / plan.q)] : 1;
  Tensor r = contiguous_copy(g);
  divide_by(r, n);
  return r;
}

void embedding_backward_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  Tensor g = args.tensor(0);
  int64_t rows = args.integer(2), padding = args.integer(3, -1);
  if (out.numel() == 0) return;
  std::memset(out.impl()->data(), 0, out.nbytes());
  if (g.numel() == 0) return;
  RowPlan plan = plan_along(out, args.tensor(1), 0, false, "embedding_dense_backward");
  if (padding >= 0)
    for (int64_t& p : plan.places)
      if (p == padding * plan.q) p = -1;
  if (args.flag(4)) g = scaled_by_frequency(g, plan, rows);
  combine_rows(plan, out, g, Combine::kSum);
}

}  // namespace

void register_index(const KernelTable& table) {
  table.set(gather_op, gather_kernel);
  for (const Op* op : {&scatter_op, &scatter_add_op, &scatter_reduce_op})
    table.set(*op, scatter_kernel, kAliasSafe);
  table.set(index_select_op, index_select_kernel);
  table.set(index_copy_op, index_copy_kernel, kAliasSafe);
  table.set(index_fill_op, index_fill_kernel, kAliasSafe);
  table.set(index_add_op, index_add_kernel, kAliasSafe);
  table.set(index_reduce_op, index_reduce_kernel, kAliasSafe);
  table.set(embedding_op, embedding_kernel);
  table.set(embedding_dense_backward_op, embedding_backward_kernel);
  register_index_tensor(table);
}

}  // namespace fornax::cpu
