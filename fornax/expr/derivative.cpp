// Symbolic Wirtinger derivatives, one rule per primitive. Rules name the result (`e`) where the
// derivative can be had from it: then the operator saves its output and not its input.
#include <cmath>

#include "fornax/base/error.h"
#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::operand;

namespace {

Expr plus(Expr a, Expr b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return a + b;
}

Expr minus(Expr a, Expr b) {
  if (b.empty()) return a;
  if (a.empty()) return -b;
  return a - b;
}

Expr times(Expr a, Expr b) {
  if (a.empty() || b.empty()) return {};
  return a * b;
}

Expr negative(Expr a) { return a.empty() ? a : -a; }

Expr conjugate(Expr a) { return a.empty() ? a : conj(a); }

Expr choose(Expr condition, Expr a, Expr b) {
  if (a.empty() && b.empty()) return {};
  return where(condition, a.empty() ? Expr(0.0) : a, b.empty() ? Expr(0.0) : b);
}

Pair sum(Pair p, Pair q) { return {plus(p.d, q.d), plus(p.dc, q.dc)}; }

bool is_complex(Expr e) { return e.kind() == Kind::kComplex; }

// 1 - u^2. The product keeps its digits near +-1; complex numbers take the form PyTorch takes.
Expr one_minus_square(Expr u) {
  if (is_complex(u)) return 1.0 - u * u;
  return (1.0 - u) * (1.0 + u);
}

}  // namespace

Expr with_grad(Expr value, std::initializer_list<std::pair<Expr, Expr>> grads) {
  if (arity(value.prim()) == 0) return value;
  std::vector<Arena::HandTerm> terms;
  for (const auto& [u, partial] : grads) {
    if (!partial.empty()) terms.push_back({u.id(), partial.id()});
  }
  writable_arena().set_hand(value.id(), std::move(terms));
  return value;
}

Pair Derivative::of(Expr e) {
  if (e.is(x_)) return {constant(1.0), {}};
  const auto id = size_t(e.id());
  if (id < known_.size() && known_[id]) return memo_[id];
  const std::vector<Arena::HandTerm>* hand = current_arena().hand(e.id());
  const Pair result = hand != nullptr ? by_hand(*hand) : rule(e);
  if (id >= known_.size()) {
    const size_t size = current_arena().nodes().size();
    known_.resize(size);
    memo_.resize(size);
  }
  known_[id] = true;
  memo_[id] = result;
  return result;
}

// Nothing on the way hangs a new gradient on a node, so `terms` stays where it is.
Pair Derivative::by_hand(const std::vector<Arena::HandTerm>& terms) {
  Pair total;
  for (const Arena::HandTerm& term : terms) {
    total = sum(total, chain(operand(term.operand), operand(term.partial)));
  }
  return total;
}

Pair Derivative::chain(Expr u, Expr f, Expr f_bar) {
  const Pair p = of(u);
  return {plus(times(f, p.d), times(f_bar, conjugate(p.dc))),
          plus(times(f, p.dc), times(f_bar, conjugate(p.d)))};
}

bool Derivative::is_zero(Expr u) {
  const Pair p = of(u);
  return p.d.empty() && p.dc.empty();
}

Pair Derivative::rule(Expr e) {
  const Prim prim = e.prim();
  if (e.kind() < Kind::kReal || arity(prim) == 0) return {};
  if (prim <= Prim::kNeg) return arithmetic(e);
  switch (prim) {
    case Prim::kAbs: return absolute(e);
    case Prim::kSign: return is_complex(e) ? complex_sign(e) : Pair{};
    case Prim::kMin:
    case Prim::kMax: return min_max(e);
    case Prim::kPow: return power(e);
    case Prim::kFmod:
    case Prim::kMod:
    case Prim::kAtan2:
    case Prim::kHypot:
    case Prim::kCopysign: return two_operands(e);
    case Prim::kFloor:
    case Prim::kCeil:
    case Prim::kRound:
    case Prim::kTrunc: return {};
    case Prim::kCall: return special_function(e);
    default: break;
  }
  if (prim >= Prim::kWhere) return structure(e);
  // One operand, holomorphic: skip building f'(u) where u does not depend on x.
  if (is_zero(operand(e.node().a))) return {};
  return prim >= Prim::kSin && prim <= Prim::kAtanh ? trigonometric(e) : exponential(e);
}

