// The order in which a loader asks for examples.
#pragma once

#include <optional>
#include <vector>

#include "fornax/core/generator.h"
#include "fornax/core/tensor.h"

namespace fornax::data {

// Where a sampler stands: its order of this epoch and how many were handed out. Saving it resumes
// an epoch exactly.
struct SamplerState {
  Tensor order;  // i64; undefined for samplers without one
  size_t position = 0;
};

namespace samplers {

// Hands out batches of indices; not thread safe, the loader asks from one thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // A new epoch.
  virtual void reset() = 0;
  // The next indices, at most `batch`; none when the epoch is over.
  virtual std::optional<std::vector<size_t>> next(size_t batch) = 0;
  virtual SamplerState state() const = 0;
  // Throws Error(kValue) if the state does not fit this sampler.
  virtual void set_state(const SamplerState& state) = 0;
};

class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset() override { position_ = 0; }
  std::optional<std::vector<size_t>> next(size_t batch) override;
  SamplerState state() const override { return {{}, position_}; }
  void set_state(const SamplerState& state) override;

 private:
  size_t size_, position_ = 0;
};

// A fresh permutation each epoch, drawn from `generator` (the default one if none is given).
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(size_t size, Generator generator = {});
  void reset() override;
  std::optional<std::vector<size_t>> next(size_t batch) override;
  SamplerState state() const override { return {order_, position_}; }
  void set_state(const SamplerState& state) override;

 private:
  size_t size_, position_ = 0;
  Generator generator_;
  Tensor order_;
};

}  // namespace samplers
}  // namespace fornax::data
