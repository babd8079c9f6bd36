#include "fornax/expr/kernels/fused_loops.h"

namespace fornax::FX_ISA_NS {
Loop find_fused_f64(Prim inner, Prim outer, bool left, int varies) {
  return fused_of<double>(inner, outer, left, varies);
}
}  // namespace fornax::FX_ISA_NS