Pair Derivative::arithmetic(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  switch (n.prim) {
    case Prim::kAdd: {
      const Pair p = of(a);
      return sum(p, of(b));
    }
    case Prim::kSub: {
      const Pair p = of(a);
      const Pair q = of(b);
      return {minus(p.d, q.d), minus(p.dc, q.dc)};
    }
    case Prim::kMul: {
      const Pair p = chain(a, b);
      return sum(p, chain(b, a));
    }
    case Prim::kDiv: return division(e);
    default: {  // Neg
      const Pair p = of(a);
      return {negative(p.d), negative(p.dc)};
    }
  }
}

Pair Derivative::division(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  Pair total;
  if (!is_zero(a)) total = chain(a, 1.0 / b);
  if (!is_zero(b)) total = sum(total, chain(b, -(e / b)));
  return total;
}

Pair Derivative::absolute(Expr e) {
  const Expr a = operand(e.node().a);
  if (is_zero(a)) return {};
  if (!is_complex(a)) return chain(a, sign(a));
  const Expr half = sign(a) * 0.5;
  return chain(a, conj(half), half);
}

// z / |z|: (1 / 2r, -s^2 / 2r), 0 at 0.
Pair Derivative::complex_sign(Expr e) {
  const Expr a = operand(e.node().a);
  if (is_zero(a)) return {};
  const Expr r = abs(a);
  const Expr half = 0.5 / r;
  const Expr at_zero = r == 0.0;
  return chain(a, where(at_zero, 0.0, half), where(at_zero, 0.0, -(e * e * half)));
}

// A tie gives half to each, a NaN all to both.
Pair Derivative::min_max(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  const bool is_max = n.prim == Prim::kMax;
  const Expr a_wins = is_max ? a > b : a < b;
  const Expr b_wins = is_max ? a < b : a > b;
  const Expr tie = where(a == b, 0.5, 1.0);
  const Pair p = chain(a, where(b_wins, 0.0, tie));
  return sum(p, chain(b, where(a_wins, 0.0, tie)));
}

Pair Derivative::power(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  Pair total;
  if (!is_zero(a)) {
    // Masked at a = 0 only: with b = 0 elsewhere the mixed second derivative lives.
    const Expr flat = (b == 0.0) & ~(abs(a) > 0.0);
    total = chain(a, where(flat, 0.0, b * pow(a, b - 1.0)));
  }
  if (!is_zero(b)) {
    const Expr flat = (a == 0.0) & (real(b) >= 0.0);
    total = sum(total, chain(b, where(flat, 0.0, e * log(a))));
  }
  return total;
}

Pair Derivative::exponential(Expr e) {
  const Expr a = operand(e.node().a);
  switch (e.prim()) {
    case Prim::kSqrt: return chain(a, 0.5 / e);
    case Prim::kExp: return chain(a, e);
    case Prim::kExp2: return chain(a, e * M_LN2);
    case Prim::kExpm1: return chain(a, e + 1.0);
    case Prim::kLog: return chain(a, 1.0 / a);
    case Prim::kLog1p: return chain(a, 1.0 / (a + 1.0));
    case Prim::kLog2: return chain(a, 1.0 / (a * M_LN2));
    case Prim::kLog10: return chain(a, 1.0 / (a * M_LN10));
    case Prim::kErf: return chain(a, exp(-(a * a)) * M_2_SQRTPI);
    case Prim::kErfc: return chain(a, exp(-(a * a)) * -M_2_SQRTPI);
    default: break;
  }
  fail(ErrorKind::kInternal, "expr: no derivative rule for ", name_of(e.prim()));
}

Pair Derivative::trigonometric(Expr e) {
  const Expr a = operand(e.node().a);
  switch (e.prim()) {
    case Prim::kSin: return chain(a, cos(a));
    case Prim::kCos: return chain(a, -sin(a));
    case Prim::kTan: return chain(a, e * e + 1.0);
    case Prim::kSinh: return chain(a, cosh(a));
    case Prim::kCosh: return chain(a, sinh(a));
    case Prim::kTanh: return chain(a, 1.0 - e * e);
    case Prim::kAsin: return chain(a, 1.0 / sqrt(one_minus_square(a)));
    case Prim::kAcos: return chain(a, -1.0 / sqrt(one_minus_square(a)));
    case Prim::kAtan: return chain(a, 1.0 / (a * a + 1.0));
    case Prim::kAsinh: return chain(a, 1.0 / sqrt(a * a + 1.0));
    // A product of roots: the right branch for complex, no value outside the domain for real.
    case Prim::kAcosh: return chain(a, 1.0 / (sqrt(a - 1.0) * sqrt(a + 1.0)));
    default: return chain(a, 1.0 / one_minus_square(a));  // Atanh
  }
}

