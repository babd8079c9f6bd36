// Function transforms: from a function on tensors to its gradient, its tangents, its batched form.
//
//   auto loss = [](const Tensor& w, const Tensor& x) { return (w * x).sum(); };
//   Tensor g = func::grad(loss)(w, x);                       // by the first argument
//   Tensor per_row = func::vmap(func::grad(loss), {std::nullopt, 0})(w, batch);
//   auto [y, dy] = func::jvp(f, x, dx);
//   Tensor h = func::hessian(f)(x);
//
// They nest in any order, and the functions may write tensors they made, through views too. A
// function takes and returns tensors, lists, tuples and pairs of them, or whatever else Tree is
// specialised for (fornax/core/tree.h); other arguments are passed through. Functions must not keep
// the tensors they were given: using one after the transform ended throws Error(kAutograd).
#pragma once

#include "fornax/core/tree.h"
#include "fornax/transforms/detail.h"
#include "fornax/transforms/options.h"

namespace fornax {
namespace func {
namespace detail {

// A function and its arguments, as a function of the arguments' tensors.
template <class F, class... A>
class Flat {
 public:
  using Arguments = std::tuple<A...>;
  using Result = std::decay_t<std::invoke_result_t<F&, A&...>>;

  Flat(F& f, const A&... args) : f_(f), args_(args...) {
    size_t at = 0;
    (add_argument(args, at), ...);
  }

  Tensors operator()(TensorList tensors) {
    Arguments rebuilt = rebuild_tree(args_, tensors);
    result_.emplace(std::apply(f_, rebuilt));
    return flatten_tree(*result_);
  }
  // What the last call returned, around other tensors.
  Result like_result(TensorList tensors) const { return rebuild_tree(*result_, tensors); }

  const Tensors& inputs() const { return inputs_; }
  static constexpr size_t size() { return sizeof...(A); }
  // Flat inputs that belong to argument `index`.
  SmallVec<bool, 4> of_argument(int64_t index) const {
    index = wrap_dim(index, int64_t(sizeof...(A)), "argnums");
    SmallVec<bool, 4> mask;
    for (size_t owner : owner_) mask.push_back(int64_t(owner) == index);
    return mask;
  }
  SmallVec<bool, 4> of_arguments(ArrayRef<int64_t> indices) const {
    SmallVec<bool, 4> mask(owner_.size(), false);
    for (int64_t index : indices) {
      auto one = of_argument(index);
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = mask[i] || one[i];
    }
    return mask;
  }
  // All that can have a gradient.
  SmallVec<bool, 4> differentiable() const {
    SmallVec<bool, 4> mask;
    for (const Tensor& t : inputs_) mask.push_back(t.defined() && is_differentiable(t.dtype()));
    return mask;
  }
  // in_dims per argument -> per flat tensor.
  std::vector<std::optional<int64_t>> dims_of(const DimSpec& dims) const {
    FX_CHECK(!dims.is_list() || dims.size() == sizeof...(A), kValue, "vmap: ", dims.size(),
             " in_dims were given for ", sizeof...(A), " arguments");
    std::vector<std::optional<int64_t>> flat;
    for (size_t owner : owner_) flat.push_back(dims.at(owner));
    return flat;
  }
  template <size_t N>
  const auto& argument() const {
    return std::get<N>(args_);
  }

 private:
  template <class X>
  void add_argument(const X& arg, size_t& at) {
    Tree<X>::flatten(arg, inputs_);
    while (owner_.size() < inputs_.size()) owner_.push_back(at);
    ++at;
  }

