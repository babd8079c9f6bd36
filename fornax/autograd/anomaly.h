// Anomaly mode: backward checks every gradient for NaN and names the forward call that led to it.
#pragma once

#include <string>

namespace fornax {

bool anomaly_mode_enabled();
void set_anomaly_mode(bool on);
// Function names of the calling stack, innermost first.
std::string current_backtrace();

}  // namespace fornax
