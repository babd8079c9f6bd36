#include "fornax/nn/containers.h"

#include <ostream>

#include "fornax/ops/functions.h"

namespace fornax::nn {

// ---- Sequential --------------------------------------------------------------------------------

SequentialImpl::SequentialImpl(const OrderedDict<std::string, AnyModule>& named) {
  for (const auto& item : named) push_back(item.key(), item.value());
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> named) {
  for (const NamedAnyModule& item : named) push_back(item);
}

void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  modules_.push_back(std::move(module));
}

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  for (size_t i = 0; i < modules_.size(); ++i)
    copy->push_back(children_[i].key(), modules_[i].clone(device));
  copy->is_training_ = is_training_;
  return copy;
}

void SequentialImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Sequential";
}

// ---- ModuleList --------------------------------------------------------------------------------

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}

void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  FX_CHECK(index <= modules_.size(), kIndex, "insert: index ", index,
           " is out of range for a ModuleList of ", modules_.size(), " modules");
  modules_.insert(modules_.begin() + std::ptrdiff_t(index), std::move(module));
  children_.clear();
  for (size_t i = 0; i < modules_.size(); ++i) register_module(std::to_string(i), modules_[i]);
}

std::shared_ptr<Module> ModuleListImpl::ptr(size_t index) const {
  FX_CHECK(index < modules_.size(), kIndex, "index ", index,
           " is out of range for a ModuleList of ", modules_.size(), " modules");
  return modules_[index];
}

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& module : modules_) copy->push_back(module->clone(device));
  copy->is_training_ = is_training_;
  return copy;
}

void ModuleListImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::ModuleList";
}

// ---- ModuleDict --------------------------------------------------------------------------------

ModuleDictImpl::ModuleDictImpl(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items) {
  update(items);
}

void ModuleDictImpl::update(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& items) {
  for (const auto& [name, module] : items) {
    if (contains(name))
      replace_module(name, module);
    else
      register_module(name, module);
  }
}

std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  std::shared_ptr<Module> module = children_[key];
  unregister_module(key);
  return module;
}

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& item : children_) copy->register_module(item.key(), item.value()->clone(device));
  copy->is_training_ = is_training_;
  return copy;
}

void ModuleDictImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::ModuleDict";
}

// ---- parameters --------------------------------------------------------------------------------

namespace {

Tensor copy_of(const Tensor& t, const std::optional<Device>& device) {
  Tensor copy = t.detach().clone();
  return device ? copy.to(TensorOptions(*device)) : copy;
}

void print_parameters(std::ostream& stream, const char* title,
                      const OrderedDict<std::string, Tensor>& parameters) {
  stream << title << "(\n";
  for (const auto& item : parameters) {
    stream << "(" << item.key() << "): Parameter containing: ["
           << std::string(torch_name_of(item.value().dtype())) << " of size "
           << str(item.value().sizes()) << "]\n";
  }
  stream << ")";
}

}  // namespace

void ParameterListImpl::append(Tensor tensor) {
  bool requires_grad = tensor.requires_grad();
  register_parameter(std::to_string(parameters_.size()), std::move(tensor), requires_grad);
}

std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterListImpl>();
  for (const auto& item : parameters_)
    copy->register_parameter(item.key(), copy_of(item.value(), device),
                             item.value().requires_grad());
  copy->is_training_ = is_training_;
  return copy;
}

void ParameterListImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "fornax::nn::ParameterList", parameters_);
}

ParameterDictImpl::ParameterDictImpl(const OrderedDict<std::string, Tensor>& tensors) {
  for (const auto& item : tensors) insert(item.key(), item.value());
}

Tensor& ParameterDictImpl::insert(const std::string& key, Tensor tensor) {
  if (contains(key)) return parameters_[key] = std::move(tensor);
  bool requires_grad = tensor.requires_grad();
  return register_parameter(key, std::move(tensor), requires_grad);
}

Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor t = parameters_[key];
  parameters_.erase(key);
  return t;
}

std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ParameterDictImpl>();
  for (const auto& item : parameters_)
    copy->register_parameter(item.key(), copy_of(item.value(), device),
                             item.value().requires_grad());
  copy->is_training_ = is_training_;
  return copy;
}

void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "fornax::nn::ParameterDict", parameters_);
}

void FunctionalImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Functional()";
}

}  // namespace fornax::nn
