#include "fornax/base/cpu_info.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fornax {

#if defined(__x86_64__)

std::string cpu_name() {
  unsigned words[12];
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* w = words + 4 * i;
    if (!__get_cpuid(0x80000002u + i, w, w + 1, w + 2, w + 3)) return "unknown";
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words, sizeof words);
  std::string_view name = text;
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return name.empty() ? "unknown" : std::string(name);
}

std::string cpu_features() {
  __builtin_cpu_init();
  std::string out;
  auto add = [&](const char* name, bool present) {
    if (!present) return;
    if (!out.empty()) out += ' ';
    out += name;
  };
  // GCC's checks include that the operating system saves the registers.
#define FX_FEATURE(name) add(name, __builtin_cpu_supports(name))
  FX_FEATURE("sse4.2");
  FX_FEATURE("popcnt");
  FX_FEATURE("avx");
  FX_FEATURE("avx2");
  FX_FEATURE("fma");
  FX_FEATURE("f16c");
  FX_FEATURE("bmi");
  FX_FEATURE("bmi2");
  FX_FEATURE("avxvnni");
  FX_FEATURE("avx512f");
  FX_FEATURE("avx512dq");
  FX_FEATURE("avx512bw");
  FX_FEATURE("avx512vl");
  FX_FEATURE("avx512cd");
  FX_FEATURE("avx512vnni");
  FX_FEATURE("avx512bf16");
  FX_FEATURE("avx512fp16");
  FX_FEATURE("amx-tile");
  FX_FEATURE("amx-bf16");
  FX_FEATURE("amx-int8");
#undef FX_FEATURE
  return out;
}

#else

std::string cpu_name() { return "unknown"; }
std::string cpu_features() { return "neon"; }

#endif

int cpu_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, int(std::thread::hardware_concurrency()));
}

}  // namespace fornax
