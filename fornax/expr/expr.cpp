#include "fornax/expr/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fornax/base/error.h"
#include "fornax/base/hash.h"
#include "fornax/expr/detail.h"

namespace fornax::expr {

using detail::operand;
using detail::put;

namespace {

constinit thread_local const Arena* t_arena = nullptr;
constinit thread_local Arena* t_writable = nullptr;

constexpr int kArity[] = {
#define FX_PRIM(name, arity) arity,
    FX_PRIMS(FX_PRIM)
#undef FX_PRIM
};

constexpr const char* kPrimNames[] = {
#define FX_PRIM(name, arity) #name,
    FX_PRIMS(FX_PRIM)
#undef FX_PRIM
};

// One mix of a weighted sum: round constants differ in their upper bits only, so every bit has to
// reach the lower ones that pick the slot.
uint64_t hash(const Node& n) {
  uint64_t head = uint64_t(n.prim) | uint64_t(n.kind) << 8 | uint64_t(n.aux) << 16;
  head |= uint64_t(uint32_t(n.a)) << 32;
  const uint64_t tail = uint64_t(uint32_t(n.b)) | uint64_t(uint32_t(n.c)) << 32;
  const auto value = uint64_t(n.bits());
  return hash_mix(head * 0x9E3779B97F4A7C15u + tail * 0xD1B54A32D192ED03u + value);
}

bool same(const Node& x, const Node& y) {
  return x.prim == y.prim && x.kind == y.kind && x.aux == y.aux && x.a == y.a && x.b == y.b &&
         x.c == y.c && x.bits() == y.bits();
}

}  // namespace

int arity(Prim prim) { return kArity[int(prim)]; }

const char* name_of(Prim prim) { return kPrimNames[int(prim)]; }

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"bool", "int", "real", "complex"};
  return kNames[int(kind)];
}

// ---- Arena

Arena::Arena() : table_(64, -1) { nodes_.reserve(32); }

size_t Arena::slot_of(const Node& node) const {
  const size_t mask = table_.size() - 1;
  size_t slot = hash(node) & mask;
  while (table_[slot] >= 0 && !same(nodes_[table_[slot]], node)) slot = (slot + 1) & mask;
  return slot;
}

int32_t Arena::find(const Node& node) const { return table_[slot_of(node)]; }

int32_t Arena::intern(const Node& node) {
  const size_t slot = slot_of(node);
  if (table_[slot] >= 0) return table_[slot];
  const auto id = int32_t(nodes_.size());
  nodes_.push_back(node);
  table_[slot] = id;
  if (nodes_.size() * 2 > table_.size()) grow();
  return id;
}

void Arena::grow() {
  table_.assign(table_.size() * 2, -1);
  const size_t mask = table_.size() - 1;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    size_t slot = hash(nodes_[id]) & mask;
    while (table_[slot] >= 0) slot = (slot + 1) & mask;
    table_[slot] = int32_t(id);
  }
}

const std::vector<Arena::HandTerm>* Arena::hand(int32_t id) const {
  if (size_t(id) >= hand_of_.size() || hand_of_[id] < 0) return nullptr;
  return &hands_[hand_of_[id]];
}

void Arena::set_hand(int32_t id, std::vector<HandTerm> terms) {
  if (size_t(id) >= hand_of_.size()) hand_of_.resize(nodes_.size(), -1);
  if (hand_of_[id] >= 0) {
    hands_[hand_of_[id]] = std::move(terms);
    return;
  }
  hand_of_[id] = int32_t(hands_.size());
  hands_.push_back(std::move(terms));
}

Parts Arena::lowered(int32_t id) const {
  return size_t(id) < lowered_.size() ? lowered_[id] : Parts{};
}

void Arena::set_lowered(int32_t id, Parts parts) {
  if (size_t(id) >= lowered_.size()) lowered_.resize(nodes_.size());
  lowered_[id] = parts;
}

Scope::Scope(Arena& arena) : saved_(t_arena), saved_writable_(t_writable) {
  t_arena = &arena;
  t_writable = &arena;
}

Scope::Scope(const Arena& arena) : saved_(t_arena), saved_writable_(t_writable) {
  t_arena = &arena;
  t_writable = nullptr;
}

Scope::~Scope() {
  t_arena = saved_;
  t_writable = saved_writable_;
}

const Arena& current_arena() {
  FX_ASSERT(t_arena != nullptr);
  return *t_arena;
}

Arena& writable_arena() {
  FX_ASSERT(t_writable != nullptr);
  return *t_writable;
}

const Node& Expr::node() const {
  FX_ASSERT(id_ >= 0);
  return current_arena().nodes()[id_];
}

