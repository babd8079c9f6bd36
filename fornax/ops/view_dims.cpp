// Views that reorder, add, drop, merge and split dimensions.
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void transpose_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  int64_t rank = int64_t(m.sizes.size());
  size_t a = size_t(wrap_dim(f.args.integer(1), rank, "transpose"));
  size_t b = size_t(wrap_dim(f.args.integer(2), rank, "transpose"));
  if (rank == 0) return;
  std::swap(m.sizes[a], m.sizes[b]);
  std::swap(m.strides[a], m.strides[b]);
}

void transpose_vmap(Vmapped& v) {
  int64_t rank = v.dim(0);
  int64_t a = wrap_dim(v.args().integer(1), rank, "transpose");
  int64_t b = wrap_dim(v.args().integer(2), rank, "transpose");
  if (rank == 0) a = b = -1;  // nothing to swap: the batch dimension with itself
  v.run({v.args()[0], a + 1, b + 1});
}

void t_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  FX_CHECK(m.sizes.size() <= 2, kShape, "t: expected at most 2 dimensions, got ", m.sizes.size());
  if (m.sizes.size() < 2) return;
  std::swap(m.sizes[0], m.sizes[1]);
  std::swap(m.strides[0], m.strides[1]);
}

void t_vmap(Vmapped& v) {
  FX_CHECK(v.dim(0) <= 2, kShape, "t: expected at most 2 dimensions, got ", v.dim(0));
  const Tensor& x = v.args().tensor(0);
  v.call.outs = {v.dim(0) == 2 ? x.transpose(1, 2) : x.view(x.sizes())};
  v.out_bdims = {0};
}

void mT_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.dim() >= 2, kShape, c.op.name(), ": expected 2 or more dimensions, got ", x.dim());
  c.outs = {x.transpose(-2, -1)};
}

void mH_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.dim() >= 2, kShape, c.op.name(), ": expected 2 or more dimensions, got ", x.dim());
  Tensor y = x.transpose(-2, -1);
  c.outs = {x.is_complex() ? y.conj() : y};
}

void matrix_H_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.dim() == 0 || x.dim() == 2, kShape, "matrix_H: expected a matrix, got ", x.dim(),
           "-D");
  Tensor y = x.dim() == 2 ? x.transpose(0, 1) : x;
  c.outs = {x.is_complex() ? y.conj() : y};
}

void numpy_T_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  Dims dims;
  for (int64_t d = x.dim() - 1; d >= 0; --d) dims.push_back(d);
  c.outs = {x.permute(dims)};
}

// Dimensions that squeeze may drop, as a mask; all when none are given.
uint64_t squeezed_dims(Args args, int64_t rank) {
  if (!args.has(1)) return ~uint64_t(0);
  uint64_t mask = 0;
  for (int64_t d : args.ints(1)) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, rank, "squeeze");
    FX_CHECK(!(mask & bit), kValue, "squeeze: dimension ", d, " is repeated in ", args.ints(1));
    mask |= bit;
  }
  return mask;
}

void squeeze_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  uint64_t mask = squeezed_dims(f.args, int64_t(m.sizes.size()));
  size_t kept = 0;
  for (size_t d = 0; d < m.sizes.size(); ++d) {
    if ((mask >> d & 1) && m.sizes[d] == 1) continue;
    m.sizes[kept] = m.sizes[d];
    m.strides[kept++] = m.strides[d];
  }
  m.sizes.resize(kept);
  m.strides.resize(kept);
}

void squeeze_vmap(Vmapped& v) {
  const Tensor& x = v.args().tensor(0);
  uint64_t mask = squeezed_dims(v.args(), v.dim(0));
  Dims dims;
  for (int64_t d = 0; d < v.dim(0); ++d)
    if (mask >> d & 1) dims.push_back(d + 1);
  v.run({x, dims});
}

