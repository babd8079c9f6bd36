#include "tests/suites/reference_parts.h"

namespace fornax::samples::suites {

void add_reduction_references(ReferenceTable&) {}
void add_product_references(ReferenceTable&) {}
void add_index_references(ReferenceTable&) {}

}  // namespace fornax::samples::suites
