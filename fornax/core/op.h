// What an operator is, and how a call reaches it.
//
// A call is (record, form, arguments). The record says what the operator computes and how it
// behaves under each transform; the form says where results go. Forms are not operators: `add_` and
// `add_out` are `add` with other outputs.
//
//   user --> stub (ops.def) --> dispatch --+--> top interpreter's process()  (Vmap, Grad, Forward,
//   Capture: lower, wrap)
//                                          +--> run()                        (no flag set: shape
//                                          rule, kernel)
//                                          +--> eager()                      (conj -> composites ->
//                                          dual -> tape -> run)
#pragma once

#include "fornax/core/arg.h"
#include "fornax/core/schema.h"

namespace fornax {

struct Op;
struct Call;
struct Interp;

// ---- results
// ------------------------------------------------------------------------------------------------------
// Geometry of one result. `strides` empty means contiguous; a rule that preserves memory format
// sets them.
struct Meta {
  Dtype dtype = Dtype::kF32;
  Device device;
  int alias = -1;      // argument this result is a view of
  int64_t offset = 0;  // views: in elements from the start of the storage
  uint16_t flags = 0;  // views: conj and neg bits
  Dims sizes, strides;

  Meta() = default;
  Meta(Dtype d, IntArrayRef s, Device dev = {})
      : dtype(d), device(dev), sizes(s.begin(), s.end()) {}
};
Meta meta_of(const Tensor& t);
// Like meta_of, as a view of argument `arg`: offset, strides and bits are kept.
Meta view_meta_of(const Tensor& t, int arg = 0);
using Metas = SmallVec<Meta, 2>;

struct Infer {
  const Op& op;
  Args args;
  Metas outs;
};

enum class Form : uint8_t {
  kNew,      // results are allocated
  kInplace,  // result 0 is argument 0
  kOut,      // results are given: resized if empty, cast into if the dtype allows; never recorded
};

struct Call {
  const Op& op;
  Form form;
  Args args;
  Tensors& outs;
};

// ---- kernels
// ------------------------------------------------------------------------------------------------------
struct KernelContext {
  const Op& op;
  RandomRange random;  // for kRandom operators: reserved before the kernel runs
};
using KernelFn = void (*)(const KernelContext&, Args, ArrayRef<Tensor> outs);

enum KernelTrait : uint8_t {
  kAliasSafe = 1,     // may read and write the very same elements (f_ without a temporary)
  kAnyStrides = 2,    // reads and writes any strides; others get contiguous inputs and outputs
  kCastsOnStore = 4,  // stores into any dtype that can hold the result
  kConjAware = 8,     // reads and writes the conj and neg bits itself
};
struct Kernel {
  KernelFn fn = nullptr;
  uint8_t traits = 0;
};
// Does the commonest calls of an operator whole: checks, results, kernel, versions. Returns false
// where it declines; nothing has happened then.
using ShortCall = bool (*)(Call&);

// ---- the record
// ---------------------------------------------------------------------------------------------------
enum class OpKind : uint8_t {
  kPointwise,  // an Expr body: kernels, derivatives and batching follow
  kReduction,
  kView,  // shape rule and batching rule; gradient, writes and replay follow from the recorded step
  kComposite,  // a functional body of other operators; may add a kernel with its own vjp
  kOpaque,     // rules by hand
  kQuery,      // returns a value, not a tensor: item, equal
};

enum Trait : uint32_t {
  kRandom = 1,  // takes a Generator; offsets are reserved before the kernel, so replay and vmap are
                // defined
  kSync = 2,    // reads values: ends a captured segment; error under vmap and on meta
  kShapeFromData =
      4,  // sizes depend on values (nonzero): the kernel makes its outputs; see Op::shape_from_data
  kLinearOp = 8,      // in its differentiable inputs jointly: jvp = the operator on the tangents
  kSharedWrite = 16,  // a view that maps many to one (expand): no write through it, vjp by hand
  kNoGrad = 32,       // results never carry a gradient (comparisons, argmax)
  kMultiView = 64,    // several views of one tensor (split, unbind)
  kSavesResult =
      128,  // pointwise: the gradient may read the result, as PyTorch's does (exp, tanh, sigmoid)
};

// Which arguments / results a reverse rule reads.
struct Saves {
  uint64_t in = 0;
  uint32_t out = 0;
  const void* plan = nullptr;  // kept in the node for the rule
};
struct SaveQuery {
  const Op& op;
  Args args;
  uint64_t need;  // arguments that need a gradient
};

struct Vjp;
struct Jvp;
struct Vmapped;
struct Body;
namespace expr {
class Expr;
}

// How a pointwise operator's result dtype follows from its operands.
enum class Promote : uint8_t {
  kDefault,          // the common dtype
  kFloat,            // integers become the default dtype
  kFloatUnlessText,  // kFloat, but integers stay when a text argument is given (div with
                     // rounding_mode)
  kBool,             // computed in the common dtype, result bool
  kToReal,           // complex operands give real results (abs)
  kFloatToReal,      // kFloat, and complex operands give real results (angle)
  kToComplex,        // real operands give complex results (polar, complex)
  kIntForBool,       // bool becomes int64 (square)
  kDouble,           // float64, or complex128 for complex operands (float_power)
  kFirst,            // operand 0's dtype, whatever the others are
  kAttribute,        // the dtype argument, or operand 0's
};

// Dtypes that a pointwise operator computes in, as a set.
enum KindSet : uint8_t {
  kBools = 1,
  kInts = 2,
  kReals = 4,
  kComplexes = 8,
  kFloating = kReals | kComplexes,
  kOrdered = kBools | kInts | kReals,
  kNumbers = kInts | kReals | kComplexes,
  kAllKinds = 15,
};

// The mathematics of a pointwise operator: exactly one of the functions is set. The n-ary ones take
// operands 0, 1, 2; `body` sees absent operands, attributes and dtypes.
struct PointwiseSpec {
  Promote promote = Promote::kDefault;
  uint8_t kinds = kAllKinds;  // what the common dtype may be
  uint32_t promoted = 0;      // arguments that take part in promotion; 0: every Tensor parameter
  uint64_t structural =
      0;  // derived: integer, bool, text and dtype parameters, whose values shape the body
  expr::Expr (*unary)(expr::Expr) = nullptr;
  expr::Expr (*binary)(expr::Expr, expr::Expr) = nullptr;
  expr::Expr (*ternary)(expr::Expr, expr::Expr, expr::Expr) = nullptr;
  void (*body)(Body&) = nullptr;
};

struct Op {
  std::string_view
      schema;  // ATen's; further lines: overloads that differ in Tensor | Scalar | absent
  std::string_view doc;
  OpKind kind = OpKind::kOpaque;
  uint32_t traits = 0;
  void (*infer)(Infer&) =
      nullptr;  // dtype, sizes, strides, alias of every result; all argument checks
  void (*body)(Call&) = nullptr;  // functional body of other operators
  int hidden = 0;                 // trailing results that exist for the vjp only and never leave it
  uint32_t nondiff = 0;           // results without gradient (indices, masks, running statistics)
  // Reverse rule. `saves` is at most what PyTorch keeps: it decides which programs may overwrite
  // what.
  void (*vjp)(Vjp&) = nullptr;
  Saves (*saves)(const SaveQuery&) = nullptr;
  void (*jvp)(Jvp&) =
      nullptr;  // absent: views and linear operators on the tangents, else vjp twice
  void (*vmap)(Vmapped&) = nullptr;         // absent: body, else a loop
  bool (*shape_from_data)(Args) = nullptr;  // refines the trait: index() only with a bool mask
  PointwiseSpec pointwise = {};
  const void* extra = nullptr;        // the kind's own data
  Writes writes = writes_of(schema);  // derived: never written by hand
  int8_t n_returns = int8_t(parse_schema(schema).n_returns);
  mutable Kernel kernels[kDeviceTypeCount] = {};
  mutable ShortCall short_call = nullptr;  // set by a backend, for tensors of its own device

