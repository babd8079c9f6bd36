// startup.import and startup.size.
#pragma once

#include "bench/runner.h"

namespace fornax::bench {

// Wall and CPU time of the start-up program from start to exit, median of 20 after one untimed run
// that brings its files into the cache.
Json measure_import(const RunOptions& options);
// Megabytes (10^6 bytes) on disk without symbol tables: our shared library, and the third-party
// libraries beside it.
Json measure_size(const RunOptions& options);

}  // namespace fornax::bench
