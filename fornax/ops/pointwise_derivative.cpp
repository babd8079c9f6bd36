// Derivatives of pointwise operators. The reverse and forward derivative of an operator are
// themselves pointwise operators, made when first needed from its body, and differentiated the same
// way: any order, every transform.
#include <string>

#include "fornax/base/key_cache.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/pointwise.h"

namespace fornax {
namespace {

// A reverse derivative takes [arguments of the base][its results][their gradients][common
// dtype][complex mask] and gives one gradient per bit of `need`. A forward one takes
// [arguments][results][tangent per argument][common dtype][complex mask] and gives a tangent per
// result. Arguments that were not saved are placeholders: present, but without a tensor.
struct DerivedSpec {
  const Op* base = nullptr;
  bool forward = false;
  uint64_t need = 0;
  int n_args = 0, n_outs = 0;

  int out_at(int k) const { return n_args + k; }
  int grad_at(int k) const { return n_args + n_outs + k; }
  int dtype_at() const { return n_args + n_outs + (forward ? n_args : n_outs); }
  int mask_at() const { return dtype_at() + 1; }
};

struct DerivedOp {
  DerivedSpec spec;
  std::string schema;
  Op op;
};

const DerivedSpec& spec_of(const Op& op) { return *static_cast<const DerivedSpec*>(op.extra); }

void derived_infer(Infer& f) {
  const DerivedSpec& spec = spec_of(f.op);
  Dtype common = f.args.dtype(size_t(spec.dtype_at()), Dtype::kF32);
  int64_t complex_mask = f.args.integer(size_t(spec.mask_at()));
  Meta m;
  m.sizes = pointwise_sizes(f.op, f.args);
  for (const Arg& a : f.args)
    if (a.tag == Tag::kTensor && a.t->defined()) {
      m.device = a.t->device();
      // Gradients take the layout of the first operand that has the full size, as the forward call
      // did.
      if (a.t->sizes() == IntArrayRef(m.sizes) && a.t->is_non_overlapping_and_dense() &&
          m.strides.empty() && !a.t->is_contiguous())
        m.strides.assign(a.t->strides().begin(), a.t->strides().end());
    }
  if (spec.forward) {
    m.dtype = result_dtype(spec.base->pointwise.promote, common);
    for (int k = 0; k < spec.n_outs; ++k) f.outs.push_back(Meta(m));
    return;
  }
  for (int i = 0; i < spec.n_args; ++i) {
    if (!(spec.need >> i & 1)) continue;
    m.dtype = complex_mask >> i & 1 ? common : to_real(common);
    f.outs.push_back(Meta(m));
  }
}

struct BaseCall {
  SmallVec<Expr, 2> ys;
  std::vector<Expr> ins;  // per argument; empty where it isn't an operand
};

bool is_operand(const Arg& a) { return a.tag == Tag::kTensor || a.is_number(); }

BaseCall build_base(const Body& b, const DerivedSpec& spec) {
  BaseCall call;
  call.ys.resize(size_t(spec.n_outs));
  Args args(b.args.data(), size_t(spec.n_args));
  build_body(*spec.base, args, b.common, b.inputs, call.ys.data());
  Body base{*spec.base, args, b.common, b.inputs, nullptr};
  for (int i = 0; i < spec.n_args; ++i)
    call.ins.push_back(is_operand(args[size_t(i)]) ? base.operand(i) : Expr());
  return call;
}

// Where the operator saves its result, the derivative reads that instead of computing it again.
void use_saved_results(const DerivedSpec& spec, const BaseCall& call, const Body& b,
                       std::vector<Expr>& roots) {
  if (!(spec.base->traits & kSavesResult)) return;
  SmallVec<expr::Substitution, 2> substitutions;
  for (int k = 0; k < spec.n_outs; ++k) {
    Expr y = call.ys[size_t(k)];
    if (y.empty() || y.prim() == expr::Prim::kInput || y.prim() == expr::Prim::kConst) continue;
    substitutions.push_back({y, expr::input(b.inputs[spec.out_at(k)], y.kind())});
  }
  std::vector<Expr> kept;
  for (Expr r : roots)
    if (!r.empty()) kept.push_back(r);
  kept = expr::replace(kept, ArrayRef<expr::Substitution>(substitutions));
  size_t next = 0;
  for (Expr& r : roots)
    if (!r.empty()) r = kept[next++];
}

Expr gradient_input(const Body& b, int arg, expr::Kind kind) {
  return b.args[size_t(arg)].is_none() ? Expr() : expr::input(b.inputs[arg], kind);
}

std::vector<Expr> reverse_roots(const Body& b, const DerivedSpec& spec) {
  BaseCall call = build_base(b, spec);
  std::vector<Expr> grads, ins;
  for (int k = 0; k < spec.n_outs; ++k)
    grads.push_back(gradient_input(b, spec.grad_at(k), call.ys[size_t(k)].kind()));
  for (int i = 0; i < spec.n_args; ++i)
    ins.push_back(spec.need >> i & 1 ? call.ins[size_t(i)] : Expr());
  std::vector<Expr> results = expr::vjp(call.ys, grads, ins);
  use_saved_results(spec, call, b, results);
  int64_t complex_mask = b.integer(spec.mask_at());
  for (int i = 0; i < spec.n_args; ++i) {
    Expr& r = results[size_t(i)];
    if (!r.empty() && r.kind() == expr::Kind::kComplex && !(complex_mask >> i & 1))
      r = expr::real(r);
  }
  return results;
}

void reverse_body(Body& b) {
  const DerivedSpec& spec = spec_of(b.op);
  std::vector<Expr> results = reverse_roots(b, spec);
  int k = 0;
  for (int i = 0; i < spec.n_args; ++i)
    if (spec.need >> i & 1) b.out(k++, results[size_t(i)].empty() ? Expr(0.0) : results[size_t(i)]);
}

void forward_body(Body& b) {
  const DerivedSpec& spec = spec_of(b.op);
  BaseCall call = build_base(b, spec);
  std::vector<Expr> ins, tangents;
  for (int i = 0; i < spec.n_args; ++i) {
    if (b.args[size_t(spec.grad_at(i))].is_none()) continue;
    ins.push_back(call.ins[size_t(i)]);
    tangents.push_back(expr::input(b.inputs[spec.grad_at(i)], call.ins[size_t(i)].kind()));
  }
  std::vector<Expr> results = expr::jvp(call.ys, ins, tangents);
  use_saved_results(spec, call, b, results);
  for (int k = 0; k < spec.n_outs; ++k)
    b.out(k, results[size_t(k)].empty() ? Expr(0.0) : results[size_t(k)]);
}

DerivedOp* make_derived(const DerivedSpec& spec) {
  auto* d = new DerivedOp{
      spec, std::string(spec.base->name()) + (spec.forward ? "_forward" : "_backward"),
      pointwise_base("derived(Tensor self) -> Tensor", "A derivative made from a pointwise body.",
                     Promote::kDefault, 0)};
  d->schema += "(Tensor self) -> Tensor[]";
  Op& op = d->op;
  op.schema = d->schema;
  op.infer = derived_infer;
  op.extra = &d->spec;
  op.pointwise.body = spec.forward ? forward_body : reverse_body;
  op.pointwise.promoted = uint32_t(spec.base->pointwise.promoted);
  op.pointwise.structural = spec.base->pointwise.structural | uint64_t(1) << spec.mask_at();
  op.n_returns = int8_t(spec.forward ? spec.n_outs : __builtin_popcountll(spec.need));
  for (int i = 0; i < kDeviceTypeCount; ++i) op.kernels[i] = spec.base->kernels[i];
  op.short_call = spec.base->short_call;
  return d;
}

struct DerivedTag {};
const Op& derived_op(const DerivedSpec& spec) {
  static auto* cache = new KeyCache<DerivedOp*, DerivedTag>;
  uint64_t key = hash_combine(reinterpret_cast<uintptr_t>(spec.base), spec.need * 2 + spec.forward);
  key = hash_combine(key, uint64_t(spec.n_args) * 64 + uint64_t(spec.n_outs));
  return cache->get(key, [&] { return make_derived(spec); })->op;
}

// What one call's reverse derivative needs; shared by all calls of the same structure.
struct Plan {
  DerivedSpec spec;
  const Op* derived = nullptr;  // null: every gradient is passed through
  Saves saves;
  Dtype common = Dtype::kF32;
  int64_t complex_mask = 0;
  SmallVec<int8_t, 8> pass;  // argument -> result whose gradient is its own, -1: computed, -2: zero
};

// Input numbers for the analysis: argument i is input i.
SmallVec<int16_t, 32> identity_inputs(size_t n) {
  SmallVec<int16_t, 32> inputs;
  for (size_t i = 0; i < n; ++i) inputs.push_back(int16_t(i));
  return inputs;
}

Plan make_plan(const Op& op, Args args, uint64_t need, Dtype common, int64_t complex_mask) {
  Plan plan;
  plan.common = common;
  plan.complex_mask = complex_mask;
  plan.spec = {&op, false, need, int(args.size()), op.n_returns};
  plan.pass.resize(args.size(), -1);
  DerivedSpec& spec = plan.spec;
  SmallVec<Arg, 16> full(args.begin(), args.end());
  Tensor placeholder;
  Arg present;
  present.tag = Tag::kTensor;
  present.t = &placeholder;
  for (int k = 0; k < 2 * spec.n_outs; ++k) full.push_back(present);
  full.push_back(Arg(common));
  full.push_back(Arg(complex_mask));
  expr::Arena arena;
  expr::Scope scope(arena);
  auto inputs = identity_inputs(full.size());
  Op shape = pointwise_base("derived(Tensor self) -> Tensor", "", Promote::kDefault,
                            op.pointwise.promoted);
  Body b{shape, Args(full.data(), full.size()), common, inputs.data(), nullptr};
  std::vector<Expr> results = reverse_roots(b, spec);
  std::vector<Expr> computed;
  for (int i = 0; i < spec.n_args; ++i) {
    if (!(need >> i & 1)) continue;
    Expr r = results[size_t(i)];
    if (r.empty()) {
      plan.pass[size_t(i)] = -2;
      spec.need &= ~(uint64_t(1) << i);
      continue;
    }
    const expr::Node node = r.node();
    if (node.prim == expr::Prim::kInput && node.a >= spec.grad_at(0) &&
        node.a < spec.grad_at(0) + spec.n_outs) {
      plan.pass[size_t(i)] = int8_t(node.a - spec.grad_at(0));
      spec.need &= ~(uint64_t(1) << i);
      continue;
    }
    computed.push_back(r);
  }
  uint64_t used = computed.empty() ? 0 : expr::inputs_used(computed);
  for (int i = 0; i < spec.n_args; ++i)
    if ((used >> i & 1) && args[size_t(i)].tag == Tag::kTensor) plan.saves.in |= uint64_t(1) << i;
  for (int k = 0; k < spec.n_outs; ++k)
    if (used >> spec.out_at(k) & 1) plan.saves.out |= 1u << k;
  if (spec.need) plan.derived = &derived_op(spec);
  return plan;
}

int64_t complex_mask_of(Args args) {
  int64_t mask = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].tag == Tag::kTensor && args[i].t->defined() && is_complex(args[i].t->dtype()))
      mask |= int64_t(1) << i;
  return mask;
}

