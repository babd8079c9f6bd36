// Cloneable: gives a module a deep clone() through its reset().
#pragma once

#include "fornax/nn/module.h"

namespace fornax::nn {
namespace detail {
// While alive, nn::init leaves tensors of this thread as they are and draws no random numbers: what
// a clone's reset() makes is overwritten at once.
class SkipInit {
 public:
  SkipInit();
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;

 private:
  bool old_;
};
bool skips_init();
}  // namespace detail

// Derived is copyable, and its reset() registers all parameters, buffers and submodules, as the
// constructor does by calling it.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;

  // (Re)makes parameters, buffers and submodules with their initial values.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->forget_registered();
    {
      detail::SkipInit skip;
      copy->reset();
    }
    static_cast<Module&>(*copy).copy_tensors_from(*this, device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    // Only of the type that children of such a copy have.
    auto clone = std::dynamic_pointer_cast<Derived>(other.clone(device));
    FX_CHECK(clone, kInternal, "clone: a submodule was cloned into another type");
    static_cast<Derived&>(*this) = *clone;
  }
};

}  // namespace fornax::nn
