// Whole slices picked and placed along a dimension by a 1-D index; embedding; one_hot.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/index.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void check_1d_index(const Tensor& index, std::string_view call) {
  check_index_dtype(index, call);
  FX_CHECK(index.dim() <= 1, kShape, call, ": expected an index of 0 or 1 dimensions, got ",
           index.dim());
}

void index_select_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &index = f.args.tensor(2);
  int64_t dim = wrap_dim(f.args.integer(1), x.dim(), "index_select");
  check_1d_index(index, "index_select");
  FX_CHECK(x.dim() > 0 || index.numel() == 1, kIndex, "index_select: ", index.numel(),
           " indices into a 0-dim tensor");
  Meta m(x.dtype(), x.sizes(), x.device());
  if (x.dim() > 0) m.sizes[size_t(dim)] = index.numel();
  f.outs.push_back(std::move(m));
}

// index_add, index_copy, index_reduce: (self, dim, index, source, ...).
void index_source_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &index = f.args.tensor(2), &source = f.args.tensor(3);
  std::string_view name = f.op.name();
  int64_t dim = wrap_dim(f.args.integer(1), x.dim(), name);
  check_1d_index(index, name);
  FX_CHECK(source.dtype() == x.dtype(), kType, name, ": source is of ", source.dtype(),
           ", self of ", x.dtype());
  int64_t rows = source.dim() ? source.size(x.dim() ? dim : 0) : 1;
  FX_CHECK(rows == index.numel(), kShape, name, ": ", index.numel(), " indices for ", rows,
           " slices of source");
  bool scalar = source.dim() == 0 && x.dim() <= 1;
  FX_CHECK(scalar || source.dim() == x.dim() || (x.dim() == 0 && source.dim() == 1), kShape, name,
           ": source has ", source.dim(), " dimensions, self ", x.dim());
  for (int64_t d = 0; d < x.dim() && !scalar; ++d)
    FX_CHECK(d == dim || source.sizes()[size_t(d)] == x.sizes()[size_t(d)], kShape, name,
             ": source of sizes ", source.sizes(), " does not match self of sizes ", x.sizes(),
             " at dimension ", d);
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void index_fill_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &index = f.args.tensor(2);
  wrap_dim(f.args.integer(1), x.dim(), "index_fill");
  check_1d_index(index, "index_fill");
  FX_CHECK(!f.args[3].is_tensor() || f.args.tensor(3).dim() == 0, kShape,
           "index_fill: expected a 0-dim value, got ",
           f.args[3].is_tensor() ? f.args.tensor(3).dim() : 0, "-D");
  FX_CHECK(is_complex(x.dtype()) || !(f.args[3].is_number() ? f.args[3].tag == Tag::kComplex
                                                            : f.args.tensor(3).is_complex()),
           kType, "index_fill: a complex value can't be stored in ", x.dtype());
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

// A batched 1-D index, expanded over the other dimensions of `like`: for gather and scatter.
Tensor spread_index(const Tensor& index, const Tensor& like, int64_t dim) {
  Dims view, sizes(like.sizes().begin(), like.sizes().end());
  for (int64_t d = 0; d < like.dim(); ++d) view.push_back(1);
  view[0] = index.size(0);
  int64_t n = index.dim() > 1 ? index.size(1) : 1;
  view[size_t(dim)] = sizes[size_t(dim)] = n;
  return index.reshape(view).expand(sizes);
}

Tensor with_rank(const Tensor& t, int64_t logical) { return logical == 0 ? t.unsqueeze(1) : t; }

void index_select_vmap(Vmapped& v) {
  bool scalar = v.dim(0) == 0;
  if (!v.is(2)) {
    run_along_dim(v, {0});
    if (scalar) v.call.outs[0] = v.call.outs[0].squeeze(1);
    return;
  }
  Tensor x = with_rank(v.dim0(0), v.dim(0));
  int64_t dim = wrap_dim(v.args().integer(1), v.dim(0), "index_select") + 1;
  Tensor y = x.gather(dim, spread_index(v.args().tensor(2), x, dim));
  v.call.outs = {scalar ? y.squeeze(1) : y};
  v.out_bdims = {0};
}

