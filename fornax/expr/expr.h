// Expr: scalar expressions as a hash-consed DAG. One body describes a pointwise operator for every
// dtype; its derivative, its complex form and its loops are computed from it.
//
// Nodes live in an Arena and are named by 32-bit ids. The arena in use is thread-local (Scope), so
// nothing here locks; a finished arena is read by any number of threads through Scope(const
// Arena&).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/base/function_ref.h"

namespace fornax::expr {

// Widths (f32, f64, i64, ...) are chosen when a program is compiled. The order is that of
// promotion.
enum class Kind : uint8_t { kBool, kInt, kReal, kComplex };

const char* name_of(Kind kind);

// X(name, arity). Mixed kinds promote by an implicit Cast; kSqrt .. kCopysign make reals of ints.
//   Input     a = index, aux = part (0 whole, 1 real part, 2 imaginary part; 1 and 2 after lower())
//   Const     value (kInt constants keep their 64 bits in it)
//   Sign      x > 0 ? 1 : x < 0 ? -1 : x; z / |z| for complex
//   Min, Max  a < b ? a : (a != a ? a : b) and its mirror: NaN wins, equal operands give b
//   Fmod, Mod remainder with the sign of the dividend (fmod), of the divisor (floor)
//   Div       truncates for kInt; integer x / 0, x fmod 0, x mod 0 give 0
//   Round     half to even
//   Not       logical for kBool, bitwise for kInt; so And, Or, Xor
//   Shl, Shr  by less than 0 or more than 63: 0, and the sign
//   Where     a ? b : c, a select: the value not chosen never shows
//   Cast      to the node's kind; real -> int truncates, NaN and out of range give some int
//   Call      a row of the special function table, aux = the row
// clang-format off
#define FX_PRIMS(X)                                                                                \
  X(Input, 0) X(Const, 0)                                                                          \
  X(Add, 2) X(Sub, 2) X(Mul, 2) X(Div, 2) X(Neg, 1) X(Abs, 1) X(Sign, 1) X(Min, 2) X(Max, 2)       \
  X(Fmod, 2) X(Mod, 2) X(Floor, 1) X(Ceil, 1) X(Round, 1) X(Trunc, 1) X(Pow, 2)                    \
  X(Sqrt, 1) X(Exp, 1) X(Exp2, 1) X(Expm1, 1) X(Log, 1) X(Log1p, 1) X(Log2, 1) X(Log10, 1)         \
  X(Sin, 1) X(Cos, 1) X(Tan, 1) X(Sinh, 1) X(Cosh, 1) X(Tanh, 1)                                   \
  X(Asin, 1) X(Acos, 1) X(Atan, 1) X(Asinh, 1) X(Acosh, 1) X(Atanh, 1)                             \
  X(Atan2, 2) X(Hypot, 2) X(Erf, 1) X(Erfc, 1) X(Copysign, 2)                                      \
  X(Eq, 2) X(Lt, 2) X(Le, 2) X(Not, 1) X(And, 2) X(Or, 2) X(Xor, 2) X(Shl, 2) X(Shr, 2)            \
  X(Where, 3) X(Cast, 1) X(Complex, 2) X(Real, 1) X(Imag, 1) X(Conj, 1)                            \
  X(Call, 2)
// clang-format on

enum class Prim : uint8_t {
#define FX_PRIM(name, arity) k##name,
  FX_PRIMS(FX_PRIM)
#undef FX_PRIM
};

int arity(Prim prim);
const char* name_of(Prim prim);  // "Add"

struct Node {
  Prim prim = Prim::kConst;
  Kind kind = Kind::kReal;
  uint16_t aux = 0;
  int32_t a = -1;  // operands as ids; a Call of one argument has b = -1
  int32_t b = -1;
  int32_t c = -1;
  double value = 0;

  int64_t bits() const { return __builtin_bit_cast(int64_t, value); }
};

// A node of the current arena, or empty: an absent argument, and a derivative that is zero by
// structure (which, unlike a constant 0, never meets an infinity). It has no operator bool, since
// comparisons and logic build nodes; `~` is "not".
class Expr {
 public:
  Expr() = default;
  Expr(double value);         // a real constant
  Expr(int value);            // an integer constant
  Expr(bool value) = delete;  // boolean()
  static Expr at(int32_t id) {
    Expr e;
    e.id_ = id;
    return e;
  }

  int32_t id() const { return id_; }
  bool empty() const { return id_ < 0; }
  bool is(Expr other) const { return id_ == other.id_; }  // the same node
  // Reads the current arena. The reference holds until the next node is made.
  const Node& node() const;
  Kind kind() const { return node().kind; }
  Prim prim() const { return node().prim; }

