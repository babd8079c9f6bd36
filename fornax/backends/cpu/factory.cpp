// Kernels that fill and copy memory below the operator level.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "fornax/backends/cpu/pointwise.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
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

// ---- sequences
// Calls body with a value of the dtype's C++ type.
template <class F>
void visit_dtype(Dtype d, F body) {
  switch (d) {
#define X(type, name, torch, short_name, long_name) \
  case Dtype::name: return body(type());
    FX_DTYPES(X)
#undef X
    default: fail(ErrorKind::kType, "no kernel for this dtype");
  }
}

template <class T>
inline constexpr bool is_complex_type = requires(T v) {
  v.im;
};
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;

// Where a sequence of T is computed.
template <class T>
using SequenceType = std::conditional_t<
    is_complex_type<T>, complex128,
    std::conditional_t<std::is_same_v<T, double>, double,
                       std::conditional_t<std::is_integral_v<T>, double, float>>>;

template <class T, class V>
T store_as(V v) {
  if constexpr (is_complex_type<T>)
    return T(v);
  else if constexpr (is_half_type<T>)
    return T(float(v));
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return T(int64_t(v));
  else
    return T(v);
}

void arange_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Scalar start = args.has(0) ? args.number(0) : Scalar(0);
  Scalar step = args.has(2) ? args.number(2) : Scalar(1);
  int64_t n = outs[0].numel();
  visit_dtype(outs[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(outs[0].impl()->data());
    parallel_for(0, n, 16384, [&](int64_t from, int64_t to) {
      if constexpr (std::is_integral_v<T>) {
        int64_t first = start.to_int(), by = step.to_int();
        for (int64_t i = from; i < to; ++i)
          out[i] = T(uint64_t(first) + uint64_t(by) * uint64_t(i));
      } else if constexpr (!is_complex_type<T>) {
        double first = start.to_double(), by = step.to_double();
        for (int64_t i = from; i < to; ++i) out[i] = store_as<T>(first + by * double(i));
      }
    });
  });
}

Scalar bound_of(Args args, size_t i) {
  return args[i].is_tensor() ? read_item(args.tensor(i)) : args.number(i);
}

// Element i of `steps` ones from start to end: from the nearer end, so that both are exact.
template <class V>
V spaced(V start, V end, V step, int64_t i, int64_t steps) {
  return i < steps / 2 ? start + step * V(double(i)) : end - step * V(double(steps - 1 - i));
}

void linspace_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Scalar start = bound_of(args, 0), end = bound_of(args, 1);
  int64_t steps = outs[0].numel();
  visit_dtype(outs[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    using V = SequenceType<T>;
    // Integer bounds are those of the dtype; the distance is real.
    V first = V(start.to<T>()), last = V(end.to<T>());
    V step = steps > 1 ? (last - first) / V(double(steps - 1)) : V(0.0);
    T* out = static_cast<T*>(outs[0].impl()->data());
    for (int64_t i = 0; i < steps; ++i)
      out[i] = steps == 1 ? store_as<T>(first) : store_as<T>(spaced(first, last, step, i, steps));
  });
}

complex128 power(double base, complex128 e) {
  double angle = e.im * std::log(base), size = std::pow(base, e.re);
  return {size * std::cos(angle), size * std::sin(angle)};
}
double power(double base, double e) { return std::pow(base, e); }

void logspace_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Scalar start = bound_of(args, 0), end = bound_of(args, 1);
  double base = args.real(3, 10);
  int64_t steps = outs[0].numel();
  visit_dtype(outs[0].dtype(), [&](auto zero) {
    using T = decltype(zero);
    using V = SequenceType<T>;
    using P = std::conditional_t<is_complex_type<T>, complex128, double>;
    V first = V(start.to<T>()), last = V(end.to<T>());
    V step = steps > 1 ? (last - first) / V(double(steps - 1)) : V(0.0);
    T* out = static_cast<T*>(outs[0].impl()->data());
    for (int64_t i = 0; i < steps; ++i) {
      V e = steps == 1 ? first : spaced(first, last, step, i, steps);
      out[i] = store_as<T>(power(base, P(e)));
    }
  });
}