Expr detail::put(const Node& node) {
  if (t_writable != nullptr) return Expr::at(t_writable->intern(node));
  const int32_t id = current_arena().find(node);
  FX_CHECK(id >= 0, kInternal, "expr: cannot add ", name_of(node.prim), " to a finished arena");
  return Expr::at(id);
}

// ---- Leaves

Expr constant(double value) { return put({.prim = Prim::kConst, .value = value}); }

Expr integer(int64_t value) {
  return put(
      {.prim = Prim::kConst, .kind = Kind::kInt, .value = __builtin_bit_cast(double, value)});
}

Expr boolean(bool value) {
  return put({.prim = Prim::kConst, .kind = Kind::kBool, .value = value ? 1.0 : 0.0});
}

Expr::Expr(double value) : Expr(constant(value)) {}

Expr::Expr(int value) : Expr(integer(value)) {}

Expr input(int index, Kind kind, int part) {
  return put({.prim = Prim::kInput, .kind = kind, .aux = uint16_t(part), .a = index});
}

// ---- Kinds

namespace {

Expr cast_constant(const Node& node, Kind kind) {
  const double value = node.kind == Kind::kInt ? double(node.bits()) : node.value;
  if (kind == Kind::kBool) return boolean(value != 0);
  if (kind == Kind::kReal) return constant(value);
  if (std::fabs(value) < 0x1p63) return integer(int64_t(value));
  return {};  // no integer has this value: the machine decides when it runs
}

Expr cast_complex(Expr a, Kind kind) {
  if (kind == Kind::kBool) {
    const Expr re_set = real(a) != 0.0;
    return re_set | (imag(a) != 0.0);
  }
  return cast(real(a), kind);
}

}  // namespace

Expr cast(Expr a, Kind kind) {
  const Node n = a.node();
  if (n.kind == kind) return a;
  if (n.kind == Kind::kComplex) return cast_complex(a, kind);
  if (kind == Kind::kComplex) return complex(a, 0.0);
  if (n.prim == Prim::kConst) {
    const Expr folded = cast_constant(n, kind);
    if (!folded.empty()) return folded;
  }
  // bool -> int -> real and the like: 0 and 1 survive every step.
  if (n.prim == Prim::kCast && operand(n.a).kind() == Kind::kBool) return cast(operand(n.a), kind);
  return put({.prim = Prim::kCast, .kind = kind, .a = a.id()});
}

Expr to_real(Expr a) { return a.kind() < Kind::kReal ? cast(a, Kind::kReal) : a; }

// ---- Operations

Expr complex(Expr re, Expr im) {
  re = to_real(re);
  im = to_real(im);
  FX_CHECK(re.kind() == Kind::kReal && im.kind() == Kind::kReal, kType,
           "expr: complex() expects real parts, got ", name_of(re.kind()), " and ",
           name_of(im.kind()));
  return put({.prim = Prim::kComplex, .kind = Kind::kComplex, .a = re.id(), .b = im.id()});
}

Expr where(Expr condition, Expr a, Expr b) {
  condition = cast(condition, Kind::kBool);
  const Kind kind = std::max(a.kind(), b.kind());
  a = cast(a, kind);
  b = cast(b, kind);
  if (a.is(b)) return a;
  if (condition.prim() == Prim::kConst) return condition.node().value != 0 ? a : b;
  if (condition.prim() == Prim::kNot) return where(operand(condition.node().a), b, a);
  // where(c, where(c, x, y), z): the inner choice is already made
  if (a.prim() == Prim::kWhere && a.node().a == condition.id()) a = operand(a.node().b);
  if (b.prim() == Prim::kWhere && b.node().a == condition.id()) b = operand(b.node().c);
  if (a.is(b)) return a;
  return put({.prim = Prim::kWhere, .kind = kind, .a = condition.id(), .b = a.id(), .c = b.id()});
}

Expr call(const char* function, Expr a, Expr b) {
  const int row = special_index(function);
  const Special& entry = special(row);
  FX_CHECK(!a.empty() && b.empty() == (entry.arity == 1), kInternal, "expr: ", function, " takes ",
           entry.arity, " arguments");
  const bool integral = entry.integer_function != nullptr && a.kind() < Kind::kReal &&
                        (b.empty() || b.kind() < Kind::kReal);
  const Kind kind = integral ? Kind::kInt : Kind::kReal;
  FX_CHECK(a.kind() != Kind::kComplex && (b.empty() || b.kind() != Kind::kComplex), kUnsupported,
           function, " is not implemented for complex numbers");
  a = cast(a, kind);
  if (!b.empty()) b = cast(b, kind);
  return put({.prim = Prim::kCall, .kind = kind, .aux = uint16_t(row), .a = a.id(), .b = b.id()});
}

