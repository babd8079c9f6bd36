#include "fornax/nn/any.h"

#include <cxxabi.h>

#include <cstdlib>

namespace fornax::nn {
namespace {

std::string readable(const std::type_info& type) {
  if (type == typeid(void)) return "nothing";
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string out = status == 0 ? text : type.name();
  std::free(text);
  return out;
}

}  // namespace

void AnyValue::wrong_type(const std::type_info& has, const std::type_info& wanted) {
  fail(ErrorKind::kType, "attempted to get a value of type ", readable(wanted),
       ", but the actual type is ", readable(has));
}

namespace detail {

void wrong_argument(const Module& module, size_t place, const std::type_info& has,
                    const std::type_info& wanted) {
  fail(ErrorKind::kType, module.name(), "'s forward(): expected argument #", place,
       " to be of type ", readable(wanted), ", but received a value of type ", readable(has));
}

void wrong_count(const Module& module, size_t given, size_t most) {
  fail(ErrorKind::kValue, module.name(), "'s forward() can't be called with ", given,
       " arguments; it has ", most, " parameters");
}

}  // namespace detail
}  // namespace fornax::nn
