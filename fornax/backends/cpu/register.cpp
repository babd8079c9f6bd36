#include "fornax/backends/cpu/register.h"

#include <mutex>

#include "fornax/backends/cpu/pointwise.h"
#include "fornax/base/isa.h"
#include "fornax/base/startup.h"
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace cpu {

// Every record of kind kPointwise has the same kernel; integer division checks its divisor first.
void register_pointwise(const KernelTable& table) {
  constexpr int kTraits = kAliasSafe | kAnyStrides | kCastsOnStore | kConjAware;
  for (const Op* op : op_table()) {
    if (op->kind != OpKind::kPointwise) continue;
    table.set(*op, pointwise_kernel, kTraits);
    if (op->infer == pointwise_infer) op->short_call = pointwise_short_call;
  }
  for (const Op* op : {&div_op, &floor_divide_op, &fmod_op, &remainder_op})
    table.set(*op, division_kernel, kTraits);
  // What these check further depends on texts and dtypes, and for integers on values.
  for (const Op* op : {&div_op, &pow_op, &where_op, &gelu_op, &clamp_op})
    op->short_call = pointwise_short_call;
}

void register_cpu() {
  active_isa();  // a clear error on a CPU below the lowest kernel set, before any kernel runs
  KernelTable table{DeviceType::kCPU};
  register_pointwise(table);
  register_factory(table);
  register_random(table);
  register_reduce(table);
  register_scan(table);
  register_softmax(table);
  register_norm(table);
  register_loss(table);
  register_order_statistics(table);
  register_optim(table);
  register_matmul(table);
  register_pooling(table);
  register_convolution(table);
  register_view_kernels(table);
  register_index(table);
  register_sort(table);
}

}  // namespace cpu

void startup() {
  static std::once_flag once;
  std::call_once(once, cpu::register_cpu);
}

}  // namespace fornax
