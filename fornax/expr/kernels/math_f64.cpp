// Jump threading would turn chains of clamps and selects into mask logic: up to twice slower.
#pragma GCC optimize("no-thread-jumps")

#include "fornax/expr/kernels/math_loops.h"

namespace fornax::FX_ISA_NS {
Loop find_math_f64(Prim prim, int varies) { return math_of<double>(prim, varies); }
}  // namespace fornax::FX_ISA_NS
