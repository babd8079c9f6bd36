// Intrusive reference counting: one pointer wide, no control block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fornax {

// Base of counted objects. Counting is thread safe; what the object holds is not, unless its class
// says so. Derived classes that pool their memory overload operator delete.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : count_(0) {}
  RefCounted& operator=(const RefCounted&) { return *this; }
  // The first reference to a new object, which nobody else can see yet.
  void retain_first() const noexcept { count_.store(1, std::memory_order_relaxed); }
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when the last reference went.
  bool release() const noexcept {
    // A sole owner needs no read-modify-write: nobody else can change the count.
    if (count_.load(std::memory_order_acquire) == 1) return true;
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// How a handle counts; a class that is incomplete where handles are copied declares overloads of
// its own.
template <class T>
void retain_ref(const T* object) noexcept {
  object->retain();
}
template <class T>
void drop_ref(T* object) noexcept {
  if (object->release()) delete object;
}

// Owning handle of a RefCounted object; null is a valid state.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) retain_ref(object_);
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(const Ref& other) {
    Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() noexcept {
    T* old = std::exchange(object_, nullptr);
    if (old) drop_ref(old);
  }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }
  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // Gives the reference away without counting.
  T* detach() noexcept { return std::exchange(object_, nullptr); }
  // The first handle of a new object.
  static Ref own(T* fresh) noexcept {
    fresh->retain_first();
    return adopt(fresh);
  }
  // Takes over a reference made by detach().
  static Ref adopt(T* object) noexcept {
    Ref r;
    r.object_ = object;
    return r;
  }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

template <class T, class... A>
Ref<T> make_ref(A&&... args) {
  return Ref<T>::own(new T(std::forward<A>(args)...));
}

}  // namespace fornax
