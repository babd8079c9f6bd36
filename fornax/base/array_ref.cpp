#include "fornax/base/array_ref.h"

namespace fornax {

void append_to(std::string& out, IntArrayRef values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    out += std::to_string(values[i]);
  }
  out += ']';
}

}  // namespace fornax
