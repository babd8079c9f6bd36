// Random fills of contiguous memory, parallel and reproducible.
//
// Element i depends on the stream's position and on i alone: results are the same for every number
// of threads and every instruction set. Each function returns how many blocks of the stream it
// used; the caller's next position is offset + that. All throw nothing but what parallel_for does.
#pragma once

#include <cstdint>

#include "fornax/base/philox.h"

namespace fornax::cpu {

// Raw words: element i is word i % 4 of block i / 4.
uint64_t fill_bits(uint32_t* out, int64_t n, PhiloxState state);

// Uniform in [low, high), from 24 or 53 random bits; low if the interval is empty.
uint64_t fill_uniform(float* out, int64_t n, PhiloxState state, float low, float high);
uint64_t fill_uniform(double* out, int64_t n, PhiloxState state, double low, double high);

// Normal, by Box-Muller on runs of 32 elements (16 radii, 16 angles). The tails end at 6.6 (float)
// and 8.6 (double) standard deviations.
uint64_t fill_normal(float* out, int64_t n, PhiloxState state, float mean, float std);
uint64_t fill_normal(double* out, int64_t n, PhiloxState state, double mean, double std);

// Exponential with rate `rate` (mean 1 / rate); never 0.
uint64_t fill_exponential(float* out, int64_t n, PhiloxState state, float rate);
uint64_t fill_exponential(double* out, int64_t n, PhiloxState state, double rate);

// `value` with probability p (rounded to 2^-32), else 0. Element i compares word i with p, so the
// two forms agree.
uint64_t fill_bernoulli(uint8_t* out, int64_t n, PhiloxState state, double p, uint8_t value);
uint64_t fill_bernoulli(float* out, int64_t n, PhiloxState state, double p, float value);

// Integers low, ..., low + range - 1 (wrapping); range 0 stands for 2^64. The probability of a
// value is off by less than a 2^-32th of itself.
uint64_t fill_randint(int64_t* out, int64_t n, PhiloxState state, int64_t low, uint64_t range);

}  // namespace fornax::cpu
