// What tests of readers and writers need: bytes from hexadecimal text, a folder of their own, and
// checks on errors.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fornax/base/error.h"
#include "fornax/base/file.h"

namespace fornax::testing {

inline Bytes unhex(std::string_view hex) {
  Bytes out;
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(std::byte(digit(hex[i]) * 16 + digit(hex[i + 1])));
  return out;
}

inline Bytes to_bytes(std::string_view text) {
  ByteSpan span = as_bytes(text);
  return Bytes(span.begin(), span.end());
}

// The values of a tensor's bytes.
template <class T>
std::vector<T> values(const Bytes& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

template <class T>
Bytes bytes_of(const std::vector<T>& items) {
  ByteSpan span = std::as_bytes(std::span(items));
  return Bytes(span.begin(), span.end());
}

// A folder that goes with the object.
class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "fornax-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  TempDir(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return str(path_, "/", name); }
  size_t count() const {
    auto range = std::filesystem::directory_iterator(path_);
    return size_t(std::distance(begin(range), end(range)));
  }

 private:
  std::string path_;
};

// Runs `body`, which must throw Error(kind) whose text contains `part`.
template <class Body>
void expect_error(ErrorKind kind, std::string_view part, Body&& body) {
  try {
    body();
    ADD_FAILURE() << "no error where one with '" << part << "' was expected";
  } catch (const Error& error) {
    EXPECT_EQ(name_of(error.kind()), std::string(name_of(kind))) << error.what();
    EXPECT_NE(error.message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << error.what();
  }
}

}  // namespace fornax::testing