// What a batched index does, element by element.
Tensor place_elements(const Vmapped& v, const Tensor& x, int64_t dim) {
  std::string_view name = v.call.op.name();
  Args a = v.args();
  if (name == "index_fill") {
    Tensor index = spread_index(a.tensor(2), x, dim);
    FX_CHECK(a[3].is_number(), kUnsupported, "index_fill: a batched index needs a number as value");
    return x.scatter(dim, index, a.number(3));
  }
  Tensor source = with_rank(v.dim0(3), v.dim(3));
  Tensor index = spread_index(a.tensor(2), source, dim);
  if (name == "index_add") return x.scatter_add(dim, index, source * a.number(4));
  if (name == "index_reduce")
    return x.scatter_reduce(dim, index, source, a.text(4), a.flag(5, true));
  return x.scatter(dim, index, source);
}

void index_write_vmap(Vmapped& v) {
  bool scalar = v.dim(0) == 0;
  if (!v.is(2)) {
    v.call.op.name() == "index_fill" ? run_along_dim(v, {0}) : run_along_dim(v, {0, 3});
    if (scalar) v.call.outs[0] = v.call.outs[0].squeeze(1);
    return;
  }
  Tensor x = with_rank(v.dim0(0), v.dim(0));
  int64_t dim = wrap_dim(v.args().integer(1), v.dim(0), v.call.op.name()) + 1;
  Tensor y = place_elements(v, x, dim);
  if (scalar) y = y.squeeze(1);
  if (v.call.form == Form::kInplace) {
    Tensor self = v.args().tensor(0);
    y = self.copy_(y);
  }
  v.call.outs = {y};
  v.out_bdims = {0};
}

void index_select_vjp(Vjp& v) {
  const Dims& sizes = v.meta(0).sizes;
  const Tensor& g = v.grad();
  Tensor zero = zeros(sizes, TensorOptions(g.dtype()).device(g.device()));
  bool in_place = !thread_state.top && !thread_state.grad_mode;
  int64_t dim = v.args().integer(1);
  v.set(0, in_place ? zero.index_add_(dim, v.in(2), g) : zero.index_add(dim, v.in(2), g));
}

// Slices of g that belong to source, in its sizes.
Tensor source_gradient(Vjp& v, const Tensor& g) {
  return g.index_select(v.args().integer(1), v.in(2)).reshape(v.meta(3).sizes);
}

void index_add_vjp(Vjp& v) {
  v.set(0, v.grad());
  if (!v.need(3)) return;
  Tensor g = source_gradient(v, v.grad());
  Scalar alpha = v.args().has(4) ? v.args().number(4) : Scalar(1);
  v.set(3, alpha == Scalar(1) ? g : g * alpha.conj());
}

void index_copy_vjp(Vjp& v) {
  if (v.need(0)) v.set(0, v.grad().index_fill(v.args().integer(1), v.in(2), 0));
  if (v.need(3)) v.set(3, source_gradient(v, v.grad()));
}

void index_fill_vjp(Vjp& v) {
  const Tensor& g = v.grad();
  int64_t dim = v.args().integer(1);
  if (v.need(0)) v.set(0, g.index_fill(dim, v.in(2), 0));
  if (!v.is_tensor(3) || !v.need(3)) return;
  // An index that occurs twice counts once.
  Tensor filled = zeros_like(g).index_copy(dim, v.in(2), g.index_select(dim, v.in(2)));
  v.set(3, filled.sum());
}

void index_fill_jvp(Jvp& j) {
  Args a = j.call.args;
  const Tensor& t = j.tangent(0);
  Tensor self = t.defined() ? t : zeros_like(j.primal(0));
  if (a[3].is_tensor() && j.tangent(3).defined())
    j.set(0, self.index_fill(a.integer(1), j.primal(2), j.tangent(3)));
  else
    j.set(0, self.index_fill(a.integer(1), j.primal(2), 0));
}

Saves saves_index(const SaveQuery&) { return {.in = 0b100}; }

