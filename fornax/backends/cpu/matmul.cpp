// Kernels of the matrix products: geometry of tensors to the Gemm interface.
#include "fornax/backends/cpu/gemm.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/core/copy.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

struct Matrix {
  const void* data;
  int64_t batch, row, col;  // strides
};

// Dimensions -2 and -1 are rows and columns; one before them is the batch.
Matrix matrix_of(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  size_t r = impl.sizes.size();
  return {impl.data(), r > 2 ? impl.strides[r - 3] : 0, impl.strides[r - 2], impl.strides[r - 1]};
}

GemmScalar gemm_scalar(const Scalar& s) {
  if (s.is_integral()) return GemmScalar(s.to_int());
  return GemmScalar(s.real(), s.imag());
}

bool is_negated(const Tensor& t) { return (t.impl()->flags & kNegFlag) != 0; }

Gemm product_of(const Tensor& a, const Tensor& b, const Tensor& c) {
  Gemm g;
  g.dtype = c.dtype();
  Matrix x = matrix_of(a), y = matrix_of(b), z = matrix_of(c);
  g.batch = c.dim() > 2 ? c.sizes()[0] : 1;
  g.m = c.size(-2);
  g.n = c.size(-1);
  g.k = a.size(-1);
  g.a = x.data, g.a_batch = x.batch, g.a_row = x.row, g.a_col = x.col;
  g.b = y.data, g.b_batch = y.batch, g.b_row = y.row, g.b_col = y.col;
  g.c = const_cast<void*>(z.data), g.c_batch = z.batch, g.c_row = z.row, g.c_col = z.col;
  g.conj_a = a.is_conj();
  g.conj_b = b.is_conj();
  if (is_negated(a) != is_negated(b)) g.alpha = GemmScalar(-1);
  return g;
}

void product_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  gemm(product_of(args.tensor(0), args.tensor(1), outs[0]));
}

bool is_row_of(const Tensor& self, const Tensor& out) {
  return self.dim() == 1 && self.size(0) == out.size(-1) && self.is_contiguous() &&
         !self.is_conj() && !self.is_neg();
}

Scalar factor(Args args, size_t i) { return args.has(i) ? args.number(i) : Scalar(1); }

void add_product_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor &self = args.tensor(0), &out = outs[0];
  Scalar beta = factor(args, 3), alpha = factor(args, 4);
  if (is_integral(out.dtype())) {  // the fraction is lost, as in PyTorch
    beta = Scalar(beta.to_int());
    alpha = Scalar(alpha.to_int());
  }
  Gemm g = product_of(args.tensor(1), args.tensor(2), out);
  bool negated = g.alpha.re < 0;
  g.alpha = gemm_scalar(negated ? -alpha : alpha);
  if (beta == Scalar(0)) return gemm(g);
  if (beta == Scalar(1) && is_row_of(self, out)) {
    g.bias = self.impl()->data();
    return gemm(g);
  }
  if (!self.is_same(out)) copy_elements(out, self);
  g.beta = gemm_scalar(beta);
  gemm(g);
}

// input [..., in] contiguous, weight [out, in] of any strides.
void linear_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor x = args.tensor(0);
  const Tensor &w = args.tensor(1), &bias = args.optional(2), &out = outs[0];
  if (!x.is_contiguous()) x = contiguous_copy(x);
  Gemm g;
  g.dtype = out.dtype();
  g.k = x.size(-1);
  g.n = w.dim() == 2 ? w.size(0) : 1;
  g.m = 1;
  for (int64_t d = 0; d + 1 < x.dim(); ++d) g.m *= x.sizes()[size_t(d)];
  g.a = x.impl()->data(), g.a_row = g.k, g.a_col = 1;
  g.b = w.impl()->data();
  g.b_row = w.stride(-1), g.b_col = w.dim() == 2 ? w.stride(0) : 1;
  g.c = out.impl()->data(), g.c_row = g.n, g.c_col = 1;
  g.conj_a = x.is_conj();
  g.conj_b = w.is_conj();
  if (is_negated(x) != is_negated(w)) g.alpha = GemmScalar(-1);
  bool plain_bias = bias.defined() && w.dim() == 2 && is_row_of(bias, out);
  if (plain_bias) g.bias = bias.impl()->data();
  if (bias.defined() && !plain_bias) {
    copy_elements(out, bias);
    g.beta = 1;
  }
  gemm(g);
}

// The product interface writes rows or columns of unit stride; any other output goes through a
// temporary.
bool takes_products(const Tensor& t) {
  if (t.dim() < 2 || t.numel() == 0) return t.is_contiguous();
  int64_t row = t.stride(-2), col = t.stride(-1);
  return (col == 1 && row >= t.size(-1)) || (row == 1 && col >= t.size(-2));
}

template <KernelFn kernel>
void into_matrix(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  bool plain = kernel == linear_kernel ? out.is_contiguous() : takes_products(out);
  if (plain) return kernel(context, args, outs);
  Tensor product = make_tensor(Meta(out.dtype(), out.sizes(), out.device()));
  kernel(context, args, product);
  copy_elements(out, product);
}

}  // namespace

void register_matmul(const KernelTable& table) {
  table.set(mm_op, into_matrix<product_kernel>, kAnyStrides | kConjAware);
  table.set(bmm_op, into_matrix<product_kernel>, kAnyStrides | kConjAware);
  table.set(addmm_op, into_matrix<add_product_kernel>, kAnyStrides | kConjAware);
  table.set(baddbmm_op, into_matrix<add_product_kernel>, kAnyStrides | kConjAware);
  table.set(linear_op, into_matrix<linear_kernel>, kAnyStrides | kConjAware);
}

}  // namespace fornax::cpu
