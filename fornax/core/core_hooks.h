// What core calls on the autograd floor (defined in fornax/autograd): the eager tape and the base
// dual level.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// Before the kernel: edges and saved inputs (copied first if about to be overwritten). Null if
// nothing is to be recorded.
Ref<GradNode> tape_prepare(const Call& call);
// After it: results, saved results, new history of what was written.
void tape_attach(Ref<GradNode> node, Call& call);
// Forward AD at the base level: primal and tangents. True if it handled the call.
bool forward_step(Call& call);

}  // namespace fornax
