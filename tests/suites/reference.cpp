#include "tests/suites/reference_parts.h"

namespace fornax::samples::suites {

const ReferenceFn* reference_of(std::string_view op_name) {
  static const auto* table = [] {
    auto* t = new ReferenceTable;
    add_pointwise_references(*t);
    add_reduction_references(*t);
    add_product_references(*t);
    add_index_references(*t);
    return t;
  }();
  auto it = table->find(op_name);
  return it == table->end() ? nullptr : &it->second;
}

}  // namespace fornax::samples::suites