void unsqueeze_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  size_t rank = m.sizes.size();
  size_t d = size_t(wrap_dim(f.args.integer(1), int64_t(rank) + 1, "unsqueeze"));
  int64_t stride = d < rank ? m.sizes[d] * m.strides[d] : 1;
  m.sizes.insert(m.sizes.begin() + d, 1);
  m.strides.insert(m.strides.begin() + d, stride);
}

void unsqueeze_vmap(Vmapped& v) {
  int64_t d = wrap_dim(v.args().integer(1), v.dim(0) + 1, "unsqueeze");
  v.run({v.args()[0], d + 1});
}

void movedim_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef from = c.args.ints(1), to = c.args.ints(2);
  FX_CHECK(from.size() == to.size(), kValue, "movedim: ", from.size(), " source but ", to.size(),
           " destination dimensions");
  int64_t rank = x.dim();
  Dims order(size_t(rank > 0 ? rank : 1), -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t s = wrap_dim(from[i], rank, "movedim"), d = wrap_dim(to[i], rank, "movedim");
    FX_CHECK(!(moved >> s & 1) && order[size_t(d)] < 0, kValue,
             "movedim: a dimension is repeated in source ", from, " or destination ", to);
    moved |= uint64_t(1) << s;
    order[size_t(d)] = s;
  }
  if (rank == 0) {
    c.outs = {x.view(IntArrayRef())};
    return;
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved >> next & 1) ++next;
    d = next++;
  }
  c.outs = {x.permute(order)};
}

void flatten_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  int64_t first = wrap_dim(c.args.integer(1, 0), x.dim(), "flatten");
  int64_t last = wrap_dim(c.args.integer(2, -1), x.dim(), "flatten");
  FX_CHECK(first <= last, kValue, "flatten: start_dim ", first, " lies behind end_dim ", last);
  if (x.dim() == 0) {
    c.outs = {x.reshape({1})};
    return;
  }
  if (first == last) {
    c.outs = {x};
    return;
  }
  Dims sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t n = x.sizes()[size_t(d)];
    if (d < first || d > last) sizes.push_back(n);
    if (d >= first && d <= last) merged *= n;
    if (d == last) sizes.push_back(merged);
  }
  c.outs = {x.reshape(sizes)};
}

void unflatten_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(!c.args.ints(2).empty(), kValue, "unflatten: sizes must not be empty");
  int64_t at = wrap_dim(c.args.integer(1), x.dim(), "unflatten");
  Dims inner = infer_size(c.args.ints(2), x.dim() ? x.sizes()[size_t(at)] : 1, "unflatten"), sizes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d == at)
      sizes.append(inner.begin(), inner.end());
    else
      sizes.push_back(x.sizes()[size_t(d)]);
  }
  c.outs = {x.view(x.dim() ? sizes : inner)};
}

Tensor atleast(const Tensor& x, int64_t rank) {
  if (x.dim() >= rank) return x;
  int64_t n = x.numel();
  if (rank == 1) return x.reshape({1});
  if (rank == 2) return x.dim() == 0 ? x.reshape({1, 1}) : x.unsqueeze(0);
  if (x.dim() == 0) return x.reshape({1, 1, 1});
  return x.dim() == 1 ? x.reshape({1, n, 1}) : x.unsqueeze(-1);
}

void atleast_body(Call& c) {
  int64_t rank = c.op.name()[8] - '0';
  c.outs.clear();
  for (const Tensor& x : c.args.list(0)) c.outs.push_back(atleast(x, rank));
}

