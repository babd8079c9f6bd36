// What the VM's compiler and engine ask of an instruction set: loops by primitive and type.
#pragma once

#include <cstdint>

#include "fornax/base/dtype.h"
#include "fornax/base/isa.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/loops.h"
#include "fornax/expr/vm.h"

namespace fornax::expr {

// How a value lies in a slot. Masks are 0 or -1, as wide as the program's reals.
enum class Lane : uint8_t { kM32, kM64, kI32, kI64, kF32, kF64 };

constexpr int bytes_of(Lane lane) {
  return lane == Lane::kM32 || lane == Lane::kI32 || lane == Lane::kF32 ? 4 : 8;
}

// Every function gives null where there is no such loop. `varies`: bit i, operand i is one value
// per element; else it is a single value.
struct KernelTable {
  // Operands of `type`; comparisons give masks of the type `mask`.
  Loop (*primitive)(Prim prim, Lane type, Lane mask, int varies);
  // mask ? a : b on values of `bytes`. The mask always varies.
  Loop (*select)(int bytes, Lane mask, int varies);
  // outer(inner(a, b), c), or outer(c, inner(a, b)) unless `left`: each rounds.
  Loop (*fused)(Prim inner, Prim outer, bool left, Lane type, int varies);
  Loop (*cast)(Lane from, Lane to);
  // part: 0 whole, 1 real, 2 imaginary part of a complex dtype.
  Loop (*load)(Dtype from, Lane to, int part);
  // Complex dtypes read the parts from a and b.
  Loop (*store)(Lane from, Dtype to);
  Loop (*fill)(int bytes);  // d[i] = a[0]
  // Operands a, b, and the function's address at c: double (*)(double, double), or
  // int64_t (*)(int64_t, int64_t) for integers.
  Loop (*call)(Lane type);
  DirectLoops direct;
};

const KernelTable& kernel_table();  // of active_isa()
// Null if this CPU does not have the set.
const KernelTable* kernel_table(Isa isa);

}  // namespace fornax::expr

#if defined(FX_ISA)
namespace fornax::FX_ISA_NS {

using expr::Lane;
using expr::Loop;
using expr::Prim;

Loop find_real(Prim prim, Lane type, int varies);  // arithmetic and rounding
Loop find_compare(Prim prim, Lane type, Lane mask, int varies);
Loop find_math_f32(Prim prim, int varies);
Loop find_math_f64(Prim prim, int varies);
Loop find_integer(Prim prim, Lane type, int varies);  // also masks
Loop find_select(int bytes, Lane mask, int varies);
Loop find_fused_f32(Prim inner, Prim outer, bool left, int varies);
Loop find_fused_f64(Prim inner, Prim outer, bool left, int varies);
Loop find_cast(Lane from, Lane to);
Loop find_load(Dtype from, Lane to, int part);
Loop find_store(Lane from, Dtype to);
Loop find_fill(int bytes);
Loop find_call(Lane type);
void set_direct_loops(expr::DirectLoops& loops);
void set_copy_loops(expr::DirectLoops& loops);

}  // namespace fornax::FX_ISA_NS
#endif
