// Copies and conversions.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// Strides for a copy of x in a memory format; empty = contiguous. Preserve keeps any dense order.
Dims copy_strides(const Tensor& x, MemoryFormat format) {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d)
    return strides_of(format, x.sizes());
  if (format == MemoryFormat::Preserve && !x.is_contiguous() && x.is_non_overlapping_and_dense())
    return Dims(x.strides().begin(), x.strides().end());
  return {};
}

void clone_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Meta m(x.dtype(), x.sizes(), x.device());
  m.strides = copy_strides(x, f.args.memory_format(1, MemoryFormat::Preserve));
  f.outs.push_back(m);
}

void to_copy_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Meta m(f.args.dtype(1, x.dtype()), x.sizes(), f.args.has(3) ? f.args.device(3) : x.device());
  m.strides = copy_strides(x, f.args.memory_format(6, MemoryFormat::Preserve));
  f.outs.push_back(m);
}

constexpr Op with_infer(Op op, void (*infer)(Infer&), uint32_t traits = 0) {
  op.infer = infer;
  op.traits |= traits;
  return op;
}

void copy_body(Body& b) { b.out(0, b.in(1)); }

void contiguous_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  MemoryFormat format = c.args.memory_format(1, MemoryFormat::Contiguous);
  FX_CHECK(format != MemoryFormat::Preserve, kValue,
           "contiguous: memory format Preserve names no order");
  bool plain = x.is_contiguous(format) && !x.is_conj() && !x.is_neg();
  c.outs = {plain ? x : x.clone(format)};
}

void reshape_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  Dims wanted = infer_size(c.args.ints(1), x.numel(), "reshape"), strides;
  Dims sizes(x.sizes().begin(), x.sizes().end()), old(x.strides().begin(), x.strides().end());
  bool viewable = view_strides(sizes, old, wanted, strides);
  c.outs = {viewable ? x.view(wanted) : x.clone(MemoryFormat::Contiguous).view(wanted)};
}

}  // namespace

constexpr Op copy_op =
    pointwise("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
              "The elements of src, broadcast to self's sizes and converted to its dtype.",
              Promote::kFirst, copy_body, 0b10);
constexpr Op clone_op =
    with_infer(pointwise("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
                         "A copy.", Promote::kFirst, [](Expr x) { return x; }),
               clone_infer, kLinearOp);
constexpr Op to_copy_op = with_infer(
    pointwise(
        "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? "
        "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
        "A copy in another dtype, device or memory format.", Promote::kAttribute,
        [](Expr x) { return x; }),
    to_copy_infer);
constexpr Op chalf_op{
    .schema = "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .doc = "self as complex32.",
    .kind = OpKind::kComposite,
    .body = [](Call& c) {
      c.outs = {c.args.tensor(0).to(Dtype::kC32, false, false,
                                    c.args.memory_format(1, MemoryFormat::Preserve))};
    }};
constexpr Op contiguous_op{
    .schema =
        "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    .doc = "self if it lies in this order, else a copy.",
    .kind = OpKind::kComposite,
    .body = contiguous_body};
constexpr Op reshape_op{
    .schema = "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
    .doc = "A view under other sizes where strides allow it, else a copy; one size may be -1.",
    .kind = OpKind::kComposite,
    .body = reshape_body};

Tensor Tensor::to(Dtype dtype, bool, bool copy, std::optional<MemoryFormat> format) const {
  bool same = checked().dtype == dtype &&
              (!format || *format == MemoryFormat::Preserve || is_contiguous(*format));
  if (same && !copy) return *this;
  return _to_copy(dtype, std::nullopt, format);
}
Tensor Tensor::to(const TensorOptions& o, bool, bool copy,
                  std::optional<MemoryFormat> format) const {
  if (!format) format = o.memory_format_opt();
  Dtype d = o.dtype_opt().value_or(dtype());
  Device place = o.device_opt().value_or(device());
  bool same = d == dtype() && place.type() == device().type();
  same = same && (!format || *format == MemoryFormat::Preserve || is_contiguous(*format));
  if (same && !copy) return *this;
  return _to_copy(d, place, format);
}
Tensor Tensor::to(Device device, Dtype dtype, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return to(TensorOptions(dtype).device(device), non_blocking, copy, format);
}
Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  return to(other.options(), non_blocking, copy, format);
}

}  // namespace fornax
