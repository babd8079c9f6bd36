// Options of modules and of nn::functional: plain structs whose fields are set in a chain,
// Conv2dOptions(3, 8, 5).stride(2).bias(false). Names and defaults are libtorch's.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "fornax/core/tensor.h"

// A private field name_ with a getter name() and a setter name(value) that returns the options.
#define FX_ARG(T, name)                              \
 public:                                             \
  auto name(const T& value)->decltype(*this) {       \
    this->name##_ = value;                           \
    return *this;                                    \
  }                                                  \
  auto name(T&& value)->decltype(*this) {            \
    this->name##_ = std::move(value);                \
    return *this;                                    \
  }                                                  \
  const T& name() const noexcept { return name##_; } \
  T& name() noexcept { return name##_; }             \
                                                     \
 private:                                            \
  T name##_

namespace fornax {

// The words that options take. One type for all: a function that gets a word it has no meaning for
// throws Error(kValue).
enum class Choice : uint8_t {
  kNone,
  kMean,
  kSum,
  kBatchMean,
  kMax,
  kLinear,
  kConv1D,
  kConv2D,
  kConv3D,
  kConvTranspose1D,
  kConvTranspose2D,
  kConvTranspose3D,
  kSigmoid,
  kTanh,
  kReLU,
  kGELU,
  kSiLU,
  kMish,
  kLeakyReLU,
  kSELU,
  kFanIn,
  kFanOut,
  kConstant,
  kReflect,
  kReplicate,
  kCircular,
  kZeros,
  kBorder,
  kReflection,
  kValid,
  kSame,
  kNearest,
  kNearestExact,
  kBilinear,
  kBicubic,
  kTrilinear,
  kArea,
};
// clang-format off
#define FX_CHOICE(name) inline constexpr Choice name = Choice::name
FX_CHOICE(kNone); FX_CHOICE(kMean); FX_CHOICE(kSum); FX_CHOICE(kBatchMean); FX_CHOICE(kMax);
FX_CHOICE(kLinear); FX_CHOICE(kConv1D); FX_CHOICE(kConv2D); FX_CHOICE(kConv3D);
FX_CHOICE(kConvTranspose1D); FX_CHOICE(kConvTranspose2D); FX_CHOICE(kConvTranspose3D);
FX_CHOICE(kSigmoid); FX_CHOICE(kTanh); FX_CHOICE(kReLU); FX_CHOICE(kGELU); FX_CHOICE(kSiLU);
FX_CHOICE(kMish); FX_CHOICE(kLeakyReLU); FX_CHOICE(kSELU);
FX_CHOICE(kFanIn); FX_CHOICE(kFanOut);
FX_CHOICE(kConstant); FX_CHOICE(kReflect); FX_CHOICE(kReplicate); FX_CHOICE(kCircular);
FX_CHOICE(kZeros); FX_CHOICE(kBorder); FX_CHOICE(kReflection);
FX_CHOICE(kValid); FX_CHOICE(kSame);
FX_CHOICE(kNearest); FX_CHOICE(kNearestExact); FX_CHOICE(kBilinear); FX_CHOICE(kBicubic);
FX_CHOICE(kTrilinear); FX_CHOICE(kArea);
#undef FX_CHOICE
// clang-format on
// "kMean"
const char* name_of(Choice choice);

// D numbers; a single one stands for D equal ones. Lists of another length throw Error(kShape).
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(const std::vector<T>& list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(ArrayRef<T> list) {
    FX_CHECK(list.size() == D, kShape, "expected ", D, " values, got ", list.size());
    for (size_t i = 0; i < D; ++i) values_[i] = list[i];
  }
  ExpandingArray(T single) {
    for (T& v : values_) v = single;
  }
  operator ArrayRef<T>() const { return {values_, D}; }
  ArrayRef<T> operator*() const { return {values_, D}; }
  const T& operator[](size_t i) const { return values_[i]; }
  T& operator[](size_t i) { return values_[i]; }
  static constexpr size_t size() { return D; }
  const T* data() const { return values_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + D; }
  bool is_all(T value) const {
    for (T v : values_)
      if (v != value) return false;
    return true;
  }

 private:
  T values_[D];
};
// "5" for one value, "[5, 6]" for more.
std::ostream& print_values(std::ostream& stream, IntArrayRef values);
std::ostream& print_values(std::ostream& stream, ArrayRef<double> values);
template <size_t D, class T>
std::ostream& operator<<(std::ostream& stream, const ExpandingArray<D, T>& array) {
  return print_values(stream, ArrayRef<T>(array));
}

// As ExpandingArray; absent values take the input's size.
template <size_t D>
class ExpandingArrayWithOptionalElem {
 public:
  using Element = std::optional<int64_t>;
  ExpandingArrayWithOptionalElem(std::initializer_list<Element> list) {
    FX_CHECK(list.size() == D, kShape, "expected ", D, " values, got ", list.size());
    for (size_t i = 0; i < D; ++i) values_[i] = list.begin()[i];
  }
  ExpandingArrayWithOptionalElem(const std::vector<int64_t>& list) {
    FX_CHECK(list.size() == D, kShape, "expected ", D, " values, got ", list.size());
    for (size_t i = 0; i < D; ++i) values_[i] = list[i];
  }
  ExpandingArrayWithOptionalElem(int64_t single) {
    for (Element& v : values_) v = single;
  }
  ExpandingArrayWithOptionalElem(std::nullopt_t) {}
  const Element& operator[](size_t i) const { return values_[i]; }
  // With the input's trailing sizes in the place of absent values.
  Dims filled(const Tensor& input) const {
    Dims out;
    for (size_t i = 0; i < D; ++i)
      out.push_back(values_[i] ? *values_[i] : input.size(int64_t(i) - int64_t(D)));
    return out;
  }
  // -1 for absent values.
  ExpandingArray<D> plain() const {
    ExpandingArray<D> out(-1);
    for (size_t i = 0; i < D; ++i) out[i] = values_[i].value_or(-1);
    return out;
  }

 private:
  Element values_[D];
};

namespace nn {

// ---- linear ------------------------------------------------------------------------------------

class LinearOptions {
 public:
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  FX_ARG(int64_t, in_features);
  FX_ARG(int64_t, out_features);
  FX_ARG(bool, bias) = true;
};

class BilinearOptions {
 public:
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  FX_ARG(int64_t, in1_features);
  FX_ARG(int64_t, in2_features);
  FX_ARG(int64_t, out_features);
  FX_ARG(bool, bias) = true;
};

class FlattenOptions {
  FX_ARG(int64_t, start_dim) = 1;
  FX_ARG(int64_t, end_dim) = -1;
};

class UnflattenOptions {
 public:
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  FX_ARG(int64_t, dim);
  FX_ARG(std::vector<int64_t>, sizes);
};

// ---- convolution -------------------------------------------------------------------------------

// Numbers, kValid (none) or kSame (the output has the input's size; stride must be 1).
template <size_t D>
class ConvPadding {
 public:
  ConvPadding(Choice mode) : values_(0), mode_(mode) {
    FX_CHECK(mode == kValid || mode == kSame, kValue,
             "padding: expected numbers, kValid or kSame, got ", name_of(mode));
  }
  ConvPadding(ExpandingArray<D> values) : values_(values) {}
  ConvPadding(std::initializer_list<int64_t> values) : values_(values) {}
  ConvPadding(const std::vector<int64_t>& values) : values_(values) {}
  ConvPadding(int64_t single) : values_(single) {}
  // kNone where numbers were given.
  Choice mode() const { return mode_; }
  const ExpandingArray<D>& values() const { return values_; }

 private:
  ExpandingArray<D> values_;
  Choice mode_ = kNone;
};

template <size_t D>
class ConvOptions {
 public:
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  FX_ARG(int64_t, in_channels);
  FX_ARG(int64_t, out_channels);
  FX_ARG(ExpandingArray<D>, kernel_size);
  FX_ARG(ExpandingArray<D>, stride) = 1;
  FX_ARG(ConvPadding<D>, padding) = 0;
  FX_ARG(ExpandingArray<D>, dilation) = 1;
  FX_ARG(int64_t, groups) = 1;
  FX_ARG(bool, bias) = true;
  FX_ARG(Choice, padding_mode) = kZeros;  // or kReflect, kReplicate, kCircular
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <size_t D>
class ConvTransposeOptions {
 public:
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  FX_ARG(int64_t, in_channels);
  FX_ARG(int64_t, out_channels);
  FX_ARG(ExpandingArray<D>, kernel_size);
  FX_ARG(ExpandingArray<D>, stride) = 1;
  FX_ARG(ExpandingArray<D>, padding) = 0;
  FX_ARG(ExpandingArray<D>, output_padding) = 0;
  FX_ARG(int64_t, groups) = 1;
  FX_ARG(bool, bias) = true;
  FX_ARG(ExpandingArray<D>, dilation) = 1;
  FX_ARG(Choice, padding_mode) = kZeros;  // nothing else
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

// What F::conv* take beside input and weight.
template <size_t D>
class ConvFuncOptions {
  FX_ARG(Tensor, bias) = {};
  FX_ARG(ExpandingArray<D>, stride) = 1;
  FX_ARG(ConvPadding<D>, padding) = 0;
  FX_ARG(ExpandingArray<D>, dilation) = 1;
  FX_ARG(int64_t, groups) = 1;
};
template <size_t D>
class ConvTransposeFuncOptions {
  FX_ARG(Tensor, bias) = {};
  FX_ARG(ExpandingArray<D>, stride) = 1;
  FX_ARG(ExpandingArray<D>, padding) = 0;
  FX_ARG(ExpandingArray<D>, output_padding) = 0;
  FX_ARG(int64_t, groups) = 1;
  FX_ARG(ExpandingArray<D>, dilation) = 1;
};

// ---- normalisation -----------------------------------------------------------------------------

class BatchNormOptions {
 public:
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  FX_ARG(int64_t, num_features);
  FX_ARG(double, eps) = 1e-5;
  // nullopt: a cumulative average.
  FX_ARG(std::optional<double>, momentum) = 0.1;
  FX_ARG(bool, affine) = true;
  FX_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

class InstanceNormOptions {
 public:
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}
  FX_ARG(int64_t, num_features);
  FX_ARG(double, eps) = 1e-5;
  FX_ARG(double, momentum) = 0.1;
  FX_ARG(bool, affine) = false;
  FX_ARG(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

class LayerNormOptions {
 public:
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  FX_ARG(std::vector<int64_t>, normalized_shape);
  FX_ARG(double, eps) = 1e-5;
  FX_ARG(bool, elementwise_affine) = true;
};

class GroupNormOptions {
 public:
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  FX_ARG(int64_t, num_groups);
  FX_ARG(int64_t, num_channels);
  FX_ARG(double, eps) = 1e-5;
  FX_ARG(bool, affine) = true;
};

// What F::batch_norm and its kind take beside input and statistics.
class BatchNormFuncOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Tensor, bias) = {};
  FX_ARG(bool, training) = false;
  FX_ARG(double, momentum) = 0.1;
  FX_ARG(double, eps) = 1e-5;
};
class InstanceNormFuncOptions {
  FX_ARG(Tensor, running_mean) = {};
  FX_ARG(Tensor, running_var) = {};
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Tensor, bias) = {};
  FX_ARG(bool, use_input_stats) = true;
  FX_ARG(double, momentum) = 0.1;
  FX_ARG(double, eps) = 1e-5;
};
class LayerNormFuncOptions {
 public:
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}
  FX_ARG(std::vector<int64_t>, normalized_shape);
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Tensor, bias) = {};
  FX_ARG(double, eps) = 1e-5;
};
class GroupNormFuncOptions {
 public:
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}
  FX_ARG(int64_t, num_groups);
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Tensor, bias) = {};
  FX_ARG(double, eps) = 1e-5;
};
class NormalizeFuncOptions {
  FX_ARG(double, p) = 2.0;
  FX_ARG(int64_t, dim) = 1;
  FX_ARG(double, eps) = 1e-12;
};

// ---- dropout, embedding ------------------------------------------------------------------------

class DropoutOptions {
 public:
  DropoutOptions(double p = 0.5) : p_(p) {}
  FX_ARG(double, p);
  FX_ARG(bool, inplace) = false;
};
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

class DropoutFuncOptions {
 public:
  DropoutFuncOptions(double p = 0.5) : p_(p) {}
  FX_ARG(double, p);
  FX_ARG(bool, training) = true;
  FX_ARG(bool, inplace) = false;
};

class EmbeddingFuncOptions {
  FX_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  FX_ARG(std::optional<double>, max_norm) = std::nullopt;
  FX_ARG(double, norm_type) = 2.;
  FX_ARG(bool, scale_grad_by_freq) = false;
  FX_ARG(bool, sparse) = false;
};

class EmbeddingOptions {
 public:
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  FX_ARG(int64_t, num_embeddings);
  FX_ARG(int64_t, embedding_dim);
  // The row that gets no gradient and starts as zeros.
  FX_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  FX_ARG(std::optional<double>, max_norm) = std::nullopt;
  FX_ARG(double, norm_type) = 2.;
  FX_ARG(bool, scale_grad_by_freq) = false;
  FX_ARG(bool, sparse) = false;
  FX_ARG(Tensor, _weight);
};

class EmbeddingFromPretrainedOptions {
  FX_ARG(bool, freeze) = true;
  FX_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  FX_ARG(std::optional<double>, max_norm) = std::nullopt;
  FX_ARG(double, norm_type) = 2.;
  FX_ARG(bool, scale_grad_by_freq) = false;
  FX_ARG(bool, sparse) = false;
};

// ---- pooling -----------------------------------------------------------------------------------

template <size_t D>
class MaxPoolOptions {
 public:
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  MaxPoolOptions(int64_t kernel_size) : MaxPoolOptions(ExpandingArray<D>(kernel_size)) {}
  FX_ARG(ExpandingArray<D>, kernel_size);
  FX_ARG(ExpandingArray<D>, stride);
  FX_ARG(ExpandingArray<D>, padding) = 0;
  FX_ARG(ExpandingArray<D>, dilation) = 1;
  FX_ARG(bool, ceil_mode) = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

template <size_t D>
class AvgPoolOptions {
 public:
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  AvgPoolOptions(int64_t kernel_size) : AvgPoolOptions(ExpandingArray<D>(kernel_size)) {}
  FX_ARG(ExpandingArray<D>, kernel_size);
  FX_ARG(ExpandingArray<D>, stride);
  FX_ARG(ExpandingArray<D>, padding) = 0;
  FX_ARG(bool, ceil_mode) = false;
  FX_ARG(bool, count_include_pad) = true;
  FX_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

template <size_t D>
class AdaptivePoolOptions {
 public:
  AdaptivePoolOptions(ExpandingArrayWithOptionalElem<D> output_size) : output_size_(output_size) {}
  AdaptivePoolOptions(int64_t output_size)
      : AdaptivePoolOptions(ExpandingArrayWithOptionalElem<D>(output_size)) {}
  FX_ARG(ExpandingArrayWithOptionalElem<D>, output_size);
};
using AdaptiveMaxPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveMaxPool2dOptions = AdaptivePoolOptions<2>;
using AdaptiveMaxPool3dOptions = AdaptivePoolOptions<3>;
using AdaptiveAvgPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveAvgPool2dOptions = AdaptivePoolOptions<2>;
using AdaptiveAvgPool3dOptions = AdaptivePoolOptions<3>;

// ---- activations -------------------------------------------------------------------------------

class InplaceOptions {
 public:
  InplaceOptions(bool inplace = false) : inplace_(inplace) {}
  FX_ARG(bool, inplace);
};
using ReLUOptions = InplaceOptions;
using ReLU6Options = InplaceOptions;
using SELUOptions = InplaceOptions;
using SiLUOptions = InplaceOptions;
using HardsigmoidOptions = InplaceOptions;
using HardswishOptions = InplaceOptions;

class ELUOptions {
  FX_ARG(double, alpha) = 1.0;
  FX_ARG(bool, inplace) = false;
};
class CELUOptions {
  FX_ARG(double, alpha) = 1.0;
  FX_ARG(bool, inplace) = false;
};
class GELUOptions {
  FX_ARG(std::string, approximate) = "none";  // or "tanh"
};
class GLUOptions {
 public:
  GLUOptions(int64_t dim = -1) : dim_(dim) {}
  FX_ARG(int64_t, dim);
};
class HardshrinkOptions {
 public:
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}
  FX_ARG(double, lambda);
};
using SoftshrinkOptions = HardshrinkOptions;
class HardtanhOptions {
  FX_ARG(double, min_val) = -1.0;
  FX_ARG(double, max_val) = 1.0;
  FX_ARG(bool, inplace) = false;
};
class LeakyReLUOptions {
  FX_ARG(double, negative_slope) = 1e-2;
  FX_ARG(bool, inplace) = false;
};
class SoftmaxOptions {
 public:
  SoftmaxOptions(int64_t dim) : dim_(dim) {}
  FX_ARG(int64_t, dim);
  // Of functions only: the input is cast first.
  FX_ARG(std::optional<Dtype>, dtype) = std::nullopt;
};
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;
class PReLUOptions {
  FX_ARG(int64_t, num_parameters) = 1;
  FX_ARG(double, init) = 0.25;
};
class RReLUOptions {
  FX_ARG(bool, training) = false;  // of functions only
  FX_ARG(double, lower) = 1.0 / 8.0;
  FX_ARG(double, upper) = 1.0 / 3.0;
  FX_ARG(bool, inplace) = false;
};
class SoftplusOptions {
  FX_ARG(double, beta) = 1.0;
  FX_ARG(double, threshold) = 20.0;
};
class ThresholdOptions {
 public:
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  FX_ARG(double, threshold);
  FX_ARG(double, value);
  FX_ARG(bool, inplace) = false;
};

// ---- losses: reduction is kNone, kMean or kSum -------------------------------------------------

class LossOptions {
 public:
  LossOptions(Choice reduction = kMean) : reduction_(reduction) {}
  FX_ARG(Choice, reduction);
};
using L1LossOptions = LossOptions;
using MSELossOptions = LossOptions;
using MultiLabelMarginLossOptions = LossOptions;
using SoftMarginLossOptions = LossOptions;

class CrossEntropyLossOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(int64_t, ignore_index) = -100;
  FX_ARG(Choice, reduction) = kMean;
  FX_ARG(double, label_smoothing) = 0.0;
};
class NLLLossOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(int64_t, ignore_index) = -100;
  FX_ARG(Choice, reduction) = kMean;
};
class BCELossOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Choice, reduction) = kMean;
};
class BCEWithLogitsLossOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Choice, reduction) = kMean;
  FX_ARG(Tensor, pos_weight) = {};
};
class KLDivLossOptions {
 public:
  KLDivLossOptions(Choice reduction = kMean) : reduction_(reduction) {}  // or kBatchMean
  FX_ARG(Choice, reduction);
  FX_ARG(bool, log_target) = false;
};
class SmoothL1LossOptions {
 public:
  SmoothL1LossOptions(Choice reduction = kMean) : reduction_(reduction) {}
  FX_ARG(Choice, reduction);
  FX_ARG(std::optional<double>, beta) = std::nullopt;  // 1
};
class HuberLossOptions {
 public:
  HuberLossOptions(Choice reduction = kMean) : reduction_(reduction) {}
  FX_ARG(Choice, reduction);
  FX_ARG(double, delta) = 1.0;
};
class MultiMarginLossOptions {
  FX_ARG(int64_t, p) = 1;
  FX_ARG(double, margin) = 1.0;
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Choice, reduction) = kMean;
};
class MultiLabelSoftMarginLossOptions {
  FX_ARG(Tensor, weight) = {};
  FX_ARG(Choice, reduction) = kMean;
};
class MarginRankingLossOptions {
  FX_ARG(double, margin) = 0.0;
  FX_ARG(Choice, reduction) = kMean;
};
class HingeEmbeddingLossOptions {
  FX_ARG(double, margin) = 1.0;
  FX_ARG(Choice, reduction) = kMean;
};
class CosineEmbeddingLossOptions {
  FX_ARG(double, margin) = 0.0;
  FX_ARG(Choice, reduction) = kMean;
};
class TripletMarginLossOptions {
  FX_ARG(double, margin) = 1.0;
  FX_ARG(double, p) = 2.0;
  FX_ARG(double, eps) = 1e-6;
  FX_ARG(bool, swap) = false;
  FX_ARG(Choice, reduction) = kMean;
};
class PoissonNLLLossOptions {
  FX_ARG(bool, log_input) = true;
  FX_ARG(bool, full) = false;
  FX_ARG(double, eps) = 1e-8;
  FX_ARG(Choice, reduction) = kMean;
};
class CosineSimilarityOptions {
  FX_ARG(int64_t, dim) = 1;
  FX_ARG(double, eps) = 1e-8;
};
class PairwiseDistanceOptions {
  FX_ARG(double, p) = 2.0;
  FX_ARG(double, eps) = 1e-6;
  FX_ARG(bool, keepdim) = false;
};

}  // namespace nn
}  // namespace fornax
