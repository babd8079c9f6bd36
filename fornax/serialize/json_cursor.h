// A strict pull parser for JSON texts of known structure: no tree, no recursion without a limit, no
// duplicate keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fornax {

// Reads one value after another from a text that must outlive it. Every method throws Error(kIo)
// with `context` in front and the offset of the fault; after that the cursor is unusable.
class JsonCursor {
 public:
  // Throws unless `text` is valid UTF-8.
  JsonCursor(std::string_view text, std::string_view context);

  // Walks an object: calls each(key) with the cursor at the value, which it must consume. Keys come
  // unescaped; a repeated key is an error.
  template <class Each>
  void object(Each&& each) {
    std::vector<std::string> keys;
    enter('{');
    for (bool first = true; more('}', first); first = false) {
      keys.push_back(key());
      each(keys.back());
    }
    leave();
    reject_duplicates(keys);
  }
  // Walks an array: calls each() with the cursor at an element, which it must consume.
  template <class Each>
  void array(Each&& each) {
    enter('[');
    for (bool first = true; more(']', first); first = false) each();
    leave();
  }
  std::string string();
  // A number without sign, fraction and exponent, at most INT64_MAX.
  int64_t size();
  // True and past it, if the value here is null.
  bool null();
  // Any value; nesting deeper than kMaxDepth is an error.
  void skip();
  // Only white space may follow.
  void end();
  [[noreturn]] void fail_here(std::string_view what) const;

  static constexpr int kMaxDepth = 32;

 private:
  char peek();
  void expect(char c);
  bool literal(std::string_view word);
  void enter(char open);
  bool more(char close, bool first);
  void leave() { --depth_; }
  std::string key();
  void escape(std::string& out);
  uint32_t hex4();
  void skip_number();
  void reject_duplicates(std::vector<std::string>& keys) const;

  std::string_view text_, context_;
  size_t at_ = 0;
  int depth_ = 0;
};

// `text` in quotes, with what JSON demands escaped.
void append_json_string(std::string& out, std::string_view text);
// Rejects overlong forms, surrogates and values above U+10FFFF, as the standard demands.
bool is_utf8(std::string_view text);

}  // namespace fornax
