// A mutation fuzzer: valid files, damaged in ways that a fixed seed decides, go through a reader
// that must answer with a value or a fornax::Error, soon, and without asking for much memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fornax/base/file.h"

namespace fornax::fuzz {

// splitmix64: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Below `bound`; 0 for bound 0.
  size_t below(size_t bound) { return bound == 0 ? 0 : size_t(next() % bound); }

 private:
  uint64_t state_;
};

struct Corpus {
  std::string name;
  std::vector<Bytes> seeds;
  std::vector<std::string_view> words;  // pieces of the format, spliced in
};

// One to eight edits of one of the seeds: bits, bytes, interesting integers, words, pieces cut,
// doubled, moved or taken from another seed.
Bytes mutate(const Corpus& corpus, Random& random);

// Calls read(bytes) with the seeds and then with mutations: `rounds` of them, or for
// $FORNAX_FUZZ_SECONDS seconds where that is set. Anything thrown but fornax::Error, an allocation
// above 64 MiB and a call of more than 2 seconds fail the test; the input is written to a file
// then.
void run(const Corpus& corpus, int rounds, void (*read)(const Bytes&));

// The largest allocation since the last call, and the limit above which operator new throws.
size_t take_largest_allocation();
inline constexpr size_t kMaxAllocation = size_t(64) << 20;

}  // namespace fornax::fuzz
