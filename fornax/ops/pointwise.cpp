// Shape rule, promotion and bodies of pointwise operators; derivatives are in
// pointwise_derivative.cpp.
#include "fornax/ops/pointwise.h"

#include <iterator>

#include "fornax/base/hash.h"

namespace fornax {
namespace {

// Categories of PyTorch's promotion: tensors with dimensions > 0-dim tensors > numbers.
struct Categories {
  Dtype dimensioned = Dtype::kUndefined, zero_dim = Dtype::kUndefined, number = Dtype::kUndefined;
};

Dtype number_dtype(const Arg& a) {
  switch (a.tag) {
    case Tag::kBool: return Dtype::kBool;
    case Tag::kInt: return Dtype::kI64;
    case Tag::kReal: return get_default_dtype();
    default: return to_complex(get_default_dtype());
  }
}

Dtype combine(Dtype higher, Dtype lower) {
  if (higher == Dtype::kUndefined) return lower;
  if (lower == Dtype::kUndefined) return higher;
  if (is_complex(higher)) return higher;
  if (is_complex(lower)) return is_float(higher) ? to_complex(higher) : lower;
  if (is_float(higher)) return higher;
  if (higher == Dtype::kBool || is_float(lower)) return promote_types(higher, lower);
  return higher;
}

// Strides of the result as TensorIterator would choose: the operands' order of dimensions, first
// operand first.
Dims preserved_strides(Args args, const Dims& sizes) {
  SmallVec<const Tensor*, 4> operands;
  bool all_contiguous = true;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].tag != Tag::kTensor || !args[i].t->defined()) continue;
    operands.push_back(args[i].t);
    all_contiguous = all_contiguous && args[i].t->is_contiguous();
  }
  if (all_contiguous || sizes.size() < 2) return {};
  // All operands of full size with the same dense strides: keep them as they are.
  const Tensor& first = *operands[0];
  bool same = first.is_non_overlapping_and_dense();
  for (const Tensor* t : operands)
    same = same && t->sizes() == IntArrayRef(sizes) && t->strides() == first.strides();
  if (same) return Dims(first.strides().begin(), first.strides().end());
  // Insertion sort of the dimensions, innermost first; an operand decides where its strides differ
  // and none is 0.
  size_t rank = sizes.size();
  auto stride_at = [&](const Tensor& t, size_t d) -> int64_t {
    size_t shift = rank - size_t(t.dim());
    if (d < shift || t.sizes()[d - shift] != sizes[d]) return 0;
    return t.strides()[d - shift];
  };
  auto compare = [&](size_t a, size_t b) {  // > 0: a belongs outside b
    for (const Tensor* t : operands) {
      int64_t x = stride_at(*t, a), y = stride_at(*t, b);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  SmallVec<size_t, 6> order;  // innermost first
  for (size_t d = rank; d-- > 0;) order.push_back(d);
  for (size_t i = 1; i < rank; ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      int c = compare(order[j], order[at]);
      if (c > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  Dims strides(rank);
  int64_t step = 1;
  for (size_t d : order) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return strides;
}

Device common_device(const Op& op, Args args) {
  Device device;
  bool have = false;
  for (const Arg& a : args) {
    if (a.tag != Tag::kTensor || !a.t->defined()) continue;
    const TensorImpl& t = *a.t->impl();
    if (!have) {
      device = t.device;
      have = true;
      continue;
    }
    if (t.device.type() == device.type() || t.numel == 1) continue;
    FX_CHECK(false, kDevice, op.name(), ": operands are on ", device, " and ", t.device,
             "; move them to one device with to()");
  }
  return device;
}

}  // namespace

Dtype result_dtype(Promote promote, Dtype common) {
  switch (promote) {
    case Promote::kBool: return Dtype::kBool;
    case Promote::kToReal:
    case Promote::kFloatToReal: return to_real(common);
    case Promote::kToComplex: return to_complex(common);
    default: return common;
  }
}

Dtype promoted_dtype(const Op& op, Args args) {
  Categories c;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i >= 32 || !(op.pointwise.promoted >> i & 1)) continue;
    const Arg& a = args[i];
    if (a.tag == Tag::kTensor) {
      if (!a.t->defined()) continue;
      Dtype& slot = a.t->impl()->sizes.empty() ? c.zero_dim : c.dimensioned;
      Dtype d = a.t->impl()->dtype;
      if (slot != d) slot = promote_types(slot, d);
    } else if (a.is_number()) {
      c.number = promote_types(c.number, number_dtype(a));
    }
  }
  return combine(c.dimensioned, combine(c.zero_dim, c.number));
}

Dtype common_dtype(const Op& op, Args args) {
  Dtype d = Dtype::kUndefined;
  if (op.extra) {  // a derivative carries its operator's dtype
    for (const Arg& a : args)
      if (a.tag == Tag::kDtype) d = Dtype(a.i);
    return d;
  }
  if (op.pointwise.promote == Promote::kAttribute)
    for (const Arg& a : args)
      if (a.tag == Tag::kDtype) return Dtype(a.i);
  if (op.pointwise.promote == Promote::kFirst || op.pointwise.promote == Promote::kAttribute)
    d = args.tensor(0).dtype();
  else
    d = promoted_dtype(op, args);
  FX_CHECK(d != Dtype::kUndefined, kType, op.name(), ": expected at least one tensor");
  switch (op.pointwise.promote) {
    case Promote::kDouble: return is_complex(d) ? Dtype::kC128 : Dtype::kF64;
    case Promote::kIntForBool: return is_bool(d) ? Dtype::kI64 : d;
    case Promote::kFloat:
    case Promote::kFloatToReal: return is_integral(d) ? get_default_dtype() : d;
    case Promote::kFloatUnlessText: break;
    default: return d;
  }
  if (!is_integral(d)) return d;
  for (const Arg& a : args)
    if (a.tag == Tag::kString) return d;
  return get_default_dtype();
}

