// t_, transpose_, squeeze_, unsqueeze_: the same object under other dimensions. The new geometry
// and history are those of the view that the plain operator gives.
#include "fornax/autograd/node.h"
#include "fornax/ops/functions.h"

namespace fornax {
namespace {

void check_may_change(const Tensor& t, bool tracked, std::string_view call) {
  const TensorImpl& impl = *t.impl();
  FX_CHECK(!(impl.flags & kWrappedFlag), kUnsupported, call,
           ": a tensor of a function transform can't change its dimensions in place");
  if (!tracked || impl.base) return;
  Rare* rare = rare_or_null(t);
  FX_CHECK(rare && rare->edge.node, kAutograd, call,
           ": a leaf that requires grad can't be changed in place; use NoGradGuard");
}

// `t` takes over geometry and history of `view`, which is a view of t.
Tensor& become(const Tensor& t, const Tensor& view, bool tracked) {
  TensorImpl& impl = *t.impl();
  TensorImpl& from = *view.impl();
  impl.sizes = from.sizes;
  impl.strides = from.strides;
  impl.offset = from.offset;
  if (impl.base) {  // one step further away from its base
    impl.step = from.step;
    if (tracked) rare_of(t).edge = gradient_edge(view);
  } else if (tracked) {
    rare_of(t).edge = gradient_edge(view);
    ++impl.tape_generation;
  }
  if (!(impl.flags & kInferenceFlag)) impl.version().fetch_add(1, std::memory_order_relaxed);
  return const_cast<Tensor&>(t);
}

template <class F>
Tensor& change(const Tensor& t, std::string_view call, F make_view) {
  bool tracked = thread_state.grad_mode && is_tracked(t);
  check_may_change(t, tracked, call);
  return become(t, make_view(), tracked);
}

}  // namespace

Tensor& Tensor::t_() const {
  return change(*this, "t_", [&] { return t(); });
}
Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const {
  return change(*this, "transpose_", [&] { return transpose(dim0, dim1); });
}
Tensor& Tensor::squeeze_() const {
  return change(*this, "squeeze_", [&] { return squeeze(); });
}
Tensor& Tensor::squeeze_(int64_t dim) const {
  return change(*this, "squeeze_", [&] { return squeeze(dim); });
}
Tensor& Tensor::squeeze_(IntArrayRef dims) const {
  return change(*this, "squeeze_", [&] { return squeeze(dims); });
}
Tensor& Tensor::unsqueeze_(int64_t dim) const {
  return change(*this, "unsqueeze_", [&] { return unsqueeze(dim); });
}

}  // namespace fornax
