// The table of all records, and look-up by name.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "fornax/ops/records.h"

namespace fornax {
namespace {

constexpr const Op* kRows[] = {
#define FX_TABLE
#include "fornax/ops/op_rows.h"
#undef FX_TABLE
};

std::vector<const Op*> make_table() {
  std::vector<const Op*> table(std::begin(kRows), std::end(kRows));
  std::sort(table.begin(), table.end(), [](const Op* a, const Op* b) {
    return a->name() != b->name() ? a->name() < b->name() : a->schema < b->schema;
  });
  table.erase(std::unique(table.begin(), table.end()), table.end());
  return table;
}

const std::vector<const Op*>& table() {
  static const auto* t = new std::vector<const Op*>(make_table());
  return *t;
}

// each(name or name.overload, record) for every schema line of every record.
template <class F>
void for_schema_lines(F each) {
  for (const Op* op : table()) {
    std::string_view rest = op->schema;
    while (!rest.empty()) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      each(std::string(line.substr(0, line.find('('))), op);
    }
  }
}

// Full names first: "var" is the record with that line, not one of the overloads.
std::unordered_map<std::string, const Op*> make_names() {
  std::unordered_map<std::string, const Op*> names;
  for_schema_lines([&](const std::string& full, const Op* op) { names.emplace(full, op); });
  for_schema_lines([&](const std::string& full, const Op* op) {
    names.emplace(full.substr(0, full.find('.')), op);
  });
  return names;
}

}  // namespace

ArrayRef<const Op*> op_table() { return table(); }

const Op* find_op(std::string_view name) {
  static const auto* names = new std::unordered_map<std::string, const Op*>(make_names());
  if (name.starts_with("aten::")) name.remove_prefix(6);
  auto it = names->find(std::string(name));
  return it == names->end() ? nullptr : it->second;
}

}  // namespace fornax
