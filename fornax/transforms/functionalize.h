// In-place code as functional code: a write gives a tensor a new value one level down, where
// nothing is ever overwritten.
#pragma once

#include <unordered_map>
#include <vector>

#include "fornax/autograd/level.h"

namespace fornax {

// A wrapper stands for a tensor that may be written; its inner value is swapped by each write. A
// write through views becomes a scatter into the base, and other views of it derive themselves
// anew. Tensors from outside are wrapped when they are first met, views together with their base,
// so that writes to them are seen by all later reads; the memory of inputs and outside tensors is
// left alone until finish().
class FunctionalizeInterp final : public Interp {
 public:
  // record_below: the level below gives back new values of what a schema stores into, and needs no
  // copies to be made for that.
  explicit FunctionalizeInterp(bool record_below) : record_below_(record_below) {}

  void process(Call& call) override;
  void process_custom(CustomCall& call) override;
  void sync(const Tensor& t) override { rederive_view(t, level); }

  // A tensor of the function's caller; `below` is what stands for it one level down.
  Tensor add_input(const Tensor& original, const Tensor& below);
  // The current value of t one level down (of an outside tensor: what it has become).
  Tensor value_of(const Tensor& t);

  // An input or outside tensor that the function wrote, and its value one level down.
  struct Write {
    Tensor original, value;
  };
  // Throws Error(kUnsupported) if memory that was written belongs to several inputs that aren't
  // views of each other: which of them changed can't be said functionally.
  std::vector<Write> writes() const;

 private:
  struct Root {
    Tensor original, before, wrapper;
  };

  Tensor import(const Tensor& t);
  void store(std::string_view name, const Tensor& target, Tensor value);

  bool record_below_;
  std::vector<Root> roots_;
  // Outside tensors and their wrappers; handles of both are kept, so that addresses stay unique.
  std::unordered_map<TensorImpl*, std::pair<Tensor, Tensor>> imported_;
};

}  // namespace fornax