  constexpr bool is(Trait t) const { return (traits & t) != 0; }
  constexpr std::string_view name() const { return schema.substr(0, schema.find_first_of(".(")); }
  // A composite that has no gradient of its own is differentiated through its body.
  constexpr bool expands() const { return body && !vjp && kind == OpKind::kComposite; }
};
// First schema line, parsed again when asked for.
Schema schema_of(const Op& op);

// Set by an explicit call from the backend's register function.
struct KernelTable {
  DeviceType device;
  void set(const Op& op, KernelFn fn, int traits = 0) const {
    op.kernels[int(device)] = {fn, uint8_t(traits)};
  }
};

// Every record, so that static archives keep them and calls by name find them.
ArrayRef<const Op*> op_table();
// nullptr if unknown. "add" or "aten::add"; the overload is matched against the record's schema
// lines.
const Op* find_op(std::string_view name);

// ---- views
// --------------------------------------------------------------------------------------------------------
// One step from a tensor to a view of it; `parent` is the step before, towards the base.
struct Step : RefCounted {
  const Op* op = nullptr;
  Ref<OwnedArgs> args;
  Ref<Step> parent;
  int out = 0;
  Meta in, result;
  static void* operator new(size_t bytes);
  static void operator delete(void* p);
};
// Replays one step on another tensor.
Tensor apply(const Step& step, const Tensor& on);
// The steps from the base to `t`, first step first.
SmallVec<const Step*, 4> steps_of(const Tensor& t);

// ---- tape
// ---------------------------------------------------------------------------------------------------------
struct Edge {
  Ref<GradNode> node;
  uint32_t nr = 0;
};

// A shallow copy of a tensor with the history it had, never the caller's handle.
struct Saved {
  Tensor tensor;
  uint32_t version = 0;
  bool own_result =
      false;  // its node is the one that saves it: joined at unpack, so there is no cycle
  Edge edge;
};

// What a gradient must look like.
struct GradMeta {
  Dtype dtype = Dtype::kF32;
  Device device;
  Dims sizes;
};

struct Vjp {
  GradNode& node;
  Tensors grads;    // per result; undefined = zero
  Tensors results;  // per flat tensor argument
  const Op& op() const;
  Args args() const;
  const void* plan() const;       // what `saves` left for this rule
  bool is_tensor(int arg) const;  // one was given, whether it was saved or not
  bool need(int arg, int k = 0) const;
  const GradMeta& meta(int arg, int k = 0) const;
  const GradMeta& out_meta(int result) const;
  int list_size(int arg) const;
  // The step of a view operator with one result: the geometries before and after it.
  const Step& step() const;
  // Saved argument / result. Throws Error(kAutograd) when it was modified since.
  Tensor in(int arg, int k = 0) const;
  Tensor out(int result) const;
  const Tensor& grad(int result = 0) const { return grads[size_t(result)]; }
  // Casting, unbroadcasting and taking the real part are the engine's work, never the rule's.
  void set(int arg, Tensor gradient, int k = 0);
};

// Forward rule: physical primals are in `args`; tangents per flat tensor argument (undefined =
// zero).
struct Jvp {
  const Call& call;
  ArrayRef<Tensor> primals, tangents;  // per flat tensor argument
  ArrayRef<Tensor> outs;               // results of the primal call
  SmallVec<int16_t, 8> first;          // argument -> flat index
  Tensors results;                     // per result
  const Tensor& primal(int arg, int k = 0) const;
  const Tensor& tangent(int arg, int k = 0) const;
  void set(int result, Tensor tangent) { results[size_t(result)] = std::move(tangent); }
};

// Where a tensor that isn't a leaf keeps its gradient (retain_grad); shared by the tensor and its
// node.
struct GradSlot : RefCounted {
  Tensor grad;
};

// State most tensors never have; installed by compare-exchange.
struct Rare {
  Edge edge;
  Tensor grad;
  std::atomic<GradNode*> accumulator{nullptr};  // not owned: it removes itself
  Ref<GradSlot> retained;
  SmallVec<Function<Tensor(const Tensor&)>, 1> hooks;     // leaves: run before accumulation
  SmallVec<Function<void(const Tensor&)>, 1> post_hooks;  // leaves: run after it
  // Wrapper of an interpreter.
  int level = 0;
  int bdim = -1;   // vmap: batch dimension of inner, -1 if none
  int id = 0;      // capture: value
  Tensor inner;    // the tensor one level down
  Tensor tangent;  // forward mode
  static void* operator new(size_t bytes);
  static void operator delete(void* p);
};
Rare& rare_of(const Tensor& t);
inline Rare* rare_or_null(const Tensor& t) {
  return t.impl()->rare.load(std::memory_order_acquire);
}
// Lets `to` wrap what `from` wraps: level, inner tensor, tangent.
void copy_wrapper(const Tensor& from, const Tensor& to);
inline int level_of(const Tensor& t) {
  return t.impl()->flags & kWrappedFlag ? rare_or_null(t)->level : 0;
}

// ---- interpreters
// -------------------------------------------------------------------------------------------------
// A user's function with a gradient of its own (fornax/autograd/custom.h).
struct CustomCall;

// process() unwraps its own level, acts, and wraps every fresh result, constants too: a later write
// may need the wrapper.
struct Interp {
  int level = 0;  // unique among all interpreters of the process, so that stale wrappers are known
  Interp* below = nullptr;
  bool grad_mode = true;  // what lower levels see
  virtual void process(Call& call) = 0;
  virtual void process_custom(CustomCall& call) = 0;
  // Brings a stale view of this level up to date; also called before anyone saves it.
  virtual void sync(const Tensor&) {}
  // item() and its kind: what a value read means here. The default reads one level down.
  virtual Tensor lower_for_query(const Tensor& t);
  virtual ~Interp() = default;
};

// Batching rule: physical arguments, batch dimension moved to 0.
struct Vmapped {
  Call& call;
  int64_t size = 0;
  uint64_t batched = 0;  // mask of batched arguments (a list is batched as a whole)
  bool same_random = false;
  SmallVec<int, 2> out_bdims;
  Args args() const { return call.args; }
  bool is(int arg) const { return (batched >> arg & 1) != 0; }
  // Logical rank and size (without the batch dimension).
  int64_t dim(int arg) const;
  // The argument with its batch dimension, expanded if it has none.
  Tensor dim0(int arg) const;
  // The operator one level down, same form; results have their batch dimension at 0.
  void run(std::initializer_list<Arg> args);
};

struct ThreadState {
  Interp* top = nullptr;
  bool grad_mode = true;
  bool inference_mode = false;
  bool forward_grad_mode = true;
  uint16_t modes = 0;              // autocast, profiler
  uint16_t care = kDispatchFlags;  // flags that count: no-grad clears the tape bit
  void set_grad_mode(bool on) {
    grad_mode = on;
    care = uint16_t(on ? care | kTapeFlag : care & ~kTapeFlag);
  }
};
extern thread_local constinit ThreadState thread_state;

// Restores the thread's state when it ends.
struct StateGuard {
  ThreadState old = thread_state;
  StateGuard() = default;
  StateGuard(const StateGuard&) = delete;
  ~StateGuard() { thread_state = old; }
};
// One level down: what an interpreter's work on inner tensors runs under.
struct Lower : StateGuard {
  explicit Lower(const Interp& interp) {
    thread_state.top = interp.below;
    thread_state.set_grad_mode(interp.grad_mode);
  }
};
struct GradModeGuard : StateGuard {
  explicit GradModeGuard(bool on) { thread_state.set_grad_mode(on); }
};

// ---- calls
// --------------------------------------------------------------------------------------------------------
// Shape rule, allocation or checks of targets, kernel, versions, view links.
void run(Call& call);
// Everything that isn't the fast path, in order.
void eager(Call& call, uint16_t flags);
// Runs the body of a composite; in place and out= forms store its results.
void expand_body(Call& call);

inline void dispatch(Call& call) {
  if (thread_state.top) [[unlikely]]
    return thread_state.top->process(call);
  uint16_t flags = thread_state.modes;
  for (const Arg& a : call.args)
    for (const Tensor& t : a.tensors())
      if (t.defined()) flags |= t.impl()->all_flags();
  for (const Tensor& t : call.outs) flags |= t.impl()->all_flags();
  if (!(flags & thread_state.care)) [[likely]]
    return run(call);
  eager(call, flags);
}

// Results without the hidden ones.
Tensors call(const Op& op, Form form, std::initializer_list<Arg> args);
Tensors call(const Op& op, Form form, Args args, Tensors outs = {});
Tensor call1(const Op& op, std::initializer_list<Arg> args);
void call_inplace(const Op& op, std::initializer_list<Arg> args);
void call_out(const Op& op, std::initializer_list<Arg> args, std::initializer_list<Tensor> outs);
// Whether the call writes `t` itself: argument 0 in place, or an argument named by the schema.
bool is_written(const Call& call, const Tensor& t);
// Tensors the results are stored into by form or schema, per flat result; undefined = allocated.
Tensors targets_of(const Call& call, size_t n_results);
// Makes `t` a view of `source` by this call: base, version, step.
void link_view(const Call& call, int out, const Tensor& source, const Tensor& t, const Meta& meta);
// A tensor with uninitialised memory as `meta` says.
Tensor make_tensor(const Meta& meta);
// The same for `numel` elements of row-major sizes that some tensor already has.
Tensor make_contiguous(const Dims& sizes, int64_t numel, Dtype dtype, Device device);
// Value of a one-element tensor, through interpreters.
Scalar read_item(const Tensor& t);

}  // namespace fornax
