// Normalisation: nn::functional's functions and the modules.
#pragma once

#include "fornax/nn/cloneable.h"
#include "fornax/nn/holder.h"
#include "fornax/nn/options.h"

namespace fornax::nn {

namespace functional {

using BatchNormFuncOptions = nn::BatchNormFuncOptions;
using InstanceNormFuncOptions = nn::InstanceNormFuncOptions;
using LayerNormFuncOptions = nn::LayerNormFuncOptions;
using GroupNormFuncOptions = nn::GroupNormFuncOptions;
using NormalizeFuncOptions = nn::NormalizeFuncOptions;

// In training the statistics of the batch are used and the running ones, if defined, move towards
// them; otherwise the running ones are used.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
// input / max(|input|_p, eps) along a dimension.
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});

}  // namespace functional

#define FX_NORM(Name, Options)                              \
  class Name##Impl : public Cloneable<Name##Impl> {         \
   public:                                                  \
    explicit Name##Impl(const Options& options);            \
    void reset() override;                                  \
    void reset_running_stats();                             \
    void reset_parameters();                                \
    void pretty_print(std::ostream& stream) const override; \
    Tensor forward(const Tensor& input);                    \
    Options options;                                        \
    Tensor weight, bias;                                    \
    Tensor running_mean, running_var, num_batches_tracked;  \
  };                                                        \
  FORNAX_MODULE(Name)
// Inputs [N, C] or [N, C, L]; [N, C, H, W]; [N, C, D, H, W].
FX_NORM(BatchNorm1d, BatchNormOptions);
FX_NORM(BatchNorm2d, BatchNormOptions);
FX_NORM(BatchNorm3d, BatchNormOptions);
// The same ranks with a length, and without a batch.
FX_NORM(InstanceNorm1d, InstanceNormOptions);
FX_NORM(InstanceNorm2d, InstanceNormOptions);
FX_NORM(InstanceNorm3d, InstanceNormOptions);
#undef FX_NORM

// Over the last dimensions, those of normalized_shape.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(const LayerNormOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  LayerNormOptions options;
  Tensor weight, bias;
};
FORNAX_MODULE(LayerNorm);

// Over groups of channels.
class GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels);
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  GroupNormOptions options;
  Tensor weight, bias;
};
FORNAX_MODULE(GroupNorm);

}  // namespace fornax::nn
