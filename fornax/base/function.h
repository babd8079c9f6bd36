// Function<R(A...)>: an owning callable; copies share it. Far cheaper to include than <functional>.
#pragma once

#include <type_traits>
#include <utility>

#include "fornax/base/ref.h"

namespace fornax {

template <class Signature>
class Function;

template <class R, class... A>
class Function<R(A...)> {
 public:
  Function() = default;
  Function(std::nullptr_t) {}
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, Function> &&
                                              std::is_invocable_r_v<R, std::decay_t<F>&, A...>>>
  Function(F&& callable) : body_(new Holder<std::decay_t<F>>(std::forward<F>(callable))) {}
  explicit operator bool() const { return bool(body_); }
  R operator()(A... args) const { return body_->call(std::forward<A>(args)...); }

 private:
  struct Body : RefCounted {
    virtual ~Body() = default;
    virtual R call(A... args) = 0;
  };
  template <class F>
  struct Holder final : Body {
    explicit Holder(F f) : callable(std::move(f)) {}
    R call(A... args) override { return callable(std::forward<A>(args)...); }
    F callable;
  };
  Ref<Body> body_;
};

}  // namespace fornax
