// Matrix products: mm, bmm, addmm, baddbmm and linear have kernels; the others are made of them.
#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// The conjugate transpose of the last two dimensions.
Tensor hermitian(const Tensor& t) {
  Tensor r = t.transpose(-2, -1);
  return r.is_complex() ? r.conj() : r;
}

void check_same_dtype(std::string_view name, const Tensor& a, const Tensor& b) {
  FX_CHECK(a.dtype() == b.dtype(), kType, name, ": expected operands of one dtype, got ", a.dtype(),
           " and ", b.dtype(), "; convert one with to()");
  FX_CHECK(a.dtype() != Dtype::kBool, kType, name,
           ": bool tensors have no matrix product; convert them with to()");
}

void check_product(std::string_view name, const Tensor& a, const Tensor& b, int64_t rank) {
  FX_CHECK(a.dim() == rank && b.dim() == rank, kShape, name, ": expected ", rank,
           "-D operands, got sizes ", a.sizes(), " and ", b.sizes());
  FX_CHECK(rank == 2 || a.sizes()[0] == b.sizes()[0], kShape, name, ": batch sizes of ", a.sizes(),
           " and ", b.sizes(), " differ");
  FX_CHECK(a.size(-1) == b.size(-2), kShape, name, ": sizes ", a.sizes(), " and ", b.sizes(),
           " can't be multiplied: ", a.size(-1), " columns against ", b.size(-2), " rows");
  check_same_dtype(name, a, b);
}

Dims product_sizes(const Tensor& a, const Tensor& b) {
  Dims sizes(a.sizes().begin(), a.sizes().end());
  sizes.back() = b.size(-1);
  return sizes;
}

void mm_infer(Infer& f) {
  const Tensor &a = f.args.tensor(0), &b = f.args.tensor(1);
  check_product("mm", a, b, 2);
  f.outs.push_back(Meta(a.dtype(), product_sizes(a, b), a.device()));
}
void bmm_infer(Infer& f) {
  const Tensor &a = f.args.tensor(0), &b = f.args.tensor(1);
  check_product("bmm", a, b, 3);
  f.outs.push_back(Meta(a.dtype(), product_sizes(a, b), a.device()));
}

void product_vjp(Vjp& v) {
  if (v.need(0)) v.set(0, matmul(v.grad(), hermitian(v.in(1))));
  if (v.need(1)) v.set(1, matmul(hermitian(v.in(0)), v.grad()));
}
Saves product_saves(const SaveQuery& q) {
  return {(q.need & 1 ? 2u : 0u) | (q.need & 2 ? 1u : 0u), 0};
}
// d(ab) = da b + a db
void product_jvp(Jvp& j) {
  Tensor sum;
  if (j.tangent(0).defined()) sum = matmul(j.tangent(0), j.primal(1));
  if (j.tangent(1).defined()) {
    Tensor t = matmul(j.primal(0), j.tangent(1));
    sum = sum.defined() ? sum + t : t;
  }
  j.set(0, sum);
}

void mm_vmap(Vmapped& v) {
  const Tensor &a = v.args().tensor(0), &b = v.args().tensor(1);
  FX_CHECK(v.dim(0) == 2 && v.dim(1) == 2, kShape, "mm: expected 2-D operands under vmap, got ",
           v.dim(0), "-D and ", v.dim(1), "-D");
  v.call.outs = {matmul(a, b)};  // [B, m, k] or [m, k] by [B, k, n] or [k, n]
  v.out_bdims = {0};
}
void bmm_vmap(Vmapped& v) {
  Tensor a = v.dim0(0), b = v.dim0(1);
  Dims sizes(a.sizes().begin(), a.sizes().end());
  sizes.back() = b.size(-1);
  Tensor y = bmm(a.flatten(0, 1), b.flatten(0, 1));
  v.call.outs = {y.reshape(sizes)};
  v.out_bdims = {0};
}

// ---- beta * self + alpha * product
// --------------------------------------------------------------------------------
bool is_number(const Scalar& s, int value) { return s == Scalar(value); }

