#include "fornax/nn/conv.h"

#include <cmath>
#include <ostream>

#include "fornax/nn/init.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"

namespace fornax::nn {

namespace functional {
namespace {

template <size_t D>
Tensor plain_conv(const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvFuncOptions<D>& o, const ExpandingArray<D>& padding) {
  if constexpr (D == 1)
    return fornax::conv1d(input, weight, bias, *o.stride(), *padding, *o.dilation(), o.groups());
  else if constexpr (D == 2)
    return fornax::conv2d(input, weight, bias, *o.stride(), *padding, *o.dilation(), o.groups());
  else
    return fornax::conv3d(input, weight, bias, *o.stride(), *padding, *o.dilation(), o.groups());
}

// kSame: dilation * (kernel - 1) zeros, the odd one at the end. With an odd number one more is
// added in front, and the first output dropped.
template <size_t D>
Tensor conv(const Tensor& input, const Tensor& weight, const ConvFuncOptions<D>& o) {
  if (o.padding().mode() != kSame)
    return plain_conv(input, weight, o.bias(), o, o.padding().values());
  FX_CHECK(o.stride().is_all(1), kValue, "conv", D, "d: padding kSame needs a stride of 1");
  FX_CHECK(weight.dim() == int64_t(D) + 2, kShape, "conv", D, "d: expected a ", D + 2,
           "-D weight, got ", weight.dim(), "-D");
  ExpandingArray<D> padding(0);
  for (size_t d = 0; d < D; ++d)
    padding[d] = (o.dilation()[d] * (weight.size(int64_t(d) + 2) - 1) + 1) / 2;
  Tensor out = plain_conv(input, weight, o.bias(), o, padding);
  for (size_t d = 0; d < D; ++d) {
    int64_t dim = int64_t(d) - int64_t(D), size = input.size(dim);
    if (out.size(dim) != size) out = out.narrow(dim, 1, size);
  }
  return out;
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options) {
  return conv(input, weight, options);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options) {
  return conv(input, weight, options);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options) {
  return conv(input, weight, options);
}
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose1dFuncOptions& o) {
  return fornax::conv_transpose1d(input, weight, o.bias(), *o.stride(), *o.padding(),
                                  *o.output_padding(), o.groups(), *o.dilation());
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose2dFuncOptions& o) {
  return fornax::conv_transpose2d(input, weight, o.bias(), *o.stride(), *o.padding(),
                                  *o.output_padding(), o.groups(), *o.dilation());
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose3dFuncOptions& o) {
  return fornax::conv_transpose3d(input, weight, o.bias(), *o.stride(), *o.padding(),
                                  *o.output_padding(), o.groups(), *o.dilation());
}

}  // namespace functional

namespace {

template <class Options>
void check_channels(const Options& o) {
  FX_CHECK(o.in_channels() > 0 && o.groups() > 0 && o.out_channels() > 0, kValue,
           "convolution: in_channels, groups and out_channels must be positive");
  FX_CHECK(o.in_channels() % o.groups() == 0, kValue, "convolution: in_channels ", o.in_channels(),
           " must be divisible by groups ", o.groups());
  FX_CHECK(o.out_channels() % o.groups() == 0, kValue, "convolution: out_channels ",
           o.out_channels(), " must be divisible by groups ", o.groups());
}

void reset_conv(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  auto [fan_in, fan_out] = init::_calculate_fan_in_and_fan_out(weight);
  double bound = fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

template <size_t D>
Dims weight_sizes(int64_t first, int64_t second, const ExpandingArray<D>& kernel) {
  Dims sizes{first, second};
  for (int64_t k : kernel) sizes.push_back(k);
  return sizes;
}

// The source of element i - before of a padded dimension of `size` elements.
int64_t source_of(int64_t i, int64_t size, Choice mode) {
  if (mode == kReplicate) return i < 0 ? 0 : i >= size ? size - 1 : i;
  if (mode == kCircular) return i < 0 ? i + size : i >= size ? i - size : i;
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

Tensor padded_dim(const Tensor& input, int64_t dim, int64_t before, int64_t after, Choice mode) {
  int64_t size = input.size(dim), most = mode == kReflect ? size - 1 : size;
  FX_CHECK(mode == kReplicate || (before <= most && after <= most), kValue,
           "convolution: ", name_of(mode), " can't pad ", before, " and ", after, " around ", size,
           " elements");
  std::vector<int64_t> source;
  for (int64_t i = -before; i < size + after; ++i) source.push_back(source_of(i, size, mode));
  return input.index_select(dim, tensor(source).to(input.device(), Dtype::kI64));
}

// Pads the spatial dimensions as another mode than zeros asks for.
template <size_t D>
Tensor padded(const Tensor& input, const ConvOptions<D>& o) {
  Tensor out = input;
  for (size_t d = 0; d < D; ++d) {
    int64_t total = o.padding().mode() == kSame ? o.dilation()[d] * (o.kernel_size()[d] - 1)
                                                : 2 * o.padding().values()[d];
    if (total > 0)
      out =
          padded_dim(out, int64_t(d) - int64_t(D), total / 2, total - total / 2, o.padding_mode());
  }
  return out;
}

}  // namespace

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& options) : options(options) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  check_channels(options);
  Choice mode = options.padding_mode();
  FX_CHECK(mode == kZeros || mode == kReflect || mode == kReplicate || mode == kCircular, kValue,
           "convolution: padding_mode must be kZeros, kReflect, kReplicate or kCircular, got ",
           name_of(mode));
  weight = this->register_parameter(
      "weight", empty(weight_sizes(options.out_channels(), options.in_channels() / options.groups(),
                                   options.kernel_size())));
  bias =
      this->register_parameter("bias", options.bias() ? empty({options.out_channels()}) : Tensor());
  reset_parameters();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  reset_conv(weight, bias);
}

template <size_t D, class Derived>
Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  ConvFuncOptions<D> o;
  o.bias(bias).stride(options.stride()).dilation(options.dilation()).groups(options.groups());
  if (options.padding_mode() != kZeros) return functional::conv(padded(input, options), weight, o);
  return functional::conv(input, weight, o.padding(options.padding()));
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Conv" << D << "d(" << options.in_channels() << ", "
         << options.out_channels() << ", kernel_size=" << options.kernel_size()
         << ", stride=" << options.stride();
  if (options.padding().mode() == kSame)
    stream << ", padding='same'";
  else if (options.padding().mode() == kValid)
    stream << ", padding='valid'";
  else if (!options.padding().values().is_all(0))
    stream << ", padding=" << options.padding().values();
  if (!options.dilation().is_all(1)) stream << ", dilation=" << options.dilation();
  if (options.groups() != 1) stream << ", groups=" << options.groups();
  if (!options.bias()) stream << ", bias=false";
  if (options.padding_mode() != kZeros)
    stream << ", padding_mode=" << name_of(options.padding_mode());
  stream << ")";
}

template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& options)
    : options(options) {
  ConvTransposeNdImpl::reset();
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset() {
  check_channels(options);
  FX_CHECK(options.padding_mode() == kZeros, kValue,
           "ConvTranspose: padding_mode must be kZeros, got ", name_of(options.padding_mode()));
  weight = this->register_parameter(
      "weight", empty(weight_sizes(options.in_channels(), options.out_channels() / options.groups(),
                                   options.kernel_size())));
  bias =
      this->register_parameter("bias", options.bias() ? empty({options.out_channels()}) : Tensor());
  reset_parameters();
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  reset_conv(weight, bias);
}

template <size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(
    const Tensor& input, const std::optional<std::vector<int64_t>>& output_size) {
  ConvTransposeFuncOptions<D> o;
  o.bias(bias).stride(options.stride()).padding(options.padding()).groups(options.groups());
  o.dilation(options.dilation()).output_padding(options.output_padding());
  if (output_size) {
    size_t n = output_size->size();
    FX_CHECK(n == D || n == D + 2, kShape, "ConvTranspose", D, "d: output_size must have ", D,
             " or ", D + 2, " elements, got ", n);
    for (size_t d = 0; d < D; ++d) {
      int64_t least = (input.size(int64_t(d) - int64_t(D)) - 1) * options.stride()[d] -
                      2 * options.padding()[d] +
                      options.dilation()[d] * (options.kernel_size()[d] - 1) + 1;
      int64_t wanted = (*output_size)[n - D + d];
      FX_CHECK(wanted >= least && wanted < least + options.stride()[d], kValue, "ConvTranspose", D,
               "d: output_size ", wanted, " at dimension ", d, " is out of range, expected ", least,
               " to ", least + options.stride()[d] - 1);
      o.output_padding()[d] = wanted - least;
    }
  }
  if constexpr (D == 1)
    return functional::conv_transpose1d(input, weight, o);
  else if constexpr (D == 2)
    return functional::conv_transpose2d(input, weight, o);
  else
    return functional::conv_transpose3d(input, weight, o);
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::ConvTranspose" << D << "d(" << options.in_channels() << ", "
         << options.out_channels() << ", kernel_size=" << options.kernel_size()
         << ", stride=" << options.stride();
  if (!options.padding().is_all(0)) stream << ", padding=" << options.padding();
  if (!options.dilation().is_all(1)) stream << ", dilation=" << options.dilation();
  if (!options.output_padding().is_all(0))
    stream << ", output_padding=" << options.output_padding();
  if (options.groups() != 1) stream << ", groups=" << options.groups();
  if (!options.bias()) stream << ", bias=false";
  stream << ")";
}

#define FX_CONV(Name, Base, Options, D)                                                            \
  template class Base<D, Name##Impl>;                                                              \
  Name##Impl::Name##Impl(const Options<D>& options) : Base<D, Name##Impl>(options) {}              \
  Name##Impl::Name##Impl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size) \
      : Name##Impl(Options<D>(in_channels, out_channels, kernel_size)) {}
FX_CONV(Conv1d, ConvNdImpl, ConvOptions, 1)
FX_CONV(Conv2d, ConvNdImpl, ConvOptions, 2)
FX_CONV(Conv3d, ConvNdImpl, ConvOptions, 3)
FX_CONV(ConvTranspose1d, ConvTransposeNdImpl, ConvTransposeOptions, 1)
FX_CONV(ConvTranspose2d, ConvTransposeNdImpl, ConvTransposeOptions, 2)
FX_CONV(ConvTranspose3d, ConvTransposeNdImpl, ConvTransposeOptions, 3)
#undef FX_CONV

}  // namespace fornax::nn
