#include "fornax/ops/factory.h"

#include <cstring>

#include "fornax/ops/internal.h"
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

// Arguments 1.. of the factory schemas: dtype, layout, device, pin_memory.
constexpr size_t kEmptyDtype = 1, kEmptyDevice = 3, kFullDtype = 2, kFullDevice = 4;

void empty_infer(Infer& f) {
  Meta m(f.args.dtype(kEmptyDtype, get_default_dtype()), f.args.ints(0),
         f.args.device(kEmptyDevice));
  checked_numel(m.sizes);
  MemoryFormat format = f.args.memory_format(5, MemoryFormat::Contiguous);
  if (format != MemoryFormat::Contiguous && format != MemoryFormat::Preserve)
    m.strides = strides_of(format, m.sizes);
  f.outs.push_back(m);
}

void full_infer(Infer& f) {
  Dtype d = f.args.number(1).dtype();
  if (is_float(d)) d = get_default_dtype();
  if (is_complex(d)) d = to_complex(get_default_dtype());
  Meta m(f.args.dtype(kFullDtype, d), f.args.ints(0), f.args.device(kFullDevice));
  checked_numel(m.sizes);
  f.outs.push_back(m);
}

Tensor finish(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

TensorOptions like_options(const Tensor& self, const TensorOptions& o) {
  TensorOptions r =
      o.dtype(o.dtype_opt().value_or(self.dtype())).device(o.device_opt().value_or(self.device()));
  return r;
}

// Strides of a fresh tensor like `self`: dense ones are kept.
Tensor empty_with_layout_of(const Tensor& self, const TensorOptions& options) {
  MemoryFormat format = options.memory_format_opt().value_or(MemoryFormat::Preserve);
  if (format != MemoryFormat::Preserve) return empty(self.sizes(), options.memory_format(format));
  if (self.is_contiguous()) return empty(self.sizes(), options);
  for (MemoryFormat f : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (self.is_contiguous(f)) return empty(self.sizes(), options.memory_format(f));
  return empty(self.sizes(), options);
}

}  // namespace

constexpr Op empty_op{.schema =
                          "empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? "
                          "layout=None, Device? device=None, bool? "
                          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
                      .doc = "A tensor of uninitialised memory.",
                      .traits = kNoGrad,
                      .infer = empty_infer};
constexpr Op full_op{.schema =
                         "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                         "layout=None, Device? device=None, bool? "
                         "pin_memory=None) -> Tensor",
                     .doc = "A tensor of one value.",
                     .traits = kNoGrad,
                     .infer = full_infer};
constexpr Op fill_op = pointwise(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor\nfill.Scalar(Tensor self, Scalar value) -> "
    "Tensor",
    "self with every element replaced by one value.", Promote::kFirst,
    [](Body& b) {
      FX_CHECK(!b.args[1].is_tensor() || !b.args[1].t->defined() || b.args[1].t->dim() == 0, kShape,
               "fill: expected a 0-dim value, got ", b.args[1].t->dim(), "-D");
      b.out(0, b.in(1));
    },
    0b10);

Tensor empty(IntArrayRef size, const TensorOptions& options) {
  return finish(call1(empty_op, {size, options.dtype_opt(), Arg(), options.device_opt(), Arg(),
                                 options.memory_format_opt()}),
                options);
}
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options) {
  return finish(
      call1(full_op, {size, value, options.dtype_opt(), Arg(), options.device_opt(), Arg()}),
      options);
}
Tensor zeros(IntArrayRef size, const TensorOptions& options) {
  return full(size, 0, options.dtype(options.dtype()));
}
Tensor ones(IntArrayRef size, const TensorOptions& options) {
  return full(size, 1, options.dtype(options.dtype()));
}

Tensor empty_like(const Tensor& self, const TensorOptions& options) {
  return empty_with_layout_of(self, like_options(self, options));
}
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options) {
  TensorOptions o = like_options(self, options);
  if (self.is_contiguous()) return full(self.sizes(), value, o);
  Tensor t = empty_with_layout_of(self, o.requires_grad(false));
  t.fill_(value);
  return finish(t, options);
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options) {
  return full_like(self, 0, options);
}
Tensor ones_like(const Tensor& self, const TensorOptions& options) {
  return full_like(self, 1, options);
}

Tensor scalar_tensor(const Scalar& value, const TensorOptions& options) {
  return full({}, value, options);
}

Tensor tensor_of(const void* data, Dtype dtype, IntArrayRef size, const TensorOptions& options) {
  Tensor raw = empty(size, TensorOptions(dtype));
  if (raw.numel()) std::memcpy(raw.impl()->data(), data, raw.nbytes());
  Dtype wanted = options.dtype_opt().value_or(
      is_float(dtype) && dtype == Dtype::kF64 ? get_default_dtype() : dtype);
  if (wanted != dtype) raw = raw.to(wanted);
  return finish(raw, options);
}

}  // namespace fornax
