#include "fornax/base/dtype.h"

namespace fornax {
namespace {

struct Names {
  std::string_view torch, short_name, long_name;
};
constexpr Names kNames[] = {
#define X(type, name, torch, short_name, long_name) {#torch, short_name, long_name},
    FX_DTYPES(X)
#undef X
        {"Undefined", "undefined", "undefined"},
};

int category(Dtype d) { return is_bool(d) ? 0 : is_integral(d) ? 1 : is_float(d) ? 2 : 3; }

Dtype promote_integers(Dtype a, Dtype b) {
  if (a == b) return a;
  if (a != Dtype::kU8 && b != Dtype::kU8) return a > b ? a : b;
  Dtype other = a == Dtype::kU8 ? b : a;
  return other == Dtype::kI8 ? Dtype::kI16 : other;  // u8 with a signed type: one that holds both
}

Dtype promote_floats(Dtype a, Dtype b) {
  if (a == b) return a;
  Dtype larger = a > b ? a : b;
  return larger == Dtype::kBF16 ? Dtype::kF32 : larger;  // f16 with bf16
}

}  // namespace

Dtype promote_types(Dtype a, Dtype b) {
  if (a == Dtype::kUndefined) return b;
  if (b == Dtype::kUndefined) return a;
  int ca = category(a), cb = category(b);
  if (ca == 3 || cb == 3) {
    Dtype ra = ca == 3 ? to_real(a) : a, rb = cb == 3 ? to_real(b) : b;
    if (ca != cb && (ca < 2 || cb < 2)) return ca == 3 ? a : b;
    return to_complex(promote_floats(ra, rb));
  }
  if (ca != cb) return ca > cb ? a : b;
  if (ca == 2) return promote_floats(a, b);
  return ca == 1 ? promote_integers(a, b) : a;
}

bool can_cast(Dtype from, Dtype to) {
  int cf = category(from), ct = category(to);
  return cf <= ct;
}

std::string_view name_of(Dtype d) { return kNames[int(d)].long_name; }
std::string_view torch_name_of(Dtype d) { return kNames[int(d)].torch; }
std::string_view short_name_of(Dtype d) { return kNames[int(d)].short_name; }

Dtype dtype_of_name(std::string_view name) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const Names& n = kNames[i];
    if (name == n.short_name || name == n.long_name || name == n.torch) return Dtype(i);
  }
  if (name == "float") return Dtype::kF32;
  if (name == "double") return Dtype::kF64;
  if (name == "half") return Dtype::kF16;
  if (name == "int") return Dtype::kI32;
  if (name == "long") return Dtype::kI64;
  return Dtype::kUndefined;
}

void append_to(std::string& out, Dtype d) { out += name_of(d); }

}  // namespace fornax
