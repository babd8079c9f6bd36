// autograd::Function: a function whose gradient the program gives, with libtorch's interface, and
// rules for forward mode and vmap on top.
//
//   struct Scale : autograd::Function<Scale> {
//     static Tensor forward(autograd::AutogradContext* ctx, Tensor x, double factor) {
//       ctx->saved_data["factor"] = factor;
//       return x * factor;
//     }
//     static autograd::variable_list backward(autograd::AutogradContext* ctx,
//                                             autograd::variable_list grads) {
//       return {grads[0] * ctx->saved_data["factor"].toDouble(), Tensor()};
//     }
//   };
//   Tensor y = Scale::apply(x, 2.0);
//
// backward returns one gradient per argument of forward (per element of a list of tensors),
// undefined ones for arguments that aren't tensors. Optional members:
//   static variable_list jvp(AutogradContext*, variable_list tangents);
//     tangents per argument (undefined = zero) -> per result. Without it forward mode runs backward
//     twice.
//   static VmapResult vmap(const VmapInfo&, const std::vector<std::optional<int64_t>>& in_dims,
//                          arguments of forward...);
//     Batched arguments -> batched results and their batch dimensions. Without it forward and
//     backward run on batched tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fornax/core/tree.h"

namespace fornax {
struct CustomCall;
struct GradNode;

namespace autograd {

using variable_list = std::vector<Tensor>;

// A value kept in AutogradContext::saved_data. Reading it as another type throws Error(kType).
class SavedValue {
 public:
  SavedValue() = default;
  SavedValue(bool v) : kind_(Kind::kScalar), scalar_(v) {}
  SavedValue(int v) : kind_(Kind::kScalar), scalar_(int64_t(v)) {}
  SavedValue(int64_t v) : kind_(Kind::kScalar), scalar_(v) {}
  SavedValue(double v) : kind_(Kind::kScalar), scalar_(v) {}
  SavedValue(const Scalar& v) : kind_(Kind::kScalar), scalar_(v) {}
  SavedValue(const Tensor& v) : kind_(Kind::kTensors), tensors_{v} {}
  SavedValue(std::vector<Tensor> v) : kind_(Kind::kTensors), tensors_(std::move(v)) {}
  SavedValue(IntArrayRef v) : kind_(Kind::kInts), ints_(v.vec()) {}
  SavedValue(std::vector<int64_t> v) : kind_(Kind::kInts), ints_(std::move(v)) {}
  SavedValue(std::vector<double> v) : kind_(Kind::kReals), reals_(std::move(v)) {}
  SavedValue(std::string v) : kind_(Kind::kText), text_(std::move(v)) {}
  SavedValue(const char* v) : SavedValue(std::string(v)) {}

  bool isNone() const { return kind_ == Kind::kNone; }
  bool toBool() const { return toScalar().to_bool(); }
  int64_t toInt() const { return toScalar().to_int(); }
  double toDouble() const { return toScalar().to_double(); }
  const Scalar& toScalar() const { return expect(Kind::kScalar), scalar_; }
  const Tensor& toTensor() const;
  const std::vector<Tensor>& toTensorVector() const { return expect(Kind::kTensors), tensors_; }
  const std::vector<int64_t>& toIntVector() const { return expect(Kind::kInts), ints_; }
  const std::vector<int64_t>& toDimVector() const { return toIntVector(); }
  const std::vector<double>& toDoubleVector() const { return expect(Kind::kReals), reals_; }
  const std::string& toStringRef() const { return expect(Kind::kText), text_; }

 private:
  enum class Kind : uint8_t { kNone, kScalar, kTensors, kInts, kReals, kText };
  void expect(Kind kind) const;

  Kind kind_ = Kind::kNone;
  Scalar scalar_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<int64_t> ints_;
  std::vector<double> reals_;
  std::string text_;
};

// Names to values, in the order of their first use.
class SavedData {
 public:
  using Item = std::pair<std::string, SavedValue>;
  SavedValue& operator[](std::string_view name);
  // Throws Error(kIndex) where there is no such name.
  const SavedValue& at(std::string_view name) const;
  size_t count(std::string_view name) const { return find(name) ? 1 : 0; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  size_t size() const { return items_.size(); }
  std::vector<Item>::const_iterator begin() const { return items_.begin(); }
  std::vector<Item>::const_iterator end() const { return items_.end(); }

 private:
  const SavedValue* find(std::string_view name) const;
  std::vector<Item> items_;
};

// What forward leaves for backward. Not thread safe.
class AutogradContext : public RefCounted {
 public:
  AutogradContext() = default;
  AutogradContext& operator=(const AutogradContext&) = delete;

  SavedData saved_data;

  // Arguments and results (others too, but those keep no history: second derivatives don't see
  // them). Overwriting a saved tensor makes backward throw.
  void save_for_backward(variable_list to_save) { to_save_ = std::move(to_save); }
  // In backward: the saved tensors. Throws Error(kAutograd) if one was modified, or freed by an
  // earlier backward without retain_graph.
  variable_list get_saved_variables() const;
  // Arguments that forward writes in place; it must return them.
  void mark_dirty(const variable_list& inputs);
  void mark_non_differentiable(const variable_list& outputs);
  // Whether backward gets zeros (the default) or undefined tensors for results without gradient.
  void set_materialize_grads(bool on) { materialize_ = on; }
  // In backward: whether tensor argument `index` (counting tensors only) needs a gradient; true
  // where that isn't known.
  bool needs_input_grad(size_t index) const;

