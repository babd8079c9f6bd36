#include "fornax/data/samplers.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/random.h"

namespace fornax::data::samplers {

std::optional<std::vector<size_t>> SequentialSampler::next(size_t batch) {
  if (position_ >= size_) return std::nullopt;
  size_t count = batch < size_ - position_ ? batch : size_ - position_;
  std::vector<size_t> indices(count);
  for (size_t& i : indices) i = position_++;
  return indices;
}

void SequentialSampler::set_state(const SamplerState& state) {
  FX_CHECK(state.position <= size_, kValue, "sampler: position ", state.position, " is beyond ",
           size_, " examples");
  position_ = state.position;
}

RandomSampler::RandomSampler(size_t size, Generator generator)
    : size_(size), generator_(generator.defined() ? generator : default_generator()) {
  FX_CHECK(size <= size_t(INT64_MAX), kValue, "sampler: ", size, " examples are too many");
}

void RandomSampler::reset() {
  order_ = randperm(int64_t(size_), generator_);
  position_ = 0;
}

std::optional<std::vector<size_t>> RandomSampler::next(size_t batch) {
  if (!order_.defined()) reset();
  if (position_ >= size_) return std::nullopt;
  size_t count = batch < size_ - position_ ? batch : size_ - position_;
  const int64_t* order = order_.data_ptr<int64_t>() + position_;
  position_ += count;
  return std::vector<size_t>(order, order + count);
}

void RandomSampler::set_state(const SamplerState& state) {
  const Tensor& order = state.order;
  FX_CHECK(order.defined() && order.dtype() == kLong && order.dim() == 1 &&
               order.numel() == int64_t(size_),
           kValue, "sampler: the saved order must be ", size_, " int64 values, got ", order);
  FX_CHECK(state.position <= size_, kValue, "sampler: position ", state.position, " is beyond ",
           size_, " examples");
  Tensor copy = order.clone().contiguous();
  std::vector<bool> seen(size_, false);
  for (size_t i = 0; i < size_; ++i) {
    int64_t v = copy.data_ptr<int64_t>()[i];
    FX_CHECK(v >= 0 && v < int64_t(size_) && !seen[size_t(v)], kValue,
             "sampler: the saved order is no permutation: value ", v, " at ", i);
    seen[size_t(v)] = true;
  }
  order_ = copy;
  position_ = state.position;
}

}  // namespace fornax::data::samplers
