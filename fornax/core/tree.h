// Nested values that hold tensors: which tensors they hold, and the same value around other ones.
// A specialisation of Tree makes a program's own type usable as argument or result of function
// transforms and of autograd::Function.
#pragma once

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "fornax/core/tensor.h"

namespace fornax {

// `flatten` appends the tensors of a value in order; `rebuild` makes a value like `like` around the
// tensors that follow `next`, and moves it past them. A value without tensors is passed through.
template <class A>
struct Tree {
  static constexpr bool kHasTensors = false;
  static void flatten(const A&, Tensors&) {}
  static A rebuild(const A& like, const Tensor*&) { return like; }
};

template <>
struct Tree<Tensor> {
  static constexpr bool kHasTensors = true;
  static void flatten(const Tensor& t, Tensors& out) { out.push_back(t); }
  static Tensor rebuild(const Tensor&, const Tensor*& next) { return *next++; }
};

template <class A>
struct Tree<std::optional<A>> {
  static constexpr bool kHasTensors = Tree<A>::kHasTensors;
  static void flatten(const std::optional<A>& v, Tensors& out) {
    if (v) Tree<A>::flatten(*v, out);
  }
  static std::optional<A> rebuild(const std::optional<A>& like, const Tensor*& next) {
    if (!like) return std::nullopt;
    return Tree<A>::rebuild(*like, next);
  }
};

// A list borrows: the rebuilt one lives as long as the tensors behind `next`.
template <>
struct Tree<TensorList> {
  static constexpr bool kHasTensors = true;
  static void flatten(TensorList list, Tensors& out) { out.append(list.begin(), list.end()); }
  static TensorList rebuild(TensorList like, const Tensor*& next) {
    TensorList list(next, like.size());
    next += like.size();
    return list;
  }
};

template <class C>
struct TreeOfSequence {
  using Element = typename C::value_type;
  static constexpr bool kHasTensors = Tree<Element>::kHasTensors;
  static void flatten(const C& v, Tensors& out) {
    for (const Element& e : v) Tree<Element>::flatten(e, out);
  }
  static C rebuild(const C& like, const Tensor*& next) {
    C v = like;
    for (Element& e : v) e = Tree<Element>::rebuild(e, next);
    return v;
  }
};
template <class A>
struct Tree<std::vector<A>> : TreeOfSequence<std::vector<A>> {};
template <>
struct Tree<std::vector<bool>> {
  static constexpr bool kHasTensors = false;
  static void flatten(const std::vector<bool>&, Tensors&) {}
  static std::vector<bool> rebuild(const std::vector<bool>& like, const Tensor*&) { return like; }
};
template <class A, size_t N>
struct Tree<SmallVec<A, N>> : TreeOfSequence<SmallVec<A, N>> {};
template <class A, size_t N>
struct Tree<std::array<A, N>> : TreeOfSequence<std::array<A, N>> {};

template <class T, class... A>
struct TreeOfProduct {
  static constexpr bool kHasTensors = (Tree<A>::kHasTensors || ... || false);
  static void flatten(const T& v, Tensors& out) {
    std::apply([&](const A&... e) { (Tree<A>::flatten(e, out), ...); }, v);
  }
  static T rebuild(const T& like, const Tensor*& next) {
    // Braces keep the order of evaluation.
    return std::apply([&](const A&... e) { return T{Tree<A>::rebuild(e, next)...}; }, like);
  }
};
template <class... A>
struct Tree<std::tuple<A...>> : TreeOfProduct<std::tuple<A...>, A...> {};
template <class A, class B>
struct Tree<std::pair<A, B>> : TreeOfProduct<std::pair<A, B>, A, B> {};

template <class A>
Tensors flatten_tree(const A& value) {
  Tensors out;
  Tree<std::decay_t<A>>::flatten(value, out);
  return out;
}
template <class A>
A rebuild_tree(const A& like, TensorList tensors) {
  const Tensor* next = tensors.data();
  return Tree<A>::rebuild(like, next);
}

}  // namespace fornax
