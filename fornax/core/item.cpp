// Reading one value out of a tensor.
#include "fornax/core/op.h"

namespace fornax {
namespace {

template <class T>
Scalar load_scalar(const void* p) {
  return Scalar(*static_cast<const T*>(p));
}

Scalar load(const TensorImpl& t) {
  Scalar s;
  switch (t.dtype) {
#define X(type, name, torch, short_name, long_name) \
  case Dtype::name: s = load_scalar<type>(t.data()); break;
    FX_DTYPES(X)
#undef X
    default: FX_ASSERT(false);
  }
  if (t.flags & kConjFlag) s = s.conj();
  if (t.flags & kNegFlag) s = -s;
  return s;
}

}  // namespace

Scalar read_item(const Tensor& t) {
  FX_CHECK(t.numel() == 1, kValue, "item: expected a tensor of one element, got sizes ", t.sizes());
  FX_CHECK(!t.is_meta(), kUnsupported, "item: a meta tensor has no data");
  if (!(t.impl()->flags & kWrappedFlag)) return load(*t.impl());
  Interp* owner = thread_state.top;
  while (owner && owner->level != level_of(t)) owner = owner->below;
  FX_CHECK(owner, kAutograd,
           "item: a tensor of a function transform was used after the transform ended");
  StateGuard guard;
  thread_state.top = owner;
  Tensor inner = owner->lower_for_query(t);
  thread_state.top = owner->below;
  return read_item(inner);
}

Scalar Tensor::item() const { return read_item(*this); }

}  // namespace fornax
