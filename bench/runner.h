// Runs a workload by the rules of the baseline and reports one JSON object.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/workload.h"

namespace fornax::bench {

using Json = nlohmann::ordered_json;

struct RunOptions {
  int threads = 2;
  int reps = 15;
  double max_seconds = 2;  // CPU seconds measured; at least three repetitions are made
};

// Keys: name, mode, median_ms, min_ms (wall), cpu_ms (median), cpu_min_ms (the process's CPU time
// over all threads), reps, threads, peak_rss_mb (high-water mark since before the set-up),
// base_rss_mb (after it), first_s, first_cpu_s, setup_s; ns per op of micro workloads; rates where
// bytes or flops are defined; check. Throws what the workload throws.
Json run_workload(const Workload& workload, const RunOptions& options);

// name, mode and threads of a workload that failed, with the message in `error`.
Json failed_workload(const std::string& name, const RunOptions& options, const std::string& what);

// Numbers rounded to five significant digits.
Json rounded(Json record);

}  // namespace fornax::bench
