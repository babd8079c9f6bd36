// Views: a shape rule and a batching rule each. Gradients, writes through them and replay follow
// from the recorded step; those with a cheaper gradient than a scatter into zeros give it.
#include "fornax/ops/view.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

namespace fornax {

Dims infer_size(IntArrayRef shape, int64_t numel, std::string_view call) {
  Dims sizes(shape.begin(), shape.end());
  int64_t known = 1, unknown = -1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    FX_CHECK(sizes[d] >= -1, kValue, call, ": size ", sizes[d], " at dimension ", d,
             " is negative");
    if (sizes[d] == -1) {
      FX_CHECK(unknown < 0, kShape, call, ": only one size can be -1, got ", shape);
      unknown = int64_t(d);
    } else {
      FX_CHECK(!__builtin_mul_overflow(known, sizes[d], &known), kShape, call, ": sizes ", shape,
               " overflow");
    }
  }
  if (unknown >= 0) {
    FX_CHECK(known > 0 && numel % known == 0, kShape, call, ": ", numel,
             " elements don't fit sizes ", shape);
    sizes[size_t(unknown)] = numel / known;
  } else {
    FX_CHECK(known == numel, kShape, call, ": ", numel, " elements don't fit sizes ", shape);
  }
  return sizes;
}

bool view_strides(const Dims& sizes, const Dims& strides, const Dims& wanted, Dims& out) {
  out.assign(wanted.size(), 0);
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  if (numel == 0) {
    out = contiguous_strides(wanted);
    return true;
  }
  // Walk both shapes from the inside; each run of old dimensions that lie one after another covers
  // whole new ones.
  int64_t at = int64_t(wanted.size()) - 1;
  int64_t base = sizes.empty() ? 1 : strides.back();
  int64_t old_run = 1, new_run = 1;
  for (int64_t d = int64_t(sizes.size()) - 1; d >= 0; --d) {
    old_run *= sizes[size_t(d)];
    bool run_ends =
        d == 0 || (sizes[size_t(d - 1)] != 1 && strides[size_t(d - 1)] != old_run * base);
    if (!run_ends) continue;
    while (at >= 0 && (new_run < old_run || wanted[size_t(at)] == 1)) {
      out[size_t(at)] = new_run * base;
      new_run *= wanted[size_t(at)];
      --at;
    }
    if (new_run != old_run) return false;
    if (d > 0) {
      base = strides[size_t(d - 1)];
      old_run = new_run = 1;
    }
  }
  for (; at >= 0; --at) out[size_t(at)] = new_run * base;  // 0-dim to sizes of ones
  return true;
}