// Factors of integer products lose their fraction, as in PyTorch.
Tensor weighted_sum(const Tensor& self, const Tensor& product, Scalar beta, Scalar alpha) {
  if (is_integral(product.dtype())) {
    beta = Scalar(beta.to_int());
    alpha = Scalar(alpha.to_int());
  }
  Tensor p = is_number(alpha, 1) ? product : product * alpha;
  if (is_number(beta, 0)) return self.dim() <= p.dim() ? p : p.expand_as(self);
  return is_number(beta, 1) ? self + p : self * beta + p;
}

void check_factors(const Infer& f, Dtype d) {
  for (size_t i : {size_t(3), size_t(4)}) {
    if (!f.args.has(i)) continue;
    FX_CHECK(is_complex(d) || !f.args.number(i).is_complex(), kType, f.op.name(), ": ",
             i == 3 ? "beta" : "alpha", " must be real for tensors of ", d);
  }
}

void add_product_infer(Infer& f, int64_t rank) {
  const Tensor &self = f.args.tensor(0), &a = f.args.tensor(1), &b = f.args.tensor(2);
  check_product(f.op.name(), a, b, rank);
  check_same_dtype(f.op.name(), self, a);
  check_factors(f, a.dtype());
  Dims sizes = product_sizes(a, b);
  Dims joined = broadcast_sizes(self.sizes(), sizes, f.op.name());
  FX_CHECK(joined == sizes, kShape, f.op.name(), ": self of sizes ", self.sizes(),
           " does not broadcast to the product's ", sizes);
  f.outs.push_back(Meta(a.dtype(), sizes, a.device()));
}
void addmm_infer(Infer& f) { add_product_infer(f, 2); }
void baddbmm_infer(Infer& f) { add_product_infer(f, 3); }

Scalar factor(Args args, size_t i) { return args.has(i) ? args.number(i) : Scalar(1); }

Tensor times(const Tensor& t, const Scalar& s) { return is_number(s, 1) ? t : t * s.conj(); }

void add_product_vjp(Vjp& v) {
  Scalar beta = factor(v.args(), 3), alpha = factor(v.args(), 4);
  if (v.need(0)) v.set(0, times(v.grad(), beta));
  if (v.need(1)) v.set(1, times(matmul(v.grad(), hermitian(v.in(2))), alpha));
  if (v.need(2)) v.set(2, times(matmul(hermitian(v.in(1)), v.grad()), alpha));
}
Saves add_product_saves(const SaveQuery& q) {
  return {(q.need & 2 ? 4u : 0u) | (q.need & 4 ? 2u : 0u), 0};
}
void add_product_body(Call& c) {
  Args a = c.args;
  c.outs = {
      weighted_sum(a.tensor(0), matmul(a.tensor(1), a.tensor(2)), factor(a, 3), factor(a, 4))};
}

void addbmm_body(Call& c) {
  Args a = c.args;
  check_product("addbmm", a.tensor(1), a.tensor(2), 3);
  // The sum over the batch is one product: [m, b k] by [b k, n].
  const Tensor &x = a.tensor(1), &y = a.tensor(2);
  Tensor left = x.permute({1, 0, 2}).reshape({x.size(1), x.size(0) * x.size(2)});
  Tensor right = y.reshape({y.size(0) * y.size(1), y.size(2)});
  c.outs = {addmm(a.tensor(0), left, right, factor(a, 3), factor(a, 4))};
}
void addmv_body(Call& c) {
  Args a = c.args;
  c.outs = {weighted_sum(a.tensor(0), mv(a.tensor(1), a.tensor(2)), factor(a, 3), factor(a, 4))};
}
void addr_body(Call& c) {
  Args a = c.args;
  c.outs = {weighted_sum(a.tensor(0), outer(a.tensor(1), a.tensor(2)), factor(a, 3), factor(a, 4))};
}

