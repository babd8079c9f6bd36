// Reductions: the fold of each, and what its result is made from the fold's state.
#include "fornax/ops/reduce.h"

#include <cmath>

#include "fornax/backends/cpu/fold.h"
#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

// x as a dtype the fold reads: itself if it can. `wanted` is the dtype the fold is to happen in.
Tensor foldable(FoldKind kind, const Tensor& x, Dtype wanted) {
  bool same_kind =
      is_complex(x.dtype()) == is_complex(wanted) && is_integral(x.dtype()) == is_integral(wanted);
  Dtype d = same_kind ? x.dtype() : wanted;
  if (!has_fold(kind, d))
    d = is_integral(d) ? Dtype::kI64 : is_complex(d) ? Dtype::kC64 : Dtype::kF32;
  return cast_to(x, d);
}

void store_values(const Folded& folded, const Tensor& out, int plane = 0) {
  if (folded.integer)
    store_integers(folded, folded.integers(plane), out);
  else
    store_reals(folded, folded.reals(plane), out);
}

template <FoldKind kind>
void value_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(kind, args.tensor(0), outs[0].dtype());
  store_values(fold(kind, x, dim_mask(args, 1, x.dim(), context.op.name())), outs[0]);
}

// f(value) for every entry of a real fold, in place.
template <class F>
void for_entries(Folded& folded, int plane, F f) {
  double* values = folded.memory.as<double>() + plane * folded.count;
  for (int64_t i = 0; i < folded.count; ++i) values[i] = f(values[i]);
}

void mean_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(FoldKind::kSum, args.tensor(0), outs[0].dtype());
  uint64_t mask = dim_mask(args, 1, x.dim(), "mean");
  Folded folded = fold(FoldKind::kSum, x, mask);
  double n = double(reduced_count(x.sizes(), mask));
  for_entries(folded, 0, [n](double v) { return v / n; });
  store_values(folded, outs[0]);
}

void nansum_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  FoldKind kind = is_integral(args.tensor(0).dtype()) ? FoldKind::kSum : FoldKind::kNanSum;
  Tensor x = foldable(kind, args.tensor(0), outs[0].dtype());
  if (is_integral(x.dtype())) kind = FoldKind::kSum;
  store_values(fold(kind, x, dim_mask(args, 1, x.dim(), "nansum")), outs[0]);
}

// x as rows of what is to be reduced, contiguous.
Tensor as_rows(const Tensor& x, uint64_t mask) {
  Dims order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (!(mask >> d & 1)) order.push_back(d);
  for (int64_t d = 0; d < x.dim(); ++d)
    if (mask >> d & 1) order.push_back(d);
  return x.permute(order).contiguous();
}

template <class T>
void complex_products(const Tensor& rows, complex128* out, int64_t count, int64_t n) {
  const auto* x = static_cast<const Complex<T>*>(rows.impl()->data());
  for (int64_t r = 0; r < count; ++r) {
    complex128 product(1);
    for (int64_t k = 0; k < n; ++k) product = product * complex128(x[r * n + k]);
    out[r] = product;
  }
}

void complex_prod(const Tensor& x, uint64_t mask, const Tensor& out) {
  PlainCalls plain;
  Tensor wide = make_tensor(Meta(Dtype::kC128, out.sizes(), out.device()));
  Tensor rows = as_rows(x, mask);
  auto* products = static_cast<complex128*>(wide.impl()->data());
  int64_t n = reduced_count(x.sizes(), mask);
  if (x.dtype() == Dtype::kC64)
    complex_products<float>(rows, products, out.numel(), n);
  else
    complex_products<double>(rows, products, out.numel(), n);
  copy_elements(out, wide);
}

void prod_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  if (!is_complex(outs[0].dtype())) return value_kernel<FoldKind::kProd>(context, args, outs);
  Dtype d = outs[0].dtype() == Dtype::kC128 ? Dtype::kC128 : Dtype::kC64;
  Tensor x = cast_to(args.tensor(0), d);
  complex_prod(x, dim_mask(args, 1, x.dim(), "prod"), outs[0]);
}

void aminmax_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  value_kernel<FoldKind::kMin>(context, args, outs.slice(0, 1));
  value_kernel<FoldKind::kMax>(context, args, outs.slice(1, 1));
}

// The dimension of an index fold; without one, all elements as one dimension.
Folded fold_places(FoldKind kind, Args args) {
  Tensor x = foldable(kind, args.tensor(0), args.tensor(0).dtype());
  if (args.has(1) && x.dim() > 0)
    return fold(kind, x, uint64_t(1) << wrap_dim(args.integer(1), x.dim()));
  PlainCalls plain;
  return fold(kind, x.reshape({x.numel()}), 1);
}

