// The VM's compiler: schedule, uniform prelude, superinstructions, direct stores, slots.
#include "fornax/expr/vm.h"

#include <algorithm>
#include <cstring>

#include "fornax/base/error.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/kernels/table.h"

namespace fornax::expr {
namespace {

// Where a value lives while the program is being built; numbers are given at the end.
enum class Space : uint8_t { kNone, kInput, kOutput, kConstant, kUniform, kTemp };

struct Place {
  Space space = Space::kNone;
  int index = 0;

  bool operator==(const Place&) const = default;
};

struct Value {
  Place place;
  Lane lane = Lane::kF32;
};

struct Draft {
  Loop loop = nullptr;
  Place d, a, b, c;
  Prim prim = Prim::kInput;  // what superinstructions may be made of; kInput: nothing
  bool plain_store = false;  // copies a computed value into an output of the same type
};

struct Root {
  Expr re;
  Expr im;  // for complex dtypes
};

Kind kind_of(Dtype dtype) {
  if (is_bool(dtype)) return Kind::kBool;
  if (is_integer(dtype)) return Kind::kInt;
  return is_complex(dtype) ? Kind::kComplex : Kind::kReal;
}

// The real expressions that an output of `dtype` stores.
Root root_for(Expr e, Dtype dtype) {
  const Parts parts = lower(e);
  const Kind kind = kind_of(dtype);
  if (kind == Kind::kComplex)
    return {to_real(parts.re), parts.im.empty() ? constant(0.0) : parts.im};
  if (kind == Kind::kBool) {
    Expr set = cast(parts.re, Kind::kBool);
    return {parts.im.empty() ? set : set | cast(parts.im, Kind::kBool), {}};
  }
  return {parts.re.kind() == Kind::kBool ? cast(parts.re, kind) : parts.re, {}};
}

// ---- Can integers be computed in 32 bits? Sums and products may wrap as long as only their low
// bits reach a store; whatever looks at the value as a whole needs operands that cannot wrap.

class NarrowIntegers {
 public:
  NarrowIntegers(ArrayRef<InputSpec> inputs, size_t nodes) : inputs_(inputs), exact_(nodes) {}

  bool hold(ArrayRef<Expr> order, ArrayRef<Root> roots, ArrayRef<Dtype> dtypes) {
    for (Expr e : order)
      if (!visit(e)) return false;
    for (size_t i = 0; i < roots.size(); ++i) {
      const bool low_bits = is_integer(dtypes[i]) && dtypes[i] != Dtype::kI64;
      if (roots[i].re.kind() == Kind::kInt && !low_bits && !exact(roots[i].re.id())) return false;
    }
    return true;
  }

 private:
  // True also for operands that are not integers.
  bool exact(int32_t id) const { return id < 0 || exact_[size_t(id)]; }
  bool all_exact(const Node& n) const { return exact(n.a) && exact(n.b) && exact(n.c); }

  bool visit(Expr e) {
    const Node& n = e.node();
    uint8_t& exact_here = exact_[size_t(e.id())];
    exact_here = true;
    if (n.kind != Kind::kInt) {
      const bool looks = n.prim == Prim::kCast || n.prim == Prim::kEq || n.prim == Prim::kLt ||
                         n.prim == Prim::kLe || n.prim == Prim::kCall;
      return !looks || all_exact(n);
    }
    switch (n.prim) {
      case Prim::kInput: {
        const InputSpec& spec = inputs_[size_t(n.a)];
        exact_here = spec.dtype != Dtype::kI64 && !spec.negate;
        return true;
      }
      case Prim::kConst: exact_here = n.bits() == int32_t(n.bits()); return true;
      case Prim::kCast: return Expr::at(n.a).kind() != Kind::kReal;
      case Prim::kAdd:
      case Prim::kSub:
      case Prim::kMul:
      case Prim::kNeg: exact_here = false; return true;
      case Prim::kNot:
      case Prim::kAnd:
      case Prim::kOr:
      case Prim::kXor:
      case Prim::kWhere: exact_here = all_exact(n); return true;
      case Prim::kAbs:
      case Prim::kDiv:
      case Prim::kPow:
      case Prim::kShl:
      case Prim::kCall: exact_here = false; return all_exact(n);
      default: return all_exact(n);
    }
  }

