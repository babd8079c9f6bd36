#include "fornax/backends/cpu/random.h"

#include <algorithm>
#include <cmath>

#include "fornax/backends/cpu/kernels/random_kernels.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"

namespace fornax {

#if defined(__x86_64__)
namespace isa_v3 {
extern const cpu::RandomKernels random_kernels;
}
namespace isa_v4 {
extern const cpu::RandomKernels random_kernels;
}
#else
namespace isa_neon {
extern const cpu::RandomKernels random_kernels;
}
#endif

namespace cpu {
namespace {

const RandomKernels& kernels() {
#if defined(__x86_64__)
  return active_isa() == Isa::kV4 ? isa_v4::random_kernels : isa_v3::random_kernels;
#else
  return isa_neon::random_kernels;
#endif
}

// Elements that stay together: whole blocks, and whole runs of Box-Muller.
constexpr int64_t kUnit = 64;
constexpr int64_t kGrain = 8192 / kUnit;  // some 10 us of work

// Calls fill(position, first element, count) for parts of n elements that take `words` words each.
template <class Fill>
void fill_parts(int64_t n, int words, PhiloxState state, Fill fill) {
  parallel_for(0, (n + kUnit - 1) / kUnit, kGrain, [&](int64_t from, int64_t to) {
    PhiloxState at = state;
    at.offset += uint64_t(from * kUnit * words / 4);
    fill(at, from * kUnit, std::min(n, to * kUnit) - from * kUnit);
  });
}

uint64_t blocks_for(int64_t n, int words) { return (uint64_t(n) * uint64_t(words) + 3) / 4; }
int64_t whole_runs(int64_t n) { return (n + 31) / 32 * 32; }

template <class T>
T last_below(T low, T high) {
  return low < high ? std::nextafter(high, low) : low;
}

template <class T, class Kernel>
uint64_t bernoulli(T* out, int64_t n, PhiloxState state, double p, T value, Kernel kernel) {
  double words = std::nearbyint(std::clamp(p, 0.0, 1.0) * 0x1p32);
  bool never = !(words >= 1);
  uint32_t last = never ? 0 : uint32_t(words - 1);
  if (never) value = T(0);
  fill_parts(n, 1, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernel(at, out + first, count, last, value);
  });
  return blocks_for(n, 1);
}

}  // namespace

uint64_t fill_bits(uint32_t* out, int64_t n, PhiloxState state) {
  fill_parts(n, 1, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().bits(at, out + first, count);
  });
  return blocks_for(n, 1);
}

uint64_t fill_uniform(float* out, int64_t n, PhiloxState state, float low, float high) {
  float last = last_below(low, high);
  fill_parts(n, 1, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().uniform_f32(at, out + first, count, low, high, last);
  });
  return blocks_for(n, 1);
}

uint64_t fill_uniform(double* out, int64_t n, PhiloxState state, double low, double high) {
  double last = last_below(low, high);
  fill_parts(n, 2, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().uniform_f64(at, out + first, count, low, high, last);
  });
  return blocks_for(n, 2);
}

uint64_t fill_normal(float* out, int64_t n, PhiloxState state, float mean, float std) {
  fill_parts(n, 1, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().normal_f32(at, out + first, count, mean, std);
  });
  return blocks_for(whole_runs(n), 1);
}

uint64_t fill_normal(double* out, int64_t n, PhiloxState state, double mean, double std) {
  fill_parts(n, 2, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().normal_f64(at, out + first, count, mean, std);
  });
  return blocks_for(whole_runs(n), 2);
}

uint64_t fill_exponential(float* out, int64_t n, PhiloxState state, float rate) {
  fill_parts(n, 1, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().exponential_f32(at, out + first, count, 1 / rate);
  });
  return blocks_for(n, 1);
}

uint64_t fill_exponential(double* out, int64_t n, PhiloxState state, double rate) {
  fill_parts(n, 2, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernels().exponential_f64(at, out + first, count, 1 / rate);
  });
  return blocks_for(n, 2);
}

uint64_t fill_bernoulli(uint8_t* out, int64_t n, PhiloxState state, double p, uint8_t value) {
  return bernoulli(out, n, state, p, value, kernels().bernoulli_u8);
}

uint64_t fill_bernoulli(float* out, int64_t n, PhiloxState state, double p, float value) {
  return bernoulli(out, n, state, p, value, kernels().bernoulli_f32);
}

uint64_t fill_randint(int64_t* out, int64_t n, PhiloxState state, int64_t low, uint64_t range) {
  bool small = range != 0 && range <= uint64_t(1) << 32;
  auto kernel = small ? kernels().randint_small : kernels().randint_large;
  int words = small ? 2 : 4;
  fill_parts(n, words, state, [&](PhiloxState at, int64_t first, int64_t count) {
    kernel(at, out + first, count, low, range);
  });
  return blocks_for(n, words);
}

}  // namespace cpu
}  // namespace fornax
