#include "fornax/base/philox.h"

namespace fornax {

PhiloxBlock philox_block(PhiloxState state, uint64_t index) {
  uint64_t counter = state.offset + index;
  uint32_t x0 = uint32_t(counter), x1 = uint32_t(counter >> 32), x2 = 0, x3 = 0;
  uint32_t key0 = uint32_t(state.seed), key1 = uint32_t(state.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p = uint64_t(x0) * 0xD2511F53u, q = uint64_t(x2) * 0xCD9E8D57u;
    x0 = uint32_t(q >> 32) ^ x1 ^ key0;
    x2 = uint32_t(p >> 32) ^ x3 ^ key1;
    x1 = uint32_t(q);
    x3 = uint32_t(p);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{x0, x1, x2, x3}};
}

uint32_t PhiloxStream::next_u32() {
  if (used_ == 4) {
    block_ = philox_block(state_, 0);
    ++state_.offset;
    used_ = 0;
  }
  return block_.word[used_++];
}

uint64_t PhiloxStream::next_u64() {
  uint64_t low = next_u32();
  return low | uint64_t(next_u32()) << 32;
}

uint64_t PhiloxStream::below(uint64_t range) {
  uint64_t random = next_u64();
  if (range == 0) return random;
  // Lemire, "Fast random integer generation in an interval", 2019.
  auto product = static_cast<unsigned __int128>(random) * range;
  if (uint64_t(product) < range) {
    uint64_t threshold = -range % range;
    while (uint64_t(product) < threshold)
      product = static_cast<unsigned __int128>(next_u64()) * range;
  }
  return uint64_t(product >> 64);
}

double PhiloxStream::uniform() { return double(next_u64() >> 11) * 0x1p-53; }

}  // namespace fornax
