// Tensor: one intrusive pointer to a TensorImpl. Geometry over a Storage; views remember the step
// that made them.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/base/dtype.h"
#include "fornax/base/error.h"
#include "fornax/base/function.h"
#include "fornax/base/ref.h"
#include "fornax/core/generator.h"
#include "fornax/core/options.h"
#include "fornax/core/scalar.h"
#include "fornax/core/storage.h"

namespace fornax {

class Tensor;
class OwnedArgs;
struct GradNode;
struct Rare;
struct Step;
struct Node;
void retain_ref(const GradNode* node) noexcept;
void drop_ref(GradNode* node) noexcept;
namespace indexing {
struct TensorIndex;
}

using TensorList = ArrayRef<Tensor>;
using TensorIndexList = ArrayRef<indexing::TensorIndex>;

// Why a call leaves the fast path. Kept in TensorImpl::flags.
enum Flag : uint16_t {
  kTapeFlag = 1,        // requires grad, or has history
  kDualFlag = 2,        // carries a tangent of the base level
  kWrappedFlag = 4,     // made by an interpreter; its storage lives one level down
  kConjFlag = 8,        // elements are the conjugates of what memory holds
  kNegFlag = 16,        // elements are the negatives of what memory holds
  kLayoutFlag = 32,     // not strided
  kInferenceFlag = 64,  // made under InferenceMode: no version, can't be saved
  kTapeView = 128,      // a view made while recording: its flags are its own or its base's
  kRequiresGrad = 256,  // a leaf on which requires_grad was set
};
// What dispatch looks at.
inline constexpr uint16_t kDispatchFlags =
    kTapeFlag | kDualFlag | kWrappedFlag | kConjFlag | kNegFlag | kLayoutFlag | kInferenceFlag;

// The object behind a Tensor. Not thread safe where it is written; reading from several threads is.
struct TensorImpl : RefCounted {
  uint16_t flags = 0;
  Dtype dtype = Dtype::kF32;
  Device device;
  uint32_t tape_generation =
      0;  // base: bumped when its history changes; view: what it was derived from
  uint32_t data_generation =
      0;               // base: bumped when an interpreter swaps its inner value; view: likewise
  int64_t offset = 0;  // in elements
  int64_t numel = 1;
  Dims sizes, strides;
  Ref<Storage> storage;         // null for wrappers and meta tensors without bytes
  Ref<VersionCounter> counter;  // null: the storage's
  Ref<TensorImpl> base;         // views only: never itself a view
  Ref<Step> step;               // views only: the last step; earlier ones hang on it
  std::atomic<Rare*> rare{nullptr};

  TensorImpl() = default;
  ~TensorImpl();
  static void* operator new(size_t bytes);
  static void operator delete(void* p);

