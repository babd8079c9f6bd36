// MNIST and the datasets in its format.
#pragma once

#include <string>

#include "fornax/data/dataset.h"

namespace fornax::data::datasets {

// Images f32 [1, rows, columns] in [0, 1] with their class as an i64 scalar. Reads
// train-images-idx3-ubyte[.gz] and so on.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  // Throws Error(kIo) naming the folder and file that is missing or damaged.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return size_t(images_.size(0)); }
  bool is_train() const { return mode_ == Mode::kTrain; }
  const Tensor& images() const { return images_; }    // f32 [n, 1, rows, columns]
  const Tensor& targets() const { return targets_; }  // i64 [n]

 private:
  Mode mode_;
  Tensor images_, targets_;
};

// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) from Debian's package dataset-fashion-mnist, or
// $FASHION_MNIST_DIR.
class FashionMNIST : public MNIST {
 public:
  explicit FashionMNIST(Mode mode = Mode::kTrain);
  static const std::vector<std::string>& classes();
};

}  // namespace fornax::data::datasets
