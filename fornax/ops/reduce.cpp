#include "fornax/ops/reduce.h"

#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {

uint64_t dim_mask(Args args, size_t at, int64_t rank, std::string_view call) {
  IntArrayRef dims = args.ints(at);
  if (dims.empty()) return rank == 0 ? 0 : ~uint64_t(0) >> (64 - rank);
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, rank, call);
    FX_CHECK(!(mask & bit), kValue, call, ": dimension ", d, " is repeated in ", dims);
    mask |= bit;
  }
  return rank == 0 ? 0 : mask;
}

Dims reduced_sizes(IntArrayRef sizes, uint64_t mask, bool keepdim) {
  Dims out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1))
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

Tensor restore_dims(const Tensor& reduced, uint64_t mask, int64_t rank, bool keepdim) {
  if (keepdim || mask == 0) return reduced;
  Dims sizes;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) sizes.push_back(mask >> d & 1 ? 1 : reduced.sizes()[next++]);
  return reduced.reshape(sizes);
}

namespace {

void sum_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Dtype d = f.args.dtype(3, is_integral(x.dtype()) ? Dtype::kI64 : x.dtype());
  uint64_t mask = dim_mask(f.args, 1, x.dim(), "sum");
  f.outs.push_back(Meta(d, reduced_sizes(x.sizes(), mask, f.args.flag(2)), x.device()));
}

void sum_vjp(Vjp& v) {
  const Dims& sizes = v.meta(0).sizes;
  uint64_t mask = dim_mask(v.args(), 1, int64_t(sizes.size()), "sum");
  v.set(0, restore_dims(v.grad(), mask, int64_t(sizes.size()), v.args().flag(2)).expand(sizes));
}

void sum_vmap(Vmapped& v) {
  Args a = v.args();
  Dims dims;
  uint64_t mask = dim_mask(a, 1, v.dim(0), "sum");
  for (int64_t d = 0; d < v.dim(0); ++d)
    if (mask >> d & 1) dims.push_back(d + 1);
  if (!dims.empty()) return v.run({a[0], dims, a.flag(2), a[3]});
  Tensor x =
      a.tensor(0).reshape({v.size, 1});  // a batched 0-dim operand: sum over a dimension of one
  v.run({x, Dims{1}, false, a[3]});
}

void sum_to_size_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef size = c.args.ints(1);
  FX_CHECK(int64_t(size.size()) <= x.dim(), kShape, "sum_to_size: ", x.sizes(),
           " can't be summed to ", size);
  int64_t lead = x.dim() - int64_t(size.size());
  Dims dims;
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t want = d < lead ? -1 : size[size_t(d - lead)];
    FX_CHECK(d < lead || want == x.sizes()[size_t(d)] || want == 1, kShape,
             "sum_to_size: ", x.sizes(), " can't be summed to ", size);
    if (d < lead || (want == 1 && x.sizes()[size_t(d)] != 1)) dims.push_back(d);
  }
  if (dims.empty()) {
    c.outs = {x};
    return;
  }
  Tensor y = x.sum(dims, true);
  c.outs = {lead ? y.reshape(size) : y};
}

}  // namespace

constexpr Op sum_op{
    .schema =
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) "
        "-> Tensor\n"
        "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .doc = "Sum over dimensions (all if none are given); integers and bools give int64.",
    .kind = OpKind::kReduction,
    .traits = kLinear,
    .infer = sum_infer,
    .vjp = sum_vjp,
    .vmap = sum_vmap};
constexpr Op sum_to_size_op{.schema = "sum_to_size(Tensor self, int[] size) -> Tensor",
                            .doc = "Sums away what broadcasting from `size` would have repeated.",
                            .kind = OpKind::kComposite,
                            .body = sum_to_size_body};

}  // namespace fornax
