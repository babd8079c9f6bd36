// Indexing by tensors: index, index_put, take, put, masks and nonzero.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/index.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {

IndexShape index_shape(IntArrayRef self, ArrayRef<Dims> index_sizes, ArrayRef<bool> given) {
  IndexShape r;
  int64_t first = -1, last = -1, count = 0;
  for (size_t d = 0; d < given.size(); ++d) {
    if (!given[d]) continue;
    if (first < 0) first = int64_t(d);
    last = int64_t(d);
    ++count;
    r.broadcast = broadcast_sizes(r.broadcast, index_sizes[d], "index");
  }
  bool adjacent = last - first + 1 == count;
  r.place = adjacent && first > 0 ? first : 0;
  for (size_t d = 0; d < self.size(); ++d)
    if (d >= given.size() || !given[d]) r.result.push_back(self[d]);
  Dims rest = std::move(r.result);
  r.result.assign(rest.begin(), rest.begin() + r.place);
  r.result.append(r.broadcast.begin(), r.broadcast.end());
  r.result.append(rest.begin() + r.place, rest.end());
  return r;
}

Tensor put_into_zeros(const Tensor& g, IntArrayRef sizes, TensorList indices) {
  Tensor zero = zeros(sizes, TensorOptions(g.dtype()).device(g.device()));
  if (thread_state.top || thread_state.grad_mode) return index_put(zero, indices, g, true);
  call_inplace(index_put_op, {zero, indices, g, true});
  return zero;
}

namespace {

// Checks indices against self. Returns whether one is a mask.
bool check_indices(const Tensor& self, TensorList indices, std::string_view call) {
  int64_t d = 0;
  bool mask = false, any = false;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      ++d;
      continue;
    }
    any = true;
    if (!is_mask(t)) {
      FX_CHECK(t.dtype() == Dtype::kI64 || t.dtype() == Dtype::kI32, kType, call,
               ": expected indices of int64, int32 or bool, got ", t.dtype());
      ++d;
      continue;
    }
    mask = true;
    for (int64_t k = 0; k < t.dim() && d + k < self.dim(); ++k)
      FX_CHECK(t.sizes()[size_t(k)] == self.sizes()[size_t(d + k)], kIndex, call,
               ": mask of sizes ", t.sizes(), " does not match self of sizes ", self.sizes(),
               " at dimension ", d + k);
    d += t.dim();
  }
  FX_CHECK(any, kValue, call, ": expected at least one index tensor");
  FX_CHECK(d <= self.dim(), kIndex, call, ": ", d, " indices into a tensor of ", self.dim(),
           " dimensions");
  return mask;
}

IndexShape shape_of_index(IntArrayRef self, TensorList indices) {
  SmallVec<Dims, 4> sizes;
  SmallVec<bool, 8> given;
  for (const Tensor& t : indices) {
    given.push_back(t.defined());
    sizes.push_back(t.defined() ? Dims(t.sizes().begin(), t.sizes().end()) : Dims());
  }
  return index_shape(self, sizes, given);
}

void index_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  TensorList indices = f.args.list(1);
  if (check_indices(x, indices, "index")) return;
  f.outs.push_back(Meta(x.dtype(), shape_of_index(x.sizes(), indices).result, x.device()));
}

bool has_mask(Args args) {
  for (const Tensor& t : args.list(1))
    if (is_mask(t)) return true;
  return false;
}

Tensors saved_indices(Vjp& v) {
  Tensors indices;
  for (int k = 0; k < v.list_size(1); ++k) indices.push_back(v.in(1, k));
  return indices;
}

void index_put_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &values = f.args.tensor(2);
  TensorList indices = f.args.list(1);
  FX_CHECK(values.dtype() == x.dtype(), kType, "index_put: values are of ", values.dtype(),
           ", self of ", x.dtype());
  if (!check_indices(x, indices, "index_put")) {
    Dims place = shape_of_index(x.sizes(), indices).result;
    FX_CHECK(broadcast_sizes(place, values.sizes(), "index_put") == place, kShape,
             "index_put: values of sizes ", values.sizes(), " don't broadcast to ", place);
  }
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void index_put_vjp(Vjp& v) {
  Tensors indices = saved_indices(v);
  const Tensor& g = v.grad();
  if (v.need(0)) {
    Tensor zero = zeros({}, TensorOptions(g.dtype()).device(g.device()));
    v.set(0, v.args().flag(3) ? g : index_put(g, indices, zero));
  }
  if (v.need(2)) v.set(2, index(g, indices));
}

// ---- batching of index
struct LogicalIndex {
  int64_t first = -1, rank = 0;  // first indexed dimension, rank of the broadcast indices
  bool adjacent = true;
};

