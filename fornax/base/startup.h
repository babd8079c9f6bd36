// The one upward call: what lies on higher floors registers itself when the first operator needs
// it.
#pragma once

namespace fornax {

// Runs register functions of backends once; cheap afterwards. Defined on the top floor
// (fornax/startup.cpp), so that a static library keeps every record and kernel without linker
// flags.
void startup();

}  // namespace fornax
