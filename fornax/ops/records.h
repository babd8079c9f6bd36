// Every operator's record. For code that calls by record: rules, interpreters, backends.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

#define FX_RECORDS
#include "fornax/ops/op_rows.h"
#undef FX_RECORDS

}  // namespace fornax
