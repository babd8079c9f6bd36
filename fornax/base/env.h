// Environment variables, parsed.
#pragma once

#include <cstdint>
#include <string_view>

namespace fornax {

// Null when unset or empty.
const char* env_text(const char* name);
// A whole decimal number, also with a suffix k, m, g or t (binary multiples, either case). Gives
// `fallback` when the variable is unset, and also when it is not such a number: a library must not
// die of a stray variable.
int64_t env_int(const char* name, int64_t fallback);
// 1, true, yes, on / 0, false, no, off, in either case; anything else gives `fallback`.
bool env_flag(const char* name, bool fallback);

// The parsers behind them. False when the text is no such value; `out` is then left alone.
bool parse_int(std::string_view text, int64_t& out);
bool parse_flag(std::string_view text, bool& out);

}  // namespace fornax
