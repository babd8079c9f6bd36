// Convolutions: nn::functional's functions and the modules.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

namespace functional {

using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

// input [N, C, ...] or [C, ...], weight [out, C / groups, kernel...].
Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
// weight [C, out / groups, kernel...].
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose1dFuncOptions& options = {});
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose2dFuncOptions& options = {});
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose3dFuncOptions& options = {});

}  // namespace functional

// Weight and bias from U(-b, b), b = 1 / sqrt(in_channels / groups * kernel elements).
template <size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(const ConvOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  ConvOptions<D> options;
  Tensor weight, bias;
};

template <size_t D, class Derived>
class ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  // With output_size (spatial, or with batch and channels) output_padding follows from it.
  Tensor forward(const Tensor& input,
                 const std::optional<std::vector<int64_t>>& output_size = std::nullopt);
  ConvTransposeOptions<D> options;
  Tensor weight, bias;
};

#define FX_CONV(Name, Base, Options, D)                                                   \
  class Name##Impl : public Base<D, Name##Impl> {                                         \
   public:                                                                                \
    Name##Impl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size); \
    explicit Name##Impl(const Options<D>& options);                                       \
  };                                                                                      \
  extern template class Base<D, Name##Impl>;                                              \
  FORNAX_MODULE(Name)
FX_CONV(Conv1d, ConvNdImpl, ConvOptions, 1);
FX_CONV(Conv2d, ConvNdImpl, ConvOptions, 2);
FX_CONV(Conv3d, ConvNdImpl, ConvOptions, 3);
FX_CONV(ConvTranspose1d, ConvTransposeNdImpl, ConvTransposeOptions, 1);
FX_CONV(ConvTranspose2d, ConvTransposeNdImpl, ConvTransposeOptions, 2);
FX_CONV(ConvTranspose3d, ConvTransposeNdImpl, ConvTransposeOptions, 3);
#undef FX_CONV

}  // namespace fornax::nn
