// Random numbers: Philox4x32-10, counter based. The stream depends on seed and offset only, not on
// thread counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "fornax/base/ref.h"

namespace fornax {

class Tensor;

// A reserved range of the counter: 128 random bits per position.
struct RandomRange {
  uint64_t seed = 0, offset = 0;
};

class GeneratorImpl : public RefCounted {
 public:
  explicit GeneratorImpl(uint64_t seed) : seed_(seed) {}
  // Also goes back to position 0.
  void set_current_seed(uint64_t seed) {
    seed_ = seed;
    offset_ = 0;
  }
  uint64_t current_seed() const { return seed_; }
  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset) { offset_ = offset; }
  // Takes `count` positions; safe from several threads (their order then decides who gets which).
  RandomRange reserve(uint64_t count) { return {seed_, offset_.fetch_add(count)}; }

 private:
  std::atomic<uint64_t> seed_, offset_{0};
};

// Handle; copies share the state, as in libtorch.
class Generator {
 public:
  Generator() = default;
  explicit Generator(Ref<GeneratorImpl> impl) : impl_(static_cast<Ref<GeneratorImpl>&&>(impl)) {}
  bool defined() const { return bool(impl_); }
  void set_current_seed(uint64_t seed) const { impl_->set_current_seed(seed); }
  uint64_t current_seed() const { return impl_->current_seed(); }
  // State as a u8 tensor of 16 bytes: seed, offset (little endian).
  Tensor get_state() const;
  void set_state(const Tensor& state) const;
  GeneratorImpl* impl() const { return impl_.get(); }

 private:
  Ref<GeneratorImpl> impl_;
};

Generator make_generator(uint64_t seed = 67280421310721u);
// The process's CPU generator.
Generator& default_generator();
// Seeds the default generator.
void manual_seed(uint64_t seed);

}  // namespace fornax