  ArrayRef<InputSpec> inputs_;
  std::vector<uint8_t> exact_;
};

int cost_of(Prim prim) {
  switch (prim) {
    case Prim::kCall: return 80;
    case Prim::kPow: return 20;
    case Prim::kExp:
    case Prim::kExp2:
    case Prim::kExpm1:
    case Prim::kTanh:
    case Prim::kLog:
    case Prim::kLog2:
    case Prim::kSin:
    case Prim::kCos: return 4;
    case Prim::kDiv:
    case Prim::kSqrt: return 2;
    default: return prim >= Prim::kLog && prim <= Prim::kErfc ? 8 : 1;
  }
}

class Compiler {
 public:
  Compiler(ArrayRef<Dtype> output_types, ArrayRef<InputSpec> inputs, bool f64)
      : table_(kernel_table()), real_(f64 ? Lane::kF64 : Lane::kF32) {
    program_.inputs = inputs.vec();
    program_.outputs = output_types.vec();
  }

  Program build(ArrayRef<Expr> outputs) {
    std::vector<Root> roots;
    std::vector<Expr> all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      roots.push_back(root_for(outputs[i], program_.outputs[i]));
      all.push_back(roots.back().re);
      if (!roots.back().im.empty()) all.push_back(roots.back().im);
    }
    const std::vector<Expr> order = topological_order(all);
    choose_lanes(order, roots);
    values_.resize(current_arena().nodes().size());
    for (Expr e : order) place(e);
    for (size_t i = 0; i < roots.size(); ++i) store(int(i), roots[i], roots.size() > 1);
    fuse();
    write_directly();
    finish();
    return std::move(program_);
  }

 private:
  // ---- Types

  void choose_lanes(ArrayRef<Expr> order, ArrayRef<Root> roots) {
    bool any_real = false, any_int = false;
    for (Expr e : order) {
      any_real |= e.kind() == Kind::kReal;
      any_int |= e.kind() == Kind::kInt;
    }
    NarrowIntegers narrow(program_.inputs, current_arena().nodes().size());
    const bool small = !any_int || narrow.hold(order, roots, program_.outputs);
    int_ = small ? Lane::kI32 : Lane::kI64;
    const bool wide = any_real ? real_ == Lane::kF64 : !small;
    mask_ = wide ? Lane::kM64 : Lane::kM32;
  }

  Lane lane_of(Kind kind) const {
    if (kind == Kind::kBool) return mask_;
    return kind == Kind::kInt ? int_ : real_;
  }

  static Dtype dtype_of_lane(Lane lane) {
    switch (lane) {
      case Lane::kI32: return Dtype::kI32;
      case Lane::kI64: return Dtype::kI64;
      case Lane::kF32: return Dtype::kF32;
      case Lane::kF64: return Dtype::kF64;
      default: return Dtype::kUndefined;  // masks are never stored as they are
    }
  }

  bool is_uniform(Place p) const {
    if (p.space == Space::kInput) return program_.inputs[size_t(p.index)].uniform;
    return p.space == Space::kConstant || p.space == Space::kUniform;
  }
  bool varies(Place p) const { return p.space != Space::kNone && !is_uniform(p); }

  // ---- Emitting

  Place constant_of(uint64_t bits) {
    auto& all = program_.constants;
    auto found = std::find(all.begin(), all.end(), bits);
    if (found == all.end()) found = all.insert(all.end(), bits);
    return {Space::kConstant, int(found - all.begin())};
  }

  // Into the prelude if every operand is uniform, else into the code.
  Value emit(Loop loop, Lane lane, Place a, Place b = {}, Place c = {}) {
    FX_ASSERT(loop != nullptr);
    const bool uniform = !varies(a) && !varies(b) && !varies(c);
    Draft draft;
    draft.loop = loop;
    draft.a = a;
    draft.b = b;
    draft.c = c;
    if (uniform) {
      draft.d = {Space::kUniform, program_.uniforms++};
      prelude_.push_back(draft);
    } else {
      draft.d = {Space::kTemp, int(temp_bytes_.size())};
      temp_bytes_.push_back(uint8_t(bytes_of(lane)));
      code_.push_back(draft);
    }
    return {draft.d, lane};
  }

