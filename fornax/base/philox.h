// Philox4x32-10, the counter-based random generator (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", 2011): block b of a stream is a pure function of (seed, b), so any part of a
// stream can be made on any thread, and made again.
#pragma once

#include <cstdint>

namespace fornax {

// A position in a stream. `seed` is the key; `offset` counts blocks of four 32-bit words. Block b
// encrypts the counter {low half of offset + b, high half, 0, 0}.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

struct PhiloxBlock {
  uint32_t word[4];
};

// Block `index` after the state's position.
PhiloxBlock philox_block(PhiloxState state, uint64_t index);

// Draws one value after the other: for shuffles, initial seeds and other scalar uses. The bulk
// fills are in backends/cpu/random.h.
class PhiloxStream {
 public:
  explicit PhiloxStream(PhiloxState state) : state_(state) {}
  uint32_t next_u32();
  uint64_t next_u64();
  // Uniform in [0, range), without bias; range 0 stands for 2^64.
  uint64_t below(uint64_t range);
  // Uniform in [0, 1) with 53 random bits.
  double uniform();
  // The position of the first block of which nothing was drawn.
  PhiloxState state() const { return state_; }

 private:
  PhiloxState state_;
  PhiloxBlock block_{};
  int used_ = 4;  // words of block_ already drawn
};

}  // namespace fornax
