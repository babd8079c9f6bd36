// The parts of the table; sample.h tells what a row is.
#pragma once

#include "tests/samples/sample.h"

namespace fornax::samples {

void add_pointwise(std::vector<Row>& rows);
void add_reductions(std::vector<Row>& rows);
void add_views(std::vector<Row>& rows);
void add_indexing(std::vector<Row>& rows);
void add_products(std::vector<Row>& rows);
void add_networks(std::vector<Row>& rows);
void add_factories(std::vector<Row>& rows);

}  // namespace fornax::samples
