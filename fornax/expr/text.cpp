#include <cctype>
#include <charconv>
#include <cmath>

#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::operand;

namespace {

std::string text_of_real(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string result(buffer, end);
  const bool looks_integral = result.find_first_of(".en") == std::string::npos;
  return looks_integral ? result + ".0" : result;
}

std::string text_of_leaf(const Node& n) {
  if (n.prim == Prim::kConst) {
    if (n.kind == Kind::kReal) return text_of_real(n.value);
    if (n.kind == Kind::kInt) return std::to_string(n.bits());
    return n.value != 0 ? "true" : "false";
  }
  constexpr const char* kParts[] = {"", ".re", ".im"};
  constexpr const char* kKinds[] = {":bool", ":int", "", ":complex"};
  return "x" + std::to_string(n.a) + kParts[n.aux] + kKinds[int(n.kind)];
}

std::string head(const Node& n) {
  if (n.prim == Prim::kCall) return special(n.aux).name;
  if (n.prim == Prim::kCast) return std::string("to_") + name_of(n.kind);
  std::string name = name_of(n.prim);
  name[0] = char(std::tolower(name[0]));
  return name;
}

class Printer {
 public:
  explicit Printer(ArrayRef<Expr> roots) : uses_(current_arena().nodes().size()), names_(uses_) {
    order_ = topological_order(roots);
    for (Expr root : roots) {
      if (!root.empty()) ++uses_[root.id()];
    }
    for (Expr e : order_) {
      const Node& n = e.node();
      if (arity(n.prim) == 0) continue;
      for (int32_t child : {n.a, n.b, n.c}) {
        if (child >= 0) ++uses_[child];
      }
    }
  }

  std::string print(ArrayRef<Expr> roots) {
    std::string result;
    int count = 0;
    for (Expr e : order_) {
      if (arity(e.prim()) == 0 || uses_[e.id()] < 2) continue;
      result += "t" + std::to_string(count) + " = " + definition(e) + "; ";
      names_[e.id()] = ++count;
    }
    for (size_t i = 0; i < roots.size(); ++i) {
      if (i > 0) result += ", ";
      result += roots[i].empty() ? "none" : reference(roots[i]);
    }
    return result;
  }

 private:
  std::string reference(Expr e) {
    if (names_[e.id()] > 0) return "t" + std::to_string(names_[e.id()] - 1);
    return definition(e);
  }

  std::string definition(Expr e) {
    const Node& n = e.node();
    if (arity(n.prim) == 0) return text_of_leaf(n);
    std::string result = head(n) + "(";
    for (int32_t child : {n.a, n.b, n.c}) {
      if (child < 0) continue;
      if (result.back() != '(') result += ", ";
      result += reference(operand(child));
    }
    return result + ")";
  }

  std::vector<Expr> order_;
  std::vector<int> uses_;   // by node
  std::vector<int> names_;  // by node: 1 + the number of its name, 0 none
};

}  // namespace

std::string text(ArrayRef<Expr> roots) { return Printer(roots).print(roots); }

std::string text(Expr e) { return text(ArrayRef<Expr>(e)); }

}  // namespace fornax::expr