Dims pointwise_sizes(const Op& op, Args args) {
  Dims sizes;
  bool have = false;
  for (const Arg& a : args) {
    if (a.tag != Tag::kTensor || !a.t->defined()) continue;
    const Dims& s = a.t->impl()->sizes;
    if (!have) {
      sizes = s;
      have = true;
    } else if (!(sizes == s)) {
      sizes = broadcast_sizes(sizes, s, op.name());
    }
  }
  return sizes;
}

static KindSet kind_set(Dtype d) {
  return is_bool(d) ? kBools : is_integral(d) ? kInts : is_float(d) ? kReals : kComplexes;
}

void pointwise_infer(Infer& f) {
  Meta m;
  Dtype common = common_dtype(f.op, f.args);
  FX_CHECK(f.op.pointwise.kinds & kind_set(common), kType, f.op.name(), ": not defined for ",
           common);
  m.dtype = result_dtype(f.op.pointwise.promote, common);
  m.device = common_device(f.op, f.args);
  m.sizes = pointwise_sizes(f.op, f.args);
  m.strides = preserved_strides(f.args, m.sizes);
  f.outs.push_back(std::move(m));
  for (int k = 1; k < f.op.n_returns; ++k) f.outs.push_back(Meta(f.outs[0]));
}

// ---- bodies
// -------------------------------------------------------------------------------------------------------
static expr::Kind kind_of(Dtype d) {
  return is_bool(d)       ? expr::Kind::kBool
         : is_integral(d) ? expr::Kind::kInt
         : is_float(d)    ? expr::Kind::kReal
                          : expr::Kind::kComplex;
}

expr::Kind Body::kind() const { return kind_of(common); }

// The kind in which operand `i` is read: loads convert bool and integers upwards; everything else
// is read as it lies and cast.
Expr Body::operand(int i) const {
  FX_ASSERT(inputs[i] >= 0);
  const Arg& a = args[size_t(i)];
  bool promoted = i < 32 && (op.pointwise.promoted >> i & 1);
  expr::Kind own = a.tag == Tag::kTensor    ? a.t->defined() ? kind_of(a.t->dtype()) : kind()
                      : a.tag == Tag::kComplex ? expr::Kind::kComplex
                   : a.tag == Tag::kReal    ? expr::Kind::kReal
                                            : expr::Kind::kInt;
  bool widens = promoted && own < kind() && kind() != expr::Kind::kComplex;
  return expr::input(inputs[i], widens ? kind() : own);
}

Expr Body::in(int i) const {
  bool promoted = i < 32 && (op.pointwise.promoted >> i & 1);
  Expr e = operand(i);
  return promoted ? expr::cast(e, kind()) : e;
}

static constexpr double kExactNumbers[] = {0, 1, 2, 3, -1, -2, 0.5, -0.5};
uint64_t number_class(const Arg& a) {
  if (a.tag == Tag::kComplex && a.scalar->imag() != 0) return 0;
  double value = a.tag == Tag::kReal      ? a.d
                 : a.tag == Tag::kComplex ? a.scalar->real()
                                          : double(a.i);
  for (size_t k = 0; k < std::size(kExactNumbers); ++k)
    if (value == kExactNumbers[k]) return k + 1;
  return 0;
}

std::optional<double> Body::exact(int i) const {
  if (!args[size_t(i)].is_number()) return std::nullopt;
  uint64_t place = number_class(args[size_t(i)]);
  return place ? std::optional<double>(kExactNumbers[place - 1]) : std::nullopt;
}

Expr Body::stored(Expr e) const {
  if (common == Dtype::kBF16) return expr::call("round_bf16", e);
  return common == Dtype::kF16 ? expr::call("round_f16", e) : e;
}

void build_body(const Op& op, Args args, Dtype common, const int16_t* inputs, Expr* outs) {
  Body b{op, args, common, inputs, outs};
  const PointwiseSpec& p = op.pointwise;
  if (p.unary)
    outs[0] = p.unary(b.in(0));
  else if (p.binary)
    outs[0] = p.binary(b.in(0), b.in(1));
  else if (p.ternary)
    outs[0] = p.ternary(b.in(0), b.in(1), b.in(2));
  else
    p.body(b);
}

uint64_t structure_hash(const Op& op, Args args) {
  uint64_t h = args.size();
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& a = args[i];
    uint64_t v = uint64_t(a.tag);
    bool structural = i < 64 && (op.pointwise.structural >> i & 1);
    if (a.tag == Tag::kString) {
      for (uint32_t k = 0; k < a.n; ++k) v = v * 131 + uint8_t(a.s[k]);
    } else if (structural || a.tag == Tag::kDtype) {
      v = v * 131 + uint64_t(a.i) * 2 + 1;
    } else if (a.is_number()) {
      v = v * 16 + number_class(a);
    }
    h = hash_combine(h, v);
  }
  return h;
}

}  // namespace fornax
