// Datasets: examples by index, mapped by transforms.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/data/example.h"

namespace fornax::data::datasets {

template <class D, class T>
class MapDataset;
template <class D, class T>
MapDataset<D, T> map(D dataset, T transform);

// Base of datasets that give whole batches. Self is the derived class, so that map() keeps its
// type.
template <class Self, class Batch, class Request = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = Request;

  virtual ~BatchDataset() = default;
  // Called from the loader's worker threads, several at once: must not change the dataset.
  virtual Batch get_batch(Request request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <class T>
  MapDataset<Self, T> map(T transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class T>
  MapDataset<Self, T> map(T transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

// Base of datasets that give single examples.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

// A dataset whose batches pass through a transform.
template <class D, class T>
class MapDataset : public BatchDataset<MapDataset<D, T>, typename T::OutputBatchType,
                                       typename D::BatchRequestType> {
 public:
  using DatasetType = D;
  using TransformType = T;
  MapDataset(D dataset, T transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  typename T::OutputBatchType get_batch(typename D::BatchRequestType indices) override {
    return transform_.apply_batch(dataset_.get_batch(std::move(indices)));
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  const D& dataset() const { return dataset_; }
  const T& transform() const { return transform_; }

 private:
  D dataset_;
  T transform_;
};

template <class D, class T>
MapDataset<D, T> map(D dataset, T transform) {
  static_assert(std::is_same_v<typename D::BatchType, typename T::InputBatchType>,
                "the transform does not take what the dataset gives");
  return MapDataset<D, T>(std::move(dataset), std::move(transform));
}

// Rows of one tensor.
class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(Tensor tensor) : tensor_(std::move(tensor)) {}
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  TensorExample get(size_t index) override { return {tensor_[int64_t(index)]}; }
  std::optional<size_t> size() const override { return size_t(tensor_.size(0)); }

 private:
  Tensor tensor_;
};

}  // namespace fornax::data::datasets
