#include "bench/data.h"

#include "fornax/base/threads.h"

namespace fornax::bench {
namespace {

constexpr int64_t kGrain = 1 << 16;

// Writes n values, `step` apart.
void fill_rnd(float* to, int64_t n, int64_t step, uint32_t seed, double low, double high) {
  const float scale = float((high - low) / 16777216.0), shift = float(low);
  parallel_for(0, n, kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      float product = float(u32(uint32_t(i), seed) >> 8) * scale;
      to[i * step] = product + shift;
    }
  });
}

}  // namespace

uint32_t u32(uint32_t i, uint32_t seed) {
  uint32_t h = i * 0x9E3779B1u + seed * 0x85EBCA6Bu;
  h ^= h >> 16;
  h *= 0x21F0AAADu;
  h ^= h >> 15;
  h *= 0x735A2D97u;
  h ^= h >> 15;
  return h;
}

Tensor rnd(IntArrayRef sizes, uint32_t seed, double low, double high) {
  Tensor t = empty(sizes, kFloat);
  fill_rnd(t.data_ptr<float>(), t.numel(), 1, seed, low, high);
  return t;
}

Tensor rint(IntArrayRef sizes, uint32_t high, uint32_t seed) {
  Tensor t = empty(sizes, kLong);
  int64_t* to = t.data_ptr<int64_t>();
  parallel_for(0, t.numel(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) to[i] = u32(uint32_t(i), seed) % high;
  });
  return t;
}

Tensor crnd(IntArrayRef sizes, uint32_t seed) {
  Tensor t = empty(sizes, kComplexFloat);
  float* to = static_cast<float*>(t.data_ptr());
  fill_rnd(to, t.numel(), 2, seed, -1, 1);
  fill_rnd(to + 1, t.numel(), 2, seed + 1, -1, 1);
  return t;
}

}  // namespace fornax::bench
