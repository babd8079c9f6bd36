#include "fornax/base/error.h"

#include <cinttypes>
#include <cstdio>
#include <utility>

namespace fornax {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kShape: return "shape";
    case ErrorKind::kType: return "type";
    case ErrorKind::kIndex: return "index";
    case ErrorKind::kValue: return "value";
    case ErrorKind::kDevice: return "device";
    case ErrorKind::kAutograd: return "autograd";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kIo: return "io";
    case ErrorKind::kComm: return "comm";
    case ErrorKind::kMemory: return "memory";
    case ErrorKind::kInternal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
Error::~Error() = default;

void Error::add_context(std::string_view context) {
  message_.insert(0, ": ");
  message_.insert(0, context);
}

namespace detail {

void append(std::string& out, std::string_view text) { out += text; }
void append(std::string& out, const char* text) { out += text; }
void append(std::string& out, bool value) { out += value ? "true" : "false"; }
void append(std::string& out, char value) { out += value; }

void append(std::string& out, double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value);
  out += buffer;
}

void append(std::string& out, long long value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%lld", value);
  out += buffer;
}

void append(std::string& out, unsigned long long value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%llu", value);
  out += buffer;
}

void throw_error(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

}  // namespace detail
}  // namespace fornax
