#include "fornax/ops/reduce.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

double load_any(const Tensor& t, int64_t i) {
  const char* p = static_cast<const char*>(t.impl()->data()) + i * t.element_size();
  auto real = [](auto v) {
    if constexpr (requires { v.im; })
      return double(v.re);
    else
      return double(v);
  };
  switch (t.dtype()) {
#define X(type, name, torch, short_name, long_name) \
  case Dtype::name: return real(*reinterpret_cast<const type*>(p));
    FX_DTYPES(X)
#undef X
    default: break;
  }
  return 0;
}

void sum_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  uint64_t mask = dim_mask(args, 1, x.dim(), "sum");
  Dims strides(size_t(x.dim()), 0);
  int64_t step = 1;
  for (size_t d = size_t(x.dim()); d-- > 0;)
    if (!(mask >> d & 1)) {
      strides[d] = step;
      step *= x.sizes()[d];
    }
  std::vector<double> sums(size_t(outs[0].numel()), 0.0);
  Dims index(size_t(x.dim()), 0);
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    sums[size_t(at)] += load_any(x, i);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < x.sizes()[d]) break;
      index[d] = 0;
    }
  }
  Tensor raw = make_tensor(Meta(Dtype::kF64, outs[0].sizes()));
  std::copy(sums.begin(), sums.end(), raw.data_ptr<double>());
  outs[0].copy_(raw);
}

}  // namespace
void register_reduce(const KernelTable& table) { table.set(sum_op, sum_kernel); }
}  // namespace fornax::cpu
