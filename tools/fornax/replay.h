// `fornax replay FILES…`: recorded calls against this library.
#pragma once

#include <string>
#include <vector>

namespace fornax::replay {

struct ReplayOptions {
  std::vector<std::string> files;
  std::string exceptions;  // file of "case reason" lines; these records are skipped
  bool verbose = false;    // the first difference of each failure
  double seconds_per_record = 20;
};
// Prints per operator and in total; the last line is "N passed, M failed, K skipped". 0 only if
// none failed.
int run_replay(const ReplayOptions& options);

}  // namespace fornax::replay
