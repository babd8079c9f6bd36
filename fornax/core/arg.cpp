#include "fornax/core/arg.h"

#include <cstring>
#include <new>

#include "fornax/base/pool.h"
#include "fornax/core/op.h"

namespace fornax {

Arg::Arg(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::kBool: *this = Arg(v.to_bool()); break;
    case Scalar::Kind::kInt: *this = Arg(v.to_int()); break;
    case Scalar::Kind::kReal: *this = Arg(v.to_double()); break;
    case Scalar::Kind::kComplex:
      tag = Tag::kComplex;
      scalar = &v;
      break;
  }
}

Scalar Arg::number() const {
  switch (tag) {
    case Tag::kBool: return Scalar(i != 0);
    case Tag::kInt: return Scalar(i);
    case Tag::kReal: return Scalar(d);
    case Tag::kComplex: return *scalar;
    default: fail(ErrorKind::kType, "expected a number among the arguments");
  }
}

void Args::wrong(size_t i, const char* expected) const {
  static constexpr const char* kNames[] = {
      "nothing",    "a tensor",         "a list of tensors",  "a bool",          "an integer",
      "a real",     "a complex number", "a list of integers", "a list of reals", "text",
      "a dtype",    "a layout",         "a device",           "a memory format", "a generator",
      "a view step"};
  Tag tag = i < size() ? (*this)[i].tag : Tag::kNone;
  fail(ErrorKind::kType, "argument ", i, ": expected ", expected, ", got ", kNames[int(tag)]);
}

int64_t Args::integer(size_t i) const {
  const Arg& a = (*this)[i];
  if (a.tag == Tag::kInt || a.tag == Tag::kBool) return a.i;
  if (a.tag == Tag::kReal && a.d == double(int64_t(a.d))) return int64_t(a.d);
  wrong(i, "an integer");
}

double Args::real(size_t i) const {
  const Arg& a = (*this)[i];
  if (a.tag == Tag::kReal) return a.d;
  if (a.tag == Tag::kInt || a.tag == Tag::kBool) return double(a.i);
  wrong(i, "a real number");
}

IntArrayRef Args::ints(size_t i) const {
  const Arg& a = (*this)[i];
  if (a.tag == Tag::kInts) return {a.ints, a.n};
  if (a.tag == Tag::kInt) return {&a.i, 1};
  if (a.tag == Tag::kNone) return {};
  wrong(i, "a list of integers");
}

ArrayRef<double> Args::reals(size_t i) const {
  const Arg& a = (*this)[i];
  if (a.tag == Tag::kReals) return {a.reals, a.n};
  if (a.tag == Tag::kReal) return {&a.d, 1};
  if (a.tag == Tag::kNone) return {};
  wrong(i, "a list of reals");
}

Device Args::device(size_t i) const {
  if (!has(i)) return Device();
  int64_t bits = (*this)[i].i;
  return Device(DeviceType(bits >> 8), int8_t(bits & 0xff));
}

namespace {

struct BlockLayout {
  size_t args, tensors, steps, generators, words, chars, bytes;
};

BlockLayout layout_of(Args args) {
  size_t tensors = 0, steps = 0, generators = 0, words = 0, chars = 0;
  for (const Arg& a : args) {
    tensors += a.tensors().size();
    steps += a.tag == Tag::kStep;
    generators += a.tag == Tag::kGenerator;
    if (a.tag == Tag::kInts || a.tag == Tag::kReals) words += a.n;
    if (a.tag == Tag::kComplex) words += (sizeof(Scalar) + 7) / 8;
    if (a.tag == Tag::kString) chars += a.n;
  }
  BlockLayout l;
  l.args = (sizeof(OwnedArgs) + 15) / 16 * 16;
  l.tensors = l.args + args.size() * sizeof(Arg);
  l.steps = l.tensors + tensors * sizeof(Tensor);
  l.generators = l.steps + steps * sizeof(void*);
  l.words = l.generators + generators * sizeof(void*);
  l.chars = l.words + words * 8;
  l.bytes = l.chars + chars;
  return l;
}

}  // namespace

Ref<OwnedArgs> OwnedArgs::make(Args args, bool keep_tensors) {
  BlockLayout at = layout_of(args);
  char* block = static_cast<char*>(detail::pool_new(at.bytes));
  auto* self = new (block) OwnedArgs;
  self->bytes_ = uint32_t(at.bytes);
  self->n_args_ = uint32_t(args.size());
  self->args_ = reinterpret_cast<Arg*>(block + at.args);
  self->tensors_ = reinterpret_cast<Tensor*>(block + at.tensors);
  self->steps_ = reinterpret_cast<const Step**>(block + at.steps);
  self->generators_ = reinterpret_cast<GeneratorImpl**>(block + at.generators);
  char* words = block + at.words;
  char* chars = block + at.chars;
  auto copy = [](char*& to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    to += bytes;
    return to - bytes;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    Arg& a = *new (self->args_ + i) Arg(args[i]);
    switch (a.tag) {
      case Tag::kTensor:
      case Tag::kTensors: {
        TensorList list = a.tensors();
        a.t = self->tensors_ + self->n_tensors_;
        for (const Tensor& t : list)
          new (self->tensors_ + self->n_tensors_++) Tensor(keep_tensors ? t : Tensor());
        break;
      }
      case Tag::kInts: a.ints = reinterpret_cast<int64_t*>(copy(words, a.ints, a.n * 8)); break;
      case Tag::kReals: a.reals = reinterpret_cast<double*>(copy(words, a.reals, a.n * 8)); break;
      case Tag::kComplex:
        a.scalar = reinterpret_cast<Scalar*>(copy(words, a.scalar, sizeof(Scalar)));
        break;
      case Tag::kString: a.s = copy(chars, a.s, a.n); break;
      case Tag::kStep:
        a.step->retain();
        self->steps_[self->n_steps_++] = a.step;
        break;
      case Tag::kGenerator:
        a.generator->retain();
        self->generators_[self->n_generators_++] = a.generator;
        break;
      default: break;
    }
  }
  return Ref<OwnedArgs>::own(self);
}

OwnedArgs::~OwnedArgs() {
  for (uint32_t i = 0; i < n_tensors_; ++i) tensors_[i].~Tensor();
  for (uint32_t i = 0; i < n_steps_; ++i) Ref<Step>::adopt(const_cast<Step*>(steps_[i]));
  for (uint32_t i = 0; i < n_generators_; ++i) Ref<GeneratorImpl>::adopt(generators_[i]);
}

void OwnedArgs::operator delete(OwnedArgs* self, std::destroying_delete_t) {
  size_t bytes = self->bytes_;
  self->~OwnedArgs();
  detail::pool_delete(self, bytes);
}

}  // namespace fornax