// The index, where only the gradient of source reads it.
Saves saves_index_for_source(const SaveQuery& q) {
  return {.in = q.need >> 3 & 1 ? uint64_t(0b100) : 0};
}

// ---- index_reduce
void index_reduce_vjp(Vjp& v) {
  int64_t dim = v.args().integer(1);
  bool include_self = v.args().flag(5, true);
  ScatterReduce kind = scatter_reduce_of(v.args().text(4), "index_reduce");
  Tensor index = v.in(2), self = v.in(0), source = v.in(3), result = v.out(0);
  const Tensor& g = v.grad();
  Tensor to_self, to_source;
  if (kind == ScatterReduce::kProd) {
    Tensor safe = self.masked_fill(self.eq(0), 1);
    to_self = g * safe.index_reduce(dim, index, source, "prod", include_self) / safe;
    Tensor zero = source.eq(0);
    Tensor count =
        zeros_like(self).index_add(dim, index, zero.to(self.dtype())).index_select(dim, index);
    Tensor single = zero.logical_and(count.eq(1));
    Tensor without =
        self.index_reduce(dim, index, source.masked_fill(single, 1), "prod", include_self);
    to_source = where(single, (g * without).index_select(dim, index),
                      (g * result).index_select(dim, index) / source.masked_fill(zero, 1));
  } else if (kind == ScatterReduce::kMean) {
    Tensor n = include_self ? ones_like(g) : zeros_like(g);
    n = n.index_add(dim, index, ones_like(source));
    n = n.masked_fill(n.eq(0), 1);
    to_self = g / n;
    to_source = to_self.index_select(dim, index);
  } else {
    Tensor from_self = self.eq(result).to(g.dtype());
    Tensor from_source = source.eq(result.index_select(dim, index)).to(g.dtype());
    Tensor share = g / from_self.index_add(dim, index, from_source);
    to_self = from_self * share;
    to_source = from_source * share.index_select(dim, index);
  }
  v.set(0, include_self ? to_self : to_self.index_fill(dim, index, 0));
  v.set(3, to_source);
}

// ---- embedding
void embedding_infer(Infer& f) {
  const Tensor &weight = f.args.tensor(0), &indices = f.args.tensor(1);
  FX_CHECK(weight.dim() == 2, kShape, "embedding: expected a 2-D weight, got ", weight.dim(), "-D");
  check_index_dtype(indices, "embedding");
  FX_CHECK(!f.args.flag(4), kUnsupported, "embedding: sparse gradients are not supported");
  Dims sizes(indices.sizes().begin(), indices.sizes().end());
  sizes.push_back(weight.size(1));
  f.outs.push_back(Meta(weight.dtype(), sizes, weight.device()));
}

void embedding_vjp(Vjp& v) {
  v.set(0, embedding_dense_backward(v.grad(), v.in(1), v.meta(0).sizes[0], v.args().integer(2, -1),
                                    v.args().flag(3)));
}

void embedding_vmap(Vmapped& v) {
  const Tensor &weight = v.args().tensor(0), &indices = v.args().tensor(1);
  int64_t padding = v.args().integer(2, -1);
  bool scale = v.args().flag(3);
  if (!v.is(0)) {
    v.run({weight, indices, padding, scale, false});
    return;
  }
  if (v.is(1)) {  // one table after another
    int64_t rows = weight.size(1);
    Dims per_table(size_t(indices.dim()), 1);
    per_table[0] = v.size;
    Tensor first = arange(0, v.size * rows, rows, TensorOptions(Dtype::kI64)).reshape(per_table);
    v.call.outs = {embedding(weight.flatten(0, 1), indices + first, -1, scale)};
  } else {
    Tensor y = weight.index_select(1, indices.reshape({-1}));
    Dims sizes = with_batch(v.size, indices.sizes());
    sizes.push_back(weight.size(2));
    v.call.outs = {y.reshape(sizes)};
  }
  v.out_bdims = {0};
}

