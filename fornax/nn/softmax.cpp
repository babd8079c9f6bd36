#include "fornax/nn/softmax.h"

#include <ostream>

#include "fornax/ops/functions.h"
#include "fornax/ops/operators.h"

namespace fornax::nn {

namespace functional {

Tensor glu(const Tensor& input, const GLUFuncOptions& options) {
  int64_t size = input.size(options.dim());
  FX_CHECK(size % 2 == 0, kShape, "glu: dimension ", options.dim(), " must be even, got size ",
           size);
  Tensor gate = input.narrow(options.dim(), size / 2, size / 2).sigmoid();
  return input.narrow(options.dim(), 0, size / 2) * gate;
}
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return input.log_softmax(options.dim(), options.dtype());
}
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return input.softmax(options.dim(), options.dtype());
}
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return input.neg().softmax(options.dim(), options.dtype());
}

}  // namespace functional

Tensor Softmax2dImpl::forward(const Tensor& input) {
  FX_CHECK(input.dim() == 4 || input.dim() == 3, kShape,
           "Softmax2d: expected a 3-D or 4-D input, got ", input.dim(), "-D");
  return functional::softmax(input, -3);
}
void Softmax2dImpl::pretty_print(std::ostream& stream) const {
  stream << "fornax::nn::Softmax2d()";
}

#define FX_DIM_MODULE(Name, function)                                                              \
  Name##Impl::Name##Impl(const decltype(options)& options) : options(options) {}                   \
  Tensor Name##Impl::forward(const Tensor& input) { return functional::function(input, options); } \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                      \
    stream << "fornax::nn::" #Name "(dim=" << options.dim() << ")";                                \
  }
FX_DIM_MODULE(GLU, glu)
FX_DIM_MODULE(LogSoftmax, log_softmax)
FX_DIM_MODULE(Softmax, softmax)
FX_DIM_MODULE(Softmin, softmin)
#undef FX_DIM_MODULE

}  // namespace fornax::nn
