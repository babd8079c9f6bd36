// Modules made of modules, and lists of parameters.
#pragma once

#include "fornax/nn/any.h"
#include "fornax/nn/cloneable.h"

namespace fornax::nn {

// A module with a name, for Sequential({{"fc", Linear(3, 4)}, ...}).
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, std::shared_ptr<M> module)
      : name_(std::move(name)), module_(std::move(module)) {}
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>> ||
                                              detail::is_module_holder<M>>>
  NamedAnyModule(std::string name, M&& module)
      : name_(std::move(name)), module_(std::forward<M>(module)) {}
  NamedAnyModule(std::string name, AnyModule module)
      : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const noexcept { return name_; }
  AnyModule& module() noexcept { return module_; }
  const AnyModule& module() const noexcept { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

// Calls its modules one after the other; the first takes any arguments, each later one the result
// of the one before.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  explicit SequentialImpl(const OrderedDict<std::string, AnyModule>& named);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> named);
  template <class First, class... Rest,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<First>, SequentialImpl> &&
                                     !std::is_base_of_v<NamedAnyModule, std::decay_t<First>>>>
  explicit SequentialImpl(First&& first, Rest&&... rest) {
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class Result = Tensor, class... A>
  Result forward(A&&... arguments) {
    FX_CHECK(!is_empty(), kValue, "forward(): this Sequential has no modules");
    AnyValue value = modules_[0].any_forward(std::forward<A>(arguments)...);
    for (size_t i = 1; i < modules_.size(); ++i)
      value = modules_[i].any_forward_values({std::move(value)});
    return value.get<Result>();
  }

  template <class M>
  void push_back(std::shared_ptr<M> module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  template <class M>
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>> ||
                                              detail::is_module_holder<M>>>
  void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), AnyModule(std::forward<M>(module)));
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>> ||
                                              detail::is_module_holder<M>>>
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), AnyModule(std::forward<M>(module)));
  }
  void push_back(AnyModule module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  void push_back(std::string name, AnyModule module);
  void push_back(const NamedAnyModule& named) { push_back(named.name(), named.module()); }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  template <class M>
  M& at(size_t index) const {
    return checked(index).get<M>();
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  std::shared_ptr<Module> ptr(size_t index) const { return checked(index).ptr(); }
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    return checked(index).ptr<M>();
  }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  const AnyModule& checked(size_t index) const {
    FX_CHECK(index < modules_.size(), kIndex, "index ", index,
             " is out of range for a Sequential of ", modules_.size(), " modules");
    return modules_[index];
  }
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> named)
      : ModuleHolder(std::make_shared<SequentialImpl>(named)) {}
  template <class Result = Tensor, class... A>
  Result operator()(A&&... arguments) {
    if constexpr (std::is_same_v<Result, Tensor>) {
      return detail::call_forward(*impl_, std::forward<A>(arguments)...);
    } else {
      return get()->template forward<Result>(std::forward<A>(arguments)...);
    }
  }
};

// Inside an AnyModule a Sequential goes from one tensor to one tensor.
template <>
struct detail::ForwardOf<SequentialImpl> {
  using type = ForwardCall<SequentialImpl, Tensor, Tensor>;
};

// Modules by number; has no forward of its own.
class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class First, class... Rest,
            class = std::enable_if_t<!std::is_same_v<std::decay_t<First>, ModuleListImpl>>>
  explicit ModuleListImpl(First&& first, Rest&&... rest) {
    push_back(std::forward<First>(first));
    (push_back(std::forward<Rest>(rest)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  void push_back(std::shared_ptr<Module> module);
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>>,
            class = void>
  void push_back(M&& module) {
    push_back(std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::shared_ptr<Module>(holder.ptr()));
  }
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M>
  void insert(size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::shared_ptr<Module>(holder.ptr()));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  template <class M>
  M& at(size_t index) const {
    return *ptr<M>(index);
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  std::shared_ptr<Module> ptr(size_t index) const;
  // Throws Error(kType) unless the module is an M.
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    auto module = std::dynamic_pointer_cast<M>(ptr(index));
    FX_CHECK(module, kType, "module ", index, " of a ModuleList is a ", ptr(index)->name());
    return module;
  }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
FORNAX_MODULE(ModuleList);

// Modules by name, in order of insertion; has no forward of its own.
class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Dict = OrderedDict<std::string, std::shared_ptr<Module>>;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(
      const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items);
  template <class D, class = std::enable_if_t<std::is_same_v<D, Dict>>>
  explicit ModuleDictImpl(const D& items) {
    update(items);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const {
    return children_.pairs();
  }
  std::vector<std::string> keys() const { return children_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return children_.values(); }
  Dict::Iterator begin() { return children_.begin(); }
  Dict::Iterator end() { return children_.end(); }
  Dict::ConstIterator begin() const { return children_.begin(); }
  Dict::ConstIterator end() const { return children_.end(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  void clear() { children_.clear(); }
  // Takes the module out and returns it.
  std::shared_ptr<Module> pop(const std::string& key);
  // Replaces modules of the same names, adds the others.
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items);
  template <class D, class = std::enable_if_t<std::is_same_v<D, Dict>>>
  void update(const D& items) {
    update(items.pairs());
  }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  template <class M>
  M& at(const std::string& key) const {
    auto module = std::dynamic_pointer_cast<M>(children_[key]);
    FX_CHECK(module, kType, "module '", key, "' of a ModuleDict is a ", children_[key]->name());
    return *module;
  }
};
FORNAX_MODULE(ModuleDict);

// Parameters by number.
class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  explicit ParameterListImpl(const std::vector<Tensor>& tensors) { extend(tensors); }
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;
  void append(Tensor tensor);
  void extend(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) append(t);
  }
  Tensor& at(size_t index) { return parameters_[index].value(); }
  Tensor& operator[](size_t index) { return at(index); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
  OrderedDict<std::string, Tensor>::Iterator begin() { return parameters_.begin(); }
  OrderedDict<std::string, Tensor>::Iterator end() { return parameters_.end(); }
};
FORNAX_MODULE(ParameterList);

// Parameters by name, in order of insertion.
class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& tensors);
  void reset() override {}
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;
  // Replaces the parameter of that name if there is one.
  Tensor& insert(const std::string& key, Tensor tensor);
  Tensor pop(const std::string& key);
  Tensor& get(const std::string& key) { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  void clear() { parameters_.clear(); }
};
FORNAX_MODULE(ParameterDict);

// A function from a tensor to a tensor as a module; further arguments are bound.
class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  explicit FunctionalImpl(Function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  template <class F, class... A, class = std::enable_if_t<(sizeof...(A) > 0)>>
  explicit FunctionalImpl(F function, A... arguments)
      : function_([function, arguments...](Tensor input) mutable {
          return function(input, arguments...);
        }) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input) { return function_(input); }
  bool is_serializable() const { return false; }

 private:
  Function<Tensor(Tensor)> function_;
};
FORNAX_MODULE(Functional);

}  // namespace fornax::nn
