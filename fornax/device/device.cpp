#include "fornax/device/device.h"

#include "fornax/base/error.h"

namespace fornax {
namespace {
constexpr std::string_view kNames[kDeviceTypeCount] = {"cpu", "cuda", "mps", "opencl", "meta"};
}

std::string_view name_of(DeviceType type) { return kNames[int(type)]; }

Device::Device(std::string_view text) {
  std::string_view head = text.substr(0, text.find(':'));
  std::string_view tail =
      head.size() < text.size() ? text.substr(head.size() + 1) : std::string_view();
  int type = 0;
  while (type < kDeviceTypeCount && kNames[type] != head) ++type;
  int index = -1;
  bool ok = type < kDeviceTypeCount &&
            (head.size() == text.size() || (!tail.empty() && tail.size() <= 2));
  if (ok && !tail.empty()) {
    index = 0;
    for (char c : tail) {
      ok = ok && c >= '0' && c <= '9';
      index = index * 10 + (c - '0');
    }
  }
  FX_CHECK(ok, kDevice,
           "device: expected cpu, cuda, mps, opencl or meta with an optional :index, got '", text,
           "'");
  type_ = DeviceType(type);
  index_ = int8_t(index);
}

std::string Device::str() const {
  std::string out(name_of(type_));
  if (index_ >= 0) out += ":" + std::to_string(int(index_));
  return out;
}

void append_to(std::string& out, Device device) { out += device.str(); }

}  // namespace fornax
