#include "tests/samples/families.h"

namespace fornax::samples {

const std::vector<Row>& rows() {
  static const auto* all = [] {
    auto* r = new std::vector<Row>;
    add_pointwise(*r);
    add_reductions(*r);
    add_views(*r);
    add_indexing(*r);
    add_products(*r);
    add_networks(*r);
    add_factories(*r);
    return r;
  }();
  return *all;
}

const std::vector<Exclusion>& exclusions() {
  static const auto* all = new std::vector<Exclusion>{
      {"view_scatter",
       "takes a recorded view step, which no text can name; the tape's tests and "
       "every view row's gradient run it"},
      {"_fused_sgd_", "updates lists in place; tests/optim compares it with loops"},
      {"_fused_adam_", "updates lists in place; tests/optim compares it with loops"},
      {"_fused_adamw_", "updates lists in place; tests/optim compares it with loops"},
      {"_fused_adagrad_", "updates lists in place; tests/optim compares it with loops"},
      {"_fused_rmsprop_", "updates lists in place; tests/optim compares it with loops"},
      {"_foreach_add_", "updates lists in place; tests/optim compares it with loops"},
  };
  return *all;
}

}  // namespace fornax::samples
