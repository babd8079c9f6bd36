// Instruction sets that kernel sources are compiled for, one object file each (CMake passes
// FX_ISA).
//
// Everything in a kernel source lives in `namespace fornax::FX_ISA_NS` or an anonymous namespace: a
// weak symbol compiled for x86-64-v4 must never be the one the linker keeps for an older CPU.
#pragma once

namespace fornax {

// Ordered: a CPU that has a set has every smaller one.
enum class Isa : unsigned char { kNone, kV3, kV4 };

// The best set this CPU has, found once. kNone below x86-64-v3.
Isa cpu_isa();
// The set in use: cpu_isa(), or what FORNAX_ISA=v3|v4 asks for (never more than the CPU has).
// Throws Error(kUnsupported) naming the missing features when the CPU is below x86-64-v3.
Isa active_isa();
const char* name_of(Isa isa);

}  // namespace fornax

#if defined(FX_ISA)
#define FX_ISA_JOIN_(a, b) a##b
#define FX_ISA_JOIN(a, b) FX_ISA_JOIN_(a, b)
#define FX_ISA_NS FX_ISA_JOIN(isa_, FX_ISA)
#endif
