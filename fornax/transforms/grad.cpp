// grad, vjp and the Jacobians.
#include "fornax/autograd/level.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/view.h"
#include "fornax/transforms/detail.h"

namespace fornax::func::detail {
namespace {

Tensor zeros_for(const Tensor& t) {
  return zeros(t.sizes(), TensorOptions(t.dtype()).device(t.device()));
}

// Wraps the inputs for a level; those that are wanted require grad.
Tensors wrap_inputs(TensorList inputs, ArrayRef<bool> wanted, int level, std::string_view call) {
  Tensors wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      wrapped.emplace_back();
      continue;
    }
    wrapped.push_back(wrap_tensor(inputs[i], level));
    if (!wanted[i]) continue;
    FX_CHECK(is_differentiable(inputs[i].dtype()), kType, call, ": argument tensor ", i, " is of ",
             inputs[i].dtype(), "; only floating and complex tensors have gradients");
    wrapped.back().impl()->flags |= kTapeFlag;
  }
  return wrapped;
}

Tensors pick(TensorList list, ArrayRef<bool> wanted) {
  Tensors picked;
  for (size_t i = 0; i < list.size(); ++i)
    if (wanted[i]) picked.push_back(list[i]);
  return picked;
}

// Gradients of xs, one level down, without undefined ones.
Tensors finish_gradients(Tensors grads, TensorList xs, int level) {
  for (size_t i = 0; i < grads.size(); ++i)
    grads[i] = unwrap_tensor(grads[i].defined() ? grads[i] : zeros_for(xs[i]), level);
  return grads;
}

}  // namespace

Tensors grad(Erased f, TensorList inputs, ArrayRef<bool> wanted, Tensors& outs) {
  GradInterp interp;
  GradInterp::Push push(interp);
  Tensors wrapped = wrap_inputs(inputs, wanted, interp.level, "grad");
  Tensors xs = pick(wrapped, wanted);
  outs = f(wrapped);
  FX_CHECK(!outs.empty() && outs[0].defined(), kValue, "grad: the function returned no tensor");
  const Tensor y = outs[0];
  FX_CHECK(y.numel() == 1 && y.dim() == 0, kShape,
           "grad: expected the function to return a 0-D tensor, got sizes ", y.sizes());
  FX_CHECK(is_differentiable(y.dtype()), kType, "grad: the function returned a tensor of ",
           y.dtype());
  Tensors grads(xs.size());
  if (is_tracked(y)) grads = run_backward(TensorList(y), {}, xs, {});
  for (Tensor& t : outs) t = unwrap_tensor(t, interp.level);
  return finish_gradients(std::move(grads), xs, interp.level);
}

// ---- vjp
struct Pullback::State {
  int level = 0;
  Tensors xs;     // wrapped
  Tensors ys;     // wrapped
  Tensors plain;  // the results one level down
};

void Pullback::drop(State* state) { delete state; }
Pullback::Handle::~Handle() { drop(state); }

Pullback::Pullback(Erased f, TensorList inputs, ArrayRef<bool> wanted) {
  handle_ = make_ref<Handle>();
  handle_->state = new State;
  State& s = *handle_->state;
  GradInterp interp;
  GradInterp::Push push(interp);
  s.level = interp.level;
  Tensors wrapped = wrap_inputs(inputs, wanted, interp.level, "vjp");
  s.xs = pick(wrapped, wanted);
  s.ys = f(wrapped);
  for (const Tensor& y : s.ys) s.plain.push_back(unwrap_tensor(y, interp.level));
}

const Tensors& Pullback::outs() const { return handle_->state->plain; }

