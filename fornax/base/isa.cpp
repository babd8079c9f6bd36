#include "fornax/base/isa.h"

#include <cpuid.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fornax/base/error.h"

namespace fornax {
namespace {

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(uint32_t leaf) {
  Registers r;
  if (leaf <= __get_cpuid_max(leaf & 0x80000000u, nullptr))
    __cpuid_count(leaf, 0, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

// Which register files the operating system saves on a context switch (XCR0).
uint64_t saved_states() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

struct Feature {
  const char* name;
  bool present;
};

// What x86-64-v3 and v4 demand beyond SSE4.2, by the x86-64 psABI.
struct Features {
  Feature v3[9];
  Feature v4[6];
};

Features probe() {
  const Registers one = cpuid(1), seven = cpuid(7), extended = cpuid(0x80000001u);
  const bool xsave = one.ecx >> 27 & 1;
  const uint64_t states = xsave ? saved_states() : 0;
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xe6) == 0xe6;
  auto bit = [](uint32_t word, int index) { return (word >> index & 1) != 0; };
  return {{{"os support for avx", ymm},
           {"avx", bit(one.ecx, 28)},
           {"avx2", bit(seven.ebx, 5)},
           {"fma", bit(one.ecx, 12)},
           {"f16c", bit(one.ecx, 29)},
           {"movbe", bit(one.ecx, 22)},
           {"bmi1", bit(seven.ebx, 3)},
           {"bmi2", bit(seven.ebx, 8)},
           {"lzcnt", bit(extended.ecx, 5)}},
          {{"os support for avx512", zmm},
           {"avx512f", bit(seven.ebx, 16)},
           {"avx512dq", bit(seven.ebx, 17)},
           {"avx512cd", bit(seven.ebx, 28)},
           {"avx512bw", bit(seven.ebx, 30)},
           {"avx512vl", bit(seven.ebx, 31)}}};
}

std::string missing_v3() {
  std::string text;
  for (const Feature& f : probe().v3) {
    if (f.present) continue;
    text += text.empty() ? "" : ", ";
    text += f.name;
  }
  return text;
}

Isa find_cpu_isa() {
  const Features features = probe();
  for (const Feature& f : features.v3)
    if (!f.present) return Isa::kNone;
  for (const Feature& f : features.v4)
    if (!f.present) return Isa::kV3;
  return Isa::kV4;
}

Isa choose() {
  const Isa cpu = cpu_isa();
  FX_CHECK(cpu != Isa::kNone, kUnsupported,
           "this CPU is below x86-64-v3 (Intel Haswell, AMD Zen); missing: ", missing_v3());
  const char* wanted = std::getenv("FORNAX_ISA");
  if (!wanted || !*wanted) return cpu;
  const std::string_view name = wanted;
  FX_CHECK(name == "v3" || name == "v4", kValue, "FORNAX_ISA must be v3 or v4, got '", name, "'");
  const Isa isa = name == "v4" ? Isa::kV4 : Isa::kV3;
  return isa < cpu ? isa : cpu;
}

}  // namespace

Isa cpu_isa() {
  static const Isa isa = find_cpu_isa();
  return isa;
}

Isa active_isa() {
  static const Isa isa = choose();
  return isa;
}

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::kV3: return "v3";
    case Isa::kV4: return "v4";
    case Isa::kNone: break;
  }
  return "none";
}

}  // namespace fornax