void broadcast_tensors_body(Call& c) {
  Dims sizes;
  for (const Tensor& x : c.args.list(0)) sizes = broadcast_sizes(sizes, x.sizes(), c.op.name());
  c.outs.clear();
  for (const Tensor& x : c.args.list(0)) c.outs.push_back(x.expand(sizes));
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op transpose_op{
    .schema =
        "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)\n"
        "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)\n"
        "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    .doc = "Two dimensions exchanged.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = transpose_infer,
    .vjp = [](Vjp& v) { v.set(0, v.grad().transpose(v.args().integer(1), v.args().integer(2))); },
    .vmap = transpose_vmap};
constexpr Op t_op{.schema = "t(Tensor(a) self) -> Tensor(a)",
                  .doc = "The transpose of a matrix; fewer dimensions as they are.",
                  .kind = OpKind::kView,
                  .traits = kLinearOp,
                  .infer = t_infer,
                  .vjp = [](Vjp& v) { v.set(0, v.grad().t()); },
                  .vmap = t_vmap};
constexpr Op mT_op =
    composite("mT(Tensor(a) self) -> Tensor(a)", "The last two dimensions exchanged.", mT_body);
constexpr Op mH_op = composite("mH(Tensor(a) self) -> Tensor(a)",
                               "The last two dimensions exchanged, conjugated.", mH_body);
constexpr Op adjoint_op = composite("adjoint(Tensor(a) self) -> Tensor(a)",
                                    "The last two dimensions exchanged, conjugated.", mH_body);
constexpr Op numpy_T_op = composite("numpy_T(Tensor(a) self) -> Tensor(a)",
                                    "All dimensions in reverse order.", numpy_T_body);
constexpr Op matrix_H_op = composite("matrix_H(Tensor(a) self) -> Tensor(a)",
                                     "The conjugate transpose of a matrix.", matrix_H_body);
constexpr Op squeeze_op{.schema =
                            "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)\n"
                            "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)\n"
                            "squeeze(Tensor(a) self) -> Tensor(a)",
                        .doc = "Without dimensions of size 1: all of them, or those given.",
                        .kind = OpKind::kView,
                        .traits = kLinearOp,
                        .infer = squeeze_infer,
                        .vjp = [](Vjp& v) { v.set(0, v.grad().reshape(v.meta(0).sizes)); },
                        .vmap = squeeze_vmap};
constexpr Op unsqueeze_op{.schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
                          .doc = "With a new dimension of size 1.",
                          .kind = OpKind::kView,
                          .traits = kLinearOp,
                          .infer = unsqueeze_infer,
                          .vjp = [](Vjp& v) { v.set(0, v.grad().squeeze(v.args().integer(1))); },
                          .vmap = unsqueeze_vmap};
constexpr Op movedim_op = composite(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)\n"
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)\n"
    "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)\n"
    "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "Dimensions moved to other places; the rest keep their order.", movedim_body);
constexpr Op flatten_op =
    composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
              "A range of dimensions merged into one.", flatten_body);
constexpr Op unflatten_op =
    composite("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
              "One dimension as several; one size may be -1.", unflatten_body);
constexpr Op ravel_op =
    composite("ravel(Tensor(a) self) -> Tensor(a)", "All elements in one dimension, contiguous.",
              [](Call& c) { c.outs = {c.args.tensor(0).contiguous().view({-1})}; });
constexpr Op expand_as_op = composite(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", "Expanded to the sizes of other.",
    [](Call& c) { c.outs = {c.args.tensor(0).expand(c.args.tensor(1).sizes())}; });
constexpr Op view_as_op = composite(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", "Viewed under the sizes of other.",
    [](Call& c) { c.outs = {c.args.tensor(0).view(c.args.tensor(1).sizes())}; });
constexpr Op reshape_as_op = composite(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", "Reshaped to the sizes of other.",
    [](Call& c) { c.outs = {c.args.tensor(0).reshape(c.args.tensor(1).sizes())}; });
constexpr Op broadcast_tensors_op =
    composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]",
              "All tensors expanded to their common sizes.", broadcast_tensors_body);
constexpr Op atleast_1d_op = composite(
    "atleast_1d(Tensor self) -> Tensor\n"
    "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
    "With at least one dimension.", atleast_body);
constexpr Op atleast_2d_op = composite(
    "atleast_2d(Tensor self) -> Tensor\n"
    "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
    "With at least two dimensions.", atleast_body);
constexpr Op atleast_3d_op = composite(
    "atleast_3d(Tensor self) -> Tensor\n"
    "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
    "With at least three dimensions.", atleast_body);

}  // namespace fornax
