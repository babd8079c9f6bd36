// Views of the same bytes as other elements: dtypes, real and imaginary parts, lazy signs.
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

void identity_vmap(Vmapped& v) { v.run({v.args()[0]}); }

void view_as_real_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  FX_CHECK(is_complex(m.dtype), kType, "view_as_real: expected a complex tensor, got ", m.dtype);
  FX_CHECK(!(m.flags & kConjFlag), kUnsupported,
           "view_as_real: a lazy conjugate has no real view; call resolve_conj()");
  m.dtype = to_real(m.dtype);
  m.offset *= 2;
  for (int64_t& s : m.strides) s *= 2;
  m.sizes.push_back(2);
  m.strides.push_back(1);
}

void view_as_complex_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  FX_CHECK(m.dtype == Dtype::kF32 || m.dtype == Dtype::kF64 || m.dtype == Dtype::kF16, kType,
           "view_as_complex: expected float16, float32 or float64, got ", m.dtype);
  FX_CHECK(!m.sizes.empty() && m.sizes.back() == 2, kShape,
           "view_as_complex: expected a last dimension of size 2, got sizes ", m.sizes);
  FX_CHECK(m.strides.back() == 1, kValue,
           "view_as_complex: expected a last dimension of stride 1, got strides ", m.strides);
  m.sizes.pop_back();
  m.strides.pop_back();
  bool even = m.offset % 2 == 0;
  for (int64_t& s : m.strides) {
    even = even && s % 2 == 0;
    s /= 2;
  }
  FX_CHECK(even, kValue,
           "view_as_complex: strides and storage offset must be even, except the last stride");
  m.dtype = to_complex(m.dtype);
  m.offset /= 2;
}

// The same bytes in elements of another size: the last dimension shrinks or grows.
void view_dtype_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  FX_CHECK(!m.flags, kUnsupported,
           "view: a lazy conjugate or negative has no bytes of its own; "
           "call resolve_conj()/resolve_neg()");
  Dtype to = f.args.dtype(1, m.dtype);
  int64_t have = size_of(m.dtype), want = size_of(to);
  m.dtype = to;
  if (have == want) return;
  FX_CHECK(!m.sizes.empty(), kShape, "view: a 0-dim tensor can't be viewed in elements of ", want,
           " instead of ", have, " bytes");
  FX_CHECK(m.strides.back() == 1, kShape,
           "view: elements of another size need a last dimension of stride 1, got strides ",
           m.strides);
  size_t last = m.sizes.size() - 1;
  if (want < have) {
    int64_t ratio = have / want;
    m.sizes[last] *= ratio;
    for (size_t d = 0; d < last; ++d) m.strides[d] *= ratio;
    m.offset *= ratio;
    return;
  }
  int64_t ratio = want / have;
  bool fits = m.sizes[last] % ratio == 0 && m.offset % ratio == 0;
  for (size_t d = 0; d < last; ++d) fits = fits && m.strides[d] % ratio == 0;
  FX_CHECK(fits, kShape, "view: sizes ", m.sizes, ", strides ", m.strides, " and offset ", m.offset,
           " are not whole multiples of ", ratio, " elements");
  m.sizes[last] /= ratio;
  for (size_t d = 0; d < last; ++d) m.strides[d] /= ratio;
  m.offset /= ratio;
}

void view_dtype_vmap(Vmapped& v) {
  bool scalar = v.dim(0) == 0;
  Dtype to = v.args().dtype(1, v.args().tensor(0).dtype());
  FX_CHECK(!scalar || size_of(to) == v.args().tensor(0).element_size(), kShape,
           "view: a 0-dim tensor can't be viewed in elements of another size");
  v.run({v.args()[0], v.args()[1]});
}

void flip_bit(Infer& f, uint16_t bit) {
  f.outs.emplace_back(view_meta_of(f.args.tensor(0))).flags ^= bit;
}