  // The value once per element.
  Value spread(Value v) {
    if (varies(v.place)) return v;
    Draft draft;
    draft.loop = table_.fill(bytes_of(v.lane));
    draft.a = v.place;
    draft.d = {Space::kTemp, int(temp_bytes_.size())};
    temp_bytes_.push_back(uint8_t(bytes_of(v.lane)));
    code_.push_back(draft);
    return {draft.d, v.lane};
  }

  // ---- Leaves

  bool placed(int32_t id) const { return values_[size_t(id)].place.space != Space::kNone; }

  // Operands are placed before their users, but for leaves, which wait for their first use.
  Value use(int32_t id) {
    if (placed(id)) return values_[size_t(id)];
    const Node& n = current_arena().nodes()[size_t(id)];
    FX_ASSERT(n.prim == Prim::kInput || n.prim == Prim::kConst);
    return values_[size_t(id)] = n.prim == Prim::kInput ? load(n, lane_of(n.kind)) : literal(n);
  }

  Value literal(const Node& n) {
    uint64_t bits = 0;
    if (n.kind == Kind::kBool) {
      bits = n.value != 0 ? ~uint64_t(0) : 0;
    } else if (n.kind == Kind::kInt) {
      bits = uint64_t(n.bits());
    } else if (real_ == Lane::kF64) {
      bits = __builtin_bit_cast(uint64_t, n.value);
    } else {
      bits = __builtin_bit_cast(uint32_t, float(n.value));
    }
    return {constant_of(bits), lane_of(n.kind)};
  }

  bool negated(const Node& n) const {
    const InputSpec& spec = program_.inputs[size_t(n.a)];
    return spec.negate != (spec.conjugate && n.aux == 2);
  }

  Value load(const Node& n, Lane lane) {
    const Dtype dtype = program_.inputs[size_t(n.a)].dtype;
    program_.used_inputs |= uint64_t(1) << n.a;
    Value v{{Space::kInput, n.a}, lane};
    if (n.aux != 0 || dtype != dtype_of_lane(lane)) {
      const Loop loop = table_.load(dtype, lane, n.aux);
      FX_CHECK(loop != nullptr, kUnsupported, "cannot read input ", n.a, " of dtype ", dtype,
               " as ", name_of(n.kind));
      v = emit(loop, lane, v.place);
    }
    if (!negated(n)) return v;
    return emit(table_.primitive(Prim::kNeg, lane, mask_, 1), lane, v.place);
  }

  // ---- Nodes

  void place(Expr e) {
    const Node n = e.node();
    if (n.prim == Prim::kInput || n.prim == Prim::kConst) return;
    Value v;
    switch (n.prim) {
      case Prim::kCast: v = place_cast(n); break;
      case Prim::kWhere: v = place_where(n); break;
      case Prim::kCall: v = place_call(n); break;
      default: v = place_primitive(n); break;
    }
    values_[size_t(e.id())] = v;
    program_.cost += cost_of(n.prim);
  }

  Value place_cast(const Node& n) {
    const Node& source = current_arena().nodes()[size_t(n.a)];
    const Lane lane = lane_of(n.kind);
    const bool loads = source.prim == Prim::kInput && !placed(n.a) && !negated(source) &&
                       table_.load(program_.inputs[size_t(source.a)].dtype, lane, source.aux);
    if (loads && source.kind < n.kind) return load(source, lane);
    const Value a = use(n.a);
    return a.lane == lane ? a : emit(table_.cast(a.lane, lane), lane, a.place);
  }

  Value place_where(const Node& n) {
    Value condition = use(n.a);
    const Value a = use(n.b), b = use(n.c);
    const Lane lane = lane_of(n.kind);
    const int flags = varies(a.place) + 2 * varies(b.place);
    if (flags != 0) condition = spread(condition);
    return emit(table_.select(bytes_of(lane), mask_, flags), lane, condition.place, a.place,
                b.place);
  }