struct PlanTag {};

}  // namespace

Saves pointwise_saves(const SaveQuery& q) {
  static auto* cache = new KeyCache<Plan, PlanTag>;
  Dtype common = common_dtype(q.op, q.args);
  int64_t complex_mask =
      q.op.extra ? q.args.integer(size_t(spec_of(q.op).mask_at())) : complex_mask_of(q.args);
  uint64_t key = hash_combine(reinterpret_cast<uintptr_t>(&q.op), q.need);
  key = hash_combine(key, structure_hash(q.op, q.args));
  key = hash_combine(key, uint64_t(common) << 32 ^ uint64_t(complex_mask));
  const Plan& plan =
      cache->get(key, [&] { return make_plan(q.op, q.args, q.need, common, complex_mask); });
  Saves saves = plan.saves;
  saves.plan = &plan;
  return saves;
}

void pointwise_vjp(Vjp& v) {
  const Plan& plan = *static_cast<const Plan*>(v.plan());
  const DerivedSpec& spec = plan.spec;
  Args own = v.args();
  for (int i = 0; i < spec.n_args; ++i) {
    int from = plan.pass[size_t(i)];
    if (from >= 0 && v.need(i)) v.set(i, v.grad(from));
  }
  if (!plan.derived) return;
  static constinit Tensor placeholder;
  Arg present;
  present.tag = Tag::kTensor;
  present.t = &placeholder;
  Tensors kept;
  kept.reserve(size_t(spec.n_args + 2 * spec.n_outs));
  SmallVec<Arg, 16> args;
  for (int i = 0; i < spec.n_args; ++i) {
    Arg a = own[size_t(i)];
    if (v.is_tensor(i)) {
      a = present;
      if (plan.saves.in >> i & 1) a = Arg(kept.emplace_back(v.in(i)));
    }
    args.push_back(a);
  }
  for (int k = 0; k < spec.n_outs; ++k)
    args.push_back(plan.saves.out >> k & 1 ? Arg(kept.emplace_back(v.out(k))) : present);
  for (int k = 0; k < spec.n_outs; ++k) args.push_back(Arg(v.grad(k)));
  args.push_back(Arg(plan.common));
  args.push_back(Arg(plan.complex_mask));
  Tensors results = call(*plan.derived, Form::kNew, Args(args.data(), args.size()));
  size_t next = 0;
  for (int i = 0; i < spec.n_args; ++i)
    if (spec.need >> i & 1) v.set(i, std::move(results[next++]));
}

