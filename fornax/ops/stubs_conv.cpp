// The C++ spellings of the conv family: each packs its arguments and dispatches.
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

#define FX_FAMILY_FILE "fornax/ops/defs/conv.def"
namespace fornax {
#define FX_STUBS
#include "fornax/ops/op_rows.h"
#undef FX_STUBS
}  // namespace fornax
