#include "fornax/base/env.h"

#include <charconv>
#include <cstdlib>

namespace fornax {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != b[i]) return false;
  return true;
}

// Binary exponent of a size suffix; -1 if it is none.
int suffix_shift(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix.size() != 1) return -1;
  switch (lower(suffix[0])) {
    case 'k': return 10;
    case 'm': return 20;
    case 'g': return 30;
    case 't': return 40;
    default: return -1;
  }
}

}  // namespace

bool parse_int(std::string_view text, int64_t& out) {
  int64_t value = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  int shift = suffix_shift(std::string_view(rest, size_t(text.data() + text.size() - rest)));
  if (shift < 0) return false;
  if (__builtin_mul_overflow(value, int64_t(1) << shift, &value)) return false;
  out = value;
  return true;
}

bool parse_flag(std::string_view text, bool& out) {
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (equals_ignoring_case(text, yes)) return out = true;
  for (std::string_view no : {"0", "false", "no", "off"}) {
    if (!equals_ignoring_case(text, no)) continue;
    out = false;
    return true;
  }
  return false;
}

const char* env_text(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

int64_t env_int(const char* name, int64_t fallback) {
  const char* text = env_text(name);
  int64_t value;
  return text && parse_int(text, value) ? value : fallback;
}

bool env_flag(const char* name, bool fallback) {
  const char* text = env_text(name);
  bool value;
  return text && parse_flag(text, value) ? value : fallback;
}

}  // namespace fornax