template <FoldKind kind>
void extremum_dim_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Folded folded = fold_places(kind, args);
  store_values(folded, outs[0], 0);
  store_integers(folded, folded.integers(1), outs[1]);
}

template <FoldKind kind>
void arg_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Folded folded = fold_places(kind, args);
  store_integers(folded, folded.integers(1), outs[0]);
}

// Number of nonzero elements, per result; complex numbers by their truth.
Folded count_nonzero(Args args, std::string_view call) {
  Tensor x = args.tensor(0);
  uint64_t mask = dim_mask(args, 1, x.dim(), call);
  if (x.is_complex()) x = cast_to(x, Dtype::kBool);
  if (!has_fold(FoldKind::kNonzero, x.dtype()))
    x = cast_to(x, is_integral(x.dtype()) ? Dtype::kBool : Dtype::kF32);
  return fold(FoldKind::kNonzero, x, mask);
}

void count_nonzero_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  store_values(count_nonzero(args, "count_nonzero"), outs[0]);
}

template <bool kAll>
void logic_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  Folded folded = count_nonzero(args, context.op.name());
  int64_t n = reduced_count(x.sizes(), dim_mask(args, 1, x.dim(), context.op.name()));
  int64_t* counts = folded.memory.as<int64_t>();
  for (int64_t i = 0; i < folded.count; ++i) counts[i] = kAll ? counts[i] == n : counts[i] != 0;
  store_values(folded, outs[0]);
}

// ---- moments

// Complex numbers are folded as pairs: squares of both parts add up, means stay a pair.
void join_parts(Folded& pairs, const Tensor& out, double divisor, bool root) {
  Tensor squares = make_tensor(Meta(Dtype::kF64, out.sizes(), out.device()));
  Tensor parts = make_tensor(Meta(to_complex(Dtype::kF64), out.sizes(), out.device()));
  store_reals(pairs, pairs.reals(2), parts);
  const auto* p = static_cast<const complex128*>(parts.impl()->data());
  double* to = static_cast<double*>(squares.impl()->data());
  for (int64_t i = 0; i < out.numel(); ++i) {
    double v = (p[i].re + p[i].im) / divisor;
    to[i] = root ? std::sqrt(v) : v;
  }
  copy_elements(out, squares);
}

template <bool kRoot>
void var_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  Tensor x = foldable(FoldKind::kMoments, args.tensor(0), args.tensor(0).dtype());
  uint64_t mask = dim_mask(args, 1, x.dim(), context.op.name());
  double n = double(reduced_count(x.sizes(), mask));
  double correction = args.has(2) ? args.number(2).to_double() : 1.0;
  double divisor = n - correction > 0 ? n - correction : 0;
  Folded folded = fold(FoldKind::kMoments, x, mask);
  // No elements: 0 / 0, also where the correction is negative.
  if (n == 0) divisor = 0;
  if (n == 0) for_entries(folded, 1, [](double) { return std::nan(""); });
  if (outs.size() == 2) store_reals(folded, folded.reals(1), outs[1]);
  if (x.is_complex()) return join_parts(folded, outs[0], divisor, kRoot);
  for_entries(folded, 2, [=](double v) { return kRoot ? std::sqrt(v / divisor) : v / divisor; });
  store_reals(folded, folded.reals(2), outs[0]);
}

// ---- norms

// Whether the sum of squares left the range in which it is exact.
bool out_of_range(const Folded& folded) {
  for (int64_t i = 0; i < folded.count; ++i) {
    double v = folded.reals()[i];
    if (!(v < 1e300) || (v != 0 && v < 1e-280)) return true;
  }
  return false;
}

// By the largest magnitude first, for f64 whose squares overflow or vanish.
void scaled_square_norm(const Tensor& x, uint64_t mask, const Tensor& out) {
  PlainCalls plain;
  Dims dims = dims_of_mask(mask, x.dim());
  Tensor size = x.abs(), largest = amax(size, dims, true);
  Tensor scale =
      where(largest.gt(0).logical_and(largest.lt(INFINITY)), largest, ones_like(largest));
  Tensor ratio = size.div(scale);
  Tensor sum = dims.empty() ? ratio.square() : ratio.square().sum(dims, true);
  out.copy_(sum.sqrt().mul(scale).reshape(out.sizes()));
}

