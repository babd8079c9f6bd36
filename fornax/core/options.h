// How a tensor is to be made: dtype, device, layout, requires_grad, memory format.
#pragma once

#include <optional>

#include "fornax/base/dtype.h"
#include "fornax/device/device.h"

namespace fornax {

enum class Layout : int8_t { kStrided, kSparse, kSparseCsr };
inline constexpr Layout kStrided = Layout::kStrided, kSparse = Layout::kSparse,
                        kSparseCsr = Layout::kSparseCsr;

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

Dtype get_default_dtype();
// Floating types only; throws Error(kType) otherwise.
void set_default_dtype(Dtype dtype);

// Unset fields take the default, or what the *_like argument has.
class TensorOptions {
 public:
  constexpr TensorOptions() = default;
  constexpr TensorOptions(Dtype dtype) : dtype_(dtype) {}
  constexpr TensorOptions(Device device) : device_(device) {}
  constexpr TensorOptions(DeviceType device) : device_(Device(device)) {}
  constexpr TensorOptions(Layout layout) : layout_(layout) {}
  constexpr TensorOptions(MemoryFormat format) : memory_format_(format) {}

  constexpr TensorOptions dtype(std::optional<Dtype> d) const {
    return with(&TensorOptions::dtype_, d);
  }
  constexpr TensorOptions device(std::optional<Device> d) const {
    return with(&TensorOptions::device_, d);
  }
  constexpr TensorOptions device(DeviceType d) const {
    return device(std::optional<Device>(Device(d)));
  }
  constexpr TensorOptions layout(std::optional<Layout> l) const {
    return with(&TensorOptions::layout_, l);
  }
  constexpr TensorOptions memory_format(std::optional<MemoryFormat> m) const {
    return with(&TensorOptions::memory_format_, m);
  }
  constexpr TensorOptions requires_grad(std::optional<bool> on) const {
    return with(&TensorOptions::requires_grad_, on);
  }
  constexpr TensorOptions pinned_memory(std::optional<bool>) const { return *this; }

  constexpr std::optional<Dtype> dtype_opt() const { return dtype_; }
  constexpr std::optional<Device> device_opt() const { return device_; }
  constexpr std::optional<Layout> layout_opt() const { return layout_; }
  constexpr std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  constexpr bool requires_grad() const { return requires_grad_.value_or(false); }
  Dtype dtype() const { return dtype_ ? *dtype_ : get_default_dtype(); }
  constexpr Device device() const { return device_.value_or(Device()); }
  constexpr Layout layout() const { return layout_.value_or(kStrided); }

 private:
  template <class M, class V>
  constexpr TensorOptions with(M member, V value) const {
    TensorOptions r = *this;
    r.*member = value;
    return r;
  }
  std::optional<Dtype> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<MemoryFormat> memory_format_;
  std::optional<bool> requires_grad_;
};

inline constexpr TensorOptions dtype(Dtype d) { return TensorOptions(d); }
inline constexpr TensorOptions device(Device d) { return TensorOptions(d); }
inline constexpr TensorOptions requires_grad(bool on = true) {
  return TensorOptions().requires_grad(on);
}

}  // namespace fornax
