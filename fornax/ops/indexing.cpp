// Lowers index expressions: integers, slices and new dimensions to views, the rest to index and
// index_put.
#include "fornax/ops/indexing.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/index.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace indexing {

TensorIndex::TensorIndex(const char* text) : kind(Kind::kEllipsis) {
  FX_CHECK(std::string_view(text) == "...", kIndex, "index: \"", text,
           "\" is no index; the only text allowed is \"...\"");
}

}  // namespace indexing

namespace {

using indexing::TensorIndex;
using Kind = TensorIndex::Kind;

// A view of what integers, slices and new dimensions select, and what tensors select of that.
struct Lowered {
  Tensor view;
  Tensors indices;  // per dimension of view, undefined where none
  bool any = false;
};

// A wrapped tensor's value may differ per example, so it can't become a select.
bool is_plain_integer(const Tensor& t) {
  return t.dim() == 0 && is_integer(t.dtype()) && t.dtype() != Dtype::kU8 &&
         !(t.impl()->flags & kWrappedFlag);
}

int64_t indexed_dims(const TensorIndex& i) {
  switch (i.kind) {
    case Kind::kInteger:
    case Kind::kSlice: return 1;
    case Kind::kTensor: return is_mask(i.tensor) ? i.tensor.dim() : 1;
    default: return 0;
  }
}

void record(Lowered& l, int64_t dim, const Tensor& t) {
  while (int64_t(l.indices.size()) <= dim) l.indices.push_back(Tensor());
  l.indices[size_t(dim)] = t;
  l.any = true;
}

Tensor truth_index(bool value) {
  return value ? zeros({1}, TensorOptions(Dtype::kI64)) : empty({0}, TensorOptions(Dtype::kI64));
}

void apply_integer(Lowered& l, int64_t dim, int64_t i) {
  FX_CHECK(l.view.dim() > 0, kIndex, "index: a 0-dim tensor can't be indexed; use item()");
  l.view = l.view.select(dim, i);
}

Lowered lower(const Tensor& self, ArrayRef<TensorIndex> indices) {
  int64_t wanted = 0;
  for (const TensorIndex& i : indices) wanted += indexed_dims(i);
  FX_CHECK(wanted <= self.dim(), kIndex, "index: ", wanted, " indices into a tensor of ",
           self.dim(), " dimensions");
  Lowered l{self, {}, false};
  int64_t dim = 0, skipped = 0;  // skipped: dimensions of the view that masks cover beyond one
  bool ellipsis = false;
  for (const TensorIndex& i : indices) {
    int64_t at = dim + skipped;
    switch (i.kind) {
      case Kind::kNone:
        l.view = l.view.unsqueeze(at);
        ++dim;
        break;
      case Kind::kEllipsis:
        FX_CHECK(!ellipsis, kIndex, "index: more than one ellipsis");
        ellipsis = true;
        dim += self.dim() - wanted;
        break;
      case Kind::kInteger: apply_integer(l, at, i.integer); break;
      case Kind::kBool:
        l.view = l.view.unsqueeze(at);
        record(l, dim++, truth_index(i.integer != 0));
        break;
      case Kind::kSlice: {
        const auto& s = i.slice;
        bool full = s.start.value_or(0) == 0 && !s.stop && s.step == 1;
        if (!full) l.view = l.view.slice(at, s.start, s.stop, s.step);
        ++dim;
        break;
      }
      case Kind::kTensor: {
        const Tensor& t = i.tensor;
        if (is_plain_integer(t)) {
          apply_integer(l, at, read_item(t).to_int());
        } else if (is_mask(t) && t.dim() == 0) {
          l.view = l.view.unsqueeze(at);
          record(l, dim++, truth_index(read_item(t).to_bool()));
        } else {
          record(l, dim++, t);
          if (is_mask(t)) skipped += t.dim() - 1;
        }
        break;
      }
    }
  }
  return l;
}

// Values for copy_ into `view`: leading dimensions of size 1 that it lacks are dropped.
Tensor fit_values(const Tensor& values, const Tensor& view) {
  Tensor v = values;
  while (v.dim() > view.dim() && v.size(0) == 1) v = v.squeeze(0);
  return v;
}

void write(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& values) {
  Lowered l = lower(self, indices);
  if (!l.any) {
    l.view.copy_(fit_values(values, l.view));
    return;
  }
  bool one_mask = l.indices.size() == 1 && is_mask(l.indices[0]) && values.numel() == 1 &&
                  l.indices[0].sizes() == l.view.sizes();
  if (one_mask) {
    l.view.masked_fill_(l.indices[0].to(Dtype::kBool), values.reshape({}).to(self.dtype()));
    return;
  }
  index_put_(l.view, l.indices, values);
}

}  // namespace

Tensor& index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  call_inplace(index_put_op, {self, indices, values, accumulate});
  return self;
}

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  Lowered l = lower(*this, indices);
  if (l.any) return fornax::index(l.view, l.indices);
  return l.view.is_same(*this) ? view(sizes()) : l.view;
}

Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices));
}

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values) const {
  write(*this, indices, values);
  return const_cast<Tensor&>(*this);
}

Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const {
  return index_put_(ArrayRef<TensorIndex>(indices), values);
}

Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  return index_put_(ArrayRef<TensorIndex>(indices),
                    scalar_tensor(value, TensorOptions(dtype()).device(device())));
}

Tensor Tensor::operator[](int64_t i) const {
  FX_CHECK(dim() > 0, kIndex, "index: a 0-dim tensor can't be indexed; use item()");
  return select(0, i);
}
Tensor Tensor::operator[](const Tensor& i) const { return index({TensorIndex(i)}); }
Tensor Tensor::operator[](const Scalar& i) const {
  FX_CHECK(i.is_integral(false), kIndex, "index: expected an integer, got ", i);
  return (*this)[i.to_int()];
}

}  // namespace fornax
