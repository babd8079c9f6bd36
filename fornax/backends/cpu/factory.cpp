// Kernels that fill and copy memory below the operator level.
#include <cmath>
#include <cstring>

#include "fornax/backends/cpu/pointwise.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/ops/internal.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace cpu {
namespace {

void empty_kernel(const KernelContext&, Args, ArrayRef<Tensor>) {}

bool is_zero_bits(const Scalar& s) {
  return s.real() == 0 && s.imag() == 0 && !std::signbit(s.real()) && !std::signbit(s.imag());
}

void full_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  if (is_zero_bits(args.number(1))) {
    std::memset(out.impl()->data(), 0, out.nbytes());
    return;
  }
  Arg fill_args[] = {Arg(out), args[1]};
  pointwise_kernel({fill_op, {}}, Args(fill_args, 2), outs);
}

}  // namespace

void register_factory(const KernelTable& table) {
  table.set(empty_op, empty_kernel, kAnyStrides);
  table.set(full_op, full_kernel);
}

}  // namespace cpu

void copy_elements(const Tensor& to, const Tensor& from) {
  TensorImpl& target = *to.impl();
  uint16_t bits = target.flags & (kConjFlag | kNegFlag);
  bool same_bits = bits == (from.impl()->flags & (kConjFlag | kNegFlag));
  if (to.dtype() == from.dtype() && same_bits && to.is_contiguous() && from.is_contiguous()) {
    if (to.numel()) std::memmove(target.data(), from.impl()->data(), to.nbytes());
    return;
  }
  if (!bits) {
    Arg args[] = {Arg(to), Arg(from)};
    return cpu::pointwise_kernel({copy_op, {}}, Args(args, 2), ArrayRef<Tensor>(to));
  }
  // Writing through a lazy conjugate or negative: store the conjugate or negative of the values
  // into the plain memory.
  Tensor plain = from.alias(), flipped = to.alias();
  flipped.impl()->flags &= uint16_t(~(kConjFlag | kNegFlag));
  plain.impl()->flags ^= bits;
  copy_elements(flipped, plain);
}

Tensor contiguous_copy(const Tensor& t) {
  Tensor copy = make_tensor(Meta(t.dtype(), t.sizes(), t.device()));
  copy_elements(copy, t);
  return copy;
}

}  // namespace fornax
