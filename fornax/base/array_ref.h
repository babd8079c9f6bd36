// A borrowed run of values, as libtorch's ArrayRef: constructible from braces, vectors and single
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "fornax/base/small_vec.h"

namespace fornax {

// Borrows: never outlives the statement that made it from a temporary.
template <class T>
class ArrayRef {
 public:
  using value_type = T;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // borrowed on purpose: see above
#endif
  constexpr ArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin() == list.end() ? nullptr : list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  // std::vector, std::array, std::span, SmallVec, ...: whatever has data() and size().
  template <class C, class = std::enable_if_t<std::is_convertible_v<
                         decltype(std::declval<const C&>().data()), const T*>>>
  constexpr ArrayRef(const C& container)
      : data_(container.data()), size_(size_t(container.size())) {}
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

  friend constexpr bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;
// An IntArrayRef or nothing; a single integer binds to the caller's value, which
// std::optional<IntArrayRef> would not.
class OptionalIntArrayRef {
 public:
  constexpr OptionalIntArrayRef() = default;
  constexpr OptionalIntArrayRef(std::nullopt_t) {}
  constexpr OptionalIntArrayRef(const int64_t& one) : values_(one), has_(true) {}
  constexpr OptionalIntArrayRef(IntArrayRef values) : values_(values), has_(true) {}
  constexpr OptionalIntArrayRef(const std::initializer_list<int64_t>& values)
      : values_(values), has_(true) {}
  template <class C, class = std::enable_if_t<std::is_convertible_v<
                         decltype(std::declval<const C&>().data()), const int64_t*>>>
  constexpr OptionalIntArrayRef(const C& container) : values_(container), has_(true) {}
  constexpr bool has_value() const { return has_; }
  constexpr explicit operator bool() const { return has_; }
  constexpr IntArrayRef value() const { return values_; }
  constexpr IntArrayRef operator*() const { return values_; }

 private:
  IntArrayRef values_;
  bool has_ = false;
};
// Sizes, strides, dimension lists: six inline, any rank to 64 works.
using Dims = SmallVec<int64_t, 6>;

// "[2, 3]"
void append_to(std::string& out, IntArrayRef values);
inline void append_to(std::string& out, const Dims& values) { append_to(out, IntArrayRef(values)); }

}  // namespace fornax
