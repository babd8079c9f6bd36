// Picking and placing single elements along a dimension: gather and the scatter family.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/index.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {

ScatterReduce scatter_reduce_of(std::string_view text, std::string_view call) {
  if (text == "sum" || text == "add") return ScatterReduce::kSum;
  if (text == "prod" || text == "multiply") return ScatterReduce::kProd;
  if (text == "mean") return ScatterReduce::kMean;
  if (text == "amax") return ScatterReduce::kMax;
  if (text == "amin") return ScatterReduce::kMin;
  fail(ErrorKind::kValue, call, ": reduce is \"", text,
       "\", expected one of sum, prod, mean, amax, amin (add, multiply for scatter)");
}

void check_index_dtype(const Tensor& index, std::string_view call) {
  FX_CHECK(is_integer(index.dtype()), kType, call, ": expected integer indices, got ",
           index.dtype());
}

void index_out_of_range(std::string_view call, int64_t index, int64_t dim, int64_t size) {
  fail(ErrorKind::kIndex, call, ": index ", index, " is out of range for dimension ", dim,
       " of size ", size);
}

Tensor scatter_into_zeros(const Tensor& g, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  Tensor zero = zeros(sizes, TensorOptions(g.dtype()).device(g.device()));
  if (thread_state.top || thread_state.grad_mode) return zero.scatter_add(dim, index, g);
  return zero.scatter_add_(dim, index, g);
}

