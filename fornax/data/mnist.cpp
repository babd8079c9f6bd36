#include "fornax/data/mnist.h"

#include <cstring>

#include "fornax/data/idx.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"

namespace fornax::data::datasets {
namespace {

Tensor from_raw(const RawTensor& raw) {
  Tensor t = empty(raw.sizes, TensorOptions(raw.dtype));
  if (t.numel()) std::memcpy(t.data_ptr(), raw.bytes.data(), t.nbytes());
  return t;
}

}  // namespace

MNIST::MNIST(const std::string& root, Mode mode) : mode_(mode) {
  LabeledImages files = load_mnist(mode == Mode::kTrain, root);
  Tensor images = from_raw(files.images);
  images_ = images.to(kFloat).div_(255.0).unsqueeze(1);
  targets_ = from_raw(files.labels).to(kLong);
}

Example<> MNIST::get(size_t index) {
  FX_CHECK(index < size_t(images_.size(0)), kIndex, "MNIST: index ", index, " is out of range for ",
           images_.size(0), " images");
  return {images_[int64_t(index)], targets_[int64_t(index)]};
}

FashionMNIST::FashionMNIST(Mode mode) : MNIST("", mode) {}

const std::vector<std::string>& FashionMNIST::classes() {
  static const auto* names =
      new std::vector<std::string>{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                   "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return *names;
}

}  // namespace fornax::data::datasets