LogicalIndex logical_index(const Vmapped& v, TensorList indices) {
  LogicalIndex r;
  int64_t last = -1, count = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    if (r.first < 0) r.first = int64_t(d);
    last = int64_t(d);
    ++count;
    int64_t rank = indices[d].dim() - (v.is(1) ? 1 : 0);
    r.rank = rank > r.rank ? rank : r.rank;
  }
  r.adjacent = last - r.first + 1 == count;
  return r;
}

// Indices with their batch dimension in front of a common rank.
Tensors aligned_indices(TensorList indices, int64_t rank) {
  Tensors out;
  for (const Tensor& t : indices) {
    if (!t.defined() || t.dim() == rank + 1) {
      out.push_back(t);
      continue;
    }
    Dims sizes;
    sizes.push_back(t.size(0));
    for (int64_t d = t.dim(); d < rank + 1; ++d) sizes.push_back(1);
    sizes.append(t.sizes().begin() + 1, t.sizes().end());
    out.push_back(t.reshape(sizes));
  }
  return out;
}

void index_vmap(Vmapped& v) {
  const Tensor& x = v.args().tensor(0);
  TensorList given = v.args().list(1);
  LogicalIndex at = logical_index(v, given);
  FX_CHECK(!v.is(1) || !has_mask(v.args()), kUnsupported,
           "index: under vmap the sizes of a result can't depend on a batched mask; use where()");
  Tensors indices;
  if (!v.is(1)) {
    indices.push_back(Tensor());
    for (const Tensor& t : given) indices.push_back(t);
    v.call.outs = {index(x, indices)};
    v.out_bdims = {at.adjacent ? 0 : int(at.rank)};
    return;
  }
  Tensors aligned = aligned_indices(given, at.rank);
  if (!v.is(0)) {
    v.call.outs = {index(x, aligned)};
    v.out_bdims = {at.adjacent ? int(at.first) : 0};
    return;
  }
  Dims batch(size_t(at.rank) + 1, 1);
  batch[0] = v.size;
  indices.push_back(arange(v.size, TensorOptions(Dtype::kI64).device(x.device())).reshape(batch));
  for (const Tensor& t : aligned) indices.push_back(t);
  Tensor y = index(x, indices);
  if (at.adjacent && at.first > 0) {  // the indices' dimensions go back to where they were
    Dims order;
    order.push_back(0);
    for (int64_t d = 0; d < at.first; ++d) order.push_back(1 + at.rank + d);
    for (int64_t d = 0; d < at.rank; ++d) order.push_back(1 + d);
    for (int64_t d = int64_t(order.size()); d < y.dim(); ++d) order.push_back(d);
    y = y.permute(order);
  }
  v.call.outs = {y};
  v.out_bdims = {0};
}

// ---- flat indices
void take_body(Call& c) {
  const Tensor &x = c.args.tensor(0), &at = c.args.tensor(1);
  FX_CHECK(x.numel() > 0 || at.numel() == 0, kIndex, "take: indices into an empty tensor");
  FX_CHECK(!is_mask(at), kType, "take: expected indices of int64 or int32, got ", at.dtype());
  c.outs = {index(x.reshape({-1}), at)};
}

void put_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &at = f.args.tensor(1), &source = f.args.tensor(2);
  FX_CHECK(at.dtype() == Dtype::kI64 || at.dtype() == Dtype::kI32, kType,
           "put: expected indices of int64 or int32, got ", at.dtype());
  FX_CHECK(at.numel() == source.numel(), kShape, "put: ", at.numel(), " indices for ",
           source.numel(), " source elements");
  FX_CHECK(source.dtype() == x.dtype(), kType, "put: source is of ", source.dtype(), ", self of ",
           x.dtype());
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void put_vjp(Vjp& v) {
  Tensor at = v.in(1);
  const Tensor& g = v.grad();
  if (v.need(0)) {
    Tensor zero = zeros(at.sizes(), TensorOptions(g.dtype()).device(g.device()));
    v.set(0, v.args().flag(3) ? g : g.put(at, zero));
  }
  if (v.need(2)) v.set(2, g.take(at).reshape(v.meta(2).sizes));
}

// ---- masks
void check_mask(const Tensor& mask, std::string_view call) {
  FX_CHECK(is_mask(mask), kType, call, ": expected a bool mask, got ", mask.dtype());
}

void masked_select_infer(Infer& f) {
  check_mask(f.args.tensor(1), "masked_select");
  broadcast_sizes(f.args.tensor(0).sizes(), f.args.tensor(1).sizes(), "masked_select");
}

