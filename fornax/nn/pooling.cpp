#include "fornax/nn/pooling.h"

#include <ostream>

#include "fornax/ops/functions.h"

namespace fornax::nn {

namespace functional {

#define FX_POOL(D)                                                                                 \
  Tensor max_pool##D##d(const Tensor& input, const MaxPoolOptions<D>& o) {                         \
    return fornax::max_pool##D##d(input, *o.kernel_size(), *o.stride(), *o.padding(),              \
                                  *o.dilation(), o.ceil_mode());                                   \
  }                                                                                                \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                      \
                                                         const MaxPoolOptions<D>& o) {             \
    return fornax::max_pool##D##d_with_indices(input, *o.kernel_size(), *o.stride(), *o.padding(), \
                                               *o.dilation(), o.ceil_mode());                      \
  }                                                                                                \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& o) {           \
    return fornax::adaptive_avg_pool##D##d(input, o.output_size().filled(input));                  \
  }                                                                                                \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptivePoolOptions<D>& o) {           \
    return std::get<0>(adaptive_max_pool##D##d_with_indices(input, o));                            \
  }                                                                                                \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                                 \
      const Tensor& input, const AdaptivePoolOptions<D>& o) {                                      \
    return fornax::adaptive_max_pool##D##d(input, o.output_size().filled(input));                  \
  }
#define FX_AVG_POOL(D)                                                                         \
  Tensor avg_pool##D##d(const Tensor& input, const AvgPoolOptions<D>& o) {                     \
    return fornax::avg_pool##D##d(input, *o.kernel_size(), *o.stride(), *o.padding(),          \
                                  o.ceil_mode(), o.count_include_pad(), o.divisor_override()); \
  }
FX_POOL(1)
FX_POOL(2)
FX_POOL(3)
FX_AVG_POOL(2)
FX_AVG_POOL(3)
#undef FX_POOL
#undef FX_AVG_POOL

Tensor avg_pool1d(const Tensor& input, const AvgPoolOptions<1>& o) {
  FX_CHECK(!o.divisor_override(), kValue, "avg_pool1d: there is no divisor_override in 1-D");
  return fornax::avg_pool1d(input, *o.kernel_size(), *o.stride(), *o.padding(), o.ceil_mode(),
                            o.count_include_pad());
}

}  // namespace functional

namespace {

template <size_t D>
void print_pool(std::ostream& stream, const char* name, const MaxPoolOptions<D>& o) {
  stream << "fornax::nn::" << name << "(kernel_size=" << o.kernel_size()
         << ", stride=" << o.stride() << ", padding=" << o.padding()
         << ", dilation=" << o.dilation() << ", ceil_mode=" << (o.ceil_mode() ? "true" : "false")
         << ")";
}

template <size_t D>
void print_pool(std::ostream& stream, const char* name, const AvgPoolOptions<D>& o) {
  stream << "fornax::nn::" << name << "(kernel_size=" << o.kernel_size()
         << ", stride=" << o.stride() << ", padding=" << o.padding() << ")";
}

template <size_t D>
void print_pool(std::ostream& stream, const char* name, const AdaptivePoolOptions<D>& o) {
  stream << "fornax::nn::" << name << "(output_size=" << (D == 1 ? "" : "[");
  for (size_t d = 0; d < D; ++d) {
    stream << (d ? ", " : "");
    if (o.output_size()[d])
      stream << *o.output_size()[d];
    else
      stream << "None";
  }
  stream << (D == 1 ? ")" : "])");
}

}  // namespace

#define FX_POOL_MODULE(Name, function)                                                             \
  Name##Impl::Name##Impl(const decltype(options)& options) : options(options) {}                   \
  Tensor Name##Impl::forward(const Tensor& input) { return functional::function(input, options); } \
  void Name##Impl::pretty_print(std::ostream& stream) const { print_pool(stream, #Name, options); }
#define FX_MAX_POOL_MODULE(Name, function)                                           \
  FX_POOL_MODULE(Name, function)                                                     \
  std::tuple<Tensor, Tensor> Name##Impl::forward_with_indices(const Tensor& input) { \
    return functional::function##_with_indices(input, options);                      \
  }
FX_MAX_POOL_MODULE(MaxPool1d, max_pool1d)
FX_MAX_POOL_MODULE(MaxPool2d, max_pool2d)
FX_MAX_POOL_MODULE(MaxPool3d, max_pool3d)
FX_MAX_POOL_MODULE(AdaptiveMaxPool1d, adaptive_max_pool1d)
FX_MAX_POOL_MODULE(AdaptiveMaxPool2d, adaptive_max_pool2d)
FX_MAX_POOL_MODULE(AdaptiveMaxPool3d, adaptive_max_pool3d)
FX_POOL_MODULE(AvgPool1d, avg_pool1d)
FX_POOL_MODULE(AvgPool2d, avg_pool2d)
FX_POOL_MODULE(AvgPool3d, avg_pool3d)
FX_POOL_MODULE(AdaptiveAvgPool1d, adaptive_avg_pool1d)
FX_POOL_MODULE(AdaptiveAvgPool2d, adaptive_avg_pool2d)
FX_POOL_MODULE(AdaptiveAvgPool3d, adaptive_avg_pool3d)
#undef FX_MAX_POOL_MODULE
#undef FX_POOL_MODULE

}  // namespace fornax::nn
