// Every operator as a free function: fornax::add(a, b), fornax::zeros({2, 3}).
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

#define FX_FUNCTIONS
#include "fornax/ops/op_rows.h"
#undef FX_FUNCTIONS

}  // namespace fornax