  Value place_call(const Node& n) {
    const Special& row = special(n.aux);
    const Lane lane = lane_of(n.kind);
    const uint64_t address = n.kind == Kind::kInt ? reinterpret_cast<uint64_t>(row.integer_function)
                                                  : reinterpret_cast<uint64_t>(row.function);
    FX_ASSERT(address != 0);
    Value a = use(n.a), b = n.b >= 0 ? use(n.b) : a;
    if (varies(a.place) || varies(b.place)) {
      a = spread(a);
      b = n.b >= 0 ? spread(b) : a;
    }
    return emit(table_.call(lane), lane, a.place, b.place, constant_of(address));
  }

  Value place_primitive(const Node& n) {
    const Value a = use(n.a);
    const Value b = n.b >= 0 ? use(n.b) : Value{};
    const int flags = varies(a.place) + 2 * varies(b.place);
    const Loop loop = table_.primitive(n.prim, a.lane, mask_, flags == 0 ? 3 : flags);
    FX_CHECK(loop != nullptr, kUnsupported, "no loop for ", name_of(n.prim), " of ",
             name_of(Expr::at(n.a).kind()));
    const Value v = emit(loop, lane_of(n.kind), a.place, b.place);
    const bool arithmetic = a.lane == real_ && (n.prim == Prim::kAdd || n.prim == Prim::kSub ||
                                                n.prim == Prim::kMul || n.prim == Prim::kDiv);
    if (arithmetic && v.place.space == Space::kTemp) code_.back().prim = n.prim;
    return v;
  }

  // Stores come last, so that no input is read after an output it may share memory with.
  void store(int output, const Root& root, bool several) {
    const Dtype dtype = program_.outputs[size_t(output)];
    auto operand = [&](Expr e) {
      Value v = spread(use(e.id()));
      if (!several || v.place.space != Space::kInput) return v;
      return emit(table_.load(dtype_of_lane(v.lane), v.lane, 0), v.lane, v.place);
    };
    Draft draft;
    const Value a = operand(root.re);
    draft.a = a.place;
    if (!root.im.empty()) draft.b = operand(root.im).place;
    draft.loop = table_.store(a.lane, dtype);
    FX_CHECK(draft.loop != nullptr, kUnsupported, "cannot store output ", output, " as ", dtype);
    draft.d = {Space::kOutput, output};
    draft.plain_store = dtype_of_lane(a.lane) == dtype;
    stores_.push_back(draft);
  }

  // ---- Passes over the finished code

  // An arithmetic operation used once, by another one, is computed inside it.
  void fuse() {
    code_.insert(code_.end(), stores_.begin(), stores_.end());
    std::vector<int> uses(temp_bytes_.size()), definition(temp_bytes_.size());
    for (size_t i = 0; i < code_.size(); ++i) {
      for (Place p : {code_[i].a, code_[i].b, code_[i].c})
        if (p.space == Space::kTemp) ++uses[size_t(p.index)];
      if (code_[i].d.space == Space::kTemp) definition[size_t(code_[i].d.index)] = int(i);
    }
    for (Draft& outer : code_) {
      if (outer.prim == Prim::kInput) continue;
      for (const bool left : {true, false}) {
        const Place x = left ? outer.a : outer.b, other = left ? outer.b : outer.a;
        if (x.space != Space::kTemp || uses[size_t(x.index)] != 1) continue;
        if (try_fuse(outer, code_[size_t(definition[size_t(x.index)])], left, other)) break;
      }
    }
    std::erase_if(code_, [](const Draft& d) { return d.loop == nullptr; });
  }

  bool try_fuse(Draft& outer, Draft& inner, bool left, Place other) {
    if (inner.prim == Prim::kInput) return false;
    const int flags = varies(inner.a) + 2 * varies(inner.b) + 4 * varies(other);
    const Loop loop = table_.fused(inner.prim, outer.prim, left, real_, flags);
    if (loop == nullptr) return false;
    outer.loop = loop;
    outer.a = inner.a;
    outer.b = inner.b;
    outer.c = other;
    outer.prim = Prim::kInput;
    inner.loop = nullptr;
    return true;
  }

