// ModuleHolder: a module with reference semantics, and the macro that makes one.
#pragma once

#include "fornax/nn/module.h"

namespace fornax::nn {
namespace detail {

struct ModuleHolderIndicator {};
template <class T>
inline constexpr bool is_module_holder = std::is_base_of_v<ModuleHolderIndicator, std::decay_t<T>>;

template <class M, size_t... I>
Tensor forward_tensors(M& module, const Tensors& inputs, std::index_sequence<I...>) {
  return module.forward(inputs[I]...);
}

// module.forward(arguments...), around it the module's hooks.
template <class M, class... A>
decltype(auto) call_forward(M& module, A&&... arguments) {
  using Result = decltype(module.forward(std::forward<A>(arguments)...));
  if (module.has_forward_hooks()) [[unlikely]] {
    if constexpr (std::is_same_v<std::decay_t<Result>, Tensor> && sizeof...(A) > 0 &&
                  (std::is_convertible_v<A, const Tensor&> && ...)) {
      return Result(module.forward_with_hooks({arguments...}, [&](const Tensors& inputs) {
        return forward_tensors(module, inputs, std::index_sequence_for<A...>());
      }));
    } else {
      fail(ErrorKind::kUnsupported, module.name(),
           ": forward hooks need a forward() from tensors to a tensor");
    }
  }
  return module.forward(std::forward<A>(arguments)...);
}

}  // namespace detail

// Owns a shared_ptr<Contained>; copies share the module. Constructed with the module's arguments,
// with nullptr (empty) or a shared_ptr.
template <class Contained>
class ModuleHolder : detail::ModuleHolderIndicator {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(std::make_shared<Contained>()) {}
  ModuleHolder(std::nullptr_t) {}
  template <class Head, class... Tail,
            class = std::enable_if_t<
                !(std::is_base_of_v<ModuleHolder, std::decay_t<Head>> && sizeof...(Tail) == 0) &&
                !(std::is_convertible_v<Head, std::shared_ptr<Contained>> && sizeof...(Tail) == 0)>>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}

  bool is_empty() const noexcept { return impl_ == nullptr; }
  explicit operator bool() const noexcept { return !is_empty(); }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  const std::shared_ptr<Contained>& ptr() const {
    check();
    return impl_;
  }
  Contained* get() {
    check();
    return impl_.get();
  }
  const Contained* get() const {
    check();
    return impl_.get();
  }
  template <class... A>
  decltype(auto) operator()(A&&... arguments) {
    check();
    return detail::call_forward(*impl_, std::forward<A>(arguments)...);
  }
  template <class A>
  decltype(auto) operator[](A&& argument) {
    return (*get())[std::forward<A>(argument)];
  }

 protected:
  std::shared_ptr<Contained> impl_;

 private:
  void check() const {
    if (impl_) [[likely]]
      return;
    fail(ErrorKind::kValue,
         "this module holder is empty: it was made with nullptr; assign a module first");
  }
};

// The holder's module, as operator<< prints it.
template <class Contained>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<Contained>& holder) {
  const Module& module = *holder;
  return stream << module;
}

}  // namespace fornax::nn

// FORNAX_MODULE(Net) defines `Net`, the holder of `NetImpl`.
#define FORNAX_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::fornax::nn::ModuleHolder<ImplType> {  \
   public:                                                    \
    using ::fornax::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl = ImplType;                                    \
  }
#define FORNAX_MODULE(Name) FORNAX_MODULE_IMPL(Name, Name##Impl)
