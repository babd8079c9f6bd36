#include "fornax/expr/kernels/table.h"

namespace fornax::FX_ISA_NS {
namespace {

Loop find_primitive(Prim prim, Lane type, Lane mask, int varies) {
  if (prim == Prim::kEq || prim == Prim::kLt || prim == Prim::kLe)
    return find_compare(prim, type, mask, varies);
  if (type != Lane::kF32 && type != Lane::kF64) return find_integer(prim, type, varies);
  if (Loop loop = find_real(prim, type, varies)) return loop;
  return type == Lane::kF32 ? find_math_f32(prim, varies) : find_math_f64(prim, varies);
}

Loop find_fused(Prim inner, Prim outer, bool left, Lane type, int varies) {
  if (type == Lane::kF32) return find_fused_f32(inner, outer, left, varies);
  if (type == Lane::kF64) return find_fused_f64(inner, outer, left, varies);
  return nullptr;
}

}  // namespace

// Called once, by kernel_table().
void fill_kernel_table(expr::KernelTable& table) {
  table.primitive = find_primitive;
  table.select = find_select;
  table.fused = find_fused;
  table.cast = find_cast;
  table.load = find_load;
  table.store = find_store;
  table.fill = find_fill;
  table.call = find_call;
  set_direct_loops(table.direct);
  set_copy_loops(table.direct);
}

}  // namespace fornax::FX_ISA_NS