  // A view also leaves the fast path when a write through a sibling gave its base a history or a
  // tangent.
  uint16_t all_flags() const {
    if (!base) return flags;
    uint16_t follows = flags & kTapeView ? kTapeFlag | kDualFlag : kDualFlag;
    return uint16_t(flags | (base->flags & follows));
  }
  std::atomic<uint32_t>& version() const { return counter ? counter->value : storage->version; }
  void* data() const {
    return storage ? static_cast<char*>(storage->data()) + offset * size_of(dtype) : nullptr;
  }
  void set_sizes_contiguous(IntArrayRef new_sizes);
};

template <class T, size_t N>
class TensorAccessor;

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullopt_t) {}
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  // An undefined handle is the absent optional, the zero gradient and the zero tangent.
  bool defined() const { return bool(impl_); }
  bool has_value() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  void reset() { impl_.reset(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  uint32_t use_count() const { return impl_ ? impl_->use_count() : 0; }

  // ---- geometry
  int64_t dim() const { return int64_t(checked().sizes.size()); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return checked().sizes; }
  IntArrayRef strides() const { return checked().strides; }
  // Negative dimensions count from the end.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t numel() const { return checked().numel; }
  int64_t storage_offset() const { return checked().offset; }
  int64_t element_size() const { return size_of(checked().dtype); }
  int64_t itemsize() const { return element_size(); }
  size_t nbytes() const { return size_t(numel() * element_size()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const;
  MemoryFormat suggest_memory_format() const;

  // ---- type and place
  Dtype dtype() const { return checked().dtype; }
  Dtype scalar_type() const { return checked().dtype; }
  Device device() const { return checked().device; }
  Layout layout() const { return kStrided; }
  TensorOptions options() const;
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_sparse() const { return false; }
  bool is_complex() const { return fornax::is_complex(dtype()); }
  bool is_floating_point() const { return fornax::is_float(dtype()); }
  bool is_signed() const { return dtype() != Dtype::kBool && dtype() != Dtype::kU8; }
  bool is_conj() const { return (checked().flags & kConjFlag) != 0; }
  bool is_neg() const { return (checked().flags & kNegFlag) != 0; }
  bool is_inference() const { return (checked().flags & kInferenceFlag) != 0; }

  // ---- memory
  // First element. Throws Error(kType) on another type, Error(kUnsupported) where there are no
  // bytes (meta, transforms).
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(data_ptr_of(dtype_of<std::remove_const_t<T>>));
  }
  void* data_ptr() const;
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  // Bounds and type are checked once, here; element access is plain pointer arithmetic.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const;
  // The one element as T, with conversion. Throws Error(kValue) unless numel() is 1.
  template <class T>
  T item() const {
    return item().to<T>();
  }
  Scalar item() const;
  uint32_t _version() const;
  // The dimensions of this very object change; the elements stay. Views made of it before keep
  // their own geometry.
  Tensor& t_() const;
  Tensor& transpose_(int64_t dim0, int64_t dim1) const;
  Tensor& squeeze_() const;
  Tensor& squeeze_(int64_t dim) const;
  Tensor& squeeze_(IntArrayRef dims) const;
  Tensor& unsqueeze_(int64_t dim) const;
  void resize_(IntArrayRef sizes) const;
  Ref<Storage> storage() const { return checked().storage; }

  // ---- autograd (fornax/autograd)
  bool requires_grad() const { return (checked().all_flags() & kTapeFlag) != 0; }
  Tensor& requires_grad_(bool on = true) const;
  Tensor& set_requires_grad(bool on) const { return requires_grad_(on); }
  bool is_leaf() const;
  // Accumulated gradient; undefined if there is none.
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  // The node that computed this tensor; null for leaves.
  Ref<GradNode> grad_fn() const;
  uint32_t output_nr() const;
  // Gradients of all reachable leaves accumulate into .grad. `gradient` may be omitted for
  // one-element tensors.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false, std::optional<TensorList> inputs = std::nullopt) const;
  // Keeps .grad of a tensor that isn't a leaf.
  void retain_grad() const;
  bool retains_grad() const;
  Tensor& detach_() const;
  bool is_view() const { return bool(checked().base); }
  Tensor _base() const { return Tensor(checked().base); }
  // Same bytes, no history, a version counter of its own.
  Tensor data() const;
  // The same geometry over the same bytes and version counter, without history or view link.
  Tensor alias() const;
  Tensor variable_data() const { return data(); }
  Tensor tensor_data() const { return data(); }
  // Lets this handle's object look at other bytes and geometry; history and gradient stay.
  void set_data(const Tensor& other) const;
  // Calls hook(grad) when the gradient of this tensor is ready; a defined result replaces it.
  // Returns the hook's number. The hook takes a Tensor and returns a Tensor or nothing.
  template <class F>
  unsigned register_hook(F hook) const {
    if constexpr (std::is_void_v<decltype(hook(std::declval<Tensor>()))>) {
      return add_hook(Function<Tensor(const Tensor&)>([hook](const Tensor& grad) {
        hook(grad);
        return Tensor();
      }));
    } else {
      return add_hook(Function<Tensor(const Tensor&)>(
          [hook](const Tensor& grad) { return Tensor(hook(grad)); }));
    }
  }
  void remove_hook(unsigned number) const;
  // Leaves: calls hook(tensor) each time after a gradient was accumulated into .grad.
  template <class F>
  unsigned register_post_accumulate_grad_hook(F hook) const {
    return add_post_hook(Function<void(const Tensor&)>(std::move(hook)));
  }

  // ---- conversions
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(Dtype dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(Device device, Dtype dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const;
  Tensor toType(Dtype dtype) const { return to(dtype); }
  Tensor type_as(const Tensor& other) const { return to(other.dtype()); }
  Tensor cpu() const { return to(TensorOptions(kCPU)); }
  std::string toString() const;  // "CPUFloatType"

  // ---- indexing
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& values) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                     const Tensor& values) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                     const Scalar& value) const;
  Tensor operator[](int64_t index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor operator[](const Scalar& index) const;

  // ---- operators
  Tensor& operator+=(const Tensor& other) const;
  Tensor& operator+=(const Scalar& other) const;
  Tensor& operator-=(const Tensor& other) const;
  Tensor& operator-=(const Scalar& other) const;
  Tensor& operator*=(const Tensor& other) const;
  Tensor& operator*=(const Scalar& other) const;
  Tensor& operator/=(const Tensor& other) const;
  Tensor& operator/=(const Scalar& other) const;
  Tensor& operator&=(const Tensor& other) const;
  Tensor& operator&=(const Scalar& other) const;
  Tensor& operator|=(const Tensor& other) const;
  Tensor& operator|=(const Scalar& other) const;
  Tensor& operator^=(const Tensor& other) const;
  Tensor& operator^=(const Scalar& other) const;
  Tensor& operator<<=(const Tensor& other) const;
  Tensor& operator<<=(const Scalar& other) const;
  Tensor& operator>>=(const Tensor& other) const;
  Tensor& operator>>=(const Scalar& other) const;
  Tensor operator-() const;
  Tensor operator~() const;

#define FX_METHODS
#include "fornax/ops/op_rows.h"  // the methods, from ops.def
#undef FX_METHODS

 private:
  // Any access through an undefined tensor is an error, not a crash.
  TensorImpl& checked() const {
    if (!impl_) [[unlikely]]
      undefined();
    return *impl_;
  }
  [[noreturn]] static void undefined();
  void* data_ptr_of(Dtype dtype) const;
  unsigned add_hook(Function<Tensor(const Tensor&)> hook) const;
  unsigned add_post_hook(Function<void(const Tensor&)> hook) const;

  Ref<TensorImpl> impl_;
};

using Tensors = SmallVec<Tensor, 2>;

// "Tensor [2, 3] float32"; for errors. Elements are printed by print()/operator<<.
void append_to(std::string& out, const Tensor& tensor);
// The elements as libtorch prints them.
std::string to_string(const Tensor& tensor, int64_t line_width = 80);
template <class Stream, class = decltype(std::declval<Stream&>().write("", 0))>
Stream& operator<<(Stream& stream, const Tensor& tensor) {
  std::string text = to_string(tensor);
  stream.write(text.data(), std::streamsize(text.size()));
  return stream;
}

// Wraps memory of the caller; it must outlive the tensor and its views (or `deleter` frees it).
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, void (*deleter)(void*),
                 const TensorOptions& options = {});

Dims contiguous_strides(IntArrayRef sizes);
// Strides of NHWC (or NDHWC) order for sizes given as NCHW. Throws Error(kShape) unless the rank
// fits the format.
Dims strides_of(MemoryFormat format, IntArrayRef sizes);
// Product of sizes. Throws Error(kValue) on negative sizes, Error(kMemory) on overflow.
int64_t checked_numel(IntArrayRef sizes);
// dim in [0, rank); negative counts from the end; rank 0 counts as 1. Throws Error(kIndex).
int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view call = {});
Dims broadcast_sizes(IntArrayRef a, IntArrayRef b, std::string_view call = {});

template <class T, size_t N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1)
      return static_cast<T&>(data_[i * strides_[0]]);
    else
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const {
  FX_CHECK(dim() == int64_t(N), kShape, "accessor: expected ", N, " dimensions, got ", dim());
  return TensorAccessor<T, N>(data_ptr<T>(), impl_->sizes.data(), impl_->strides.data());
}

}  // namespace fornax
