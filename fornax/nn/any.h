// AnyModule: a module of any type behind one type, called with values checked at run time.
#pragma once

#include <typeinfo>

#include "fornax/nn/holder.h"

namespace fornax::nn {

// A value of any copyable type; tensors need no allocation.
class AnyValue {
 public:
  AnyValue() = default;
  AnyValue(Tensor tensor) : tensor_(std::move(tensor)), type_(&typeid(Tensor)) {}
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue> &&
                                              !std::is_convertible_v<T, const Tensor&>>>
  explicit AnyValue(T&& value)
      : other_(new Holder<std::decay_t<T>>(std::forward<T>(value))),
        type_(&typeid(std::decay_t<T>)) {}

  const std::type_info& type_info() const noexcept { return *type_; }
  // Null if the value has another type.
  template <class T>
  T* try_get() {
    if (*type_ != typeid(T)) return nullptr;
    if constexpr (std::is_same_v<T, Tensor>)
      return &tensor_;
    else
      return &static_cast<Holder<T>*>(other_.get())->value;
  }
  // Throws Error(kType) if the value has another type.
  template <class T>
  T get() {
    if (T* value = try_get<T>()) return *value;
    wrong_type(*type_, typeid(T));
  }
  [[noreturn]] static void wrong_type(const std::type_info& has, const std::type_info& wanted);

 private:
  struct Base : RefCounted {
    virtual ~Base() = default;
  };
  template <class T>
  struct Holder final : Base {
    template <class U>
    explicit Holder(U&& v) : value(std::forward<U>(v)) {}
    T value;
  };
  Tensor tensor_;
  Ref<Base> other_;
  const std::type_info* type_ = &typeid(void);
};

namespace detail {

using AnyValues = std::vector<AnyValue>;

[[noreturn]] void wrong_argument(const Module& module, size_t place, const std::type_info& has,
                                 const std::type_info& wanted);
[[noreturn]] void wrong_count(const Module& module, size_t given, size_t most);

template <class T>
T& argument_of(const Module& module, AnyValues& values, size_t place) {
  if (T* value = values[place].try_get<T>()) return *value;
  wrong_argument(module, place, values[place].type_info(), typeid(T));
}

// forward(P...) with as many values as are given; the others must have defaults.
template <class M, class Result, class... P>
struct ForwardCall {
  static constexpr size_t kMost = sizeof...(P);
  template <size_t I>
  using Param = std::tuple_element_t<I, std::tuple<P...>>;

  template <size_t... I>
  static AnyValue call(M& module, AnyValues& values, std::index_sequence<I...>) {
    auto run = [&]() -> decltype(auto) {
      return call_forward(module, argument_of<std::decay_t<Param<I>>>(module, values, I)...);
    };
    if constexpr (std::is_void_v<decltype(run())>) {
      run();
      return AnyValue();
    } else {
      return AnyValue(run());
    }
  }
  template <size_t... I>
  static constexpr bool takes(std::index_sequence<I...>) {
    return requires(M & module, std::decay_t<Param<I>> & ... values) { module.forward(values...); };
  }
  template <size_t N>
  static AnyValue with_count(M& module, AnyValues& values) {
    if (values.size() == N) {
      if constexpr (takes(std::make_index_sequence<N>()))
        return call(module, values, std::make_index_sequence<N>());
    }
    if constexpr (N > 0) {
      return with_count<N - 1>(module, values);
    } else {
      wrong_count(module, values.size(), kMost);
    }
  }
  static AnyValue run(Module& module, AnyValues& values) {
    return with_count<kMost>(static_cast<M&>(module), values);
  }
};

template <class M, class C, class R, class... P>
ForwardCall<M, R, P...> forward_call_of(R (C::*)(P...));
template <class M, class C, class R, class... P>
ForwardCall<M, R, P...> forward_call_of(R (C::*)(P...) const);

// How M is called; specialised where forward() is a template.
template <class M>
struct ForwardOf {
  static_assert(
      requires { &M::forward; }, "the module needs one forward() that isn't overloaded");
  using type = decltype(forward_call_of<M>(&M::forward));
};

}  // namespace detail

// Holds a module by shared_ptr. forward() must not be overloaded; trailing parameters with defaults
// may be left out in a call.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, M>>>
  explicit AnyModule(std::shared_ptr<M> module) : module_(std::move(module)) {
    call_ = &detail::ForwardOf<M>::type::run;
    type_ = &typeid(M);
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, M>>, class = void>
  explicit AnyModule(M module) : AnyModule(std::make_shared<M>(std::move(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  // Throws Error(kType) naming the argument whose type isn't forward()'s parameter's.
  template <class... A>
  AnyValue any_forward(A&&... arguments) {
    check();
    detail::AnyValues values;
    values.reserve(sizeof...(A));
    (values.push_back(AnyValue(std::forward<A>(arguments))), ...);
    return call_(*module_, values);
  }
  template <class Result = Tensor, class... A>
  Result forward(A&&... arguments) {
    return any_forward(std::forward<A>(arguments)...).template get<Result>();
  }
  AnyValue any_forward_values(std::vector<AnyValue> values) {
    check();
    return call_(*module_, values);
  }

  // Throws Error(kType) unless the module is exactly M.
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, M>>>
  M& get() const {
    check();
    if (*type_ != typeid(M)) AnyValue::wrong_type(*type_, typeid(M));
    return static_cast<M&>(*module_);
  }
  template <class Holder, class M = typename Holder::ContainedType>
  Holder get() const {
    return Holder(ptr<M>());
  }
  const std::shared_ptr<Module>& ptr() const {
    check();
    return module_;
  }
  template <class M, class = std::enable_if_t<std::is_base_of_v<Module, M>>>
  std::shared_ptr<M> ptr() const {
    get<M>();
    return std::static_pointer_cast<M>(module_);
  }
  AnyModule clone(const std::optional<Device>& device = std::nullopt) const {
    AnyModule copy = *this;
    copy.module_ = ptr()->clone(device);
    return copy;
  }
  const std::type_info& type_info() const {
    check();
    return *type_;
  }
  bool is_empty() const noexcept { return module_ == nullptr; }

 private:
  void check() const { FX_CHECK(module_, kValue, "this AnyModule is empty"); }
  std::shared_ptr<Module> module_;
  AnyValue (*call_)(Module&, std::vector<AnyValue>&) = nullptr;
  const std::type_info* type_ = &typeid(void);
};

}  // namespace fornax::nn
