// Arguments of a call: borrowed on the stack (Arg, Args), or kept by tape, views and graphs
// (OwnedArgs).
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "fornax/core/tensor.h"

namespace fornax {

struct Step;

enum class Tag : uint8_t {
  kNone,  // absent optional; an undefined Tensor is the same thing
  kTensor,
  kTensors,
  kBool,
  kInt,
  kReal,
  kComplex,
  kInts,
  kReals,
  kString,
  kDtype,
  kLayout,
  kDevice,
  kMemoryFormat,
  kGenerator,
  kStep,
};

// Borrows: lives no longer than the call. A Scalar is kBool/kInt/kReal/kComplex, and may stand
// wherever the schema's alternative lines allow "Scalar" for "Tensor": it is then a wrapped number
// in type promotion.
struct Arg {
  Tag tag = Tag::kNone;
  uint32_t n = 0;  // length of a list or string
  union {
    const Tensor* t;
    int64_t i;
    double d;
    const int64_t* ints;
    const double* reals;
    const char* s;
    GeneratorImpl* generator;
    const Step* step;
    const Scalar* scalar;
  };

  constexpr Arg() : i(0) {}
  Arg(const Tensor& v) : tag(v.defined() ? Tag::kTensor : Tag::kNone), t(&v) {}
  Arg(TensorList v) : tag(Tag::kTensors), n(uint32_t(v.size())), t(v.data()) {}
  Arg(const std::vector<Tensor>& v) : Arg(TensorList(v)) {}
  Arg(const Tensors& v) : Arg(TensorList(v)) {}
  constexpr Arg(bool v) : tag(Tag::kBool), i(v) {}
  constexpr Arg(int64_t v) : tag(Tag::kInt), i(v) {}
  constexpr Arg(double v) : tag(Tag::kReal), d(v) {}
  Arg(const Scalar& v);
  Arg(IntArrayRef v) : tag(Tag::kInts), n(uint32_t(v.size())), ints(v.data()) {}
  Arg(const Dims& v) : Arg(IntArrayRef(v)) {}
  Arg(OptionalIntArrayRef v) : Arg() {
    if (v) *this = Arg(*v);
  }
  Arg(ArrayRef<double> v) : tag(Tag::kReals), n(uint32_t(v.size())), reals(v.data()) {}
  Arg(std::string_view v) : tag(Tag::kString), n(uint32_t(v.size())), s(v.data()) {}
  constexpr Arg(Dtype v) : tag(v == Dtype::kUndefined ? Tag::kNone : Tag::kDtype), i(int64_t(v)) {}
  constexpr Arg(Layout v) : tag(Tag::kLayout), i(int64_t(v)) {}
  constexpr Arg(MemoryFormat v) : tag(Tag::kMemoryFormat), i(int64_t(v)) {}
  constexpr Arg(Device v) : tag(Tag::kDevice), i(int64_t(v.type()) << 8 | uint8_t(v.index_)) {}
  Arg(const Generator& v) : tag(v.defined() ? Tag::kGenerator : Tag::kNone), generator(v.impl()) {}
  Arg(GeneratorImpl* v) : tag(v ? Tag::kGenerator : Tag::kNone), generator(v) {}
  Arg(const Step& v) : tag(Tag::kStep), step(&v) {}
  template <class T>
  Arg(const std::optional<T>& v) : Arg() {
    if (v) *this = Arg(*v);
  }
  Arg(const Arg&) = default;
  Arg& operator=(const Arg&) = default;
  template <class T>
  Arg(const T&) = delete;  // no conversions: an int is not a bool, a pointer is not a string

  bool is_none() const { return tag == Tag::kNone; }
  bool is_tensor() const { return tag == Tag::kTensor; }
  bool is_number() const { return tag >= Tag::kBool && tag <= Tag::kComplex; }
  // The tensors of this argument: none, one, or the list (which may hold undefined ones).
  TensorList tensors() const {
    if (tag == Tag::kTensor) return TensorList(t, 1);
    return tag == Tag::kTensors ? TensorList(t, n) : TensorList();
  }
  Scalar number() const;
};

// Arguments by position. Typed access throws Error(kType) naming the position; the caller adds the
// operator.
struct Args : ArrayRef<Arg> {
  using ArrayRef::ArrayRef;
  Args(ArrayRef<Arg> a) : ArrayRef(a) {}

  const Tensor& tensor(size_t i) const {
    if (i >= size() || (*this)[i].tag != Tag::kTensor) [[unlikely]]
      wrong(i, "a tensor");
    return *(*this)[i].t;
  }
  // Undefined when absent.
  const Tensor& optional(size_t i) const {
    static constinit Tensor none;
    return i < size() && (*this)[i].tag == Tag::kTensor ? *(*this)[i].t : none;
  }
  bool has(size_t i) const { return i < size() && !(*this)[i].is_none(); }
  TensorList list(size_t i) const { return (*this)[i].tensors(); }
  int64_t integer(size_t i) const;
  int64_t integer(size_t i, int64_t absent) const { return has(i) ? integer(i) : absent; }
  double real(size_t i) const;
  double real(size_t i, double absent) const { return has(i) ? real(i) : absent; }
  bool flag(size_t i, bool absent = false) const { return has(i) ? integer(i) != 0 : absent; }
  Scalar number(size_t i) const { return (*this)[i].number(); }
  IntArrayRef ints(size_t i) const;
  ArrayRef<double> reals(size_t i) const;
  std::string_view text(size_t i) const { return {(*this)[i].s, (*this)[i].n}; }
  Dtype dtype(size_t i, Dtype absent) const { return has(i) ? Dtype((*this)[i].i) : absent; }
  Device device(size_t i) const;
  MemoryFormat memory_format(size_t i, MemoryFormat absent) const {
    return has(i) ? MemoryFormat((*this)[i].i) : absent;
  }
  GeneratorImpl* generator(size_t i) const { return has(i) ? (*this)[i].generator : nullptr; }
  const Step& step(size_t i) const { return *(*this)[i].step; }

 private:
  [[noreturn]] void wrong(size_t i, const char* expected) const;
};

// fn(tensor, argument, place in its list) for every tensor, undefined ones of lists included.
template <class F>
void for_each_tensor(Args args, F fn) {
  for (size_t i = 0; i < args.size(); ++i) {
    TensorList list = args[i].tensors();
    for (size_t k = 0; k < list.size(); ++k) fn(list[k], int(i), int(k));
  }
}

// A deep copy of a call's arguments in one block of memory; tensors may be dropped, their places
// stay.
class OwnedArgs : public RefCounted {
 public:
  // keep_tensors: copy the handles; otherwise every tensor is undefined.
  static Ref<OwnedArgs> make(Args args, bool keep_tensors);
  ~OwnedArgs();
  static void operator delete(OwnedArgs* self, std::destroying_delete_t);
  Args args() const { return Args(args_, n_args_); }
  ArrayRef<Tensor> tensors() const { return {tensors_, n_tensors_}; }
  Tensor* mutable_tensors() { return tensors_; }

 private:
  OwnedArgs() = default;
  uint32_t n_args_ = 0, n_tensors_ = 0, n_steps_ = 0, n_generators_ = 0;
  uint32_t bytes_ = 0;  // of the block
  Arg* args_ = nullptr;
  Tensor* tensors_ = nullptr;
  const Step** steps_ = nullptr;
  GeneratorImpl** generators_ = nullptr;
};

}  // namespace fornax
