// A vector whose first N elements live inside the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

namespace fornax {

template <class T, size_t N>
class SmallVec {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVec() = default;
  explicit SmallVec(size_t n, const T& value = T()) { resize(n, value); }
  SmallVec(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  template <class It, class = decltype(*std::declval<It&>()),
            class = std::enable_if_t<!std::is_integral_v<It>>>
  SmallVec(It first, It last) {
    append(first, last);
  }
  SmallVec(const SmallVec& other) { copy(other); }
  SmallVec(SmallVec&& other) noexcept { take(other); }
  SmallVec& operator=(const SmallVec& other) {
    if (this != &other) {
      clear();
      copy(other);
    }
    return *this;
  }
  SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVec() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void clear() {
    destroy(begin(), end());
    size_ = 0;
  }
  template <class... A>
  T& emplace_back(A&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<A>(args)...);  // the arguments may lie inside this vector
      grow(size_t(capacity_) * 2);
      return *new (data_ + size_++) T(std::move(value));
    }
    return *new (data_ + size_++) T(std::forward<A>(args)...);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() {
    --size_;
    data_[size_].~T();
  }
  void resize(size_t n, const T& value = T()) {
    if (n < size_) {
      destroy(data_ + n, end());
    } else if (n > size_) {
      T copy(value);  // the value may lie inside this vector
      reserve(n);
      for (size_t i = size_; i < n; ++i) new (data_ + i) T(copy);
    }
    size_ = uint32_t(n);
  }
  template <class It>
  void append(It first, It last) {
    if constexpr (kPlain && std::is_convertible_v<It, const T*>) {
      const T* from = first;
      size_t n = size_t(static_cast<const T*>(last) - from);
      if (n == 0) return;
      if (size_ + n > capacity_) {
        grow_keeping(from, n);
        return;
      }
      std::memcpy(data_ + size_, from, n * sizeof(T));
      size_ += uint32_t(n);
    } else {
      for (; first != last; ++first) emplace_back(*first);
    }
  }
  void assign(size_t n, const T& value) {
    clear();
    resize(n, value);
  }
  template <class It, class = std::enable_if_t<!std::is_integral_v<It>>>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }
  T* insert(const T* where, const T& value) {
    size_t at = size_t(where - data_);
    T copy(value);
    emplace_back(std::move(copy));
    for (size_t i = size_ - 1; i > at; --i) std::swap(data_[i], data_[i - 1]);
    return data_ + at;
  }
  T* erase(const T* where) {
    size_t at = size_t(where - data_);
    for (size_t i = at; i + 1 < size_; ++i) data_[i] = std::move(data_[i + 1]);
    pop_back();
    return data_ + at;
  }

  friend bool operator==(const SmallVec& a, const SmallVec& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  static constexpr bool kPlain = std::is_trivially_copyable_v<T>;

  // Into an empty vector.
  void copy(const SmallVec& other) {
    if constexpr (kPlain && sizeof(T) * N <= 64) {
      if (other.size_ <= N) {  // whole, whatever the size: a few moves without a branch
        std::memcpy(data_, other.data_, sizeof(T) * N);
        size_ = other.size_;
        return;
      }
    }
    copy_elements(other);
  }
  [[gnu::noinline]] void copy_elements(const SmallVec& other) {
    append(other.begin(), other.end());
  }
  // Appends n values that may lie inside this vector and do not fit.
  [[gnu::noinline]] void grow_keeping(const T* from, size_t n) {
    size_t want = size_ + n > size_t(capacity_) * 2 ? size_ + n : size_t(capacity_) * 2;
    T* fresh = static_cast<T*>(::operator new(want * sizeof(T), std::align_val_t(alignof(T))));
    std::memcpy(fresh, data_, size_ * sizeof(T));
    std::memcpy(fresh + size_, from, n * sizeof(T));
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = fresh;
    size_ += uint32_t(n);
    capacity_ = uint32_t(want);
  }
  static void destroy(T* first, T* last) {
    if constexpr (!std::is_trivially_destructible_v<T>)
      for (; first != last; ++first) first->~T();
  }
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void grow(size_t n) {
    if (n < 4) n = 4;
    T* fresh = static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
    for (size_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = fresh;
    capacity_ = uint32_t(n);
  }
  void release() {
    clear();
    if (data_ != inline_data()) ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVec& other) {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0u);
      capacity_ = std::exchange(other.capacity_, uint32_t(N));
      return;
    }
    if constexpr (kPlain) {
      copy(other);
      other.size_ = 0;
      return;
    }
    for (size_t i = 0; i < other.size_; ++i) new (data_ + i) T(std::move(other.data_[i]));
    size_ = other.size_;
    other.clear();
  }

  T* data_ = inline_data();
  uint32_t size_ = 0, capacity_ = N;
  alignas(T) unsigned char inline_[sizeof(T) * (N ? N : 1)];
};

}  // namespace fornax