// ---- vectors and broadcasting
// -------------------------------------------------------------------------------------
void mv_body(Call& c) {
  const Tensor &m = c.args.tensor(0), &x = c.args.tensor(1);
  FX_CHECK(m.dim() == 2 && x.dim() == 1, kShape, "mv: expected a matrix and a vector, got sizes ",
           m.sizes(), " and ", x.sizes());
  FX_CHECK(m.size(1) == x.size(0), kShape, "mv: sizes ", m.sizes(), " and ", x.sizes(),
           " can't be multiplied");
  c.outs = {mm(m, x.unsqueeze(1)).squeeze(1)};
}

void check_vectors(std::string_view name, const Tensor& a, const Tensor& b) {
  FX_CHECK(a.dim() == 1 && b.dim() == 1, kShape, name, ": expected two vectors, got sizes ",
           a.sizes(), " and ", b.sizes());
}

Tensor dot_of(std::string_view name, const Tensor& a, const Tensor& b) {
  check_vectors(name, a, b);
  FX_CHECK(a.size(0) == b.size(0), kShape, name, ": vectors of ", a.size(0), " and ", b.size(0),
           " elements");
  check_same_dtype(name, a, b);
  return mm(a.unsqueeze(0), b.unsqueeze(1)).reshape(IntArrayRef());
}
void dot_body(Call& c) { c.outs = {dot_of("dot", c.args.tensor(0), c.args.tensor(1))}; }
void vdot_body(Call& c) {
  const Tensor& a = c.args.tensor(0);
  c.outs = {dot_of("vdot", a.is_complex() ? a.conj() : a, c.args.tensor(1))};
}
void outer_body(Call& c) {
  check_vectors("outer", c.args.tensor(0), c.args.tensor(1));
  c.outs = {c.args.tensor(0).unsqueeze(1) * c.args.tensor(1).unsqueeze(0)};
}
void inner_body(Call& c) {
  const Tensor &a = c.args.tensor(0), &b = c.args.tensor(1);
  if (a.dim() == 0 || b.dim() == 0) {
    c.outs = {a * b};
    return;
  }
  FX_CHECK(a.size(-1) == b.size(-1), kShape, "inner: last sizes of ", a.sizes(), " and ", b.sizes(),
           " differ");
  Dims sizes(a.sizes().begin(), a.sizes().end() - 1);
  sizes.append(b.sizes().begin(), b.sizes().end() - 1);
  int64_t k = a.size(-1), m = k ? a.numel() / k : 0, n = k ? b.numel() / k : 0;
  c.outs = {mm(a.reshape({m, k}), b.reshape({n, k}).t()).reshape(sizes)};
}

// Leading dimensions of x folded into one: valid when the other operand has none.
Tensor fold_left(const Tensor& a, const Tensor& b) {
  Dims sizes(a.sizes().begin(), a.sizes().end());
  sizes.back() = b.size(1);
  int64_t k = a.size(-1), rows = 1;
  for (int64_t d = 0; d + 1 < a.dim(); ++d) rows *= a.sizes()[size_t(d)];
  return mm(a.reshape({rows, k}), b).reshape(sizes);
}

Tensor batched(const Tensor& a, const Tensor& b) {
  IntArrayRef a_batch = a.sizes().slice(0, size_t(a.dim()) - 2),
              b_batch = b.sizes().slice(0, size_t(b.dim()) - 2);
  Dims batch = broadcast_sizes(a_batch, b_batch, "matmul");
  int64_t n = 1;
  for (int64_t s : batch) n *= s;
  auto flat = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.push_back(t.size(-2));
    sizes.push_back(t.size(-1));
    return t.expand(sizes).reshape({n, t.size(-2), t.size(-1)});
  };
  Dims sizes = batch;
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return bmm(flat(a), flat(b)).reshape(sizes);
}

