// Pointwise calls on the CPU: the body becomes a block VM program, once per structure and dtypes,
// and runs.
#include "fornax/backends/cpu/pointwise.h"

#include "fornax/base/key_cache.h"
#include "fornax/core/copy.h"
#include "fornax/expr/loops.h"
#include "fornax/expr/vm.h"
#include "fornax/ops/pointwise.h"

namespace fornax::cpu {
namespace {

// Complex numbers as the program reads them; other numbers are read where they stand.
struct Numbers {
  complex128 complexes[8];
  int n = 0;
};

Dtype number_dtype(const Arg& a) {
  return a.tag == Tag::kComplex ? Dtype::kC128 : a.tag == Tag::kReal ? Dtype::kF64 : Dtype::kI64;
}

expr::InputSpec input_spec(const Arg& a) {
  expr::InputSpec spec;
  if (a.is_number()) {
    spec.dtype = number_dtype(a);
    spec.uniform = true;
    return spec;
  }
  if (!a.t->defined()) {  // not saved, so not read
    spec.uniform = true;
    return spec;
  }
  const TensorImpl& t = *a.t->impl();
  spec.dtype = t.dtype;
  spec.conjugate = (t.flags & kConjFlag) != 0;
  spec.negate = (t.flags & kNegFlag) != 0;
  return spec;
}

uint64_t program_key(const Op& op, Args args, ArrayRef<Dtype> outs, Dtype common) {
  uint64_t key = hash_combine(reinterpret_cast<uintptr_t>(&op), structure_hash(op, args));
  uint64_t packed = uint64_t(common);
  for (const Arg& a : args) {
    if (!is_operand(a)) continue;
    expr::InputSpec s = input_spec(a);
    packed =
        packed * 67 + uint64_t(s.dtype) * 4 + uint64_t(s.conjugate) * 2 + uint64_t(s.negate) + 1;
  }
  for (Dtype d : outs) packed = packed * 67 + uint64_t(d) + 1;
  return hash_combine(key, packed);
}

bool computes_in_f64(Dtype common, Args args) {
  if (common == Dtype::kF64 || common == Dtype::kC128) return true;
  if (!is_integral(common)) return false;
  // Integer operands with a real result or real numbers: f32 could not hold them.
  for (const Arg& a : args)
    if (a.tag == Tag::kTensor && a.t->defined() &&
        (a.t->dtype() == Dtype::kF64 || a.t->dtype() == Dtype::kI64))
      return true;
  return false;
}

expr::Program make_program(const Op& op, Args args, ArrayRef<Dtype> outs, Dtype common) {
  expr::Arena arena;
  expr::Scope scope(arena);
  SmallVec<int16_t, 32> inputs;
  SmallVec<expr::InputSpec, 16> specs;
  for (const Arg& a : args) {
    inputs.push_back(is_operand(a) ? int16_t(specs.size()) : int16_t(-1));
    if (is_operand(a)) specs.push_back(input_spec(a));
  }
  SmallVec<Expr, 2> roots(outs.size());
  build_body(op, args, common, inputs.data(), roots.data());
  return expr::compile(ArrayRef<Expr>(roots), outs, ArrayRef<expr::InputSpec>(specs),
                       computes_in_f64(common, args));
}

struct ProgramTag {};

const void* number_value(const Arg& a, Numbers& numbers) {
  if (a.tag == Tag::kReal) return &a.d;
  if (a.tag != Tag::kComplex) return &a.i;
  FX_ASSERT(numbers.n < 8);
  numbers.complexes[numbers.n] = a.scalar->to_complex();
  return &numbers.complexes[numbers.n++];
}

// Broadcast strides in bytes over `rank` dimensions of the output.
void byte_strides(const TensorImpl& t, const Dims& sizes, int64_t* out) {
  size_t rank = sizes.size(), shift = rank - t.sizes.size();
  int64_t bytes = size_of(t.dtype);
  for (size_t d = 0; d < rank; ++d)
    out[d] =
        d < shift || (t.sizes[d - shift] == 1 && sizes[d] != 1) ? 0 : t.strides[d - shift] * bytes;
}

// Every operand in the order of memory of output 0, so the whole is one run of elements.
bool one_run(Args args, ArrayRef<Tensor> outs) {
  const TensorImpl& first = *outs[0].impl();
  if (!outs[0].is_contiguous()) return false;
  for (const Tensor& t : outs)
    if (!(t.impl()->sizes == first.sizes) || !t.is_contiguous()) return false;
  for (const Arg& a : args) {
    if (a.tag != Tag::kTensor || !a.t->defined()) continue;
    if (!(a.t->impl()->sizes == first.sizes) || !a.t->is_contiguous()) return false;
  }
  return true;
}

void run_strided(const expr::Program& program, Args args, ArrayRef<Tensor> outs) {
  const Dims& sizes = outs[0].impl()->sizes;
  size_t rank = sizes.size(), operands = 0;
  for (const Arg& a : args) operands += is_operand(a);
  SmallVec<int64_t, 64> strides((operands + outs.size()) * rank);
  SmallVec<expr::Source, 16> sources;
  SmallVec<expr::Target, 2> targets;
  Numbers numbers;
  int64_t* next = strides.data();
  for (const Arg& a : args) {
    if (!is_operand(a)) continue;
    expr::Source& s = sources.emplace_back();
    if (a.is_number()) {
      s.data = number_value(a, numbers);
      continue;
    }
    if (!a.t->defined()) continue;
    byte_strides(*a.t->impl(), sizes, next);
    s.data = a.t->impl()->data();
    static constexpr int64_t kNoDims[1] = {0};
    s.strides = rank ? next : kNoDims;
    next += rank;
  }
  for (const Tensor& t : outs) {
    byte_strides(*t.impl(), sizes, next);
    targets.push_back({t.impl()->data(), rank ? next : nullptr});
    next += rank;
  }
  expr::run(program, {int(rank), sizes.data(), sources.data(), targets.data()});
}

void run_one(const expr::Program& program, Args args, ArrayRef<Tensor> outs) {
  const void* inputs[expr::kMaxOperands];
  void* outputs[8];
  Numbers numbers;
  int n = 0;
  for (const Arg& a : args) {
    if (!is_operand(a)) continue;
    inputs[n++] = a.is_number()    ? number_value(a, numbers)
                  : a.t->defined() ? a.t->impl()->data()
                                   : nullptr;
  }
  for (size_t k = 0; k < outs.size(); ++k) outputs[k] = outs[k].impl()->data();
  expr::run_contiguous(program, inputs, outputs, outs[0].numel());
}

// For integers: zero is all bits zero in every width.
bool has_zero(const Tensor& t) {
  Tensor plain = t.is_contiguous() ? t : contiguous_copy(t);
  int64_t n = plain.numel(), zeros = 0;
  auto count = [&](const auto* p) {
    for (int64_t i = 0; i < n; ++i) zeros += p[i] == 0;
  };
  const void* p = plain.impl()->data();
  switch (plain.element_size()) {
    case 1: count(static_cast<const uint8_t*>(p)); break;
    case 2: count(static_cast<const uint16_t*>(p)); break;
    case 4: count(static_cast<const uint32_t*>(p)); break;
    default: count(static_cast<const uint64_t*>(p)); break;
  }
  return zeros != 0;
}

}  // namespace

const expr::Program& pointwise_program(const Op& op, Args args, ArrayRef<Dtype> outs,
                                       Dtype common) {
  static auto* cache = new KeyCache<expr::Program, ProgramTag>;
  return cache->get(program_key(op, args, outs, common),
                    [&] { return make_program(op, args, outs, common); });
}

void pointwise_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  if (outs[0].numel() == 0) return;
  Dtype common = common_dtype(context.op, args);
  SmallVec<Dtype, 2> types;
  for (const Tensor& t : outs) types.push_back(t.dtype());
  const expr::Program& program = pointwise_program(context.op, args, types, common);
  if (one_run(args, outs) && outs.size() <= 8) return run_one(program, args, outs);
  run_strided(program, args, outs);
}

// Integers have no infinity to give: division by zero is an error before anything is written.
void division_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Arg& divisor = args[1];
  if (outs[0].numel() != 0 && is_integral(common_dtype(context.op, args))) {
    bool zero = divisor.is_number() ? divisor.number() == Scalar(0) : has_zero(*divisor.t);
    FX_CHECK(!zero, kValue, context.op.name(), ": integer division by zero");
  }
  pointwise_kernel(context, args, outs);
}

}  // namespace fornax::cpu
