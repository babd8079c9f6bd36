// Schemas: ATen's own text, parsed at compile time. A typo in a record is a compile error.
#pragma once

#include <cstdint>
#include <string_view>

namespace fornax {

struct Param {
  std::string_view name, type,
      fallback;                    // type without decoration: Tensor, int, float, Scalar, ...
  char alias = 0;                  // "(a)", "(a!)"
  bool write = false;              // "!"
  bool optional = false;           // "?" of the whole
  bool list = false;               // "[]", "[2]"
  bool optional_elements = false;  // "Tensor?[]"
  bool keyword_only = false;       // after "*"
};

struct Schema {
  std::string_view name, overload;
  Param params[28];
  int n_params = 0;
  Param returns[8];
  int n_returns = 0;

  constexpr int find(std::string_view param) const {
    for (int i = 0; i < n_params; ++i)
      if (params[i].name == param) return i;
    return -1;
  }
};

namespace detail {

constexpr bool known_type(std::string_view type) {
  constexpr std::string_view known[] = {
      "Tensor",    "Scalar", "int",    "float",        "bool",   "str",     "ScalarType",
      "Generator", "Device", "Layout", "MemoryFormat", "SymInt", "Dimname", "Step"};
  for (auto k : known)
    if (type == k) return true;
  return false;
}

constexpr Param parse_param(std::string_view s) {
  Param p;
  auto equals = s.find('=');
  std::string_view head = s.substr(0, equals);
  if (equals != s.npos) p.fallback = s.substr(equals + 1);
  // The space inside "(a -> *)" is no separator.
  auto close = head.rfind(')');
  auto space = head.rfind(' ');
  if (space != s.npos && close != s.npos && space < close) space = s.npos;
  std::string_view type = space == s.npos ? head : head.substr(0, space);
  if (space != s.npos) p.name = head.substr(space + 1);
  if (auto open = type.find('('); open != type.npos) {
    p.alias = type[open + 1];
    p.write = type[open + 2] == '!';
  }
  p.optional = type.ends_with('?');
  p.list = type.find('[') != type.npos;
  p.optional_elements = type.find("?[") != type.npos;
  p.type = type.substr(0, type.find_first_of("([?"));
  if (!known_type(p.type)) throw "schema: unknown type";
  return p;
}

// Calls each(item) for the parts of s between ", " outside brackets.
template <class F>
constexpr void split(std::string_view s, F each) {
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && (s[i] == '(' || s[i] == '[')) ++depth;
    if (i < s.size() && (s[i] == ')' || s[i] == ']')) --depth;
    if (i < s.size() && (s[i] != ',' || depth != 0)) continue;
    auto item = s.substr(from, i - from);
    while (item.starts_with(' ')) item.remove_prefix(1);
    if (!item.empty()) each(item);
    from = i + 1;
  }
}

}  // namespace detail

// Parses one schema line. Throws (a compile error in a constexpr record) on text that isn't a
// schema.
constexpr Schema parse_schema(std::string_view s) {
  Schema r;
  s = s.substr(0, s.find('\n'));
  auto open = s.find('(');
  auto arrow = s.rfind(") -> ");
  if (open == s.npos || arrow == s.npos) throw "schema: expected name(...) -> result";
  if (auto first = s.find(") -> "); s.substr(first + 5, 1) == "(") arrow = first;
  for (size_t at = s.find(") -> "); at != s.npos; at = s.find(") -> ", at + 1)) {
    int depth = 0;  // the arrow after the bracket that closes the parameter list
    for (size_t i = open; i <= at; ++i) depth += s[i] == '(' ? 1 : s[i] == ')' ? -1 : 0;
    if (depth == 0) {
      arrow = at;
      break;
    }
  }
  r.name = s.substr(0, s.find_first_of(".("));
  if (r.name.size() < open) r.overload = s.substr(r.name.size() + 1, open - r.name.size() - 1);
  bool keyword_only = false;
  detail::split(s.substr(open + 1, arrow - open - 1), [&](std::string_view item) {
    if (item == "*") {
      keyword_only = true;
      return;
    }
    Param p = detail::parse_param(item);
    p.keyword_only = keyword_only;
    r.params[r.n_params++] = p;
  });
  auto results = s.substr(arrow + 5);
  if (results.starts_with('(')) results = results.substr(1, results.size() - 2);
  detail::split(results, [&](std::string_view item) {
    r.returns[r.n_returns++] = detail::parse_param(item);
  });
  return r;
}

// Result group k of a call is stored into argument arg[k] in every form (running statistics,
// optimiser lists); -1: not.
struct Writes {
  int8_t arg[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  bool any = false;
  constexpr int operator[](size_t k) const { return arg[k]; }
};

constexpr Writes writes_of(std::string_view schema) {
  Schema s = parse_schema(schema);
  Writes w;
  for (int k = 0; k < s.n_returns; ++k) {
    if (!s.returns[k].write) continue;
    for (int i = 0; i < s.n_params; ++i)
      if (s.params[i].alias == s.returns[k].alias) w.arg[k] = int8_t(i);
    w.any = true;
  }
  return w;
}

}  // namespace fornax
