#include "fornax/nn/module.h"

#include <cxxabi.h>

#include <cstdlib>
#include <ostream>
#include <typeinfo>

#include "fornax/autograd/autograd.h"
#include "fornax/nn/cloneable.h"
#include "fornax/ops/functions.h"

namespace fornax::nn {

namespace detail {
static thread_local constinit bool skip_init = false;
SkipInit::SkipInit() : old_(skip_init) { skip_init = true; }
SkipInit::~SkipInit() { skip_init = old_; }
bool skips_init() { return skip_init; }
}  // namespace detail

struct Module::Hooks {
  struct Pre {
    int64_t number;
    ForwardPreHook run;
  };
  struct Post {
    int64_t number;
    ForwardHook run;
  };
  std::vector<Pre> pre;
  std::vector<Post> post;
  int64_t next = 0;
};

Module::Module() = default;
Module::Module(std::string name) : name_(std::move(name)) {}
Module::~Module() = default;

const std::string& Module::name() const {
  if (!name_.empty()) return name_;
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  name_ = status == 0 ? text : typeid(*this).name();
  std::free(text);
  return name_;
}

// ---- walking the tree --------------------------------------------------------------------------

namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

template <class Self, class Visit>
void Module::visit_tree(Self& self, const std::string& prefix, Visit& visit) {
  visit(prefix, self);
  for (auto& child : self.children_) {
    Self& next = *child.value();
    visit_tree(next, join(prefix, child.key()), visit);
  }
}

void Module::apply(ModuleApplyFunction function) {
  function(*this);
  for (auto& child : children_) child.value()->apply(function);
}
void Module::apply(ConstModuleApplyFunction function) const {
  function(*this);
  for (auto& child : children_) std::as_const(*child.value()).apply(function);
}
void Module::apply(NamedModuleApplyFunction function, const std::string& prefix) {
  visit_tree(*this, prefix, function);
}
void Module::apply(ConstNamedModuleApplyFunction function, const std::string& prefix) const {
  visit_tree(*this, prefix, function);
}

std::shared_ptr<Module> Module::checked_shared_from_this() const {
  std::shared_ptr<const Module> self = weak_from_this().lock();
  FX_CHECK(self, kValue, name(),
           ": this needs the module to be in a std::shared_ptr; make it with std::make_shared or a "
           "holder");
  return std::const_pointer_cast<Module>(self);
}

void Module::apply(ModulePointerApplyFunction function) const {
  function(checked_shared_from_this());
  for (auto& child : children_) child.value()->apply(function);
}
void Module::apply(NamedModulePointerApplyFunction function, const std::string& prefix) const {
  function(prefix, checked_shared_from_this());
  for (auto& child : children_) child.value()->apply(function, join(prefix, child.key()));
}

StateDict Module::named_parameters(bool recurse) const {
  StateDict out("Parameter");
  auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.parameters_)
      if (item.value().defined()) out.insert(join(prefix, item.key()), item.value());
  };
  if (recurse)
    visit_tree(*this, "", add);
  else
    add("", *this);
  return out;
}

StateDict Module::named_buffers(bool recurse) const {
  StateDict out("Buffer");
  auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.buffers_)
      if (item.value().defined()) out.insert(join(prefix, item.key()), item.value());
  };
  if (recurse)
    visit_tree(*this, "", add);
  else
    add("", *this);
  return out;
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return named_parameters(recurse).values();
}
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  std::vector<std::shared_ptr<Module>> out;
  auto add = [&out](const std::shared_ptr<Module>& module) { out.push_back(module); };
  if (include_self) {
    apply(add);
  } else {
    for (auto& child : children_) child.value()->apply(add);
  }
  return out;
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out("Submodule");
  auto add = [&out](const std::string& name, const std::shared_ptr<Module>& module) {
    out.insert(name, module);
  };
  if (include_self) {
    apply(add, prefix);
  } else {
    for (auto& child : children_) child.value()->apply(add, join(prefix, child.key()));
  }
  return out;
}

// ---- modes and conversions ---------------------------------------------------------------------

void Module::train(bool on) {
  is_training_ = on;
  for (auto& child : children_) child.value()->train(on);
}

namespace {

void convert_tensor(Tensor& t, std::optional<Device> device, std::optional<Dtype> dtype,
                    bool non_blocking) {
  if (!t.defined()) return;
  TensorOptions wanted = TensorOptions().device(device);
  if (dtype && is_differentiable(t.dtype())) wanted = wanted.dtype(dtype);
  NoGradGuard no_grad;
  t.set_data(t.detach().to(wanted, non_blocking));
  if (t.grad().defined()) t.mutable_grad() = t.grad().detach().to(wanted, non_blocking);
}

}  // namespace

