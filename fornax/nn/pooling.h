// Pooling: nn::functional's functions and the modules. Inputs are [N, C, ...] or [C, ...].
#pragma once

#include <tuple>

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

namespace functional {

#define FX_POOL(D)                                                                            \
  using MaxPool##D##dFuncOptions = MaxPoolOptions<D>;                                         \
  using AvgPool##D##dFuncOptions = AvgPoolOptions<D>;                                         \
  using AdaptiveMaxPool##D##dFuncOptions = AdaptivePoolOptions<D>;                            \
  using AdaptiveAvgPool##D##dFuncOptions = AdaptivePoolOptions<D>;                            \
  Tensor max_pool##D##d(const Tensor& input, const MaxPoolOptions<D>& options);               \
  /* Maxima and where they were found, as flat indices into each input plane. */              \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                 \
                                                         const MaxPoolOptions<D>& options);   \
  Tensor avg_pool##D##d(const Tensor& input, const AvgPoolOptions<D>& options);               \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& options); \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& options); \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                            \
      const Tensor& input, const AdaptivePoolOptions<D>& options)
FX_POOL(1);
FX_POOL(2);
FX_POOL(3);
#undef FX_POOL

}  // namespace functional

#define FX_POOL_MODULE(Name, Options, D)                    \
  class Name##Impl : public Cloneable<Name##Impl> {         \
   public:                                                  \
    explicit Name##Impl(const Options<D>& options);         \
    void reset() override {}                                \
    void pretty_print(std::ostream& stream) const override; \
    Tensor forward(const Tensor& input);                    \
    Options<D> options;                                     \
  };                                                        \
  FORNAX_MODULE(Name)
#define FX_MAX_POOL_MODULE(Name, Options, D)                              \
  class Name##Impl : public Cloneable<Name##Impl> {                       \
   public:                                                                \
    explicit Name##Impl(const Options<D>& options);                       \
    void reset() override {}                                              \
    void pretty_print(std::ostream& stream) const override;               \
    Tensor forward(const Tensor& input);                                  \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input); \
    Options<D> options;                                                   \
  };                                                                      \
  FORNAX_MODULE(Name)
FX_MAX_POOL_MODULE(MaxPool1d, MaxPoolOptions, 1);
FX_MAX_POOL_MODULE(MaxPool2d, MaxPoolOptions, 2);
FX_MAX_POOL_MODULE(MaxPool3d, MaxPoolOptions, 3);
FX_MAX_POOL_MODULE(AdaptiveMaxPool1d, AdaptivePoolOptions, 1);
FX_MAX_POOL_MODULE(AdaptiveMaxPool2d, AdaptivePoolOptions, 2);
FX_MAX_POOL_MODULE(AdaptiveMaxPool3d, AdaptivePoolOptions, 3);
FX_POOL_MODULE(AvgPool1d, AvgPoolOptions, 1);
FX_POOL_MODULE(AvgPool2d, AvgPoolOptions, 2);
FX_POOL_MODULE(AvgPool3d, AvgPoolOptions, 3);
FX_POOL_MODULE(AdaptiveAvgPool1d, AdaptivePoolOptions, 1);
FX_POOL_MODULE(AdaptiveAvgPool2d, AdaptivePoolOptions, 2);
FX_POOL_MODULE(AdaptiveAvgPool3d, AdaptivePoolOptions, 3);
#undef FX_POOL_MODULE
#undef FX_MAX_POOL_MODULE

}  // namespace fornax::nn