  // The instruction that computes an output writes it, unless an input is read later: the output
  // may be that input.
  void write_directly() {
    size_t last_input = 0;
    for (size_t i = 0; i < code_.size(); ++i)
      for (Place p : {code_[i].a, code_[i].b, code_[i].c})
        if (p.space == Space::kInput) last_input = i;
    for (size_t i = code_.size(); i-- > 0;) {
      const Draft& draft = code_[i];
      if (!draft.plain_store || draft.a.space != Space::kTemp) continue;
      const Place from = draft.a, to = draft.d;
      size_t definition = 0;
      while (!(code_[definition].d == from)) ++definition;
      if (definition < last_input) continue;
      code_.erase(code_.begin() + ptrdiff_t(i));
      for (Draft& d : code_)
        for (Place* p : {&d.d, &d.a, &d.b, &d.c})
          if (*p == from) *p = to;
    }
  }

  // Linear scan: a temporary keeps its slot until its last use. A result takes over the slot of an
  // operand that dies with it if both are equally wide: loops may run in place.
  void finish() {
    std::vector<size_t> last(temp_bytes_.size());
    for (size_t i = 0; i < code_.size(); ++i)
      for (Place p : {code_[i].a, code_[i].b, code_[i].c})
        if (p.space == Space::kTemp) last[size_t(p.index)] = i;
    slot_of_.assign(temp_bytes_.size(), -1);
    std::vector<int> free;
    for (size_t i = 0; i < code_.size(); ++i) {
      const Draft& draft = code_[i];
      std::vector<int> later;
      for (Place p : {draft.a, draft.b, draft.c}) {
        if (p.space != Space::kTemp || last[size_t(p.index)] != i) continue;
        last[size_t(p.index)] = SIZE_MAX;  // an operand may be named twice
        const bool in_place = draft.d.space == Space::kTemp &&
                              temp_bytes_[size_t(p.index)] == temp_bytes_[size_t(draft.d.index)];
        (in_place ? free : later).push_back(slot_of_[size_t(p.index)]);
      }
      if (draft.d.space == Space::kTemp) {
        if (free.empty()) free.push_back(program_.slots++);
        slot_of_[size_t(draft.d.index)] = free.back();
        free.pop_back();
      }
      free.insert(free.end(), later.begin(), later.end());
    }
    for (uint8_t bytes : temp_bytes_)
      program_.slot_bytes = std::max(program_.slot_bytes, int(bytes));
    for (const Draft& d : prelude_) program_.prelude.push_back(number(d));
    for (const Draft& d : code_) program_.code.push_back(number(d));
  }

  Instruction number(const Draft& d) const {
    return {d.loop, number(d.d), number(d.a), number(d.b), number(d.c)};
  }
  uint16_t number(Place p) const {
    const size_t outputs = program_.inputs.size();
    const size_t constants = outputs + program_.outputs.size();
    const size_t uniforms = constants + program_.constants.size();
    const size_t slots = uniforms + size_t(program_.uniforms);
    size_t base = 0, index = size_t(p.index);
    switch (p.space) {
      case Space::kNone: return 0;  // never read through
      case Space::kInput: break;
      case Space::kOutput: base = outputs; break;
      case Space::kConstant: base = constants; break;
      case Space::kUniform: base = uniforms; break;
      case Space::kTemp:
        base = slots;
        index = size_t(slot_of_[index]);
        break;
    }
    FX_CHECK(base + index < UINT16_MAX, kUnsupported, "expression needs more than ", UINT16_MAX,
             " operands");
    return uint16_t(base + index);
  }

  const KernelTable& table_;
  Program program_;
  Lane real_, int_ = Lane::kI64, mask_ = Lane::kM32;
  std::vector<Value> values_;  // by node
  std::vector<Draft> prelude_, code_, stores_;
  std::vector<uint8_t> temp_bytes_;
  std::vector<int> slot_of_;
};

}  // namespace

Program compile(ArrayRef<Expr> outputs, ArrayRef<Dtype> output_types, ArrayRef<InputSpec> inputs,
                bool f64) {
  FX_CHECK(outputs.size() == output_types.size(), kInternal, "got ", outputs.size(),
           " outputs and ", output_types.size(), " output dtypes");
  FX_CHECK(outputs.size() + inputs.size() <= size_t(kMaxOperands), kUnsupported,
           "a program takes at most ", kMaxOperands, " operands, got ",
           outputs.size() + inputs.size());
  return Compiler(output_types, inputs, f64).build(outputs);
}

}  // namespace fornax::expr
