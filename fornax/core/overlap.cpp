#include "fornax/core/overlap.h"

namespace fornax {
namespace {

struct Range {
  int64_t first, last;  // bytes, inclusive; last < first when empty
};

Range range_of(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (impl.numel == 0) return {0, -1};
  int64_t last = impl.offset;
  for (size_t d = 0; d < impl.sizes.size(); ++d) last += (impl.sizes[d] - 1) * impl.strides[d];
  int64_t bytes = size_of(impl.dtype);
  return {impl.offset * bytes, last * bytes + bytes - 1};
}

// For interleaved views with equal strides (a[::2] and a[1::2]): whether the offsets differ by a
// sum of whole strides.
bool interleaved(const TensorImpl& a, const TensorImpl& b) {
  if (a.dtype != b.dtype || !(a.strides == b.strides) || !(a.sizes == b.sizes)) return false;
  int64_t least = INT64_MAX;
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] > 1 && a.strides[d] < least) least = a.strides[d];
  if (least == INT64_MAX || least <= 1) return false;
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] > 1 && a.strides[d] % least != 0) return false;
  return (a.offset - b.offset) % least != 0;
}

}  // namespace

bool has_internal_overlap(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  for (size_t d = 0; d < impl.sizes.size(); ++d)
    if (impl.sizes[d] > 1 && impl.strides[d] == 0) return true;
  return false;
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  Range x = range_of(a), y = range_of(b);
  return x.first <= y.last && y.first <= x.last && !interleaved(*a.impl(), *b.impl());
}

bool same_elements(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = *a.impl(), &y = *b.impl();
  return x.offset == y.offset && x.dtype == y.dtype && x.sizes == y.sizes && x.strides == y.strides;
}

}  // namespace fornax
