// The library's version and those of the libraries it runs on.
#pragma once

#include <string>

namespace fornax {

inline constexpr const char* kVersion = "0.1.0";
// "oneDNN 3.2.0, OpenBLAS 0.3.34, zlib 1.2.13"
std::string library_versions();

}  // namespace fornax