void pointwise_jvp(Jvp& j) {
  const Op& op = j.call.op;
  Args own = j.call.args;
  DerivedSpec spec{&op, true, 0, int(own.size()), op.n_returns};
  SmallVec<Arg, 16> args;
  size_t flat = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    Arg a = own[i];  // a placeholder stays one: present, without a tensor
    if (a.tag == Tag::kTensor) a.t = &j.primals[flat++];
    args.push_back(a);
  }
  for (int k = 0; k < spec.n_outs; ++k) args.push_back(Arg(j.outs[size_t(k)]));
  for (int i = 0; i < spec.n_args; ++i) {
    int at = j.first[size_t(i)];
    args.push_back(at >= 0 ? Arg(j.tangents[size_t(at)]) : Arg());
  }
  args.push_back(Arg(common_dtype(op, own)));
  args.push_back(Arg(op.extra ? own.integer(size_t(spec_of(op).mask_at())) : complex_mask_of(own)));
  Tensors results = call(derived_op(spec), Form::kNew, Args(args.data(), args.size()));
  for (int k = 0; k < spec.n_outs; ++k) j.set(k, std::move(results[size_t(k)]));
}

// The batch dimension is first in every operand; ranks are aligned so that it broadcasts with
// itself only.
void pointwise_vmap(Vmapped& v) {
  Args own = v.args();
  int64_t rank = 0;
  bool ranks_differ = false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].tag != Tag::kTensor || !own[i].t->defined()) continue;
    int64_t d = v.dim(int(i));
    ranks_differ = ranks_differ || (rank != d && i > 0);
    rank = d > rank ? d : rank;
  }
  // Promotion sees logical ranks: a batched 0-dim operand is no dimensioned tensor. Where that
  // matters it is cast first.
  Tensors kept;
  kept.reserve(own.size());
  SmallVec<Arg, 16> args(own.begin(), own.end());
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].tag != Tag::kTensor || !own[i].t->defined() || !v.is(int(i))) continue;
    Tensor t = *own[i].t;
    if (v.dim(int(i)) < rank) {
      Dims sizes;
      sizes.push_back(t.sizes()[0]);
      for (int64_t d = v.dim(int(i)); d < rank; ++d) sizes.push_back(1);
      for (size_t d = 1; d < t.sizes().size(); ++d) sizes.push_back(t.sizes()[d]);
      t = t.reshape(sizes);
    }
    args[i] = Arg(kept.emplace_back(t));
  }
  if (rank > 0 && ranks_differ && !v.call.op.extra &&
      v.call.op.pointwise.promote != Promote::kFirst) {
    for (size_t i = 0; i < own.size() && i < 32; ++i) {
      if (!(v.call.op.pointwise.promoted >> i & 1) || own[i].tag != Tag::kTensor || !v.is(int(i)))
        continue;
      if (v.dim(int(i)) != 0) continue;
      // Among dimensioned operands decides their dtype, unless this one is of a higher category.
      SmallVec<Arg, 16> logical(own.begin(), own.end());
      logical[i] = Arg(own[i].t->select(0, 0));
      Tensor zero_dim = own[i].t->select(0, 0);
      logical[i] = Arg(zero_dim);
      Dtype wanted = promoted_dtype(v.call.op, Args(logical.data(), logical.size()));
      Tensor& t = const_cast<Tensor&>(*args[i].t);
      if (t.dtype() != wanted) t = t.to(wanted);
    }
  }
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

}  // namespace fornax
