#include "fornax/serialize/json_cursor.h"

#include <algorithm>
#include <cstdio>

#include "fornax/base/error.h"

namespace fornax {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += char(code);
  } else if (code < 0x800) {
    out += char(0xc0 | (code >> 6));
    out += char(0x80 | (code & 63));
  } else if (code < 0x10000) {
    out += char(0xe0 | (code >> 12));
    out += char(0x80 | ((code >> 6) & 63));
    out += char(0x80 | (code & 63));
  } else {
    out += char(0xf0 | (code >> 18));
    out += char(0x80 | ((code >> 12) & 63));
    out += char(0x80 | ((code >> 6) & 63));
    out += char(0x80 | (code & 63));
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    auto lead = uint8_t(text[at++]);
    if (lead < 0x80) continue;
    int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - at < size_t(more)) return false;
    uint32_t code = lead & (0x3fu >> more);
    for (int i = 0; i < more; ++i) {
      auto next = uint8_t(text[at++]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 63u);
    }
    constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code < 0xe000;
    if (code < kSmallest[more] || code > 0x10ffff || surrogate) return false;
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (uint8_t(c) < 0x20) {
          char code[8];
          std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
          out += code;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

JsonCursor::JsonCursor(std::string_view text, std::string_view context)
    : text_(text), context_(context) {
  FX_CHECK(is_utf8(text), kIo, context, ": the JSON text is no valid UTF-8");
}

void JsonCursor::fail_here(std::string_view what) const {
  fail(ErrorKind::kIo, context_, ": ", what, " at byte ", at_, " of the JSON text");
}

// The next character that is no white space; 0 at the end.
char JsonCursor::peek() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
    ++at_;
  }
  return 0;
}

void JsonCursor::expect(char c) {
  char found = peek();
  if (found == c && at_ < text_.size()) {
    ++at_;
    return;
  }
  fail_here(str("'", c, "' expected"));
}

bool JsonCursor::literal(std::string_view word) {
  peek();
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

void JsonCursor::enter(char open) {
  expect(open);
  if (++depth_ > kMaxDepth) fail_here(str("more than ", kMaxDepth, " nested values"));
}

bool JsonCursor::more(char close, bool first) {
  if (peek() == close) {
    ++at_;
    return false;
  }
  if (!first) expect(',');
  if (!first && peek() == close) fail_here("a value expected after ','");
  return true;
}

std::string JsonCursor::key() {
  std::string name = string();
  expect(':');
  return name;
}

std::string JsonCursor::string() {
  expect('"');
  std::string out;
  for (;;) {
    if (at_ == text_.size()) fail_here("string without an end");
    char c = text_[at_++];
    if (c == '"') return out;
    if (uint8_t(c) < 0x20) fail_here("control character in a string");
    if (c == '\\') {
      escape(out);
    } else {
      out += c;
    }
  }
}

void JsonCursor::escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  char c = at_ < text_.size() ? text_[at_++] : '\0';
  if (c != 'u') {
    size_t which = c == '\0' ? std::string_view::npos : kLetters.find(c);
    if (which == std::string_view::npos) fail_here("unknown escape in a string");
    out += kMeanings[which];
    return;
  }
  uint32_t code = hex4();
  if (code >= 0xdc00 && code < 0xe000) fail_here("second half of a surrogate pair alone");
  if (code >= 0xd800 && code < 0xdc00) {
    uint32_t low = text_.substr(at_, 2) == "\\u" ? (at_ += 2, hex4()) : 0;
    if (low < 0xdc00 || low >= 0xe000) fail_here("first half of a surrogate pair alone");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(out, code);
}

uint32_t JsonCursor::hex4() {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    char c = at_ < text_.size() ? text_[at_++] : '\0';
    char lower = char(c | 0x20);
    uint32_t digit = is_digit(c)                    ? uint32_t(c - '0')
                     : lower >= 'a' && lower <= 'f' ? uint32_t(lower - 'a' + 10)
                                                    : 16;
    if (digit == 16) fail_here("four hexadecimal digits expected after \\u");
    code = code * 16 + digit;
  }
  return code;
}

int64_t JsonCursor::size() {
  if (!is_digit(peek())) fail_here("non-negative integer expected");
  if (text_[at_] == '0' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))
    fail_here("number with a leading zero");
  int64_t value = 0;
  while (at_ < text_.size() && is_digit(text_[at_])) {
    int digit = text_[at_++] - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      fail_here("integer above 9223372036854775807");
  }
  char next = at_ < text_.size() ? text_[at_] : '\0';
  if (next == '.' || next == 'e' || next == 'E') fail_here("integer expected, not a fraction,");
  return value;
}

bool JsonCursor::null() { return literal("null"); }

void JsonCursor::skip_number() {
  if (text_[at_] == '-') ++at_;
  auto digits = [&] {
    size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == from) fail_here("digit expected");
  };
  bool zero = at_ < text_.size() && text_[at_] == '0';
  size_t from = at_;
  digits();
  if (zero && at_ - from > 1) fail_here("number with a leading zero");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    digits();
  }
  if (at_ < text_.size() && (text_[at_] | 0x20) == 'e') {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    digits();
  }
}

void JsonCursor::skip() {
  char c = peek();
  if (c == '{') return object([this](const std::string&) { skip(); });
  if (c == '[') return array([this] { skip(); });
  if (c == '"') return void(string());
  if (c == '-' || is_digit(c)) return skip_number();
  if (!literal("null") && !literal("true") && !literal("false")) fail_here("JSON value expected");
}

void JsonCursor::end() {
  peek();
  if (at_ != text_.size()) fail_here("text after the end");
}

void JsonCursor::reject_duplicates(std::vector<std::string>& keys) const {
  std::sort(keys.begin(), keys.end());
  auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) fail_here(str("key '", *twice, "' appears twice, noticed"));
}

}  // namespace fornax