void matmul_body(Call& c) {
  const Tensor &a = c.args.tensor(0), &b = c.args.tensor(1);
  FX_CHECK(a.dim() > 0 && b.dim() > 0, kShape,
           "matmul: both operands need at least one dimension, got sizes ", a.sizes(), " and ",
           b.sizes());
  int64_t inner_b = b.dim() == 1 ? b.size(0) : b.size(-2);
  FX_CHECK(a.size(-1) == inner_b, kShape, "matmul: sizes ", a.sizes(), " and ", b.sizes(),
           " can't be multiplied: ", a.size(-1), " against ", inner_b);
  check_same_dtype("matmul", a, b);
  if (a.dim() == 1 && b.dim() == 1) {
    c.outs = {dot(a, b)};
  } else if (a.dim() == 2 && b.dim() == 2) {
    c.outs = {mm(a, b)};
  } else if (b.dim() == 1) {
    c.outs = {matmul(a, b.unsqueeze(1)).squeeze(-1)};
  } else if (a.dim() == 1) {
    c.outs = {matmul(a.unsqueeze(0), b).squeeze(-2)};
  } else if (b.dim() == 2) {
    c.outs = {fold_left(a, b)};
  } else {
    c.outs = {batched(a, b)};
  }
}

// ---- linear
// -------------------------------------------------------------------------------------------------------
void linear_infer(Infer& f) {
  const Tensor &x = f.args.tensor(0), &w = f.args.tensor(1), &b = f.args.optional(2);
  FX_CHECK(x.dim() > 0, kShape, "linear: input needs at least one dimension");
  FX_CHECK(w.dim() == 2 || w.dim() == 1, kShape,
           "linear: expected a weight of sizes [out, in] or [in], got ", w.sizes());
  FX_CHECK(x.size(-1) == w.size(-1), kShape, "linear: input of sizes ", x.sizes(), " has ",
           x.size(-1), " features, the weight of sizes ", w.sizes(), " takes ", w.size(-1));
  check_same_dtype("linear", x, w);
  Dims sizes(x.sizes().begin(), x.sizes().end());
  if (w.dim() == 1)
    sizes.pop_back();
  else
    sizes.back() = w.size(0);
  if (b.defined()) {
    check_same_dtype("linear", x, b);
    Dims joined = broadcast_sizes(b.sizes(), sizes, "linear");
    FX_CHECK(joined == sizes, kShape, "linear: bias of sizes ", b.sizes(),
             " does not fit the result's ", sizes);
  }
  f.outs.push_back(Meta(x.dtype(), sizes, x.device()));
}

void linear_body(Call& c) {
  const Tensor &x = c.args.tensor(0), &w = c.args.tensor(1), &b = c.args.optional(2);
  Tensor y = matmul(x, w.dim() == 2 ? w.t() : w);
  c.outs = {b.defined() ? y + b : y};
}

