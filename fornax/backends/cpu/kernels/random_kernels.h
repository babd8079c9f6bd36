// The random fills that are compiled once per instruction set. Serial; parallel use is in
// backends/cpu/random.cpp.
#pragma once

#include <cstdint>

#include "fornax/base/philox.h"

namespace fornax::cpu {

// `at` is the position of out[0]'s block: out starts at a multiple of 64 elements of the fill.
struct RandomKernels {
  void (*bits)(PhiloxState at, uint32_t* out, int64_t n);
  // low + u * (high - low), at most `last`.
  void (*uniform_f32)(PhiloxState at, float* out, int64_t n, float low, float high, float last);
  void (*uniform_f64)(PhiloxState at, double* out, int64_t n, double low, double high, double last);
  void (*normal_f32)(PhiloxState at, float* out, int64_t n, float mean, float std);
  void (*normal_f64)(PhiloxState at, double* out, int64_t n, double mean, double std);
  void (*exponential_f32)(PhiloxState at, float* out, int64_t n, float mean);
  void (*exponential_f64)(PhiloxState at, double* out, int64_t n, double mean);
  // value where the element's word <= last_word.
  void (*bernoulli_u8)(PhiloxState at, uint8_t* out, int64_t n, uint32_t last_word, uint8_t value);
  void (*bernoulli_f32)(PhiloxState at, float* out, int64_t n, uint32_t last_word, float value);
  // range <= 2^32: two words an element.
  void (*randint_small)(PhiloxState at, int64_t* out, int64_t n, int64_t low, uint64_t range);
  // Any range; a block an element.
  void (*randint_large)(PhiloxState at, int64_t* out, int64_t n, int64_t low, uint64_t range);
};

}  // namespace fornax::cpu

#if defined(FX_ISA)
#include "fornax/base/isa.h"

namespace fornax::FX_ISA_NS {
extern const cpu::RandomKernels random_kernels;
}
#endif
