#include "fornax/core/tensor.h"

#include "fornax/base/pool.h"
#include "fornax/core/op.h"

namespace fornax {

TensorImpl::~TensorImpl() { delete rare.load(std::memory_order_relaxed); }
void* TensorImpl::operator new(size_t bytes) { return detail::pool_new(bytes); }
void TensorImpl::operator delete(void* p) { detail::pool_delete(p, sizeof(TensorImpl)); }

void TensorImpl::set_sizes_contiguous(IntArrayRef new_sizes) {
  sizes.assign(new_sizes.begin(), new_sizes.end());
  strides = contiguous_strides(new_sizes);
  numel = checked_numel(new_sizes);
}

void Tensor::undefined() {
  fail(ErrorKind::kValue,
       "this Tensor is undefined: it was default constructed, moved from, or stands for an "
       "absent argument; assign a tensor first");
}

int64_t checked_numel(IntArrayRef sizes) {
  int64_t n = 1;
  bool overflow = false, zero = false;
  for (int64_t s : sizes) {
    FX_CHECK(s >= 0, kValue, "sizes must not be negative, got ", sizes);
    zero = zero || s == 0;
    overflow = __builtin_mul_overflow(n, s, &n) || overflow;
  }
  if (zero) return 0;
  // 16 bytes is the largest element; a byte count must fit as well.
  FX_CHECK(!overflow && n <= INT64_MAX / 16, kMemory, "a tensor of sizes ", sizes,
           " has more elements than memory can address");
  return n;
}

Dims contiguous_strides(IntArrayRef sizes) {
  Dims strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    // As in PyTorch, an empty dimension counts as one; the product of such a shape may overflow
    // without harm.
    if (sizes[i] > 1 && __builtin_mul_overflow(step, sizes[i], &step)) step = INT64_MAX;
  }
  return strides;
}

Dims strides_of(MemoryFormat format, IntArrayRef sizes) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
    return contiguous_strides(sizes);
  size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  FX_CHECK(sizes.size() == rank, kShape, "memory format channels_last", rank == 5 ? "_3d" : "",
           " needs ", rank, " dimensions, got sizes ", sizes);
  Dims strides(rank);
  strides[1] = 1;
  int64_t step = sizes[1] > 1 ? sizes[1] : 1;
  for (size_t d = rank - 1; d >= 2; --d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  strides[0] = step;
  return strides;
}

int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view call) {
  int64_t limit = rank > 0 ? rank : 1;
  FX_CHECK(dim >= -limit && dim < limit, kIndex, call.empty() ? "" : call, call.empty() ? "" : ": ",
           "dimension ", dim, " is out of range for a ", rank, "-D tensor; expected one in [",
           -limit, ", ", limit - 1, "]");
  return dim < 0 ? dim + limit : dim;
}

Dims broadcast_sizes(IntArrayRef a, IntArrayRef b, std::string_view call) {
  IntArrayRef longer = a.size() >= b.size() ? a : b, shorter = a.size() >= b.size() ? b : a;
  Dims out(longer.begin(), longer.end());
  size_t shift = longer.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    int64_t &x = out[d + shift], y = shorter[d];
    FX_CHECK(x == y || x == 1 || y == 1, kShape, call.empty() ? "" : call, call.empty() ? "" : ": ",
             "sizes ", a, " and ", b, " don't broadcast: ", x, " and ", y, " differ at dimension ",
             d + shift);
    if (x == 1) x = y;
  }
  return out;
}

int64_t Tensor::size(int64_t d) const {
  FX_CHECK(dim() > 0, kIndex, "size: a 0-D tensor has no dimension ", d);
  return sizes()[size_t(wrap_dim(d, dim(), "size"))];
}
int64_t Tensor::stride(int64_t d) const {
  FX_CHECK(dim() > 0, kIndex, "stride: a 0-D tensor has no dimension ", d);
  return strides()[size_t(wrap_dim(d, dim(), "stride"))];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl& t = checked();
  if (t.numel == 0) return true;
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) {
    int64_t step = 1;
    for (size_t d = t.sizes.size(); d-- > 0;) {
      if (t.sizes[d] == 1) continue;
      if (t.strides[d] != step) return false;
      step *= t.sizes[d];
    }
    return true;
  }
  if (t.sizes.size() != (format == MemoryFormat::ChannelsLast ? 4u : 5u)) return false;
  Dims want = strides_of(format, t.sizes);
  for (size_t d = 0; d < want.size(); ++d)
    if (t.sizes[d] != 1 && t.strides[d] != want[d]) return false;
  return true;
}

bool Tensor::is_non_overlapping_and_dense() const {
  if (is_contiguous()) return true;
  const TensorImpl& t = checked();
  Dims order;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (t.sizes[d] != 1) order.push_back(int64_t(d));
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && t.strides[size_t(order[j])] < t.strides[size_t(order[j - 1])]; --j)
      std::swap(order[j], order[j - 1]);
  int64_t step = 1;
  for (int64_t d : order) {
    if (t.strides[size_t(d)] != step) return false;
    step *= t.sizes[size_t(d)];
  }
  return true;
}

