// Pointwise calls on contiguous tensors of one shape. Everything that shape rule, promotion and
// choice of program find out then follows from the operator, the form, and the arguments' tags and
// dtypes, so it is looked up in one step.
#include "fornax/backends/cpu/pointwise.h"
#include "fornax/base/hash.h"
#include "fornax/expr/vm.h"
#include "fornax/ops/pointwise.h"

namespace fornax::cpu {
namespace {

constexpr int kMaxInputs = 12;

// What the arguments have in common, and what tells this call from others of the operator.
struct Shape {
  const TensorImpl* first = nullptr;
  uint64_t key = 0;
  int inputs = 0;
  const void* data[kMaxInputs];
};

bool is_row_major(const TensorImpl& t) {
  int64_t step = 1;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] != step) return false;
    step *= t.sizes[d];
  }
  return true;
}

bool fits(const TensorImpl& t, const Shape& shape) {
  if ((t.flags & (kConjFlag | kNegFlag)) || !t.device.is_cpu()) return false;
  if (shape.first && !(t.sizes == shape.first->sizes)) return false;
  return is_row_major(t);
}

void mix(uint64_t& key, uint64_t value) {
  key = (key ^ value) * 0x9e3779b97f4a7c15u;
  key ^= key >> 29;
}

bool add_tensor(const Tensor& t, Shape& shape) {
  if (shape.inputs == kMaxInputs) return false;
  if (!t.defined()) {  // a derivative's argument that it does not read
    mix(shape.key, 1);
    shape.data[shape.inputs++] = nullptr;
    return true;
  }
  const TensorImpl& impl = *t.impl();
  if (!fits(impl, shape)) return false;
  if (!shape.first) shape.first = &impl;
  mix(shape.key, 16 + uint64_t(impl.dtype));
  shape.data[shape.inputs++] = impl.data();
  return true;
}

bool add_number(const Arg& a, bool structural, Shape& shape) {
  if (a.tag == Tag::kComplex || shape.inputs == kMaxInputs) return false;
  uint64_t value = structural ? uint64_t(a.i) : number_class(a);
  mix(shape.key, value << 8 | 64 | uint64_t(a.tag));
  shape.data[shape.inputs++] = a.tag == Tag::kReal ? static_cast<const void*>(&a.d) : &a.i;
  return true;
}

// False: not a call of this kind.
bool add_arguments(const Call& call, Shape& shape) {
  const uint64_t structural = call.op.pointwise.structural;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    switch (a.tag) {
      case Tag::kTensor:
        if (!add_tensor(*a.t, shape)) return false;
        break;
      case Tag::kNone: mix(shape.key, 2); break;
      case Tag::kDtype: mix(shape.key, uint64_t(a.i) << 8 | 128); break;
      case Tag::kString: mix(shape.key, hash_bytes({a.s, a.n}) | 1); break;
      case Tag::kBool:
      case Tag::kInt:
      case Tag::kReal:
        if (!add_number(a, structural >> i & 1, shape)) return false;
        break;
      default: return false;
    }
  }
  return shape.first && shape.first->numel > 0;
}

struct Entry {
  uint64_t key = 0;
  const expr::Program* program = nullptr;  // null: not a call of this kind
  Dtype stored = Dtype::kUndefined;
};
constexpr size_t kEntries = 512;
thread_local constinit Entry entries[kEntries];

// The first call of its structure: the general rules say what it is.
[[gnu::noinline]] void learn(const Call& call, const TensorImpl* target, Entry& entry) {
  Infer infer{call.op, call.args, {}};
  call.op.infer(infer);
  const bool general = call.op.infer == pointwise_infer &&
                       call.op.kernels[int(DeviceType::kCPU)].fn == pointwise_kernel;
  Dtype common = common_dtype(call.op, call.args);
  if (!general && is_integral(common)) return;  // it checks values
  if (infer.outs.size() != 1 || !infer.outs[0].strides.empty()) return;
  Dtype result = infer.outs[0].dtype;
  Dtype stored = target ? target->dtype : result;
  if (!can_cast(result, stored)) return;
  entry.program = &pointwise_program(call.op, call.args, stored, common);
  entry.stored = stored;
}

const Entry& entry_of(const Call& call, const TensorImpl* target, uint64_t key) {
  Entry& entry = entries[key % kEntries];
  if (entry.key != key) [[unlikely]] {
    entry = {};
    learn(call, target, entry);
    entry.key = key;
  }
  return entry;
}

// Whether the results may be written while the arguments are read, without further checks.
bool may_write(const TensorImpl& target, const Shape& shape) {
  if (!fits(target, shape)) return false;
  if ((target.flags & kInferenceFlag) && !thread_state.inference_mode) return false;
  return true;
}

bool shares_memory(const Call& call, const TensorImpl& target) {
  for (const Arg& a : call.args) {
    if (a.tag != Tag::kTensor || !a.t->defined()) continue;
    const TensorImpl& t = *a.t->impl();
    bool same = t.offset == target.offset && t.dtype == target.dtype;
    if (t.storage.get() == target.storage.get() && !same) return true;
  }
  return false;
}

void bump_version(const TensorImpl& t) {
  if (!(t.flags & kInferenceFlag)) t.version().fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool pointwise_short_call(Call& call) {
  Shape shape;
  shape.key = reinterpret_cast<uintptr_t>(&call.op) + uint64_t(get_default_dtype());
  if (call.op.n_returns != 1 || !add_arguments(call, shape)) return false;
  Tensor target;
  if (call.form != Form::kNew) {
    const Tensor& given = call.form == Form::kInplace ? call.args.tensor(0) : call.outs[0];
    if (!may_write(*given.impl(), shape) || shares_memory(call, *given.impl())) return false;
    mix(shape.key, 1024 + uint64_t(given.impl()->dtype));
    target = given;
  }
  const Entry& entry = entry_of(call, target.impl(), shape.key);
  if (!entry.program) return false;
  const expr::Program& program = *entry.program;
  if (call.form == Form::kNew)
    target =
        make_contiguous(shape.first->sizes, shape.first->numel, entry.stored, shape.first->device);
  void* out = target.impl()->data();
  expr::run_contiguous(program, shape.data, &out, shape.first->numel);
  if (call.form != Form::kNew) bump_version(*target.impl());
  call.outs.clear();
  call.outs.push_back(std::move(target));
  return true;
}

}  // namespace fornax::cpu