void conj_infer(Infer& f) {
  FX_CHECK(f.args.tensor(0).is_complex(), kType, "_conj: expected a complex tensor, got ",
           f.args.tensor(0).dtype());
  flip_bit(f, kConjFlag);
}

void neg_infer(Infer& f) {
  FX_CHECK(f.args.tensor(0).dtype() != Dtype::kBool, kType,
           "_neg_view: bool has no negative; use logical_not()");
  flip_bit(f, kNegFlag);
}

void real_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  if (!x.is_complex()) {
    c.outs = {x};
    return;
  }
  c.outs = {(x.is_conj() ? x._conj() : x).view_as_real().select(-1, 0)};
}

void imag_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.is_complex(), kType, "imag: expected a complex tensor, got ", x.dtype());
  c.outs = {x.is_conj() ? x._conj().view_as_real().select(-1, 1)._neg_view()
                        : x.view_as_real().select(-1, 1)};
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op view_as_real_op{
    .schema = "view_as_real(Tensor(a) self) -> Tensor(a)",
    .doc = "Complex elements as pairs (re, im) along a new last dimension.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = view_as_real_infer,
    .vjp = [](Vjp& v) { v.set(0, v.grad().contiguous().view_as_complex()); },
    .vmap = identity_vmap};
constexpr Op view_as_complex_op{
    .schema = "view_as_complex(Tensor(a) self) -> Tensor(a)",
    .doc = "Pairs (re, im) along the last dimension as complex elements.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = view_as_complex_infer,
    .vjp = [](Vjp& v) { v.set(0, v.grad().resolve_conj().view_as_real()); },
    .vmap = identity_vmap};
constexpr Op view_dtype_op{
    .schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    .doc = "The same bytes as elements of another dtype; carries no gradient.",
    .kind = OpKind::kView,
    .traits = kNoGrad,
    .infer = view_dtype_infer,
    .vmap = view_dtype_vmap};
constexpr Op lazy_conj_op{.schema = "_conj(Tensor(a) self) -> Tensor(a)",
                          .doc = "A view of the complex conjugates.",
                          .kind = OpKind::kView,
                          .traits = kLinearOp,
                          .infer = conj_infer,
                          .vjp = [](Vjp& v) { v.set(0, v.grad().conj()); },
                          .vmap = identity_vmap};
constexpr Op neg_view_op{.schema = "_neg_view(Tensor(a) self) -> Tensor(a)",
                         .doc = "A view of the negatives.",
                         .kind = OpKind::kView,
                         .traits = kLinearOp,
                         .infer = neg_infer,
                         .vjp = [](Vjp& v) { v.set(0, v.grad().neg()); },
                         .vmap = identity_vmap};
constexpr Op conj_op =
    composite("conj(Tensor(a) self) -> Tensor(a)",
              "The complex conjugate as a view; reals as they are.", [](Call& c) {
                const Tensor& x = c.args.tensor(0);
                c.outs = {x.is_complex() ? x._conj() : x};
              });
constexpr Op resolve_conj_op = composite("resolve_conj(Tensor(a) self) -> Tensor(a)",
                                         "self, or a copy if it is a lazy conjugate.", [](Call& c) {
                                           const Tensor& x = c.args.tensor(0);
                                           c.outs = {x.is_conj() ? x.clone() : x};
                                         });
constexpr Op resolve_neg_op = composite("resolve_neg(Tensor(a) self) -> Tensor(a)",
                                        "self, or a copy if it is a lazy negative.", [](Call& c) {
                                          const Tensor& x = c.args.tensor(0);
                                          c.outs = {x.is_neg() ? x.clone() : x};
                                        });
constexpr Op real_op = composite("real(Tensor(a) self) -> Tensor(a)",
                                 "The real part as a view; real tensors as they are.", real_body);
constexpr Op imag_op =
    composite("imag(Tensor(a) self) -> Tensor(a)", "The imaginary part as a view.", imag_body);

}  // namespace fornax
