// OrderedDict: a dictionary that keeps the order of insertion, as libtorch's.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fornax/base/error.h"

namespace fornax {

// Keys are unique; found by a hash index (std::hash) beside the list of items.
template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  explicit OrderedDict(std::string key_description = "Key")
      : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  const std::string& key_description() const noexcept { return key_description_; }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  void reserve(size_t n) { items_.reserve(n); }

  Item& front() { return at(0); }
  const Item& front() const { return at(0); }
  Item& back() { return at(items_.size() - 1); }
  const Item& back() const { return at(items_.size() - 1); }
  // By position. Throws Error(kIndex).
  Item& operator[](size_t index) { return at(index); }
  const Item& operator[](size_t index) const { return at(index); }
  // By key. Throws Error(kIndex) naming the key.
  Value& operator[](const Key& key) { return get(key); }
  const Value& operator[](const Key& key) const { return get(key); }
  Value& get(const Key& key) {
    if (Value* value = find(key)) return *value;
    fail(ErrorKind::kIndex, key_description_, " '", key, "' is not defined");
  }
  const Value& get(const Key& key) const { return const_cast<OrderedDict*>(this)->get(key); }
  // Null if there is none.
  Value* find(const Key& key) noexcept {
    size_t at = place_of(key);
    return at < items_.size() ? &items_[at].value() : nullptr;
  }
  const Value* find(const Key& key) const noexcept {
    return const_cast<OrderedDict*>(this)->find(key);
  }
  bool contains(const Key& key) const noexcept { return find(key) != nullptr; }

  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }

  // Throws Error(kValue) if the key is there already.
  template <class K, class V>
  Value& insert(K&& key, V&& value) {
    FX_CHECK(!contains(key), kValue, key_description_, " '", key, "' already defined");
    items_.emplace_back(Key(std::forward<K>(key)), Value(std::forward<V>(value)));
    index_item(items_.size() - 1);
    return items_.back().value();
  }
  Value& insert(Key key, Value&& value) {
    return insert<Key, Value>(std::move(key), std::move(value));
  }
  void update(const OrderedDict& other) {
    reserve(size() + other.size());
    for (const Item& item : other) insert(item.key(), item.value());
  }
  void update(OrderedDict&& other) {
    reserve(size() + other.size());
    for (Item& item : other) insert(item.key(), std::move(item.value()));
  }
  void erase(const Key& key) {
    size_t at = place_of(key);
    FX_CHECK(at < items_.size(), kIndex, key_description_, " '", key, "' doesn't exist");
    items_.erase(items_.begin() + std::ptrdiff_t(at));
    slots_.clear();
    if (items_.size() > kLinear) rebuild();
  }
  void clear() {
    items_.clear();
    slots_.clear();
  }

  const std::vector<Item>& items() const noexcept { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    out.reserve(size());
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }

 private:
  static constexpr size_t kLinear = 8;  // as many items are searched one by one

  Item& at(size_t index) {
    FX_CHECK(index < items_.size(), kIndex, key_description_, " index ", index,
             " is out of range for ", items_.size(), " items");
    return items_[index];
  }
  const Item& at(size_t index) const { return const_cast<OrderedDict*>(this)->at(index); }

  size_t place_of(const Key& key) const noexcept {
    if (slots_.empty()) {
      for (size_t i = 0; i < items_.size(); ++i)
        if (items_[i].key() == key) return i;
      return items_.size();
    }
    size_t mask = slots_.size() - 1;
    for (size_t s = std::hash<Key>()(key) & mask; slots_[s]; s = (s + 1) & mask)
      if (items_[slots_[s] - 1].key() == key) return slots_[s] - 1;
    return items_.size();
  }
  void rebuild() {
    size_t n = 32;
    while (n < items_.size() * 4) n *= 2;
    slots_.assign(n, 0);
    for (size_t i = 0; i < items_.size(); ++i) put(i);
  }
  void put(size_t i) {
    size_t mask = slots_.size() - 1, s = std::hash<Key>()(items_[i].key()) & mask;
    while (slots_[s]) s = (s + 1) & mask;
    slots_[s] = uint32_t(i + 1);
  }
  void index_item(size_t i) {
    if (items_.size() <= kLinear) return;
    if (slots_.size() < items_.size() * 2) return rebuild();
    put(i);
  }

  std::vector<Item> items_;
  std::vector<uint32_t> slots_;  // place + 1, 0: free; empty while there are few items
  std::string key_description_ = "Key";
};

}  // namespace fornax
