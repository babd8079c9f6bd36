#include "fornax/nn/init.h"

#include <algorithm>
#include <cmath>

#include "fornax/autograd/autograd.h"
#include "fornax/nn/cloneable.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"

namespace fornax::nn::init {
namespace {

// Row-major values into a tensor of any dtype and device.
Tensor fill(Tensor tensor, const std::vector<double>& values) {
  NoGradGuard no_grad;
  Tensor host =
      from_blob(const_cast<double*>(values.data()), tensor.sizes(), TensorOptions(Dtype::kF64));
  tensor.copy_(host);
  return tensor;
}

// n random doubles on the host.
std::vector<double> normals(int64_t n) {
  Tensor t = empty({n}, TensorOptions(Dtype::kF64)).normal_(0.0, 1.0);
  const double* p = t.data_ptr<double>();
  return std::vector<double>(p, p + n);
}

// The first `cols` columns of Q of a QR decomposition of a rows x cols matrix (rows >= cols), with
// the signs that make R's diagonal positive: uniformly distributed for normal entries.
// Gram-Schmidt, twice for full accuracy.
void orthonormal_columns(std::vector<double>& a, int64_t rows, int64_t cols) {
  auto at = [&](int64_t i, int64_t j) -> double& { return a[size_t(i * cols + j)]; };
  for (int64_t j = 0; j < cols; ++j) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < j; ++k) {
        double dot = 0;
        for (int64_t i = 0; i < rows; ++i) dot += at(i, k) * at(i, j);
        for (int64_t i = 0; i < rows; ++i) at(i, j) -= dot * at(i, k);
      }
    }
    double norm = 0;
    for (int64_t i = 0; i < rows; ++i) norm += at(i, j) * at(i, j);
    norm = std::sqrt(norm);
    for (int64_t i = 0; i < rows; ++i) at(i, j) /= norm;
  }
}

double fan_of(const Tensor& tensor, Choice mode) {
  auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  FX_CHECK(mode == kFanIn || mode == kFanOut, kValue, "init: mode must be kFanIn or kFanOut, got ",
           name_of(mode));
  return double(mode == kFanIn ? in : out);
}

}  // namespace

double calculate_gain(Choice nonlinearity, double param) {
  switch (nonlinearity) {
    case Choice::kTanh: return 5.0 / 3.0;
    case Choice::kReLU: return std::sqrt(2.0);
    case Choice::kLeakyReLU: return std::sqrt(2.0 / (1 + param * param));
    case Choice::kSELU: return 3.0 / 4.0;
    case Choice::kLinear:
    case Choice::kConv1D:
    case Choice::kConv2D:
    case Choice::kConv3D:
    case Choice::kConvTranspose1D:
    case Choice::kConvTranspose2D:
    case Choice::kConvTranspose3D:
    case Choice::kSigmoid: return 1.0;
    default: fail(ErrorKind::kValue, "calculate_gain: no gain for ", name_of(nonlinearity));
  }
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  FX_CHECK(tensor.dim() >= 2, kShape, "init: fan in and fan out need at least 2 dimensions, got ",
           tensor.dim(), "-D");
  if (tensor.numel() == 0) return {tensor.size(1), tensor.size(0)};
  int64_t field = tensor.numel() / (tensor.size(0) * tensor.size(1));
  return {tensor.size(1) * field, tensor.size(0) * field};
}

Tensor constant_(Tensor tensor, const Scalar& value) {
  if (nn::detail::skips_init()) return tensor;
  NoGradGuard no_grad;
  tensor.fill_(value);
  return tensor;
}
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }

Tensor uniform_(Tensor tensor, double low, double high) {
  if (nn::detail::skips_init()) return tensor;
  NoGradGuard no_grad;
  tensor.uniform_(low, high);
  return tensor;
}

Tensor normal_(Tensor tensor, double mean, double std) {
  if (nn::detail::skips_init()) return tensor;
  NoGradGuard no_grad;
  tensor.normal_(mean, std);
  return tensor;
}

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  FX_CHECK(a < b && std > 0, kValue, "trunc_normal_: expected a < b and std > 0, got a=", a,
           ", b=", b, ", std=", std);
  double low = (a - mean) / std, high = (b - mean) / std;
  FX_CHECK(low < 3 && high > -3, kValue, "trunc_normal_: [", a, ", ", b,
           "] is more than 3 standard deviations away from the mean ", mean);
  if (nn::detail::skips_init()) return tensor;
  // Draws again whatever fell outside.
  std::vector<double> values(size_t(tensor.numel()));
  size_t done = 0;
  while (done < values.size()) {
    for (double x : normals(std::max<int64_t>(64, int64_t(values.size() - done)))) {
      if (x < low || x > high || done == values.size()) continue;
      values[done++] = std::clamp(mean + std * x, a, b);
    }
  }
  return fill(std::move(tensor), values);
}

