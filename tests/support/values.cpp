#include "tests/support/values.h"

#include <cmath>

#include "fornax/core/op.h"

namespace fornax::test {
namespace {

template <class F>
void for_each_offset(const Tensor& t, F fn) {
  IntArrayRef sizes = t.sizes(), strides = t.strides();
  if (t.numel() == 0) return;
  std::vector<int64_t> index(sizes.size(), 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d) offset += index[d] * strides[d];
    fn(offset);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

template <class T>
Number load(const void* at) {
  const T& v = *static_cast<const T*>(at);
  if constexpr (requires { v.re; })
    return {double(v.re), double(v.im)};
  else if constexpr (std::is_arithmetic_v<T>)
    return {double(v), 0.0};
  else
    return {double(float(v)), 0.0};
}

template <class T>
void store(void* at, Number v) {
  T& to = *static_cast<T*>(at);
  if constexpr (requires { to.re; }) {
    using Part = decltype(to.re);
    to = T(Part(v.real()), Part(v.imag()));
  } else if constexpr (std::is_same_v<T, bool>) {
    to = v != 0.0;
  } else if constexpr (std::is_integral_v<T>) {
    to = T(int64_t(v.real()));
  } else if constexpr (std::is_floating_point_v<T>) {
    to = T(v.real());
  } else {
    to = T(float(v.real()));
  }
}

Number load_as(Dtype d, const void* at) {
  switch (d) {
#define X(type, name, ...) \
  case Dtype::name: return load<type>(at);
    FX_DTYPES(X)
#undef X
    default: return {};
  }
}

void store_as(Dtype d, void* at, Number v) {
  switch (d) {
#define X(type, name, ...) \
  case Dtype::name: return store<type>(at, v);
    FX_DTYPES(X)
#undef X
    default: return;
  }
}

std::string text_of(Number v) { return str("(", v.real(), ", ", v.imag(), ")"); }

bool part_close(double got, double want, double bound) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return std::abs(got - want) <= bound;
}

}  // namespace

Numbers read(const Tensor& t) {
  Numbers n;
  n.sizes = Dims(t.sizes().begin(), t.sizes().end());
  n.at.reserve(size_t(t.numel()));
  const char* base = static_cast<const char*>(t.impl()->data());
  uint16_t flags = t.impl()->flags;
  for_each_offset(t, [&](int64_t offset) {
    Number v = load_as(t.dtype(), base + offset * t.element_size());
    if (flags & kConjFlag) v = std::conj(v);
    if (flags & kNegFlag) v = -v;
    n.at.push_back(v);
  });
  return n;
}

void write_into(const Tensor& t, const std::vector<Number>& numbers) {
  char* base = static_cast<char*>(t.impl()->data());
  size_t next = 0;
  for_each_offset(t, [&](int64_t offset) {
    store_as(t.dtype(), base + offset * t.element_size(), numbers[next++]);
  });
}

Tensor write(const Numbers& numbers, Dtype dtype) {
  Tensor t = make_tensor(Meta(dtype, numbers.sizes));
  write_into(t, numbers.at);
  return t;
}

Bound bound_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kC128: return {1e-10, 1e-11};
    case Dtype::kF32:
    case Dtype::kC64: return {2e-5, 1e-5};
    case Dtype::kF16:
    case Dtype::kC32: return {4e-3, 2e-3};
    case Dtype::kBF16: return {1.6e-2, 1.6e-2};
    default: return {0, 0};
  }
}

std::string difference(const Numbers& got, const Numbers& want, Bound bound) {
  if (!(IntArrayRef(got.sizes) == IntArrayRef(want.sizes)))
    return str("sizes are ", got.sizes, ", expected ", want.sizes);
  for (size_t i = 0; i < got.at.size(); ++i) {
    Number g = got.at[i], w = want.at[i];
    double size = std::isfinite(std::abs(w)) ? std::abs(w) : 0;
    double allowed = bound.absolute + bound.relative * size;
    bool nan = std::isnan(g.real()) || std::isnan(g.imag());
    if (nan && (std::isnan(w.real()) || std::isnan(w.imag()))) continue;
    if (!part_close(g.real(), w.real(), allowed) || !part_close(g.imag(), w.imag(), allowed))
      return str("element ", int64_t(i), " is ", text_of(g), ", expected ", text_of(w));
  }
  return {};
}

std::string difference(const Tensor& got, const Tensor& want, Bound bound) {
  if (got.defined() != want.defined())
    return str(got.defined() ? "defined" : "undefined", ", expected the opposite");
  if (!got.defined()) return {};
  if (got.dtype() != want.dtype()) return str("is ", got.dtype(), ", expected ", want.dtype());
  return difference(read(got), read(want), bound);
}

Tensor strided_copy(const Tensor& t) {
  Meta m(t.dtype(), t.sizes());
  int64_t rank = t.dim(), step = 2;
  m.strides = Dims(size_t(rank), 0);
  for (int64_t d = 0; d < rank; ++d) {
    m.strides[size_t(d)] = step;
    step *= t.size(d) > 0 ? t.size(d) : 1;
  }
  Tensor block = make_tensor(Meta(t.dtype(), {step + 4}));
  std::vector<Number> fill(size_t(block.numel()), Number(1, 0));
  write_into(block, fill);
  Ref<TensorImpl> impl(new TensorImpl);
  impl->dtype = t.dtype();
  impl->device = t.device();
  impl->sizes = m.sizes;
  impl->strides = m.strides;
  impl->numel = t.numel();
  impl->offset = 3;
  impl->storage = block.storage();
  Tensor copy(std::move(impl));
  write_into(copy, read(t).at);
  return copy;
}

Tensor first_slice_repeated(const Tensor& t) {
  Tensor copy = contiguous_of(t);
  copy.impl()->strides[0] = 0;
  return copy;
}

Tensor contiguous_of(const Tensor& t) { return write(read(t), t.dtype()); }

}  // namespace fornax::test
