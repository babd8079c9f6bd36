// What batching rules are written with.
#include "fornax/core/op.h"

namespace fornax {

int64_t Vmapped::dim(int arg) const {
  return call.args.tensor(size_t(arg)).dim() - (is(arg) ? 1 : 0);
}

Tensor Vmapped::dim0(int arg) const {
  const Tensor& t = call.args.tensor(size_t(arg));
  if (is(arg)) return t;
  Dims sizes;
  sizes.push_back(size);
  sizes.append(t.sizes().begin(), t.sizes().end());
  return t.expand(sizes);
}

void Vmapped::run(std::initializer_list<Arg> args) {
  Call k{call.op, call.form, Args(args.begin(), args.size()), call.outs};
  dispatch(k);
  out_bdims.assign(call.outs.size(), 0);
}

}  // namespace fornax