void Module::convert(std::optional<Device> device, std::optional<Dtype> dtype, bool non_blocking) {
  for (auto& child : children_) {
    if (device && dtype)
      child.value()->to(*device, *dtype, non_blocking);
    else if (device)
      child.value()->to(*device, non_blocking);
    else
      child.value()->to(*dtype, non_blocking);
  }
  for (auto& item : parameters_) convert_tensor(item.value(), device, dtype, non_blocking);
  for (auto& item : buffers_) convert_tensor(item.value(), device, dtype, non_blocking);
}

void Module::to(Device device, Dtype dtype, bool non_blocking) {
  convert(device, dtype, non_blocking);
}
void Module::to(Dtype dtype, bool non_blocking) {
  FX_CHECK(is_differentiable(dtype), kType, name(),
           ": to() takes a floating or complex dtype, got ", dtype);
  convert(std::nullopt, dtype, non_blocking);
}
void Module::to(Device device, bool non_blocking) { convert(device, std::nullopt, non_blocking); }

void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) child.value()->zero_grad(set_to_none);
  for (auto& item : parameters_) {
    Tensor& parameter = item.value();
    if (!parameter.defined() || !parameter.grad().defined()) continue;
    if (set_to_none) {
      parameter.mutable_grad().reset();
    } else {
      NoGradGuard no_grad;
      Tensor grad = parameter.grad().detach();
      parameter.mutable_grad() = grad.fill_(0);
    }
  }
}

void Module::requires_grad_(bool on) {
  for (Tensor& parameter : parameters()) parameter.requires_grad_(on);
}

// ---- state -------------------------------------------------------------------------------------

namespace {

void add_state(StateDict& out, const std::string& prefix, const StateDict& tensors) {
  for (const auto& item : tensors)
    if (item.value().defined()) out.insert(join(prefix, item.key()), item.value().detach());
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict out("Tensor");
  NoGradGuard no_grad;
  auto add = [&](const std::string& at, const Module& module) {
    add_state(out, at, module.parameters_);
    add_state(out, at, module.buffers_);
  };
  visit_tree(*this, prefix, add);
  return out;
}

LoadResult Module::load_state_dict(const StateDict& dict, bool strict) {
  LoadResult result;
  StateDict own = state_dict();
  std::string wrong_sizes;
  for (const auto& item : own) {
    const Tensor* given = dict.find(item.key());
    if (!given || !given->defined()) {
      result.missing_keys.push_back(item.key());
    } else if (!(given->sizes() == item.value().sizes())) {
      wrong_sizes += str("; ", item.key(), " has sizes ", item.value().sizes(), ", given were ",
                         given->sizes());
    }
  }
  for (const auto& item : dict)
    if (!own.contains(item.key())) result.unexpected_keys.push_back(item.key());
  FX_CHECK(wrong_sizes.empty(), kShape, name(), ": load_state_dict: sizes differ", wrong_sizes);
  FX_CHECK(!strict || (result.missing_keys.empty() && result.unexpected_keys.empty()), kValue,
           name(), ": load_state_dict: missing keys: [", listed(result.missing_keys),
           "], unexpected keys: [", listed(result.unexpected_keys),
           "]; pass strict=false to load the others");
  NoGradGuard no_grad;
  for (auto& item : own)
    if (const Tensor* given = dict.find(item.key()); given && given->defined())
      item.value().copy_(*given);
  return result;
}

// ---- cloning -----------------------------------------------------------------------------------

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  fail(ErrorKind::kUnsupported, name(),
       ": clone() is not implemented for this type; derive it from Cloneable<T> instead of Module");
}

void Module::clone_(Module& other, const std::optional<Device>& device) { other.clone(device); }

void Module::forget_registered() {
  parameters_.clear();
  buffers_.clear();
  children_.clear();
}