void eye_kernel(const KernelContext&, Args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  std::memset(out.impl()->data(), 0, out.nbytes());
  int64_t columns = out.sizes()[1], n = std::min(out.sizes()[0], columns);
  visit_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* at = static_cast<T*>(out.impl()->data());
    for (int64_t i = 0; i < n; ++i) at[i * (columns + 1)] = store_as<T>(1.0);
  });
}

// ---- triangles
// Columns [0, n) of row r that tril keeps; triu keeps the others but with `offset` one less.
int64_t below_diagonal(int64_t r, int64_t offset, int64_t columns) {
  __int128 n = __int128(r) + offset + 1;
  return n < 0 ? 0 : n > columns ? columns : int64_t(n);
}

template <bool upper>
void triangle_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  int64_t size = out.element_size(), rows = out.size(-2), columns = out.size(-1);
  int64_t offset = args.integer(1, 0);
  const char* from = static_cast<const char*>(args.tensor(0).impl()->data());
  char* to = static_cast<char*>(out.impl()->data());
  int64_t grain = std::max<int64_t>(1, 32768 / (columns * size));
  parallel_for(0, out.numel() / columns, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t keep = below_diagonal(i % rows, upper ? offset - 1 : offset, columns) * size;
      int64_t row = i * columns * size, end = columns * size;
      int64_t kept = upper ? keep : 0, kept_end = upper ? end : keep;
      if (from != to && kept_end > kept)
        std::memcpy(to + row + kept, from + row + kept, size_t(kept_end - kept));
      int64_t zeroed = upper ? 0 : keep, zeroed_end = upper ? keep : end;
      if (zeroed_end > zeroed) std::memset(to + row + zeroed, 0, size_t(zeroed_end - zeroed));
    }
  });
}

template <bool upper>
void triangle_indices_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  int64_t rows = args.integer(0), columns = args.integer(1), offset = args.integer(2, 0);
  int64_t n = outs[0].numel() / 2;
  auto fill = [&](auto* out) {
    int64_t at = 0;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t split = below_diagonal(r, upper ? offset - 1 : offset, columns);
      int64_t end = upper ? columns : split;
      for (int64_t c = upper ? split : 0; c < end; ++c, ++at) {
        out[at] = std::remove_reference_t<decltype(*out)>(r);
        out[n + at] = std::remove_reference_t<decltype(*out)>(c);
      }
    }
  };
  if (outs[0].dtype() == Dtype::kI64)
    fill(static_cast<int64_t*>(outs[0].impl()->data()));
  else
    fill(static_cast<int32_t*>(outs[0].impl()->data()));
}

}  // namespace

void register_factory(const KernelTable& table) {
  table.set(empty_op, empty_kernel, kAnyStrides);
  table.set(empty_strided_op, empty_kernel, kAnyStrides);
  table.set(empty_permuted_op, empty_kernel, kAnyStrides);
  table.set(full_op, full_kernel);
  table.set(arange_op, arange_kernel);
  table.set(linspace_op, linspace_kernel);
  table.set(logspace_op, logspace_kernel);
  table.set(eye_op, eye_kernel);
  table.set(tril_op, triangle_kernel<false>, kAliasSafe);
  table.set(triu_op, triangle_kernel<true>, kAliasSafe);
  table.set(tril_indices_op, triangle_indices_kernel<false>);
  table.set(triu_indices_op, triangle_indices_kernel<true>);
}

}  // namespace cpu

void copy_elements(const Tensor& to, const Tensor& from) {
  TensorImpl& target = *to.impl();
  uint16_t bits = target.flags & (kConjFlag | kNegFlag);
  bool same_bits = bits == (from.impl()->flags & (kConjFlag | kNegFlag));
  bool same_run = to.sizes() == from.sizes() && to.is_contiguous() && from.is_contiguous();
  if (to.dtype() == from.dtype() && same_bits && same_run) {
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
