// Operators as plain loops over double precision numbers, written without the library.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tests/samples/sample.h"
#include "tests/support/values.h"

namespace fornax::samples::suites {

// The results' values, or nothing if the reference does not cover the call.
using ReferenceFn = std::optional<std::vector<test::Numbers>> (*)(const samples::Sample&);

// nullptr if there is none.
const ReferenceFn* reference_of(std::string_view op_name);

}  // namespace fornax::samples::suites
