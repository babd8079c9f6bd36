// Dropout: nn::functional's functions and the modules that call them.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

// p is the probability of an element (or, for 2d, 3d and feature forms, of a whole channel) to be
// dropped; the others are scaled to keep the mean. Outside [0, 1]: Error(kValue).
namespace functional {

using DropoutFuncOptions = nn::DropoutFuncOptions;
using Dropout2dFuncOptions = nn::DropoutFuncOptions;
using Dropout3dFuncOptions = nn::DropoutFuncOptions;
using AlphaDropoutFuncOptions = nn::DropoutFuncOptions;
using FeatureAlphaDropoutFuncOptions = nn::DropoutFuncOptions;

Tensor dropout(const Tensor& input, const DropoutFuncOptions& options = {});
Tensor dropout2d(const Tensor& input, const Dropout2dFuncOptions& options = {});
Tensor dropout3d(const Tensor& input, const Dropout3dFuncOptions& options = {});
Tensor alpha_dropout(const Tensor& input, const AlphaDropoutFuncOptions& options = {});
Tensor feature_alpha_dropout(const Tensor& input,
                             const FeatureAlphaDropoutFuncOptions& options = {});

}  // namespace functional

#define FX_DROPOUT(Name)                                     \
  class Name##Impl : public Cloneable<Name##Impl> {          \
   public:                                                   \
    explicit Name##Impl(const DropoutOptions& options = {}); \
    void reset() override;                                   \
    void pretty_print(std::ostream& stream) const override;  \
    Tensor forward(const Tensor& input);                     \
    DropoutOptions options;                                  \
  };                                                         \
  FORNAX_MODULE(Name)
FX_DROPOUT(Dropout);
FX_DROPOUT(Dropout2d);
FX_DROPOUT(Dropout3d);
FX_DROPOUT(AlphaDropout);
FX_DROPOUT(FeatureAlphaDropout);
#undef FX_DROPOUT

}  // namespace fornax::nn
