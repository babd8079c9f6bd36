#include "fornax/core/generator.h"

#include <cstring>

#include "fornax/core/op.h"

namespace fornax {

Generator make_generator(uint64_t seed) { return Generator(make_ref<GeneratorImpl>(seed)); }

Generator& default_generator() {
  static Generator* generator =
      new Generator(make_generator());  // lives to the end: threads may still draw
  return *generator;
}

void manual_seed(uint64_t seed) { default_generator().set_current_seed(seed); }

Tensor Generator::get_state() const {
  uint64_t words[2] = {impl_->current_seed(), impl_->offset()};
  Tensor state = make_tensor(Meta(kByte, {16}));
  std::memcpy(state.data_ptr(), words, sizeof words);
  return state;
}

void Generator::set_state(const Tensor& state) const {
  FX_CHECK(
      state.defined() && state.dtype() == kByte && state.numel() == 16 && state.is_contiguous(),
      kValue, "Generator::set_state: expected a contiguous uint8 tensor of 16 elements, got ",
      state);
  uint64_t words[2];
  std::memcpy(words, state.data_ptr(), sizeof words);
  impl_->set_current_seed(words[0]);
  impl_->set_offset(words[1]);
}

}  // namespace fornax