namespace {

void copy_values(OrderedDict<std::string, Tensor>& to, const OrderedDict<std::string, Tensor>& from,
                 const std::optional<Device>& device, const std::string& module, const char* what) {
  FX_CHECK(to.size() == from.size(), kValue, module, ": clone: the copy has ", to.size(), " ", what,
           "s, the original ", from.size(), "; call register_", what, "() in reset() only");
  for (const auto& item : from) {
    Tensor& target = to[item.key()];
    const Tensor& value = item.value();
    if (!value.defined() || !target.defined()) {
      FX_CHECK(value.defined() == target.defined(), kValue, module, ": clone: ", what, " '",
               item.key(), "' is defined in one of the original and the copy only");
      continue;
    }
    Tensor data = value.detach().clone();
    target.set_data(device ? data.to(TensorOptions(*device)) : data);
    target.requires_grad_(value.requires_grad());
  }
}

}  // namespace

void Module::copy_tensors_from(const Module& other, const std::optional<Device>& device) {
  if (hooks_) hooks_ = std::make_shared<Hooks>(*hooks_);
  NoGradGuard no_grad;
  copy_values(parameters_, other.parameters_, device, name(), "parameter");
  copy_values(buffers_, other.buffers_, device, name(), "buffer");
  FX_CHECK(children_.size() == other.children_.size(), kValue, name(), ": clone: the copy has ",
           children_.size(), " submodules, the original ", other.children_.size(),
           "; call register_module() in reset() only");
  for (const auto& item : other.children_) children_[item.key()]->clone_(*item.value(), device);
}

// ---- registration ------------------------------------------------------------------------------

namespace {

void check_name(const std::string& module, const char* what, const std::string& name) {
  FX_CHECK(!name.empty(), kValue, module, ": a ", what, "'s name must not be empty");
  FX_CHECK(name.find('.') == std::string::npos, kValue, module, ": a ", what,
           "'s name must not contain a dot, got '", name, "'");
}

}  // namespace

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name(this->name(), "parameter", name);
  if (tensor.defined()) {
    bool can = is_differentiable(tensor.dtype());
    FX_CHECK(can || !requires_grad, kType, this->name(), ": parameter '", name, "' is ",
             tensor.dtype(), " and can't require a gradient; pass requires_grad=false");
    FX_CHECK(tensor.is_leaf(), kAutograd, this->name(), ": parameter '", name,
             "' has a history; detach() it first");
    tensor.requires_grad_(requires_grad);
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name(this->name(), "buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name(this->name(), "submodule", name);
  FX_CHECK(module, kValue, this->name(), ": submodule '", name, "' is null");
  children_.insert(std::move(name), std::move(module));
}

void Module::set_child(const std::string& name, std::shared_ptr<Module> module) {
  FX_CHECK(module, kValue, this->name(), ": submodule '", name, "' is null");
  children_[name] = std::move(module);
}

void Module::unregister_module(const std::string& name) {
  FX_CHECK(children_.contains(name), kIndex, this->name(), ": no submodule with name '", name,
           "' is registered");
  children_.erase(name);
}

// ---- hooks -------------------------------------------------------------------------------------

int64_t Module::register_forward_pre_hook(ForwardPreHook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  hooks_->pre.push_back({hooks_->next, std::move(hook)});
  return hooks_->next++;
}

int64_t Module::register_forward_hook(ForwardHook hook) {
  if (!hooks_) hooks_ = std::make_shared<Hooks>();
  hooks_->post.push_back({hooks_->next, std::move(hook)});
  return hooks_->next++;
}

void Module::remove_forward_hook(int64_t number) {
  if (!hooks_) return;
  std::erase_if(hooks_->pre, [=](const Hooks::Pre& h) { return h.number == number; });
  std::erase_if(hooks_->post, [=](const Hooks::Post& h) { return h.number == number; });
  if (hooks_->pre.empty() && hooks_->post.empty()) hooks_.reset();
}

Tensor Module::forward_with_hooks(Tensors inputs, FunctionRef<Tensor(const Tensors&)> forward) {
  Hooks hooks = *hooks_;  // a hook may remove itself
  size_t n = inputs.size();
  for (auto& hook : hooks.pre) hook.run(*this, inputs);
  FX_CHECK(inputs.size() == n, kValue, name(), ": a forward pre-hook left ", inputs.size(),
           " inputs of ", n);
  Tensor output = forward(inputs);
  for (auto& hook : hooks.post) hook.run(*this, inputs, output);
  return output;
}

// ---- printing ----------------------------------------------------------------------------------

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::print_tree(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  std::string inner = indentation + "  ";
  stream << "(\n";
  for (const auto& child : children_) {
    stream << inner << "(" << child.key() << "): ";
    child.value()->print_tree(stream, inner);
    stream << '\n';
  }
  stream << indentation << ")";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

}  // namespace fornax::nn
