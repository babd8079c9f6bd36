#include "fornax/nn/norm.h"

#include <ostream>

#include "fornax/autograd/autograd.h"
#include "fornax/nn/init.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::nn {

namespace functional {

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  return fornax::batch_norm(input, o.weight(), o.bias(), running_mean, running_var, o.training(),
                            o.momentum(), o.eps(), false);
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  return fornax::instance_norm(input, o.weight(), o.bias(), o.running_mean(), o.running_var(),
                               o.use_input_stats(), o.momentum(), o.eps(), false);
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return fornax::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return fornax::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o) {
  Tensor norm = input.norm(o.p(), {o.dim()}, true);
  return input / norm.clamp_min(o.eps()).expand_as(input);
}

}  // namespace functional

namespace {

const char* text_of(bool value) { return value ? "true" : "false"; }

template <class M>
void reset_statistics(M& m) {
  if (!m.running_mean.defined()) return;
  init::zeros_(m.running_mean);
  init::ones_(m.running_var);
  init::zeros_(m.num_batches_tracked);
}

template <class M>
void reset_affine(M& m) {
  if (!m.weight.defined()) return;
  init::ones_(m.weight);
  init::zeros_(m.bias);
}

template <class M>
void reset_norm(M& m) {
  int64_t n = m.options.num_features();
  bool affine = m.options.affine(), tracks = m.options.track_running_stats();
  m.weight = m.register_parameter("weight", affine ? empty({n}) : Tensor());
  m.bias = m.register_parameter("bias", affine ? empty({n}) : Tensor());
  m.running_mean = m.register_buffer("running_mean", tracks ? empty({n}) : Tensor());
  m.running_var = m.register_buffer("running_var", tracks ? empty({n}) : Tensor());
  m.num_batches_tracked = m.register_buffer(
      "num_batches_tracked", tracks ? zeros({}, TensorOptions(Dtype::kI64)) : Tensor());
  reset_statistics(m);
  reset_affine(m);
}

Tensor shape_or_none(bool wanted, const std::vector<int64_t>& sizes) {
  return wanted ? fornax::empty(sizes) : Tensor();
}

void check_rank(const char* name, const Tensor& input, int64_t least, int64_t most) {
  FX_CHECK(input.dim() >= least && input.dim() <= most, kShape, name, ": expected a ", least, "-D",
           least == most ? std::string() : str(" or ", most, "-D"), " input, got ", input.dim(),
           "-D");
}

Tensor batch_norm_forward(BatchNormOptions& options, bool training, const Tensor& input,
                          const Tensor& weight, const Tensor& bias, const Tensor& mean,
                          const Tensor& var, const Tensor& batches) {
  // Without a momentum every batch counts alike.
  double momentum = options.momentum().value_or(0.0);
  if (training && batches.defined()) {
    NoGradGuard no_grad;
    batches.add_(1);
    if (!options.momentum()) momentum = 1.0 / batches.item<double>();
  }
  bool batch_statistics = training || !mean.defined();
  return fornax::batch_norm(input, weight, bias, mean, var, batch_statistics, momentum,
                            options.eps(), false);
}

Tensor instance_norm_forward(InstanceNormOptions& options, bool training, const Tensor& input,
                             const Tensor& weight, const Tensor& bias, const Tensor& mean,
                             const Tensor& var, int64_t batched_rank) {
  bool single = input.dim() == batched_rank - 1;
  Tensor x = single ? input.unsqueeze(0) : input;
  Tensor y =
      fornax::instance_norm(x, weight, bias, mean, var, training || !options.track_running_stats(),
                            options.momentum(), options.eps(), false);
  return single ? y.squeeze(0) : y;
}

template <class Options, class Momentum>
void print_norm(std::ostream& stream, const char* name, const Options& o, Momentum momentum) {
  stream << "fornax::nn::" << name << "(" << o.num_features() << ", eps=" << o.eps()
         << ", momentum=";
  momentum();
  stream << ", affine=" << text_of(o.affine())
         << ", track_running_stats=" << text_of(o.track_running_stats()) << ")";
}

}  // namespace

