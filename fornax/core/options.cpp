#include "fornax/core/options.h"

#include <atomic>

#include "fornax/base/error.h"

namespace fornax {
namespace {
constinit std::atomic<Dtype> default_dtype{Dtype::kF32};
}

Dtype get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(Dtype dtype) {
  FX_CHECK(is_float(dtype), kType, "set_default_dtype: expected a floating dtype, got ", dtype);
  default_dtype.store(dtype, std::memory_order_relaxed);
}

}  // namespace fornax
