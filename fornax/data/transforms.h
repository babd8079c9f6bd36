// What happens to a batch between dataset and loader.
#pragma once

#include <vector>

#include "fornax/base/function.h"
#include "fornax/data/example.h"

namespace fornax::data::transforms {

// A transform of whole batches.
template <class In, class Out>
class BatchTransform {
 public:
  using InputBatchType = In;
  using OutputBatchType = Out;
  virtual ~BatchTransform() = default;
  virtual Out apply_batch(In batch) = 0;
};

// A transform of single examples.
template <class In, class Out>
class Transform : public BatchTransform<std::vector<In>, std::vector<Out>> {
 public:
  using InputType = In;
  using OutputType = Out;
  virtual Out apply(In input) = 0;
  std::vector<Out> apply_batch(std::vector<In> batch) override {
    std::vector<Out> out;
    out.reserve(batch.size());
    for (In& x : batch) out.push_back(apply(std::move(x)));
    return out;
  }
};

template <class In, class Out = In>
class Lambda : public Transform<In, Out> {
 public:
  using FunctionType = Function<Out(In)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Out apply(In input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

template <class In, class Out = In>
class BatchLambda : public BatchTransform<In, Out> {
 public:
  using FunctionType = Function<Out(In)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Out apply_batch(In batch) override { return function_(std::move(batch)); }

 private:
  FunctionType function_;
};

// Acts on the data tensor of an example, leaves the target.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(Function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  Function<Tensor(Tensor)> function_;
};

// (data - mean) / stddev, per channel of the leading dimension or by one number.
Tensor normalize(const Tensor& data, const Tensor& mean, const Tensor& stddev);
Tensor channel_values(ArrayRef<double> values);
template <class Target = Tensor>
class Normalize : public TensorTransform<Target> {
 public:
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean_(channel_values(mean)), stddev_(channel_values(stddev)) {}
  Tensor operator()(Tensor input) override { return normalize(input, mean_, stddev_); }

 private:
  Tensor mean_, stddev_;
};

// Turns a vector of examples into one example of stacked tensors.
Tensor stack_all(const std::vector<Tensor>& tensors);
template <class E = Example<>>
class Stack;
template <>
class Stack<Example<>> : public BatchTransform<std::vector<Example<>>, Example<>> {
 public:
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    data.reserve(examples.size());
    targets.reserve(examples.size());
    for (Example<>& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {stack_all(data), stack_all(targets)};
  }
};
template <>
class Stack<TensorExample> : public BatchTransform<std::vector<TensorExample>, TensorExample> {
 public:
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return {stack_all(data)};
  }
};

// Turns a batch into anything: Stack is one Collate.
template <class In, class Out = In>
using Collate = BatchLambda<std::vector<In>, Out>;

}  // namespace fornax::data::transforms