#define FX_NORM(Name, Options)                                                               \
  Name##Impl::Name##Impl(const Options& options) : options(options) { Name##Impl::reset(); } \
  void Name##Impl::reset() { reset_norm(*this); }                                            \
  void Name##Impl::reset_running_stats() { reset_statistics(*this); }                        \
  void Name##Impl::reset_parameters() {                                                      \
    reset_statistics(*this);                                                                 \
    reset_affine(*this);                                                                     \
  }
#define FX_BATCH_NORM(Name, least, most)                                                 \
  FX_NORM(Name, BatchNormOptions)                                                        \
  Tensor Name##Impl::forward(const Tensor& input) {                                      \
    check_rank(#Name, input, least, most);                                               \
    return batch_norm_forward(options, is_training(), input, weight, bias, running_mean, \
                              running_var, num_batches_tracked);                         \
  }                                                                                      \
  void Name##Impl::pretty_print(std::ostream& stream) const {                            \
    print_norm(stream, #Name, options, [&] {                                             \
      if (options.momentum())                                                            \
        stream << *options.momentum();                                                   \
      else                                                                               \
        stream << "None";                                                                \
    });                                                                                  \
  }
#define FX_INSTANCE_NORM(Name, rank)                                                        \
  FX_NORM(Name, InstanceNormOptions)                                                        \
  Tensor Name##Impl::forward(const Tensor& input) {                                         \
    check_rank(#Name, input, rank - 1, rank);                                               \
    return instance_norm_forward(options, is_training(), input, weight, bias, running_mean, \
                                 running_var, rank);                                        \
  }                                                                                         \
  void Name##Impl::pretty_print(std::ostream& stream) const {                               \
    print_norm(stream, #Name, options, [&] { stream << options.momentum(); });              \
  }
FX_BATCH_NORM(BatchNorm1d, 2, 3)
FX_BATCH_NORM(BatchNorm2d, 4, 4)
FX_BATCH_NORM(BatchNorm3d, 5, 5)
FX_INSTANCE_NORM(InstanceNorm1d, 3)
FX_INSTANCE_NORM(InstanceNorm2d, 4)
FX_INSTANCE_NORM(InstanceNorm3d, 5)
#undef FX_INSTANCE_NORM
#undef FX_BATCH_NORM
#undef FX_NORM

LayerNormImpl::LayerNormImpl(const LayerNormOptions& options) : options(options) {
  LayerNormImpl::reset();
}

void LayerNormImpl::reset() {
  bool affine = options.elementwise_affine();
  weight = register_parameter("weight", shape_or_none(affine, options.normalized_shape()));
  bias = register_parameter("bias", shape_or_none(affine, options.normalized_shape()));
  reset_parameters();
}
void LayerNormImpl::reset_parameters() { reset_affine(*this); }

Tensor LayerNormImpl::forward(const Tensor& input) {
  return fornax::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::LayerNorm(" << str(IntArrayRef(options.normalized_shape()))
         << ", eps=" << options.eps()
         << ", elementwise_affine=" << text_of(options.elementwise_affine()) << ")";
}

GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t num_channels)
    : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
GroupNormImpl::GroupNormImpl(const GroupNormOptions& options) : options(options) {
  GroupNormImpl::reset();
}

void GroupNormImpl::reset() {
  bool affine = options.affine();
  weight = register_parameter("weight", affine ? empty({options.num_channels()}) : Tensor());
  bias = register_parameter("bias", affine ? empty({options.num_channels()}) : Tensor());
  reset_parameters();
}
void GroupNormImpl::reset_parameters() { reset_affine(*this); }

Tensor GroupNormImpl::forward(const Tensor& input) {
  return fornax::group_norm(input, options.num_groups(), weight, bias, options.eps());
}

void GroupNormImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::GroupNorm(" << options.num_groups() << ", " << options.num_channels()
         << ", eps=" << options.eps() << ", affine=" << text_of(options.affine()) << ")";
}

}  // namespace fornax::nn
