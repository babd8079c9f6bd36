#include "fornax/base/error.h"
#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::operand;

Expr detail::rebuild(const Node& node, Expr a, Expr b, Expr c) {
  switch (node.prim) {
    case Prim::kCast: return cast(a, node.kind);
    case Prim::kCall: return call(special(node.aux).name, a, b);
    default: return make(node.prim, a, b, c);
  }
}

Expr keep(Expr) { return {}; }

namespace {

class Rewriter {
 public:
  Rewriter(NodeMap before, NodeMap after)
      : before_(before), after_(after), memo_(current_arena().nodes().size()) {}

  Expr visit(Expr e) {
    if (e.empty() || size_t(e.id()) >= memo_.size()) return e;
    if (!memo_[e.id()].empty()) return memo_[e.id()];
    Expr result = before_(e);
    if (result.empty()) {
      result = rebuilt(e);
      const Expr replaced = after_(result);
      if (!replaced.empty()) result = replaced;
    }
    memo_[e.id()] = result;
    move_hand(e, result);
    return result;
  }

 private:
  Expr rebuilt(Expr e) {
    const Node n = e.node();
    if (arity(n.prim) == 0) return e;
    const Expr a = visit(operand(n.a));
    const Expr b = visit(operand(n.b));
    const Expr c = visit(operand(n.c));
    if (a.id() == n.a && b.id() == n.b && c.id() == n.c) return e;
    return detail::rebuild(n, a, b, c);
  }

  // A rebuilt node of the same primitive is the same function of rewritten operands.
  void move_hand(Expr from, Expr to) {
    const std::vector<Arena::HandTerm>* hand = current_arena().hand(from.id());
    if (hand == nullptr || from.is(to) || from.prim() != to.prim()) return;
    if (current_arena().hand(to.id()) != nullptr) return;
    const std::vector<Arena::HandTerm> terms = *hand;
    std::vector<Arena::HandTerm> moved;
    writable_arena().set_hand(to.id(), {});
    for (const Arena::HandTerm& term : terms) {
      const Expr u = visit(operand(term.operand));
      const Expr partial = visit(operand(term.partial));
      moved.push_back({u.id(), partial.id()});
    }
    writable_arena().set_hand(to.id(), std::move(moved));
  }

  NodeMap before_;
  NodeMap after_;
  std::vector<Expr> memo_;  // by node; nodes made meanwhile are results already
};

}  // namespace

std::vector<Expr> rewrite(ArrayRef<Expr> roots, NodeMap before, NodeMap after) {
  Rewriter rewriter(before, after);
  std::vector<Expr> result;
  for (Expr root : roots) result.push_back(rewriter.visit(root));
  return result;
}

Expr rewrite(Expr root, NodeMap before, NodeMap after) {
  return Rewriter(before, after).visit(root);
}

std::vector<Expr> replace(ArrayRef<Expr> roots, ArrayRef<Substitution> substitutions) {
  return rewrite(roots, [substitutions](Expr e) {
    for (const Substitution& s : substitutions) {
      if (e.is(s.from)) return s.to;
    }
    return Expr();
  });
}

Expr replace(Expr root, ArrayRef<Substitution> substitutions) {
  return replace(ArrayRef<Expr>(root), substitutions)[0];
}

std::vector<Expr> topological_order(ArrayRef<Expr> roots) {
  // Operands are older than their users, so ids are a topological order.
  const std::vector<Node>& nodes = current_arena().nodes();
  std::vector<bool> reached(nodes.size());
  for (Expr root : roots) {
    if (!root.empty()) reached[root.id()] = true;
  }
  size_t count = 0;
  for (size_t id = nodes.size(); id-- > 0;) {
    if (!reached[id]) continue;
    ++count;
    const Node& n = nodes[id];
    if (arity(n.prim) == 0) continue;
    for (int32_t child : {n.a, n.b, n.c}) {
      if (child >= 0) reached[child] = true;
    }
  }
  std::vector<Expr> order;
  order.reserve(count);
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (reached[id]) order.push_back(Expr::at(int32_t(id)));
  }
  return order;
}

uint64_t inputs_used(ArrayRef<Expr> roots) {
  uint64_t used = 0;
  for (Expr e : topological_order(roots)) {
    if (e.prim() != Prim::kInput) continue;
    const int32_t index = e.node().a;
    FX_CHECK(index < 64, kUnsupported, "expr: a program reads at most 64 inputs, got input ",
             index);
    used |= uint64_t(1) << index;
  }
  return used;
}

}  // namespace fornax::expr