  // The same for another level of function transforms: data and options, no tensors.
  Ref<AutogradContext> for_level() const;

 private:
  friend struct fornax::CustomCall;
  friend class ContextAccess;
  variable_list to_save_;
  SmallVec<const TensorImpl*, 1> dirty_, non_differentiable_;
  bool materialize_ = true;
  GradNode* node_ = nullptr;  // which owns this object
  // Where the node keeps them: (result instead of input, place).
  SmallVec<std::pair<bool, uint32_t>, 2> places_;
};

struct VmapInfo {
  int64_t batch_size = 0;
  bool same_random = false;
};
struct VmapResult {
  variable_list outputs;
  std::vector<std::optional<int64_t>> out_dims;
};

// A Function<T> and the arguments of one application, type-erased. Tensors are per tensor argument.
struct CustomFunction : RefCounted {
  std::string_view name;
  fornax::Function<Tensors(AutogradContext&, TensorList inputs)> forward;
  fornax::Function<Tensors(AutogradContext&, TensorList grads)> backward;
  fornax::Function<Tensors(AutogradContext&, TensorList tangents)> jvp;
  fornax::Function<VmapResult(const VmapInfo&, TensorList inputs,
                              const std::vector<std::optional<int64_t>>& in_dims)>
      vmap;
};

// Applies it on the level that runs now.
Tensors apply_custom(const Ref<CustomFunction>& function, TensorList inputs);

namespace detail {

// Places of backward's results: one per tensor, one for every other argument.
template <class A>
void append_places(const A& arg, SmallVec<bool, 4>& is_tensor) {
  if constexpr (Tree<A>::kHasTensors) {
    size_t n = flatten_tree(arg).size();
    for (size_t i = 0; i < n; ++i) is_tensor.push_back(true);
    if (n) return;
    if constexpr (requires { arg.has_value(); }) is_tensor.push_back(false);
  } else {
    is_tensor.push_back(false);
  }
}

// Keeps the tensors' entries of what a rule returned. Throws Error(kAutograd) on a wrong number.
Tensors pick_tensors(const variable_list& all, const SmallVec<bool, 4>& is_tensor,
                     std::string_view name);
// One entry per argument, undefined for those that aren't tensors.
variable_list spread_tensors(TensorList tensors, const SmallVec<bool, 4>& is_tensor);
std::string_view class_name(const char* mangled);

}  // namespace detail

// Base of a program's own functions, see above.
template <class T>
struct Function {
  // Calls T::forward and records T::backward as its gradient. A result that forward leaves
  // undefined stays so.
  template <class X = T, class... A>
  static auto apply(A&&... args)
      -> std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...))> {
    using Result =
        std::decay_t<decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...))>;
    using Arguments = std::tuple<std::decay_t<A>...>;
    Arguments arguments(std::forward<A>(args)...);
    Tensors inputs = flatten_tree(arguments);
    SmallVec<bool, 4> is_tensor;
    std::apply([&](const auto&... a) { (detail::append_places(a, is_tensor), ...); }, arguments);

    std::optional<Result> shape;  // what forward returned, to be rebuilt around the real results
    Ref<CustomFunction> f = make_ref<CustomFunction>();
    f->name = detail::class_name(type_name());
    f->forward = [&shape, arguments](AutogradContext& ctx, TensorList tensors) {
      Arguments rebuilt = rebuild_tree(arguments, tensors);
      shape.emplace(std::apply([&](auto&... a) { return X::forward(&ctx, a...); }, rebuilt));
      return flatten_tree(*shape);
    };
    f->backward = [is_tensor, name = f->name](AutogradContext& ctx, TensorList grads) {
      return detail::pick_tensors(X::backward(&ctx, variable_list(grads.begin(), grads.end())),
                                  is_tensor, name);
    };
    if constexpr (requires(variable_list t) {
                    X::jvp(static_cast<AutogradContext*>(nullptr), t);
                  }) {
      f->jvp = [is_tensor](AutogradContext& ctx, TensorList tangents) {
        variable_list results = X::jvp(&ctx, detail::spread_tensors(tangents, is_tensor));
        return Tensors(results.begin(), results.end());
      };
    }
    if constexpr (requires(VmapInfo info, std::vector<std::optional<int64_t>> dims,
                           std::decay_t<A>... a) { X::vmap(info, dims, a...); }) {
      f->vmap = [arguments](const VmapInfo& info, TensorList tensors,
                            const std::vector<std::optional<int64_t>>& in_dims) {
        Arguments rebuilt = rebuild_tree(arguments, tensors);
        return std::apply([&](auto&... a) { return X::vmap(info, in_dims, a...); }, rebuilt);
      };
    }
    Tensors outs = apply_custom(f, inputs);
    // Only backward outlives this call; the others hold the arguments.
    f->forward = nullptr;
    f->jvp = nullptr;
    f->vmap = nullptr;
    if (!shape) shape.emplace(empty_result<Result>(outs.size()));
    return rebuild_tree(*shape, outs);
  }

 private:
  template <class R>
  static R empty_result(size_t n) {
    if constexpr (requires { R(n).begin(); })
      return R(n);
    else
      return R();
  }
  static const char* type_name() { return __PRETTY_FUNCTION__; }
};

}  // namespace autograd
}  // namespace fornax