void square_norm(const Tensor& x, uint64_t mask, const Tensor& out) {
  Folded folded = fold(FoldKind::kSquareSum, x, mask);
  if (x.dtype() == Dtype::kF64 && out_of_range(folded)) return scaled_square_norm(x, mask, out);
  for_entries(folded, 0, [](double v) { return std::sqrt(v); });
  store_reals(folded, folded.reals(), out);
}

// In double: the powers of f32 do not overflow there.
void power_norm(const Tensor& x, double order, uint64_t mask, const Tensor& out) {
  PlainCalls plain;
  Tensor powers = x.to(Dtype::kF64).abs().pow(order);
  Dims dims = dims_of_mask(mask, x.dim());
  Tensor sum = dims.empty() ? powers : powers.sum(dims);
  out.copy_(sum.pow(1 / order).reshape(out.sizes()));
}

void vector_norm_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor x = cast_to(args.tensor(0), args.dtype(4, args.tensor(0).dtype()));
  if (x.is_complex()) {
    PlainCalls plain;
    x = x.abs();
  }
  double order = args.has(1) ? args.number(1).to_double() : 2.0;
  uint64_t mask = dim_mask(args, 2, x.dim(), "linalg_vector_norm");
  FoldKind kind = order == 0           ? FoldKind::kNonzero
                  : order == 1         ? FoldKind::kAbsSum
                  : order == 2         ? FoldKind::kSquareSum
                  : order == INFINITY  ? FoldKind::kMaxAbs
                  : order == -INFINITY ? FoldKind::kMinAbs
                                       : FoldKind::kSum;
  if (kind == FoldKind::kSum) return power_norm(x, order, mask, outs[0]);
  x = foldable(kind, x, x.dtype());
  if (kind == FoldKind::kSquareSum) return square_norm(x, mask, outs[0]);
  store_values(fold(kind, x, mask), outs[0]);
}

// Maximum first; rows of results that are infinite or NaN are that maximum.
void logsumexp_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  PlainCalls plain;
  Tensor x = cast_to(args.tensor(0), outs[0].dtype());
  bool keepdim = args.flag(2);
  Dims dims = dims_of_mask(dim_mask(args, 1, x.dim(), "logsumexp"), x.dim());
  if (x.numel() == 0) {
    Tensor sum = dims.empty() ? x.exp() : x.exp().sum(dims, keepdim);
    outs[0].copy_(sum.log());
    return;
  }
  Tensor size = x.is_complex() ? real(x) : x;
  Tensor high = dims.empty() ? size : amax(size, dims, true);
  Tensor shift = high.masked_fill(high.abs().eq(INFINITY), 0);
  Tensor terms = x.sub(shift).exp();
  Tensor sum = dims.empty() ? terms : terms.sum(dims, true);
  outs[0].copy_(sum.log().add(shift).reshape(outs[0].sizes()));
}

}  // namespace

void register_reduce(const KernelTable& table) {
  table.set(sum_op, value_kernel<FoldKind::kSum>, kAnyStrides);
  table.set(nansum_op, nansum_kernel, kAnyStrides);
  table.set(mean_op, mean_kernel, kAnyStrides);
  table.set(prod_op, prod_kernel, kAnyStrides);
  table.set(amax_op, value_kernel<FoldKind::kMax>, kAnyStrides);
  table.set(amin_op, value_kernel<FoldKind::kMin>, kAnyStrides);
  table.set(aminmax_op, aminmax_kernel, kAnyStrides);
  table.set(max_dim_op, extremum_dim_kernel<FoldKind::kArgMax>, kAnyStrides);
  table.set(min_dim_op, extremum_dim_kernel<FoldKind::kArgMin>, kAnyStrides);
  table.set(argmax_op, arg_kernel<FoldKind::kArgMax>, kAnyStrides);
  table.set(argmin_op, arg_kernel<FoldKind::kArgMin>, kAnyStrides);
  table.set(all_op, logic_kernel<true>, kAnyStrides);
  table.set(any_op, logic_kernel<false>, kAnyStrides);
  table.set(count_nonzero_op, count_nonzero_kernel, kAnyStrides);
  table.set(var_op, var_kernel<false>, kAnyStrides);
  table.set(std_op, var_kernel<true>, kAnyStrides);
  table.set(var_mean_op, var_kernel<false>, kAnyStrides);
  table.set(std_mean_op, var_kernel<true>, kAnyStrides);
  table.set(linalg_vector_norm_op, vector_norm_kernel, kAnyStrides);
  table.set(logsumexp_op, logsumexp_kernel, kAnyStrides);
}

}  // namespace fornax::cpu
