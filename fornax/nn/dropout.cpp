#include "fornax/nn/dropout.h"

#include <ostream>

#include "fornax/ops/functions.h"

namespace fornax::nn {

namespace functional {
namespace {

void check_probability(const char* name, double p) {
  FX_CHECK(p >= 0 && p <= 1, kValue, name, ": the probability must be between 0 and 1, got ", p);
}

}  // namespace

#define FX_DROPOUT(name, op)                                                           \
  Tensor name(const Tensor& input, const DropoutFuncOptions& options) {                \
    check_probability(#name, options.p());                                             \
    if (!options.inplace()) return fornax::op(input, options.p(), options.training()); \
    Tensor self = input;                                                               \
    return fornax::op##_(self, options.p(), options.training());                       \
  }
FX_DROPOUT(dropout, dropout)
FX_DROPOUT(dropout2d, feature_dropout)
FX_DROPOUT(dropout3d, feature_dropout)
FX_DROPOUT(alpha_dropout, alpha_dropout)
FX_DROPOUT(feature_alpha_dropout, feature_alpha_dropout)
#undef FX_DROPOUT

}  // namespace functional

#define FX_DROPOUT(Name, function)                                                           \
  Name##Impl::Name##Impl(const DropoutOptions& options) : options(options) {                 \
    Name##Impl::reset();                                                                     \
  }                                                                                          \
  void Name##Impl::reset() { functional::check_probability(#Name, options.p()); }            \
  Tensor Name##Impl::forward(const Tensor& input) {                                          \
    return functional::function(                                                             \
        input,                                                                               \
        DropoutFuncOptions(options.p()).training(is_training()).inplace(options.inplace())); \
  }                                                                                          \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                \
    stream << "fornax::nn::" #Name "(p=" << options.p()                                      \
           << ", inplace=" << (options.inplace() ? "true" : "false") << ")";                 \
  }
FX_DROPOUT(Dropout, dropout)
FX_DROPOUT(Dropout2d, dropout2d)
FX_DROPOUT(Dropout3d, dropout3d)
FX_DROPOUT(AlphaDropout, alpha_dropout)
FX_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef FX_DROPOUT

}  // namespace fornax::nn