namespace {

bool is_logic(Prim p) {
  return p == Prim::kAnd || p == Prim::kOr || p == Prim::kXor || p == Prim::kNot;
}

bool is_comparison(Prim p) { return p == Prim::kEq || p == Prim::kLt || p == Prim::kLe; }

bool needs_real(Prim p) { return p >= Prim::kSqrt && p <= Prim::kCopysign; }

bool is_rounding(Prim p) { return p >= Prim::kFloor && p <= Prim::kTrunc; }

bool is_part(Prim p) { return p == Prim::kReal || p == Prim::kImag || p == Prim::kConj; }

// Not Min and Max: the order decides which NaN and which zero comes out.
bool commutes(Prim p) {
  return p == Prim::kAdd || p == Prim::kMul || p == Prim::kEq || p == Prim::kAnd ||
         p == Prim::kOr || p == Prim::kXor;
}

// The order of commuting operands: constants last, then by age.
bool in_order(Expr a, Expr b) {
  const bool a_constant = a.prim() == Prim::kConst;
  const bool b_constant = b.prim() == Prim::kConst;
  return a_constant == b_constant ? a.id() <= b.id() : b_constant;
}

// The kind that the operands take.
Kind operand_kind(Prim p, Expr a, Expr b) {
  Kind kind = a.kind();
  if (!b.empty()) kind = std::max(kind, b.kind());
  if (is_logic(p) || p == Prim::kShl || p == Prim::kShr) {
    FX_CHECK(kind < Kind::kReal, kType, "expr: ", name_of(p), " expects bool or int, got ",
             name_of(kind));
  }
  if (needs_real(p)) return std::max(kind, Kind::kReal);
  const bool keeps_bool = is_logic(p) || is_part(p) || p == Prim::kEq;
  if (kind == Kind::kBool && !keeps_bool) return Kind::kInt;
  return kind;
}

Kind result_kind(Prim p, Kind operands) {
  if (is_comparison(p)) return Kind::kBool;
  const bool is_real = p == Prim::kAbs || p == Prim::kReal || p == Prim::kImag;
  if (operands == Kind::kComplex && is_real) return Kind::kReal;
  return operands;
}

Expr make_unary(Prim p, Expr a) {
  const Kind kind = operand_kind(p, a, {});
  a = cast(a, kind);
  if (kind == Kind::kInt && is_rounding(p)) return a;
  const Expr simple = detail::simplify_unary(p, a);
  if (!simple.empty()) return simple;
  return put({.prim = p, .kind = result_kind(p, kind), .a = a.id()});
}

Expr make_binary(Prim p, Expr a, Expr b) {
  const Kind kind = operand_kind(p, a, b);
  a = cast(a, kind);
  b = cast(b, kind);
  const Expr simple = detail::simplify_binary(p, a, b, kind);
  if (!simple.empty()) return simple;
  if (commutes(p) && !in_order(a, b)) std::swap(a, b);
  return put({.prim = p, .kind = result_kind(p, kind), .a = a.id(), .b = b.id()});
}

}  // namespace

Expr make(Prim prim, Expr a, Expr b, Expr c) {
  const int given = int(!a.empty()) + int(!b.empty()) + int(!c.empty());
  FX_CHECK(given == arity(prim) && given > 0, kInternal, "expr: ", name_of(prim), " takes ",
           arity(prim), " operands, got ", given);
  FX_CHECK(prim != Prim::kCast && prim != Prim::kCall, kInternal, "expr: ", name_of(prim),
           " is built by its own function");
  if (prim == Prim::kWhere) return where(a, b, c);
  if (prim == Prim::kComplex) return complex(a, b);
  return given == 1 ? make_unary(prim, a) : make_binary(prim, a, b);
}

Expr operator+(Expr a, Expr b) { return make(Prim::kAdd, a, b); }
Expr operator-(Expr a, Expr b) { return make(Prim::kSub, a, b); }
Expr operator*(Expr a, Expr b) { return make(Prim::kMul, a, b); }
Expr operator/(Expr a, Expr b) { return make(Prim::kDiv, a, b); }
Expr operator-(Expr a) { return make(Prim::kNeg, a); }
Expr operator<(Expr a, Expr b) { return make(Prim::kLt, a, b); }
Expr operator<=(Expr a, Expr b) { return make(Prim::kLe, a, b); }
Expr operator>(Expr a, Expr b) { return b < a; }
Expr operator>=(Expr a, Expr b) { return b <= a; }
Expr operator==(Expr a, Expr b) { return make(Prim::kEq, a, b); }
Expr operator!=(Expr a, Expr b) { return ~(a == b); }
Expr operator&(Expr a, Expr b) { return make(Prim::kAnd, a, b); }
Expr operator|(Expr a, Expr b) { return make(Prim::kOr, a, b); }
Expr operator^(Expr a, Expr b) { return make(Prim::kXor, a, b); }
Expr operator~(Expr a) { return make(Prim::kNot, a); }

}  // namespace fornax::expr