Tensor eye_(Tensor matrix) {
  FX_CHECK(matrix.dim() == 2, kShape, "eye_: expected a 2-D tensor, got ", matrix.dim(), "-D");
  if (nn::detail::skips_init()) return matrix;
  int64_t rows = matrix.size(0), cols = matrix.size(1);
  std::vector<double> values(size_t(rows * cols), 0.0);
  for (int64_t i = 0; i < std::min(rows, cols); ++i) values[size_t(i * cols + i)] = 1;
  return fill(std::move(matrix), values);
}

Tensor dirac_(Tensor tensor) {
  FX_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, kShape,
           "dirac_: expected a 3-D, 4-D or 5-D tensor, got ", tensor.dim(), "-D");
  if (nn::detail::skips_init()) return tensor;
  int64_t centre = 0, field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) {
    centre = centre * tensor.size(d) + tensor.size(d) / 2;
    field *= tensor.size(d);
  }
  std::vector<double> values(size_t(tensor.numel()), 0.0);
  for (int64_t c = 0; c < std::min(tensor.size(0), tensor.size(1)); ++c)
    values[size_t((c * tensor.size(1) + c) * field + centre)] = 1;
  return fill(std::move(tensor), values);
}

Tensor orthogonal_(Tensor tensor, double gain) {
  FX_CHECK(tensor.dim() >= 2, kShape, "orthogonal_: expected at least 2 dimensions, got ",
           tensor.dim(), "-D");
  if (nn::detail::skips_init() || tensor.numel() == 0) return tensor;
  int64_t rows = tensor.size(0), cols = tensor.numel() / rows;
  int64_t tall = std::max(rows, cols), thin = std::min(rows, cols);
  std::vector<double> q = normals(tall * thin), values(q.size());
  orthonormal_columns(q, tall, thin);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      values[size_t(i * cols + j)] =
          gain * (rows >= cols ? q[size_t(i * thin + j)] : q[size_t(j * thin + i)]);
  return fill(std::move(tensor), values);
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  FX_CHECK(tensor.dim() == 2, kShape, "sparse_: expected a 2-D tensor, got ", tensor.dim(), "-D");
  if (nn::detail::skips_init()) return tensor;
  int64_t rows = tensor.size(0), cols = tensor.size(1);
  int64_t zeros = int64_t(std::ceil(sparsity * double(rows)));
  std::vector<double> values = normals(rows * cols), order = normals(rows * cols);
  for (double& v : values) v *= std;
  std::vector<int64_t> row(static_cast<size_t>(rows));
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < rows; ++i) row[size_t(i)] = i;
    std::sort(row.begin(), row.end(), [&](int64_t a, int64_t b) {
      return order[size_t(a * cols + j)] < order[size_t(b * cols + j)];
    });
    for (int64_t i = 0; i < zeros; ++i) values[size_t(row[size_t(i)] * cols + j)] = 0;
  }
  return fill(std::move(tensor), values);
}

Tensor kaiming_uniform_(Tensor tensor, double a, Choice mode, Choice nonlinearity) {
  double bound = std::sqrt(3.0) * calculate_gain(nonlinearity, a) / std::sqrt(fan_of(tensor, mode));
  return uniform_(std::move(tensor), -bound, bound);
}

Tensor kaiming_normal_(Tensor tensor, double a, Choice mode, Choice nonlinearity) {
  double std = calculate_gain(nonlinearity, a) / std::sqrt(fan_of(tensor, mode));
  return normal_(std::move(tensor), 0, std);
}

Tensor xavier_uniform_(Tensor tensor, double gain) {
  auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  double bound = gain * std::sqrt(6.0 / double(in + out));
  return uniform_(std::move(tensor), -bound, bound);
}

Tensor xavier_normal_(Tensor tensor, double gain) {
  auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return normal_(std::move(tensor), 0, gain * std::sqrt(2.0 / double(in + out)));
}

}  // namespace fornax::nn::init
