#include "fornax/autograd/anomaly.h"

#include <cxxabi.h>
#include <execinfo.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace fornax {
namespace {

constinit std::atomic<bool> enabled{false};

// "lib.so(_ZN3foo3barEv+0x12) [0x...]" -> "foo::bar()"; other text as it is.
std::string readable(const char* symbol) {
  const char* open = std::strchr(symbol, '(');
  const char* plus = open ? std::strchr(open, '+') : nullptr;
  if (!open || !plus || plus == open + 1) return symbol;
  std::string mangled(open + 1, plus);
  int status = 0;
  char* name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && name ? name : mangled;
  std::free(name);
  return result;
}

}  // namespace

bool anomaly_mode_enabled() { return enabled.load(std::memory_order_relaxed); }
void set_anomaly_mode(bool on) { enabled.store(on, std::memory_order_relaxed); }

std::string current_backtrace() {
  constexpr int kFrames = 48, kOwn = 3;
  void* frames[kFrames];
  int n = backtrace(frames, kFrames);
  char** symbols = backtrace_symbols(frames, n);
  std::string text;
  for (int i = kOwn; symbols && i < n; ++i) text += "  " + readable(symbols[i]) + "\n";
  std::free(symbols);
  return text;
}

}  // namespace fornax
