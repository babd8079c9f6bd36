#include "fornax/backends/cpu/scratch.h"

#include <sys/mman.h>

#include <cstdlib>

#include "fornax/base/error.h"

namespace fornax::cpu {
namespace {

constexpr int kSlots = 8;
constexpr int64_t kHugePage = int64_t(2) << 20;

// The blocks a thread keeps; freed when the thread ends.
struct Cache {
  void* data[kSlots] = {};
  int64_t bytes[kSlots] = {};

  ~Cache() {
    for (void* p : data) free(p);
  }
};

thread_local Cache cache;

int64_t rounded(int64_t bytes) {
  const int64_t unit = bytes >= kHugePage ? kHugePage : 4096;
  return (bytes + unit - 1) / unit * unit;
}

void* allocate(int64_t bytes) {
  void* p = aligned_alloc(size_t(bytes >= kHugePage ? kHugePage : 64), size_t(bytes));
  FX_CHECK(p != nullptr, kMemory, "out of memory: cannot get ", bytes, " bytes of scratch space");
  if (bytes >= kHugePage) madvise(p, size_t(bytes), MADV_HUGEPAGE);
  return p;
}

}  // namespace

Scratch::Scratch(int64_t bytes) {
  if (bytes <= 0) return;
  int best = -1;
  for (int i = 0; i < kSlots; i++) {
    if (cache.bytes[i] >= bytes && (best < 0 || cache.bytes[i] < cache.bytes[best])) best = i;
  }
  if (best >= 0) {
    data_ = cache.data[best];
    bytes_ = cache.bytes[best];
    cache.data[best] = nullptr;
    cache.bytes[best] = 0;
    return;
  }
  bytes_ = rounded(bytes);
  data_ = allocate(bytes_);
}

Scratch::~Scratch() {
  if (data_ == nullptr) return;
  // Takes the place of the smallest kept block; what does not fit is given back.
  int smallest = 0;
  int64_t kept = bytes_;
  for (int i = 0; i < kSlots; i++) {
    kept += cache.bytes[i];
    if (cache.bytes[i] < cache.bytes[smallest]) smallest = i;
  }
  if (kept - cache.bytes[smallest] > kScratchKept || cache.bytes[smallest] > bytes_) {
    free(data_);
    return;
  }
  free(cache.data[smallest]);
  cache.data[smallest] = data_;
  cache.bytes[smallest] = bytes_;
}

}  // namespace fornax::cpu
