// Shared by the parts of the reference.
#pragma once

#include <unordered_map>

#include "tests/suites/reference.h"

namespace fornax::samples::suites {

using ReferenceTable = std::unordered_map<std::string_view, ReferenceFn>;
void add_pointwise_references(ReferenceTable& table);
void add_reduction_references(ReferenceTable& table);
void add_product_references(ReferenceTable& table);
void add_index_references(ReferenceTable& table);

}  // namespace fornax::samples::suites