void masked_select_vjp(Vjp& v) {
  Tensor mask = v.in(1);
  Dims sizes = broadcast_sizes(v.meta(0).sizes, mask.sizes());
  Tensor zero = zeros(sizes, TensorOptions(v.grad().dtype()).device(v.grad().device()));
  v.set(0, zero.masked_scatter(mask, v.grad()));
}

void masked_scatter_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &mask = f.args.tensor(1), &source = f.args.tensor(2);
  check_mask(mask, "masked_scatter");
  FX_CHECK(source.dtype() == x.dtype(), kType, "masked_scatter: source is of ", source.dtype(),
           ", self of ", x.dtype());
  f.outs.push_back(
      Meta(x.dtype(), broadcast_sizes(x.sizes(), mask.sizes(), "masked_scatter"), x.device()));
}

void masked_scatter_vjp(Vjp& v) {
  Tensor mask = v.in(1);
  const Tensor& g = v.grad();
  if (v.need(0)) v.set(0, g.masked_fill(mask, 0));
  if (!v.need(2)) return;
  const Dims& sizes = v.meta(2).sizes;
  Tensor used = g.masked_select(mask);
  int64_t unused = checked_numel(sizes) - used.numel();
  if (unused > 0) used = cat({used, zeros({unused}, TensorOptions(g.dtype()).device(g.device()))});
  v.set(2, used.reshape(sizes));
}

void nonzero_infer(Infer&) {}

void repeat_indices_infer(Infer& f) {
  const Tensor& repeats = f.args.tensor(0);
  FX_CHECK(repeats.dtype() == Dtype::kI64 || repeats.dtype() == Dtype::kI32, kType,
           "repeat_interleave: expected repeats of int64 or int32, got ", repeats.dtype());
  FX_CHECK(repeats.dim() == 1, kShape, "repeat_interleave: expected 1-D repeats, got ",
           repeats.dim(), "-D");
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op index_op{
    .schema =
        "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor\n"
        "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    .doc =
        "Elements at broadcast integer indices, one per dimension; absent ones keep theirs, "
        "masks stand for the places where they are true.",
    .traits = kLinearOp | kShapeFromData,
    .infer = index_infer,
    .vjp = [](Vjp& v) { v.set(0, put_into_zeros(v.grad(), v.meta(0).sizes, saved_indices(v))); },
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; },
    .vmap = index_vmap,
    .shape_from_data = has_mask};
constexpr Op index_put_op{
    .schema =
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
        "Tensor\n"
        "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool "
        "accumulate=False, bool unsafe=False) -> Tensor\n"
        "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
        "accumulate=False) -> Tensor",
    .doc = "self with values, broadcast, stored or added at the places that index() reads.",
    .traits = kLinearOp,
    .infer = index_put_infer,
    .vjp = index_put_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; }};
constexpr Op take_op = composite("take(Tensor self, Tensor index) -> Tensor",
                                 "Elements at places of the flattened tensor.", take_body);
constexpr Op put_op{
    .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    .doc = "self with source stored or added at places of the flattened tensor.",
    .traits = kLinearOp,
    .infer = put_infer,
    .vjp = put_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; }};
constexpr Op masked_select_op{.schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
                              .doc = "The elements where the mask is true, in one dimension.",
                              .traits = kLinearOp | kShapeFromData,
                              .infer = masked_select_infer,
                              .vjp = masked_select_vjp,
                              .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; }};
constexpr Op masked_scatter_op{
    .schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    .doc = "self with consecutive elements of source where the mask is true.",
    .traits = kLinearOp,
    .infer = masked_scatter_infer,
    .vjp = masked_scatter_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; }};
constexpr Op nonzero_op{.schema = "nonzero(Tensor self) -> Tensor",
                        .doc = "Indices of the elements that are not zero, one row each.",
                        .traits = kNoGrad | kShapeFromData,
                        .infer = nonzero_infer};
constexpr Op argwhere_op = composite("argwhere(Tensor self) -> Tensor", "nonzero.",
                                     [](Call& c) { c.outs = {c.args.tensor(0).nonzero()}; });
constexpr Op nonzero_numpy_op = composite(
    "nonzero_numpy(Tensor self) -> Tensor[]", "nonzero, one tensor per dimension.", [](Call& c) {
      const Tensor& x = c.args.tensor(0);
      c.outs.clear();
      for (const Tensor& t : (x.dim() ? x : x.unsqueeze(0)).nonzero().unbind(1))
        c.outs.push_back(t);
    });
constexpr Op repeat_indices_op{
    .schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    .doc = "Index i repeats[i] times, for all i.",
    .traits = kNoGrad | kShapeFromData,
    .infer = repeat_indices_infer};

}  // namespace fornax