Pair Derivative::two_operands(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  Expr fa;
  Expr fb;
  switch (n.prim) {
    case Prim::kFmod:
    case Prim::kMod:
      fa = 1.0;
      if (!is_zero(b)) fb = n.prim == Prim::kFmod ? -trunc(a / b) : -floor(a / b);
      break;
    case Prim::kAtan2: {
      const Expr square = a * a + b * b;
      const Expr inverse = where(square == 0.0, 0.0, 1.0 / square);
      fa = b * inverse;
      fb = -a * inverse;
      break;
    }
    case Prim::kHypot:
      fa = where(e == 0.0, 0.0, a / e);
      fb = where(e == 0.0, 0.0, b / e);
      break;
    default:  // Copysign: nothing flows to the sign
      fa = where(a == 0.0, 0.0, e / a);
      break;
  }
  const Pair p = chain(a, fa);
  return fb.empty() ? p : sum(p, chain(b, fb));
}

Pair Derivative::structure(Expr e) {
  const Node n = e.node();
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  switch (n.prim) {
    case Prim::kWhere: {
      const Pair p = of(b);
      const Pair q = of(operand(n.c));
      return {choose(a, p.d, q.d), choose(a, p.dc, q.dc)};
    }
    case Prim::kCast: return a.kind() < Kind::kReal ? Pair{} : of(a);
    case Prim::kComplex: {
      const Pair p = of(a);
      return sum(p, chain(b, complex(0.0, 1.0)));
    }
    case Prim::kReal: return chain(a, 0.5, 0.5);
    case Prim::kImag: return chain(a, complex(0.0, -0.5), complex(0.0, 0.5));
    case Prim::kConj: return chain(a, {}, 1.0);
    default: break;
  }
  fail(ErrorKind::kInternal, "expr: no derivative rule for ", name_of(n.prim));
}

Pair Derivative::special_function(Expr e) {
  const Node n = e.node();
  const Special& row = special(n.aux);
  const Expr a = operand(n.a);
  const Expr b = operand(n.b);
  const bool needs_a = !is_zero(a);
  const bool needs_b = !b.empty() && !is_zero(b);
  if (!needs_a && !needs_b) return {};
  const int needed = int(needs_a) | int(needs_b) << 1;
  if ((needed & ~row.known) != 0) {
    const bool second = (needed & ~row.known & 1) == 0;
    fail(ErrorKind::kAutograd, "the derivative of ", row.name, " with respect to its ",
         second ? "second" : "first", " argument is not implemented");
  }
  const Partials partials = row.gradient(a, b, e);
  Pair total;
  if (needs_a) total = chain(a, partials.a);
  if (needs_b) total = sum(total, chain(b, partials.b));
  return total;
}

std::vector<Expr> vjp(ArrayRef<Expr> outs, ArrayRef<Expr> grads, ArrayRef<Expr> ins) {
  FX_CHECK(outs.size() == grads.size(), kInternal, "expr: vjp got ", outs.size(), " outputs and ",
           grads.size(), " gradients");
  std::vector<Expr> result(ins.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    const Expr x = ins[i];
    if (x.empty() || x.kind() < Kind::kReal) continue;
    Derivative derivative(x);
    Expr total;
    for (size_t o = 0; o < outs.size(); ++o) {
      const Expr g = grads[o];
      if (g.empty()) continue;
      const Pair p = derivative.of(outs[o]);
      if (x.kind() == Kind::kComplex) {
        total = plus(total, times(g, conjugate(p.d)));
        if (!p.dc.empty()) total = plus(total, conj(g) * p.dc);
      } else {
        const Expr d = plus(p.d, p.dc);
        if (!d.empty()) total = plus(total, real(g * conj(d)));
      }
    }
    if (!total.empty()) result[i] = cast(total, x.kind());
  }
  return result;
}

std::vector<Expr> jvp(ArrayRef<Expr> outs, ArrayRef<Expr> ins, ArrayRef<Expr> tangents) {
  FX_CHECK(ins.size() == tangents.size(), kInternal, "expr: jvp got ", ins.size(), " inputs and ",
           tangents.size(), " tangents");
  std::vector<Expr> result(outs.size());
  for (size_t i = 0; i < ins.size(); ++i) {
    const Expr t = tangents[i];
    if (t.empty()) continue;
    Derivative derivative(ins[i]);
    for (size_t o = 0; o < outs.size(); ++o) {
      const Pair p = derivative.of(outs[o]);
      const Expr term = plus(times(p.d, t), times(p.dc, conj(t)));
      result[o] = plus(result[o], term);
    }
  }
  for (size_t o = 0; o < outs.size(); ++o) {
    if (!result[o].empty()) result[o] = cast(result[o], outs[o].kind());
  }
  return result;
}

}  // namespace fornax::expr