void shift_dims_rule(Vmapped& v, std::initializer_list<int> places) {
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  for (int at : places)
    args[size_t(at)] = Arg(wrap_dim(v.args().integer(size_t(at)), v.dim(0), v.call.op.name()) + 1);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

void shift_dim_rule(Vmapped& v) { shift_dims_rule(v, {1}); }

Dims with_batch(int64_t size, IntArrayRef rest) {
  Dims d;
  d.push_back(size);
  d.append(rest.begin(), rest.end());
  return d;
}

namespace {

void select_infer(Infer& f) {
  Meta m = view_meta_of(f.args.tensor(0));
  FX_CHECK(!m.sizes.empty(), kIndex, "select: a 0-dim tensor can't be indexed");
  size_t d = size_t(wrap_dim(f.args.integer(1), int64_t(m.sizes.size()), "select"));
  int64_t n = m.sizes[d], i = f.args.integer(2);
  FX_CHECK(i >= -n && i < n, kIndex, "select: index ", i, " is out of range for dimension ", d,
           " of size ", n);
  m.offset += (i < 0 ? i + n : i) * m.strides[d];
  m.sizes.erase(m.sizes.begin() + d);
  m.strides.erase(m.strides.begin() + d);
  f.outs.push_back(std::move(m));
}

void view_infer(Infer& f) {
  Meta m = view_meta_of(f.args.tensor(0));
  Dims wanted = infer_size(f.args.ints(1), f.args.tensor(0).numel(), "view"), strides;
  FX_CHECK(view_strides(m.sizes, m.strides, wanted, strides), kShape, "view: sizes ", m.sizes,
           " with strides ", m.strides, " can't be viewed as ", wanted,
           " without a copy; use reshape()");
  m.sizes = std::move(wanted);
  m.strides = std::move(strides);
  f.outs.push_back(std::move(m));
}

void permute_infer(Infer& f) {
  Meta m = view_meta_of(f.args.tensor(0));
  IntArrayRef dims = f.args.ints(1);
  size_t rank = m.sizes.size();
  FX_CHECK(dims.size() == rank, kShape, "permute: ", dims.size(), " dimensions given for a ", rank,
           "-D tensor");
  Dims sizes(rank), strides(rank);
  uint64_t seen = 0;
  for (size_t d = 0; d < rank; ++d) {
    size_t from = size_t(wrap_dim(dims[d], int64_t(rank), "permute"));
    FX_CHECK(!(seen >> from & 1), kValue, "permute: dimension ", from, " is repeated in ", dims);
    seen |= uint64_t(1) << from;
    sizes[d] = m.sizes[from];
    strides[d] = m.strides[from];
  }
  m.sizes = std::move(sizes);
  m.strides = std::move(strides);
  f.outs.push_back(std::move(m));
}

void permute_vjp(Vjp& v) {
  IntArrayRef dims = v.args().ints(1);
  Dims back(dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    back[size_t(wrap_dim(dims[d], int64_t(dims.size())))] = int64_t(d);
  v.set(0, v.grad().permute(back));
}

void permute_vmap(Vmapped& v) {
  Dims dims;
  dims.push_back(0);
  for (int64_t d : v.args().ints(1)) dims.push_back(wrap_dim(d, v.dim(0), "permute") + 1);
  v.run({v.args()[0], dims});
}

void expand_infer(Infer& f) {
  Meta m = view_meta_of(f.args.tensor(0));
  IntArrayRef wanted = f.args.ints(1);
  FX_CHECK(wanted.size() >= m.sizes.size(), kShape, "expand: sizes ", wanted,
           " have fewer dimensions than ", m.sizes);
  size_t shift = wanted.size() - m.sizes.size();
  Dims sizes(wanted.begin(), wanted.end()), strides(wanted.size(), 0);
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (d < shift) {
      FX_CHECK(sizes[d] >= 0, kValue, "expand: size ", sizes[d], " of the new dimension ", d,
               " is negative");
      continue;
    }
    int64_t have = m.sizes[d - shift];
    if (sizes[d] == -1) sizes[d] = have;
    FX_CHECK(sizes[d] == have || (have == 1 && sizes[d] >= 0), kShape, "expand: ", m.sizes,
             " can't be expanded to ", wanted, ": size ", have, " at dimension ", d - shift,
             " is not 1");
    strides[d] = sizes[d] == have ? m.strides[d - shift] : 0;
  }
  checked_numel(sizes);
  m.sizes = std::move(sizes);
  m.strides = std::move(strides);
  f.outs.push_back(std::move(m));
}

void detach_infer(Infer& f) { f.outs.push_back(view_meta_of(f.args.tensor(0))); }

void identity_vmap(Vmapped& v) { v.run({v.args()[0]}); }

}  // namespace

constexpr Op view_op{
    .schema = "view(Tensor(a) self, int[] size) -> Tensor(a)",
    .doc = "The same elements under other sizes; one size may be -1. Needs compatible strides.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = view_infer,
    .vjp = [](Vjp& v) { v.set(0, v.grad().reshape(v.meta(0).sizes)); },
    .vmap =
        [](Vmapped& v) {
          const Tensor& x = v.args().tensor(0);
          int64_t n = v.size ? x.numel() / v.size : 0;
          Dims sizes = infer_size(v.args().ints(1), n, "view");
          v.run({x, with_batch(v.size, sizes)});
        }};
constexpr Op select_op{.schema = "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
                       .doc = "One slice along a dimension, which is dropped.",
                       .kind = OpKind::kView,
                       .traits = kLinearOp,
                       .infer = select_infer,
                       .vmap = shift_dim_rule};
constexpr Op permute_op{.schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
                        .doc = "Dimensions in another order.",
                        .kind = OpKind::kView,
                        .traits = kLinearOp,
                        .infer = permute_infer,
                        .vjp = permute_vjp,
                        .vmap = permute_vmap};
constexpr Op expand_op{
    .schema =
        "expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)\n"
        "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    .doc = "Size-1 dimensions repeated without a copy; -1 keeps a size.",
    .kind = OpKind::kView,
    .traits = kLinearOp | kSharedWrite,
    .infer = expand_infer,
    .vjp = [](Vjp& v) { v.set(0, sum_to_size(v.grad(), v.meta(0).sizes)); },
    .vmap =
        [](Vmapped& v) {
          IntArrayRef wanted = v.args().ints(1);
          Tensor x = v.args().tensor(0);
          Dims sizes = with_batch(v.size, wanted), in;
          in.push_back(v.size);
          for (int64_t d = v.dim(0); d < int64_t(wanted.size()); ++d) in.push_back(1);
          in.append(x.sizes().begin() + 1, x.sizes().end());
          v.run({x.reshape(in), sizes, false});
        }};
constexpr Op detach_op{.schema = "detach(Tensor(a) self) -> Tensor(a)",
                       .doc = "The same elements without history.",
                       .kind = OpKind::kView,
                       .traits = kNoGrad,
                       .infer = detach_infer,
                       .vmap = identity_vmap};

}  // namespace fornax