// The level comes back on top of whatever runs now: its wrappers are known by their number.
Tensors Pullback::operator()(TensorList cotangents) const {
  const State& s = *handle_->state;
  FX_CHECK(cotangents.size() == s.ys.size(), kValue, "vjp: ", cotangents.size(),
           " cotangents were given for ", s.ys.size(), " results");
  GradInterp interp;
  GradInterp::Push push(interp, s.level);
  Tensors heads, seeds;
  for (size_t i = 0; i < s.ys.size(); ++i) {
    if (!cotangents[i].defined() || !s.ys[i].defined()) continue;
    FX_CHECK(cotangents[i].sizes() == s.ys[i].sizes(), kShape, "vjp: cotangent ", i, " has sizes ",
             cotangents[i].sizes(), ", its result ", s.ys[i].sizes());
    if (!is_tracked(s.ys[i])) continue;
    heads.push_back(s.ys[i]);
    seeds.push_back(cotangents[i]);
  }
  Tensors grads(s.xs.size());
  if (!heads.empty()) grads = run_backward(heads, seeds, s.xs, {true, false, false});
  return finish_gradients(std::move(grads), s.xs, s.level);
}

// ---- Jacobians
namespace {

// Rows [0, n) of an identity matrix, shaped [n, sizes...].
Tensor identity_rows(int64_t n, const Tensor& like) {
  SmallVec<double, 1> eye(size_t(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) eye[size_t(i * n + i)] = 1;
  Tensor rows = tensor_of(eye.data(), Dtype::kF64, {n, n}, TensorOptions(Dtype::kF64));
  rows = rows.to(TensorOptions(like.dtype()).device(like.device()));
  return rows.reshape(with_batch(n, like.sizes()));
}

Dims join(IntArrayRef a, IntArrayRef b) {
  Dims d(a.begin(), a.end());
  d.append(b.begin(), b.end());
  return d;
}

}  // namespace

Tensors jacrev(Erased f, TensorList inputs, ArrayRef<bool> wanted,
               std::optional<int64_t> chunk_size) {
  Pullback pull(f, inputs, wanted);
  const Tensors& ys = pull.outs();
  Tensors xs = pick(inputs, wanted), jacobians;
  VmapOptions options;
  options.chunk_size = chunk_size;
  options.randomness = Randomness::kError;
  for (size_t k = 0; k < ys.size(); ++k) {
    Tensor basis = identity_rows(ys[k].numel(), ys[k]);
    auto row = [&](TensorList one) {
      Tensors cotangents(ys.size());
      cotangents[k] = one[0];
      return pull(cotangents);
    };
    std::optional<int64_t> first[] = {0};
    Tensors rows = vmap(row, TensorList(basis), first, options);
    for (size_t i = 0; i < rows.size(); ++i)
      jacobians.push_back(rows[i].reshape(join(ys[k].sizes(), xs[i].sizes())));
  }
  return jacobians;
}

Tensors jacfwd(Erased f, TensorList inputs, ArrayRef<bool> wanted, Randomness randomness,
               std::optional<int64_t> chunk_size) {
  VmapOptions options;
  options.chunk_size = chunk_size;
  options.randomness = randomness;
  SmallVec<Tensors, 2> by_input;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted[i]) continue;
    Tensor basis = identity_rows(inputs[i].numel(), inputs[i]);
    auto column = [&](TensorList one) {
      Tensors tangents(inputs.size()), outs;
      tangents[i] = one[0];
      return jvp(f, inputs, tangents, outs);
    };
    std::optional<int64_t> first[] = {0};
    Tensors columns = vmap(column, TensorList(basis), first, options);
    for (Tensor& c : columns) {  // [n, result...] -> [result..., input...]
      Dims order;
      for (int64_t d = 1; d < c.dim(); ++d) order.push_back(d);
      order.push_back(0);
      Dims result(c.sizes().begin() + 1, c.sizes().end());
      c = c.permute(order).reshape(join(result, inputs[i].sizes()));
    }
    by_input.push_back(std::move(columns));
  }
  Tensors jacobians;
  for (size_t k = 0; !by_input.empty() && k < by_input[0].size(); ++k)
    for (const Tensors& columns : by_input) jacobians.push_back(columns[k]);
  return jacobians;
}

}  // namespace fornax::func::detail
