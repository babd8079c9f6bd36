#include "fornax/device/system_memory.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include "fornax/device/allocator.h"

namespace fornax::cpu_memory {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

// The start of a small file of /proc or /sys; empty if it cannot be read.
std::string_view read_start(const char* path, char* buffer, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  ssize_t got = read(fd, buffer, size);
  close(fd);
  return got > 0 ? std::string_view(buffer, size_t(got)) : std::string_view();
}

uint64_t parse_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value;
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() ? value : kUnknown;
}

// The control group's limit, version 2 or 1; kUnknown if there is none.
uint64_t group_limit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    char buffer[64];
    uint64_t limit = parse_number(read_start(path, buffer, sizeof buffer));
    if (limit != kUnknown) return limit;
  }
  return kUnknown;
}

struct Machine {
  uint64_t memory = kUnknown, swap = 0;
};

const Machine& machine() {
  static const Machine found = [] {
    Machine m;
    struct sysinfo info;
    if (sysinfo(&info) == 0) {
      m.memory = uint64_t(info.totalram) * info.mem_unit;
      m.swap = uint64_t(info.totalswap) * info.mem_unit;
    }
    m.memory = std::min(m.memory, group_limit());
    return m;
  }();
  return found;
}

// A line "name:   123 kB" of /proc/meminfo, in bytes.
uint64_t meminfo(std::string_view text, std::string_view name) {
  size_t at = text.find(name);
  if (at == text.npos) return kUnknown;
  uint64_t kib = parse_number(text.substr(at + name.size()));
  return kib == kUnknown ? kib : kib * 1024;
}

uint64_t available_now() {
  char buffer[4096];
  std::string_view text = read_start("/proc/meminfo", buffer, sizeof buffer);
  uint64_t memory = meminfo(text, "MemAvailable:"), swap = meminfo(text, "SwapFree:");
  return memory == kUnknown ? kUnknown : memory + (swap == kUnknown ? 0 : swap);
}

}  // namespace

uint64_t physical_memory() { return machine().memory; }

bool has_room_for(size_t bytes, size_t held, bool now) {
  const Machine& m = machine();
  uint64_t total = m.memory == kUnknown ? kUnknown : m.memory + m.swap;
  if (bytes > total || held > total - bytes) return false;
  return !now || bytes <= available_now();
}

std::string describe_size(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  char text[64];
  if (bytes < 1024) {
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
    return text;
  }
  double value = double(bytes) / 1024;
  int unit = 0;
  for (; value >= 1023.995 && unit < 5; value /= 1024) ++unit;
  std::snprintf(text, sizeof text, "%.2f %s (%llu bytes)", value, kUnits[unit],
                static_cast<unsigned long long>(bytes));
  return text;
}

}  // namespace fornax::cpu_memory