void run_along_dim(Vmapped& v, std::initializer_list<int> tensors) {
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  SmallVec<Tensor, 4> kept;
  kept.reserve(tensors.size());
  for (int at : tensors) {
    if (!args[size_t(at)].is_tensor()) continue;
    Tensor t = v.dim0(at);
    kept.push_back(v.dim(at) == 0 ? t.unsqueeze(1) : t);
    args[size_t(at)] = Arg(kept.back());
  }
  args[1] = Arg(wrap_dim(v.args().integer(1), v.dim(0), v.call.op.name()) + 1);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

namespace {

// Sizes as loops see them: 0-dim tensors are 1-D of one element.
Dims loop_sizes(const Tensor& t) {
  Dims sizes(t.sizes().begin(), t.sizes().end());
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

// The index fits inside `outer` in every dimension, except `dim` (-1: no exception).
void check_fits(const Tensor& index, const Tensor& outer, int64_t dim, const char* what,
                std::string_view call) {
  if (index.numel() == 0) return;  // of any rank
  Dims inner = loop_sizes(index), sizes = loop_sizes(outer);
  FX_CHECK(inner.size() == sizes.size(), kShape, call, ": index has ", index.dim(), " dimensions, ",
           what, " ", outer.dim());
  for (size_t d = 0; d < sizes.size(); ++d)
    FX_CHECK(int64_t(d) == dim || inner[d] <= sizes[d], kShape, call, ": index of sizes ",
             index.sizes(), " exceeds ", what, " of sizes ", outer.sizes(), " at dimension ", d);
}

void gather_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &index = f.args.tensor(2);
  int64_t dim = wrap_dim(f.args.integer(1), x.dim(), "gather");
  check_index_dtype(index, "gather");
  check_fits(index, x, dim, "self", "gather");
  f.outs.push_back(Meta(x.dtype(), index.sizes(), x.device()));
}

void gather_vmap(Vmapped& v) {
  run_along_dim(v, {0, 2});
  if (v.dim(2) == 0) v.call.outs[0] = v.call.outs[0].squeeze(1);
}

// scatter, scatter_add, scatter_reduce: (self, dim, index, src, ...).
void scatter_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &index = f.args.tensor(2);
  std::string_view name = f.op.name();
  int64_t dim = wrap_dim(f.args.integer(1), x.dim(), name);
  check_index_dtype(index, name);
  check_fits(index, x, dim, "self", name);
  if (f.args[3].is_tensor()) {
    const Tensor& src = f.args.tensor(3);
    check_fits(index, src, -1, "src", name);
    FX_CHECK(src.dtype() == x.dtype(), kType, name, ": src is of ", src.dtype(), ", self of ",
             x.dtype());
  }
  if (f.args.has(4) && f.args[4].tag == Tag::kString) scatter_reduce_of(f.args.text(4), name);
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

void scatter_vmap(Vmapped& v) {
  run_along_dim(v, {0, 2, 3});
  if (v.dim(0) == 0) v.call.outs[0] = v.call.outs[0].squeeze(1);
}

// The gradient of src: its parts beyond the index were not read.
Tensor src_gradient(Vjp& v, const Tensor& g, const Tensor& index) {
  Tensor r = g.gather(v.args().integer(1), index);
  const Dims& want = v.meta(3).sizes;
  for (size_t d = 0; d < want.size(); ++d) {
    Dims sizes(r.sizes().begin(), r.sizes().end());
    if (sizes[d] == want[d]) continue;
    sizes[d] = want[d] - sizes[d];
    r = cat({r, zeros(sizes, TensorOptions(r.dtype()).device(r.device()))}, int64_t(d));
  }
  return r;
}

void scatter_vjp(Vjp& v) {
  Tensor index = v.in(2);
  const Tensor& g = v.grad();
  if (v.args().has(4)) {
    FX_CHECK(scatter_reduce_of(v.args().text(4), "scatter") == ScatterReduce::kSum, kAutograd,
             "scatter: reduce=\"multiply\" has no gradient; use scatter_reduce()");
    v.set(0, g);
  } else if (v.need(0)) {
    v.set(0, g.scatter(v.args().integer(1), index, 0));
  }
  if (v.is_tensor(3) && v.need(3)) v.set(3, src_gradient(v, g, index));
}

Tensor tangent_or_zeros(const Jvp& j, int arg) {
  const Tensor& t = j.tangent(arg);
  return t.defined() ? t : zeros_like(j.primal(arg));
}

void scatter_jvp(Jvp& j) {
  Args a = j.call.args;
  Tensor self = tangent_or_zeros(j, 0);
  int64_t dim = a.integer(1);
  const Tensor& index = j.primal(2);
  bool from_tensor = a[3].is_tensor();
  if (a.has(4)) {
    FX_CHECK(scatter_reduce_of(a.text(4), "scatter") == ScatterReduce::kSum, kAutograd,
             "scatter: reduce=\"multiply\" has no derivative; use scatter_reduce()");
    j.set(0, from_tensor ? self.scatter_add(dim, index, tangent_or_zeros(j, 3)) : self);
    return;
  }
  j.set(0, from_tensor ? self.scatter(dim, index, tangent_or_zeros(j, 3))
                       : self.scatter(dim, index, 0));
}

void scatter_add_vjp(Vjp& v) {
  v.set(0, v.grad());
  if (v.need(3)) v.set(3, src_gradient(v, v.grad(), v.in(2)));
}

void take_along_dim_body(Call& c) {
  const Tensor &x = c.args.tensor(0), &index = c.args.tensor(1);
  check_index_dtype(index, "take_along_dim");
  if (!c.args.has(2)) {
    c.outs = {x.reshape({-1}).gather(0, index.reshape({-1}))};
    return;
  }
  FX_CHECK(x.dim() == index.dim(), kShape, "take_along_dim: self has ", x.dim(),
           " dimensions, indices ", index.dim());
  int64_t dim = wrap_dim(c.args.integer(2), x.dim(), "take_along_dim");
  Dims left(x.sizes().begin(), x.sizes().end()), right(index.sizes().begin(), index.sizes().end());
  if (x.dim() > 0) {
    int64_t length = left[size_t(dim)], picked = right[size_t(dim)];
    left[size_t(dim)] = right[size_t(dim)] = 1;
    Dims common = broadcast_sizes(left, right, "take_along_dim");
    left = right = common;
    left[size_t(dim)] = length;
    right[size_t(dim)] = picked;
  }
  int64_t n = x.dim() ? x.size(dim) : 1;
  Tensor from_front = where(index.lt(0), index + n, index);
  c.outs = {x.expand(left).gather(dim, from_front.expand(right))};
}

Saves saves_index(const SaveQuery&) { return {.in = 0b100}; }

// The index for scatter_add: only the gradient of src reads it.
Saves saves_index_for_src(const SaveQuery& q) {
  return {.in = q.need >> 3 & 1 ? uint64_t(0b100) : 0};
}

}  // namespace

constexpr Op gather_op{
    .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .doc = "out[i][j] = self[index[i][j]][j] for dim 0, and so on.",
    .traits = kLinearOp,
    .infer = gather_infer,
    .vjp =
        [](Vjp& v) {
          v.set(0, scatter_into_zeros(v.grad(), v.meta(0).sizes, v.args().integer(1), v.in(2)));
        },
    .saves = saves_index,
    .vmap = gather_vmap};
constexpr Op scatter_op{
    .schema =
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor\n"
        "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor\n"
        "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor\n"
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
        "Tensor",
    .doc =
        "self with out[index[i][j]][j] = src[i][j] for dim 0, and so on; of several values for "
        "one place the last one stays.",
    .infer = scatter_infer,
    .vjp = scatter_vjp,
    .saves = saves_index,
    .jvp = scatter_jvp,
    .vmap = scatter_vmap};
constexpr Op scatter_add_op{
    .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc = "self with src[i][j] added to out[index[i][j]][j] for dim 0, and so on.",
    .traits = kLinearOp,
    .infer = scatter_infer,
    .vjp = scatter_add_vjp,
    .saves = saves_index_for_src,
    .vmap = scatter_vmap};
constexpr Op take_along_dim_op{
    .schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    .doc = "gather with self and indices broadcast against each other.",
    .kind = OpKind::kComposite,
    .body = take_along_dim_body};

// ---- scatter_reduce
namespace {

struct ReduceCall {
  int64_t dim;
  std::string_view reduce;
  bool include_self;
  Tensor self, index, src, result;
  Tensor again(const Tensor& x, const Tensor& y) const {
    return x.scatter_reduce(dim, index, y, reduce, include_self);
  }
};

void prod_gradients(Vjp& v, const ReduceCall& r) {
  const Tensor& g = v.grad();
  if (v.need(0)) {
    Tensor safe = r.self.masked_fill(r.self.eq(0), 1);
    v.set(0, g * r.again(safe, r.src) / safe);
  }
  if (!v.need(3)) return;
  Tensor zero = r.src.eq(0);
  Tensor count = zeros_like(r.self)
                     .scatter_add(r.dim, r.index, zero.to(r.self.dtype()))
                     .gather(r.dim, r.index);
  Tensor single = zero.logical_and(count.eq(1));
  Tensor without = r.again(r.self, r.src.masked_fill(single, 1));
  v.set(3, where(single, (g * without).gather(r.dim, r.index),
                 (g * r.result).gather(r.dim, r.index) / r.src.masked_fill(zero, 1)));
}

void mean_gradients(Vjp& v, const ReduceCall& r) {
  const Tensor& g = v.grad();
  Tensor n = r.include_self ? ones_like(g) : zeros_like(g);
  n = n.scatter_add(r.dim, r.index,
                    ones(v.meta(3).sizes, TensorOptions(g.dtype()).device(g.device())));
  n = n.masked_fill(n.eq(0), 1);
  v.set(0, g / n);
  if (v.need(3)) v.set(3, (g / n).gather(r.dim, r.index));
}

void extreme_gradients(Vjp& v, const ReduceCall& r) {
  Tensor value = r.result.gather(r.dim, r.index);
  Tensor from_self = r.self.eq(r.result).to(v.grad().dtype());
  Tensor from_src = r.src.eq(value).to(v.grad().dtype());
  Tensor share = v.grad() / from_self.scatter_add(r.dim, r.index, from_src);
  v.set(0, from_self * share);
  if (v.need(3)) v.set(3, from_src * share.gather(r.dim, r.index));
}

void scatter_reduce_vjp(Vjp& v) {
  ReduceCall r{v.args().integer(1), v.args().text(4), v.args().flag(5, true), {}, v.in(2), {}, {}};
  ScatterReduce kind = scatter_reduce_of(r.reduce, "scatter_reduce");
  if (kind == ScatterReduce::kSum) {
    v.set(0, v.grad());
    if (v.need(3)) v.set(3, v.grad().gather(r.dim, r.index));
  } else if (kind == ScatterReduce::kMean) {
    mean_gradients(v, r);
  } else {
    r.self = v.in(0);
    r.src = v.in(3);
    r.result = v.out(0);
    kind == ScatterReduce::kProd ? prod_gradients(v, r) : extreme_gradients(v, r);
  }
  Tensor& self = v.results[0];
  if (!r.include_self && self.defined()) self = self.scatter(r.dim, r.index, 0);
}

Saves scatter_reduce_saves(const SaveQuery& q) {
  ScatterReduce kind = scatter_reduce_of(q.args.text(4), "scatter_reduce");
  if (kind == ScatterReduce::kSum || kind == ScatterReduce::kMean) return {.in = 0b100};
  return {.in = 0b1101, .out = 1};
}

}  // namespace

constexpr Op scatter_reduce_op{
    .schema =
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
        "bool include_self=True) -> Tensor",
    .doc =
        "self with src[i][j] reduced (sum, prod, mean, amax, amin) into out[index[i][j]][j] "
        "for dim 0, and so on.",
    .infer = scatter_infer,
    .vjp = scatter_reduce_vjp,
    .saves = scatter_reduce_saves,
    .vmap = scatter_vmap};

}  // namespace fornax
