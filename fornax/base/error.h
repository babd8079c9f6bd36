// Errors: one exception type with a kind, and the macro that checks arguments.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

namespace fornax {

// What went wrong, coarse enough to catch by. libtorch's exception names are aliases of these in
// compat/.
enum class ErrorKind : uint8_t {
  kShape,
  kType,
  kIndex,
  kValue,
  kDevice,
  kAutograd,
  kUnsupported,
  kIo,
  kComm,
  kMemory,
  kInternal,
};

const char* name_of(ErrorKind kind);

// Thrown by every public entry. The text names the call, the argument, the values and the way out.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  // Puts `context` in front of the message ("in layer conv1: ..."); used while an error travels up.
  void add_context(std::string_view context);

 private:
  ErrorKind kind_;
  std::string message_;
};

namespace detail {

void append(std::string& out, std::string_view text);
void append(std::string& out, const char* text);
void append(std::string& out, bool value);
void append(std::string& out, char value);
void append(std::string& out, double value);
void append(std::string& out, long long value);
void append(std::string& out, unsigned long long value);

template <class T>
void append_any(std::string& out, const T& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, char>) {
    append(out, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    append(out, static_cast<double>(value));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    append(out, static_cast<long long>(value));
  } else if constexpr (std::is_integral_v<T>) {
    append(out, static_cast<unsigned long long>(value));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    append(out, std::string_view(value));
  } else {
    append_to(out, value);  // found by argument-dependent lookup: Dims, Dtype, Device, ...
  }
}

[[noreturn]] void throw_error(ErrorKind kind, std::string message);

}  // namespace detail

// Joins values into one string: numbers, text, shapes, dtypes.
template <class... T>
std::string str(const T&... values) {
  std::string out;
  (detail::append_any(out, values), ...);
  return out;
}

// Throws Error(kind, values joined). Out of line, so callers stay small.
template <class... T>
[[noreturn, gnu::noinline, gnu::cold]] void fail(ErrorKind kind, const T&... values) {
  detail::throw_error(kind, str(values...));
}

}  // namespace fornax

// FX_CHECK(condition, kind, "expected 2-D input, got ", t.dim(), "-D"): lower case, no final
// period, with the numbers.
#define FX_CHECK(condition, kind, ...)                        \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::fornax::fail(::fornax::ErrorKind::kind, __VA_ARGS__); \
  } while (0)

// For what can only be false by a bug in Fornax itself.
#define FX_ASSERT(condition)                                                                 \
  do {                                                                                       \
    if (!(condition)) [[unlikely]]                                                           \
      ::fornax::fail(::fornax::ErrorKind::kInternal, "assertion failed: " #condition " in ", \
                     __FILE__, ":", __LINE__);                                               \
  } while (0)
