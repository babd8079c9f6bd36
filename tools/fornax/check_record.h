// One record checked: forward, gradients, tangents.
#pragma once

#include <string>

#include "tools/fornax/record.h"

namespace fornax::replay {

enum class Outcome : char { kPassed = 'p', kFailed = 'f', kSkipped = 's', kAbsent = '-' };

struct Verdict {
  Outcome forward = Outcome::kAbsent, vjp = Outcome::kAbsent, jvp = Outcome::kAbsent;
  std::string reason;  // of the first failure or skip
  Outcome whole() const;
};

// Never throws; a crash is the caller's to catch.
Verdict check_record(const Record& record);

}  // namespace fornax::replay
