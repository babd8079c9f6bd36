// Module: a node of a tree with named parameters, buffers and children. libtorch's interface, with
// Python's state_dict and forward hooks added.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "fornax/base/function_ref.h"
#include "fornax/core/tensor.h"
#include "fornax/nn/ordered_dict.h"

namespace fornax::nn {

template <class Contained>
class ModuleHolder;

using StateDict = OrderedDict<std::string, Tensor>;

// What load_state_dict didn't find in the dictionary, and didn't want of it.
struct LoadResult {
  std::vector<std::string> missing_keys, unexpected_keys;
};

// Modules are shared: keep them in std::shared_ptr (or a ModuleHolder). Not thread safe where the
// tree or its tensors are written; forward of several threads at once is.
class Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = FunctionRef<void(Module&)>;
  using ConstModuleApplyFunction = FunctionRef<void(const Module&)>;
  using NamedModuleApplyFunction = FunctionRef<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = FunctionRef<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = FunctionRef<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction =
      FunctionRef<void(const std::string&, const std::shared_ptr<Module>&)>;
  // May replace the inputs.
  using ForwardPreHook = Function<void(Module&, Tensors& inputs)>;
  // May replace the output.
  using ForwardHook = Function<void(Module&, const Tensors& inputs, Tensor& output)>;

  explicit Module(std::string name);
  Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module();

  // The name given, or the C++ name of the dynamic type.
  const std::string& name() const;

  // A deep copy, on `device` if given. Throws Error(kUnsupported) unless the type derives from
  // Cloneable.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  // This module first, then its descendants in order of registration.
  void apply(ModuleApplyFunction function);
  void apply(ConstModuleApplyFunction function) const;
  void apply(NamedModuleApplyFunction function, const std::string& prefix = "");
  void apply(ConstNamedModuleApplyFunction function, const std::string& prefix = "") const;
  // These need the module to be in a shared_ptr.
  void apply(ModulePointerApplyFunction function) const;
  void apply(NamedModulePointerApplyFunction function, const std::string& prefix = "") const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  StateDict named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  StateDict named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& prefix = "",
                                                                  bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }

  // Sets the training flag of the whole tree.
  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }

  // Parameters and buffers move in place; dtype touches floating and complex ones only.
  virtual void to(Device device, Dtype dtype, bool non_blocking = false);
  virtual void to(Dtype dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);

  virtual void zero_grad(bool set_to_none = true);
  void requires_grad_(bool on = true);

  // Parameters, then buffers, then those of the children, under "child.name". The tensors are the
  // module's own, detached.
  StateDict state_dict(const std::string& prefix = "") const;
  // Copies values into parameters and buffers of the same names. Nothing is written where it
  // throws: Error(kShape) naming every tensor of other sizes, and if `strict` Error(kValue) naming
  // every missing and unexpected key.
  LoadResult load_state_dict(const StateDict& dict, bool strict = true);

  // One line that describes this module without its children.
  virtual void pretty_print(std::ostream& stream) const;

  // Returned reference: the tensor that the module uses from now on. Names are not empty, have no
  // dot, and are used once; an undefined tensor is allowed and listed nowhere.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    set_child(name, module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name);

  // Hooks of modules that are called through a holder, AnyModule or Sequential, with tensors as
  // arguments and result. The returned number removes the hook.
  int64_t register_forward_pre_hook(ForwardPreHook hook);
  int64_t register_forward_hook(ForwardHook hook);
  void remove_forward_hook(int64_t number);
  bool has_forward_hooks() const { return bool(hooks_); }
  Tensor forward_with_hooks(Tensors inputs, FunctionRef<Tensor(const Tensors&)> forward);

  // dynamic_cast; null if it is of another type.
  template <class M>
  M* as() noexcept {
    return dynamic_cast<M*>(static_cast<Module*>(this));
  }
  template <class M>
  const M* as() const noexcept {
    return dynamic_cast<const M*>(static_cast<const Module*>(this));
  }

 protected:
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};
  bool is_training_ = true;

 private:
  template <class Derived>
  friend class Cloneable;
  friend std::ostream& operator<<(std::ostream& stream, const Module& module);
  struct Hooks;

  void add_child(std::string name, std::shared_ptr<Module> module);
  void set_child(const std::string& name, std::shared_ptr<Module> module);
  virtual void clone_(Module& other, const std::optional<Device>& device);
  void copy_tensors_from(const Module& other, const std::optional<Device>& device);
  void forget_registered();
  void convert(std::optional<Device> device, std::optional<Dtype> dtype, bool non_blocking);
  void print_tree(std::ostream& stream, const std::string& indentation) const;
  template <class Self, class Visit>
  static void visit_tree(Self& self, const std::string& prefix, Visit& visit);
  std::shared_ptr<Module> checked_shared_from_this() const;

  mutable std::string name_;
  std::shared_ptr<Hooks> hooks_;
};

// The module and its descendants, indented.
std::ostream& operator<<(std::ostream& stream, const Module& module);

}  // namespace fornax::nn
