#include "fornax/expr/loops.h"

#include "fornax/expr/kernels/table.h"

#define FX_DECLARE_SET(set)                           \
  namespace fornax::isa_##set {                       \
    void fill_kernel_table(expr::KernelTable& table); \
  }
FX_DECLARE_SET(v3)
FX_DECLARE_SET(v4)
#undef FX_DECLARE_SET

namespace fornax::expr {
namespace {

KernelTable make_table(void (*fill)(KernelTable&)) {
  KernelTable table{};
  fill(table);
  return table;
}

}  // namespace

const KernelTable* kernel_table(Isa isa) {
  if (isa == Isa::kNone || isa > cpu_isa()) return nullptr;
  static const KernelTable v3 = make_table(isa_v3::fill_kernel_table);
  if (isa == Isa::kV3) return &v3;
  static const KernelTable v4 = make_table(isa_v4::fill_kernel_table);
  return &v4;
}

const KernelTable& kernel_table() {
  static const KernelTable& table = *kernel_table(active_isa());
  return table;
}

const DirectLoops& direct_loops() { return kernel_table().direct; }

}  // namespace fornax::expr