void embedding_backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &indices = f.args.tensor(1);
  check_index_dtype(indices, "embedding_dense_backward");
  FX_CHECK(g.dim() == indices.dim() + 1, kShape, "embedding_dense_backward: gradient of sizes ",
           g.sizes(), " for indices of sizes ", indices.sizes());
  Dims sizes;
  sizes.push_back(f.args.integer(2));
  sizes.push_back(g.size(-1));
  f.outs.push_back(Meta(g.dtype(), sizes, g.device()));
}

void embedding_backward_vjp(Vjp& v) {
  FX_CHECK(!v.args().flag(4), kAutograd, "embedding: scale_grad_by_freq has no second derivative");
  Tensor indices = v.in(1);
  int64_t padding = v.args().integer(3);
  Tensor g = embedding(v.grad(), indices);
  if (padding >= 0) g = g.masked_fill(indices.eq(padding).unsqueeze(-1), 0);
  v.set(0, g);
}

void one_hot_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  int64_t classes = c.args.integer(1, -1);
  check_index_dtype(x, "one_hot");
  if (classes == -1) {
    FX_CHECK(x.numel() > 0, kValue, "one_hot: num_classes can't be found from an empty tensor");
    Tensor most = std::get<0>(x.reshape({-1}).sort(0, true)).select(0, 0);
    classes = read_item(most).to_int() + 1;
  }
  FX_CHECK(classes > 0 || x.numel() == 0, kValue, "one_hot: expected 1 or more classes, got ",
           classes);
  Dims sizes(x.sizes().begin(), x.sizes().end());
  sizes.push_back(classes);
  Tensor zero = zeros(sizes, TensorOptions(Dtype::kI64).device(x.device()));
  c.outs = {zero.scatter(-1, x.unsqueeze(-1), 1)};
}

}  // namespace

constexpr Op index_select_op{.schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
                             .doc = "Slices along a dimension in the order of a 1-D index.",
                             .traits = kLinearOp,
                             .infer = index_select_infer,
                             .vjp = index_select_vjp,
                             .saves = saves_index,
                             .vmap = index_select_vmap};
constexpr Op index_add_op{
    .schema =
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
        "Tensor",
    .doc = "self with alpha times slice i of source added to slice index[i].",
    .traits = kLinearOp,
    .infer = index_source_infer,
    .vjp = index_add_vjp,
    .saves = saves_index_for_source,
    .vmap = index_write_vmap};
constexpr Op index_copy_op{
    .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    .doc = "self with slice i of source in place of slice index[i].",
    .traits = kLinearOp,
    .infer = index_source_infer,
    .vjp = index_copy_vjp,
    .saves = saves_index,
    .vmap = index_write_vmap};
constexpr Op index_fill_op{
    .schema =
        "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor\n"
        "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .doc = "self with one value in the slices of a 1-D index.",
    .infer = index_fill_infer,
    .vjp = index_fill_vjp,
    .saves = saves_index,
    .jvp = index_fill_jvp,
    .vmap = index_write_vmap};
constexpr Op index_reduce_op{
    .schema =
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
        "include_self=True) -> Tensor",
    .doc = "self with slice i of source reduced (prod, mean, amax, amin) into slice index[i].",
    .infer = index_source_infer,
    .vjp = index_reduce_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b1101, .out = 1}; },
    .vmap = index_write_vmap};
constexpr Op embedding_op{
    .schema =
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
        "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    .doc = "Rows of a table; row padding_idx gets no gradient.",
    .traits = kLinearOp,
    .infer = embedding_infer,
    .vjp = embedding_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; },
    .vmap = embedding_vmap};
constexpr Op embedding_dense_backward_op{
    .schema =
        "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
        "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    .doc = "The gradient of embedding's table.",
    .traits = kLinearOp,
    .infer = embedding_backward_infer,
    .vjp = embedding_backward_vjp,
    .saves = [](const SaveQuery&) -> Saves { return {.in = 0b10}; }};
constexpr Op one_hot_op{.schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor",
                        .doc =
                            "int64 zeros with a one at each class number, in a new last "
                            "dimension.",
                        .kind = OpKind::kComposite,
                        .body = one_hot_body};

}  // namespace fornax
