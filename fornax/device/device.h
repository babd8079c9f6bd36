// Where a tensor lives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fornax {

enum class DeviceType : int8_t { kCPU, kCUDA, kMPS, kOpenCL, kMeta };
inline constexpr int kDeviceTypeCount = 5;
inline constexpr DeviceType kCPU = DeviceType::kCPU, kCUDA = DeviceType::kCUDA,
                            kMPS = DeviceType::kMPS, kOpenCL = DeviceType::kOpenCL,
                            kMeta = DeviceType::kMeta;

// Type and ordinal; index -1 means the current device of that type.
struct Device {
  DeviceType type_ = DeviceType::kCPU;
  int8_t index_ = -1;

  constexpr Device() = default;
  constexpr Device(DeviceType type, int index = -1) : type_(type), index_(int8_t(index)) {}
  // "cpu", "cuda:1", "meta"; throws Error(kDevice) on anything else.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  constexpr DeviceType type() const { return type_; }
  constexpr int index() const { return index_; }
  constexpr bool has_index() const { return index_ >= 0; }
  constexpr bool is_cpu() const { return type_ == kCPU; }
  constexpr bool is_cuda() const { return type_ == kCUDA; }
  constexpr bool is_meta() const { return type_ == kMeta; }
  std::string str() const;
  friend constexpr bool operator==(Device a, Device b) = default;
};

std::string_view name_of(DeviceType type);
void append_to(std::string& out, Device device);

}  // namespace fornax