void linear_vjp(Vjp& v) {
  const Tensor& g = v.grad();
  bool matrix = v.meta(1).sizes.size() == 2;
  if (v.need(0)) {
    Tensor w = v.in(1);
    if (w.is_complex()) w = w.conj();
    v.set(0, matrix ? matmul(g, w) : g.unsqueeze(-1) * w);
  }
  if (v.need(1)) {
    Tensor x = v.in(0);
    int64_t features = x.size(-1), count = 1;
    for (int64_t d = 0; d + 1 < x.dim(); ++d) count *= x.sizes()[size_t(d)];
    if (x.is_complex()) x = x.conj();
    Tensor rows = x.reshape({count, features});
    if (matrix) {
      int64_t outs = v.meta(1).sizes[0];
      v.set(1, mm(g.reshape({rows.size(0), outs}).t(), rows));
    } else {
      v.set(1, mv(rows.t(), g.reshape({rows.size(0)})));
    }
  }
  if (v.need(2)) v.set(2, g);
}
Saves linear_saves(const SaveQuery& q) {
  return {(q.need & 1 ? 2u : 0u) | (q.need & 2 ? 1u : 0u), 0};
}
void linear_vmap(Vmapped& v) {
  Tensor x = v.args().tensor(0), w = v.args().tensor(1);
  if (!v.is(1) && !v.is(2)) {
    v.run({x, w, v.args()[2]});
    return;
  }
  Tensor y;
  if (!v.is(1)) {
    y = linear(x, w);
  } else {
    // [B, ..., in] against one weight per batch element.
    Tensor batch = v.dim0(0);
    int64_t features = batch.size(-1);
    Tensor rows =
        batch.reshape({v.size, features ? batch.numel() / (v.size * features) : 0, features});
    bool matrix = v.dim(1) == 2;
    Tensor weight = matrix ? w.transpose(-2, -1) : w.unsqueeze(-1);
    Dims sizes(batch.sizes().begin(), batch.sizes().end());
    if (matrix)
      sizes.back() = w.size(1);
    else
      sizes.pop_back();
    y = bmm(rows, weight).reshape(sizes);
  }
  const Tensor& b = v.args().optional(2);
  if (b.defined()) {
    if (v.is(2)) {
      Dims sizes;
      sizes.push_back(v.size);
      for (int64_t d = v.dim(2); d < y.dim() - 1; ++d) sizes.push_back(1);
      sizes.append(b.sizes().begin() + 1, b.sizes().end());
      y = (v.is(0) || v.is(1) ? y : y.unsqueeze(0)) + b.reshape(sizes);
    } else {
      y = y + b;
    }
  }
  v.call.outs = {y};
  v.out_bdims = {0};
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op mm_op{.schema = "mm(Tensor self, Tensor mat2) -> Tensor",
                   .doc = "Product of two matrices [m, k] and [k, n].",
                   .infer = mm_infer,
                   .vjp = product_vjp,
                   .saves = product_saves,
                   .jvp = product_jvp,
                   .vmap = mm_vmap};
constexpr Op bmm_op{.schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
                    .doc = "Products of two batches of matrices [b, m, k] and [b, k, n].",
                    .infer = bmm_infer,
                    .vjp = product_vjp,
                    .saves = product_saves,
                    .jvp = product_jvp,
                    .vmap = bmm_vmap};
constexpr Op addmm_op{
    .schema =
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha * (mat1 @ mat2); self broadcasts. With beta 0, self is not read.",
    .kind = OpKind::kComposite,
    .infer = addmm_infer,
    .body = add_product_body,
    .vjp = add_product_vjp,
    .saves = add_product_saves};
constexpr Op baddbmm_op{.schema =
                            "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, "
                            "Scalar alpha=1) -> Tensor",
                        .doc = "beta * self + alpha * bmm(batch1, batch2).",
                        .kind = OpKind::kComposite,
                        .infer = baddbmm_infer,
                        .body = add_product_body,
                        .vjp = add_product_vjp,
                        .saves = add_product_saves};
constexpr Op addbmm_op = composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "beta * self + alpha * the sum of the products of a batch.", addbmm_body);
constexpr Op addmv_op = composite(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "beta * self + alpha * (mat @ vec).", addmv_body);
constexpr Op addr_op = composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "beta * self + alpha * outer(vec1, vec2).", addr_body);
constexpr Op mv_op =
    composite("mv(Tensor self, Tensor vec) -> Tensor", "Matrix times vector.", mv_body);
constexpr Op dot_op = composite("dot(Tensor self, Tensor tensor) -> Tensor",
                                "Sum of the products of two vectors.", dot_body);
constexpr Op vdot_op =
    composite("vdot(Tensor self, Tensor other) -> Tensor", "dot(conj(self), other).", vdot_body);
constexpr Op outer_op =
    composite("outer(Tensor self, Tensor vec2) -> Tensor\nger(Tensor self, Tensor vec2) -> Tensor",
              "All products of the elements of two vectors.", outer_body);
constexpr Op inner_op = composite("inner(Tensor self, Tensor other) -> Tensor",
                                  "Products summed over the last dimension of both.", inner_body);
constexpr Op matmul_op = composite(
    "matmul(Tensor self, Tensor other) -> Tensor",
    "Matrix product with broadcasting batches; vectors are rows on the left, columns on the right.",
    matmul_body);
constexpr Op linear_op{.schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
                       .doc = "input @ weight.T + bias over the last dimension.",
                       .kind = OpKind::kComposite,
                       .infer = linear_infer,
                       .body = linear_body,
                       .vjp = linear_vjp,
                       .saves = linear_saves,
                       .vmap = linear_vmap};

}  // namespace fornax