  F& f_;
  Arguments args_;
  std::optional<Result> result_;
  Tensors inputs_;
  SmallVec<size_t, 4> owner_;  // per flat input: its argument
};

template <class F, class... A>
Flat(F&, const A&...) -> Flat<F, A...>;

inline std::vector<Tensor> to_vector(const Tensors& list) { return {list.begin(), list.end()}; }

// Puts `values` where mask is set and undefined tensors elsewhere.
inline Tensors scatter(const Tensors& values, const SmallVec<bool, 4>& mask) {
  Tensors all(mask.size());
  size_t next = 0;
  for (size_t i = 0; i < mask.size(); ++i)
    if (mask[i]) all[i] = values[next++];
  return all;
}

inline const Tensor& only(const Tensors& list, const char* call) {
  FX_CHECK(list.size() == 1, kValue, call, ": the argument holds ", list.size(),
           " tensors; name it as a template argument, or use a list of argnums");
  return list[0];
}

template <class T>
struct IsTuple : std::false_type {};
template <class... A>
struct IsTuple<std::tuple<A...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};

}  // namespace detail

// ---- grad
// The gradient of a function whose (first) result is a 0-D tensor, by one argument; zeros where the
// result doesn't depend on it. The gradient has the argument's type.
template <size_t Argument = 0, class F>
auto grad(F f) {
  return [f](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    Tensors outs;
    Tensors grads = detail::grad(flat, flat.inputs(), flat.of_argument(Argument), outs);
    return rebuild_tree(flat.template argument<Argument>(), grads);
  };
}
// By the argument with a number that is known at run time; it must be one tensor.
template <class F>
auto grad(F f, int argnum) {
  return [f, argnum](const auto&... args) mutable -> Tensor {
    detail::Flat flat(f, args...);
    Tensors outs;
    return detail::only(detail::grad(flat, flat.inputs(), flat.of_argument(argnum), outs), "grad");
  };
}
// By several arguments: their tensors' gradients in order.
template <class F>
auto grad(F f, std::vector<int64_t> argnums) {
  return [f, argnums](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    Tensors outs;
    return detail::to_vector(detail::grad(flat, flat.inputs(), flat.of_arguments(argnums), outs));
  };
}

// The gradient, and all that the function returned.
template <size_t Argument = 0, class F>
auto grad_and_value(F f) {
  return [f](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    Tensors outs;
    Tensors grads = detail::grad(flat, flat.inputs(), flat.of_argument(Argument), outs);
    return std::pair(rebuild_tree(flat.template argument<Argument>(), grads),
                     flat.like_result(outs));
  };
}

// ---- vjp
// {f(args...), pull}: pull(cotangents like the result) gives the arguments' gradients, for one
// argument of its type, for several as a tuple; it may be called any number of times. Tensors
// without gradients (integers) give undefined ones.
template <class F, class... A>
auto vjp(F f, const A&... args) {
  detail::Flat flat(f, args...);
  SmallVec<bool, 4> wanted = flat.differentiable();
  detail::Pullback pullback(flat, flat.inputs(), wanted);
  auto value = flat.like_result(pullback.outs());
  using Result = decltype(value);
  auto pull = [pullback, wanted, arguments = std::tuple<A...>(args...)](const Result& cotangents) {
    Tensors grads = detail::scatter(pullback(flatten_tree(cotangents)), wanted);
    if constexpr (sizeof...(A) == 1)
      return rebuild_tree(std::get<0>(arguments), grads);
    else
      return rebuild_tree(arguments, grads);
  };
  return std::pair(std::move(value), std::move(pull));
}

// ---- jvp
// {f(primals...), its directional derivative}. Several arguments are given as tuples of the same
// shape. Undefined tangents are zero.
template <class F, class P, class T>
auto jvp(F f, const P& primals, const T& tangents) {
  auto run = [&](const auto&... args) {
    detail::Flat flat(f, args...);
    Tensors along = flatten_tree(tangents), outs;
    FX_CHECK(along.size() == flat.inputs().size(), kValue, "jvp: ", along.size(),
             " tangents were given for ", flat.inputs().size(), " tensors");
    Tensors results = detail::jvp(flat, flat.inputs(), along, outs);
    return std::pair(flat.like_result(outs), flat.like_result(results));
  };
  if constexpr (detail::IsTuple<P>::value)
    return std::apply(run, primals);
  else
    return run(primals);
}

// ---- vmap
// The function on whole batches: each mapped argument has one dimension more, as has each result.
// Operators without a batching rule run row by row (counted, see vmap_loop_count).
template <class F>
auto vmap(F f, DimSpec in_dims = 0, DimSpec out_dims = 0,
          Randomness randomness = Randomness::kError,
          std::optional<int64_t> chunk_size = std::nullopt) {
  VmapOptions options{std::move(in_dims), std::move(out_dims), randomness, chunk_size};
  return [f, options](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    Tensors outs = detail::vmap(flat, flat.inputs(), flat.dims_of(options.in_dims), options);
    return flat.like_result(outs);
  };
}

// How often an operator ran row by row under vmap because it has no batching rule, and the names of
// those operators.
int64_t vmap_loop_count();
std::vector<std::string> vmap_loop_ops();

// ---- Jacobians
// The Jacobian by one tensor argument: the function's result, where each tensor has the result's
// sizes followed by the argument's. jacrev is cheap for few results, jacfwd for few inputs.
template <class F>
auto jacrev(F f, int argnum = 0, std::optional<int64_t> chunk_size = std::nullopt) {
  return [f, argnum, chunk_size](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    auto wanted = flat.of_argument(argnum);
    Tensors rows = detail::jacrev(flat, flat.inputs(), wanted, chunk_size);
    return flat.like_result(rows);
  };
}
template <class F>
auto jacfwd(F f, int argnum = 0, Randomness randomness = Randomness::kError,
            std::optional<int64_t> chunk_size = std::nullopt) {
  return [f, argnum, randomness, chunk_size](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    auto wanted = flat.of_argument(argnum);
    Tensors rows = detail::jacfwd(flat, flat.inputs(), wanted, randomness, chunk_size);
    return flat.like_result(rows);
  };
}
// Second derivatives by one tensor argument.
template <class F>
auto hessian(F f, int argnum = 0) {
  return jacfwd(jacrev(std::move(f), argnum), argnum);
}

// ---- functionalize
// The same function, without in-place operators on the levels below: writes become scatters into
// new values, and arguments and outside tensors are written once, at the end.
template <class F>
auto functionalize(F f) {
  return [f](const auto&... args) mutable {
    detail::Flat flat(f, args...);
    Tensors outs = detail::functionalize(flat, flat.inputs());
    return flat.like_result(outs);
  };
}

}  // namespace func

using func::functionalize;
using func::grad;
using func::grad_and_value;
using func::hessian;
using func::jacfwd;
using func::jacrev;
using func::jvp;
using func::vjp;
using func::vmap;

}  // namespace fornax
