// Hashing of 64-bit values and byte runs: fast, well mixed, the same in every process. Not for
// untrusted keys.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace fornax {

// A bijection in which every input bit changes half of the output bits (the finaliser of
// SplitMix64; Steele, Lea, Flood 2014).
constexpr uint64_t hash_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Adds a value to a running hash; order matters.
constexpr uint64_t hash_combine(uint64_t hash, uint64_t value) {
  return hash_mix(hash * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u);
}

inline uint64_t hash_bytes(std::string_view text, uint64_t seed = 0) {
  uint64_t hash = hash_combine(seed, text.size());
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = hash_combine(hash, word);
  }
  if (left == 0) return hash;
  uint64_t word = 0;
  std::memcpy(&word, p, left);
  return hash_combine(hash, word);
}

}  // namespace fornax
