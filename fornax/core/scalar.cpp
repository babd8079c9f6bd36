#include "fornax/core/scalar.h"

#include "fornax/base/error.h"

namespace fornax {

void append_to(std::string& out, const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool: out += value.to_bool() ? "true" : "false"; return;
    case Scalar::Kind::kInt: out += std::to_string(value.to_int()); return;
    case Scalar::Kind::kReal: out += str(value.to_double()); return;
    case Scalar::Kind::kComplex: out += str("(", value.real(), ", ", value.imag(), ")"); return;
  }
}

}  // namespace fornax