 private:
  int32_t id_ = -1;
};

struct Parts {  // of a complex value
  Expr re;
  Expr im;
};

// Owns nodes. Built by one thread; after that const, and readable by all.
class Arena {
 public:
  Arena();
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const std::vector<Node>& nodes() const { return nodes_; }
  int32_t find(const Node& node) const;  // -1 if absent
  int32_t intern(const Node& node);

  // One term of a hand-written gradient: derivative += partial * derivative(operand).
  struct HandTerm {
    int32_t operand;
    int32_t partial;
  };
  // Null if the node has the derivative of its primitive.
  const std::vector<HandTerm>* hand(int32_t id) const;
  void set_hand(int32_t id, std::vector<HandTerm> terms);

  // What lower() found for a node: ids of the parts, -1 if not lowered yet.
  Parts lowered(int32_t id) const;
  void set_lowered(int32_t id, Parts parts);

 private:
  size_t slot_of(const Node& node) const;
  void grow();

  std::vector<Node> nodes_;
  std::vector<int32_t> table_;    // open addressing, a power of two
  std::vector<int32_t> hand_of_;  // by node: index into hands_, -1 none
  std::vector<std::vector<HandTerm>> hands_;
  std::vector<Parts> lowered_;  // by node
};

// Makes an arena current on this thread. A const one is only read: building a node that it does
// not hold is an error.
class Scope {
 public:
  explicit Scope(Arena& arena);
  explicit Scope(const Arena& arena);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const Arena* saved_;
  Arena* saved_writable_;
};

const Arena& current_arena();
Arena& writable_arena();

// ---- Building. Only rewrites that hold for NaN, infinities and signed zeros are applied: x * 0,
// x + 0, x - x, x == x and the order of additions stay as written.

Expr input(int index, Kind kind, int part = 0);
Expr constant(double value);
Expr integer(int64_t value);
Expr boolean(bool value);
Expr make(Prim prim, Expr a, Expr b = {}, Expr c = {});
// A rare function by its name in the table. Arguments become real, unless the row has an integer
// form and all are integers.
Expr call(const char* function, Expr a, Expr b = {});
Expr cast(Expr a, Kind kind);
Expr to_real(Expr a);  // bool and int become real; the others stay
Expr where(Expr condition, Expr a, Expr b);
Expr complex(Expr re, Expr im);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator&(Expr a, Expr b);
Expr operator|(Expr a, Expr b);
Expr operator^(Expr a, Expr b);
Expr operator~(Expr a);

// clang-format off
#define FX_EXPR_UNARY(X)                                                                           \
  X(abs, Abs) X(sign, Sign) X(floor, Floor) X(ceil, Ceil) X(round, Round) X(trunc, Trunc)          \
  X(sqrt, Sqrt) X(exp, Exp) X(exp2, Exp2) X(expm1, Expm1) X(log, Log) X(log1p, Log1p)              \
  X(log2, Log2) X(log10, Log10) X(sin, Sin) X(cos, Cos) X(tan, Tan) X(sinh, Sinh) X(cosh, Cosh)    \
  X(tanh, Tanh) X(asin, Asin) X(acos, Acos) X(atan, Atan) X(asinh, Asinh) X(acosh, Acosh)          \
  X(atanh, Atanh) X(erf, Erf) X(erfc, Erfc) X(real, Real) X(imag, Imag) X(conj, Conj)
#define FX_EXPR_BINARY(X)                                                                          \
  X(min, Min) X(max, Max) X(fmod, Fmod) X(mod, Mod) X(pow, Pow) X(atan2, Atan2) X(hypot, Hypot)    \
  X(copysign, Copysign) X(shl, Shl) X(shr, Shr)
// clang-format on

#define FX_EXPR_FUNCTION(name, prim) \
  inline Expr name(Expr a) { return make(Prim::k##prim, a); }
FX_EXPR_UNARY(FX_EXPR_FUNCTION)
#undef FX_EXPR_FUNCTION
#define FX_EXPR_FUNCTION(name, prim) \
  inline Expr name(Expr a, Expr b) { return make(Prim::k##prim, a, b); }
FX_EXPR_BINARY(FX_EXPR_FUNCTION)
#undef FX_EXPR_FUNCTION

// ---- Derivatives

// Wirtinger derivatives (df/dz, df/dz̄); empty where zero by structure. For a real x the derivative
// is d + dc.
struct Pair {
  Expr d;
  Expr dc;
};

// The derivative of every node with respect to one node (an input, as a rule), found forward and
// remembered. Where a where() decides, the choice is made last: nothing leaks from the branch not
// taken, as a multiplication by 0 would.
class Derivative {
 public:
  explicit Derivative(Expr x) : x_(x) {}
  // Throws Error(kAutograd) where a special function on the way has no derivative.
  Pair of(Expr e);

 private:
  Pair by_hand(const std::vector<Arena::HandTerm>& terms);
  Pair rule(Expr e);
  // df/dz of f(u): f_u u_z + f_ū conj(u_z̄)
  Pair chain(Expr u, Expr f, Expr f_bar = {});
  Pair arithmetic(Expr e);
  Pair division(Expr e);
  Pair absolute(Expr e);
  Pair complex_sign(Expr e);
  Pair min_max(Expr e);
  Pair power(Expr e);
  Pair exponential(Expr e);
  Pair trigonometric(Expr e);
  Pair two_operands(Expr e);
  Pair structure(Expr e);
  Pair special_function(Expr e);
  bool is_zero(Expr u);

  Expr x_;
  std::vector<Pair> memo_;  // by node
  std::vector<bool> known_;
};

// Sum over outputs of grad * conj(d out / d in) + conj(grad) * d out / d conj(in); its real part
// for a real input. An empty grad or input is skipped; an empty result is a zero by structure, as
// it is for bool and int inputs.
std::vector<Expr> vjp(ArrayRef<Expr> outs, ArrayRef<Expr> grads, ArrayRef<Expr> ins);
// One tangent per output, by the same rules.
std::vector<Expr> jvp(ArrayRef<Expr> outs, ArrayRef<Expr> ins, ArrayRef<Expr> tangents);

// Gives `value` a hand-written derivative: the sum of partial * derivative(operand) over the pairs
// {operand, partial}. It hangs on the node, so it composes, and an equal node of the same arena
// has it too: the partials must be true derivatives of `value`. Ignored on inputs and constants.
Expr with_grad(Expr value, std::initializer_list<std::pair<Expr, Expr>> grads);

// ---- Transforming

// Gives the node that takes the place of another, or an empty Expr to keep it.
using NodeMap = FunctionRef<Expr(Expr)>;
Expr keep(Expr e);  // the NodeMap that replaces nothing

// Rebuilds DAGs bottom-up. `before` may replace a node instead of visiting its operands, `after`
// may replace the rebuilt node. Shared nodes are visited once, hand-written gradients move along.
std::vector<Expr> rewrite(ArrayRef<Expr> roots, NodeMap before, NodeMap after = keep);
Expr rewrite(Expr root, NodeMap before, NodeMap after = keep);

struct Substitution {
  Expr from;
  Expr to;
};
// Every `from` becomes its `to`. A forward output replaced by an input in the gradient's DAG is
// what makes an operator save its output.
std::vector<Expr> replace(ArrayRef<Expr> roots, ArrayRef<Substitution> substitutions);
Expr replace(Expr root, ArrayRef<Substitution> substitutions);

// Bit i: some root reads input i. Throws Error(kUnsupported) for an input above 63.
uint64_t inputs_used(ArrayRef<Expr> roots);

// Every node reachable from the roots once, operands before users. Empty roots are skipped.
std::vector<Expr> topological_order(ArrayRef<Expr> roots);

// The same value from real nodes only, so no backend needs a complex instruction. Complex inputs
// become two inputs of the same index, parts 1 and 2. `im` of a real root is empty.
// Throws Error(kUnsupported) for a primitive without a complex form.
Parts lower(Expr e);

// "t0 = exp(x0); mul(t0, sub(1.0, t0))": nodes used more than once are named. Stable.
std::string text(Expr e);
std::string text(ArrayRef<Expr> roots);

// ---- Special functions

// Derivatives by argument; empty entries are zero by structure.
struct Partials {
  Expr a;
  Expr b;
};

// One row per rare function. A backend needs one generic loop for all of them: f32 is computed in
// double.
struct Special {
  const char* name;
  int arity;
  double (*function)(double, double);
  int64_t (*integer_function)(int64_t, int64_t);  // null, or the form for Call nodes of kInt
  Partials (*gradient)(Expr a, Expr b, Expr self);
  uint8_t known;  // bit i: the derivative by argument i exists
};

const Special& special(int row);
int special_count();
// Throws Error(kInternal) if there is no such row.
int special_index(const char* name);

}  // namespace fornax::expr