MemoryFormat Tensor::suggest_memory_format() const {
  if (dim() == 4 && !is_contiguous() && is_contiguous(MemoryFormat::ChannelsLast))
    return MemoryFormat::ChannelsLast;
  if (dim() == 5 && !is_contiguous() && is_contiguous(MemoryFormat::ChannelsLast3d))
    return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

TensorOptions Tensor::options() const { return TensorOptions(dtype()).device(device()); }

void* Tensor::data_ptr() const {
  const TensorImpl& t = checked();
  FX_CHECK(!(t.flags & kWrappedFlag), kUnsupported,
           "data_ptr: this tensor belongs to a function transform and has no memory of its own; "
           "use it through operators");
  FX_CHECK(!t.device.is_meta(), kUnsupported, "data_ptr: a meta tensor has no data");
  FX_CHECK(!(t.flags & (kConjFlag | kNegFlag)), kUnsupported,
           "data_ptr: this tensor is a lazy conjugate or negative view; call "
           "resolve_conj()/resolve_neg() first");
  return t.data();
}

void* Tensor::data_ptr_of(Dtype wanted) const {
  FX_CHECK(dtype() == wanted, kType, "data_ptr: expected a tensor of ", wanted, ", got ", dtype());
  return data_ptr();
}

uint32_t Tensor::_version() const {
  FX_CHECK(!is_inference(), kAutograd, "_version: inference tensors do not track versions");
  return checked().version().load(std::memory_order_relaxed);
}

void Tensor::resize_(IntArrayRef new_sizes) const {
  TensorImpl& t = checked();
  FX_CHECK(!t.base && !(t.flags & kWrappedFlag), kUnsupported,
           "resize_: views and tensors of a transform can't be resized");
  FX_CHECK(!requires_grad(), kAutograd, "resize_: a tensor that requires grad can't be resized");
  int64_t n = checked_numel(new_sizes);
  size_t bytes = size_t((t.offset + n) * size_of(t.dtype));
  if (bytes > t.storage->bytes()) t.storage->resize(bytes);
  t.set_sizes_contiguous(new_sizes);
  t.version().fetch_add(1, std::memory_order_relaxed);
}

Tensor Tensor::alias() const {
  const TensorImpl& from = checked();
  auto copy = Ref<TensorImpl>::own(new TensorImpl);
  copy->flags = uint16_t(from.flags & (kConjFlag | kNegFlag | kInferenceFlag | kWrappedFlag));
  copy->dtype = from.dtype;
  copy->device = from.device;
  copy->sizes = from.sizes;
  copy->strides = from.strides;
  copy->offset = from.offset;
  copy->numel = from.numel;
  copy->storage = from.storage;
  copy->counter = from.counter;
  Tensor t(std::move(copy));
  if (from.flags & kWrappedFlag) copy_wrapper(*this, t);
  return t;
}

std::string Tensor::toString() const {
  std::string place(name_of(device().type()));
  for (char& c : place) c = char(c >= 'a' && c <= 'z' ? c - 32 : c);
  return place + std::string(torch_name_of(dtype())) + "Type";
}

void append_to(std::string& out, const Tensor& tensor) {
  if (!tensor.defined()) {
    out += "an undefined tensor";
    return;
  }
  out += str("a ", tensor.dtype(), " tensor of sizes ", tensor.sizes());
}

namespace {

void free_with_user_deleter(void* context, void* data, size_t) {
  reinterpret_cast<void (*)(void*)>(context)(data);
}

Tensor blob(void* data, IntArrayRef sizes, IntArrayRef strides, Deleter deleter, void* context,
            const TensorOptions& options) {
  int64_t n = checked_numel(sizes), extent = n ? 1 : 0;
  FX_CHECK(strides.size() == sizes.size(), kShape, "from_blob: ", sizes.size(), " sizes but ",
           strides.size(), " strides");
  for (size_t d = 0; d < sizes.size() && n; ++d) {
    FX_CHECK(strides[d] >= 0, kValue, "from_blob: negative strides are not supported, got ",
             strides);
    extent += (sizes[d] - 1) * strides[d];
  }
  FX_CHECK(data || n == 0, kValue, "from_blob: null data for sizes ", sizes);
  auto impl = make_ref<TensorImpl>();
  impl->dtype = options.dtype();
  impl->device = options.device();
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides.assign(strides.begin(), strides.end());
  impl->numel = n;
  impl->storage =
      Storage::wrap(data, size_t(extent * size_of(impl->dtype)), impl->device, deleter, context);
  Tensor t(std::move(impl));
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return blob(data, sizes, contiguous_strides(sizes), nullptr, nullptr, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return blob(data, sizes, strides, nullptr, nullptr, options);
}
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*),
                 const TensorOptions& options) {
  return blob(data, sizes, contiguous_strides(sizes), free_with_user_deleter,
              reinterpret_cast<void*>(deleter), options);
}

}  // namespace fornax
