// What the processor is, as text for people.
#pragma once

#include <string>

namespace fornax {

// The processor's own name, such as "AMD EPYC 9654 96-Core Processor"; "unknown" if it has none.
std::string cpu_name();
// The features that matter here and that both processor and operating system support, separated by
// spaces: "sse4.2 avx avx2 fma f16c ...".
std::string cpu_features();
// CPUs this process may run on.
int cpu_count();

}  // namespace fornax
