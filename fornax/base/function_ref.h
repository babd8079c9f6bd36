// A borrowed callable: two words, no allocation, one indirect call.
#pragma once

#include <type_traits>
#include <utility>

namespace fornax {

template <class Signature>
class FunctionRef;

// Refers to a callable that outlives every call; for parameters, never for members. Functions and
// function pointers are held by value.
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F,
            class = std::enable_if_t<
                !std::is_same_v<std::remove_cv_t<std::remove_reference_t<F>>, FunctionRef> &&
                std::is_invocable_r_v<R, F&, A...>>>
  FunctionRef(F&& callable) noexcept {
    using Target = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<std::remove_pointer_t<std::remove_cv_t<Target>>>) {
      using Pointer = std::decay_t<Target>;
      target_.function = reinterpret_cast<void (*)()>(static_cast<Pointer>(callable));
      call_ = [](Storage t, A... args) -> R {
        return reinterpret_cast<Pointer>(t.function)(std::forward<A>(args)...);
      };
    } else {
      target_.object = const_cast<void*>(static_cast<const volatile void*>(&callable));
      call_ = [](Storage t, A... args) -> R {
        return (*static_cast<Target*>(t.object))(std::forward<A>(args)...);
      };
    }
  }

  R operator()(A... args) const { return call_(target_, std::forward<A>(args)...); }

 private:
  union Storage {
    void* object;
    void (*function)();
  };
  Storage target_;
  R (*call_)(Storage, A...);
};

}  // namespace fornax
