// Kernels of the random operators: bulk Philox fills, then what remains as pointwise programs.
// Every result depends on (seed, offset) and sizes alone.
#include <cmath>
#include <type_traits>

#include "fornax/backends/cpu/pointwise.h"
#include "fornax/backends/cpu/random.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

PhiloxState state_of(const KernelContext& context) {
  return {context.random.seed, context.random.offset};
}

// Draws are made in float or double; other dtypes convert.
Dtype draw_dtype(Dtype d) { return to_real(d) == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32; }

template <class T>
T* data_of(const Tensor& t) {
  return static_cast<T*>(t.impl()->data());
}

// `out` itself where draws land there directly, else memory to convert from. A complex tensor has
// two numbers per element.
struct Draws {
  Tensor memory;
  int64_t n;
  bool direct;
};
Draws draws_for(const Tensor& out) {
  Dtype d = out.dtype(), draw = draw_dtype(d);
  int64_t n = out.numel() * (is_complex(d) ? 2 : 1);
  bool direct = to_real(d) == draw;
  if (direct) return {out, n, true};
  Dims sizes(out.sizes().begin(), out.sizes().end());
  Dtype type = is_complex(d) ? to_complex(draw) : draw;
  return {make_tensor(Meta(type, sizes)), n, false};
}
void land(const Draws& draws, const Tensor& out) {
  if (!draws.direct) copy_elements(out, draws.memory);
}

// f(float* or double*, n)
template <class F>
void fill_draws(const Tensor& out, F fill) {
  if (out.numel() == 0) return;
  Draws draws = draws_for(out);
  if (draw_dtype(out.dtype()) == Dtype::kF64)
    fill(data_of<double>(draws.memory), draws.n);
  else
    fill(data_of<float>(draws.memory), draws.n);
  land(draws, out);
}

// A uniform number of a 16-bit float has as many random bits as its significand: rounding a finer
// one could give the upper bound.
template <class T>
void coarsen(T* values, int64_t n, int digits, double low, double span) {
  T scale = std::ldexp(T(1), digits);
  parallel_for(0, n, 16384, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      values[i] = T(low) + T(span) * (std::floor(values[i] * scale) / scale);
  });
}

void draw_uniform(const KernelContext& context, const Tensor& out, double low, double high) {
  Dtype real = to_real(out.dtype());
  int digits = real == Dtype::kBF16 ? 8 : real == Dtype::kF16 ? 11 : 0;
  fill_draws(out, [&](auto* values, int64_t n) {
    using T = std::remove_reference_t<decltype(*values)>;
    if (digits == 0) {
      fill_uniform(values, n, state_of(context), T(low), T(high));
      return;
    }
    fill_uniform(values, n, state_of(context), T(0), T(1));
    coarsen(values, n, digits, low, high - low);
  });
}

// A complex number of variance std^2 has parts of half of it.
void draw_normal(const KernelContext& context, const Tensor& out, double mean, double std) {
  if (is_complex(out.dtype())) std *= std::sqrt(0.5);
  fill_draws(out, [&](auto* values, int64_t n) {
    using T = std::remove_reference_t<decltype(*values)>;
    fill_normal(values, n, state_of(context), T(mean), T(std));
  });
}

void draw_integers(const KernelContext& context, const Tensor& out, int64_t low, uint64_t range) {
  if (out.numel() == 0) return;
  bool direct = out.dtype() == Dtype::kI64;
  Dims sizes(out.sizes().begin(), out.sizes().end());
  Tensor memory = direct ? out : make_tensor(Meta(Dtype::kI64, sizes));
  fill_randint(data_of<int64_t>(memory), out.numel(), state_of(context), low, range);
  if (!direct) copy_elements(out, memory);
}

void pointwise(const Op& op, std::initializer_list<Arg> args, const Tensor& out) {
  pointwise_kernel({op, {}}, Args(args.begin(), args.size()), ArrayRef<Tensor>(out));
}

// ---- kernels
void uniform_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  draw_uniform(context, outs[0], args.real(1, 0), args.real(2, 1));
}
void rand_kernel(const KernelContext& context, Args, ArrayRef<Tensor> outs) {
  draw_uniform(context, outs[0], 0, 1);
}
void normal_functional_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  draw_normal(context, outs[0], args.real(1, 0), args.real(2, 1));
}
void randn_kernel(const KernelContext& context, Args, ArrayRef<Tensor> outs) {
  draw_normal(context, outs[0], 0, 1);
}

void normal_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  if (!args[0].is_tensor() && !args[1].is_tensor())
    return draw_normal(context, outs[0], args.real(0), args.real(1));
  Dims sizes(outs[0].sizes().begin(), outs[0].sizes().end());
  Tensor standard = make_tensor(Meta(outs[0].dtype(), sizes));
  draw_normal(context, standard, 0, 1);
  Arg std = args.has(1) ? args[1] : Arg(1.0);
  pointwise(addcmul_op, {args[0], standard, std, Arg()}, outs[0]);
}

void randint_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  int64_t low = args.integer(0, 0), high = args.integer(1);
  draw_integers(context, outs[0], low, uint64_t(high) - uint64_t(low));
}

// Without bounds: what the dtype counts exactly, both ends included.
void random_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (args.has(2)) {
    int64_t low = args.integer(1, 0), high = args.integer(2);
    return draw_integers(context, out, low, uint64_t(high) - uint64_t(low));
  }
  static constexpr struct {
    Dtype dtype;
    int64_t largest;
  } kLargest[] = {{Dtype::kBool, 1},        {Dtype::kU8, 255},
                  {Dtype::kI8, 127},        {Dtype::kI16, 32767},
                  {Dtype::kI32, INT32_MAX}, {Dtype::kI64, INT64_MAX},
                  {Dtype::kF16, 1 << 11},   {Dtype::kBF16, 1 << 8},
                  {Dtype::kF32, 1 << 24},   {Dtype::kF64, int64_t(1) << 53}};
  int64_t low = args.integer(1, 0);
  for (auto [dtype, largest] : kLargest)
    if (dtype == out.dtype())
      draw_integers(context, out, low, uint64_t(largest) - uint64_t(low) + 1);
}

void randperm_kernel(const KernelContext& context, Args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  int64_t n = out.numel();
  bool direct = out.dtype() == Dtype::kI64;
  Tensor memory = direct ? out : make_tensor(Meta(Dtype::kI64, Dims{n}));
  int64_t* at = data_of<int64_t>(memory);
  for (int64_t i = 0; i < n; ++i) at[i] = i;
  PhiloxStream stream(state_of(context));
  for (int64_t i = n - 1; i > 0; --i) std::swap(at[i], at[stream.below(uint64_t(i + 1))]);
  if (!direct) copy_elements(out, memory);
}

void bernoulli_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor& out = outs[0];
  if (out.numel() == 0) return;
  Dims sizes(out.sizes().begin(), out.sizes().end());
  if (args.has(1) && !args[1].is_tensor()) {
    double p = args.real(1);
    if (out.dtype() == Dtype::kF32) {
      fill_bernoulli(data_of<float>(out), out.numel(), state_of(context), p, 1.0f);
      return;
    }
    bool direct = out.element_size() == 1;
    Tensor memory = direct ? out : make_tensor(Meta(Dtype::kU8, sizes));
    fill_bernoulli(data_of<uint8_t>(memory), out.numel(), state_of(context), p, 1);
    if (!direct) copy_elements(out, memory);
    return;
  }
  const Tensor& p = args.tensor(args.has(1) ? 1 : 0);
  Tensor draws = make_tensor(Meta(draw_dtype(p.dtype()), sizes));
  draw_uniform(context, draws, 0, 1);
  pointwise(lt_op, {draws, p}, out);
}

void exponential_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  double rate = args.real(1, 1);
  fill_draws(outs[0], [&](auto* values, int64_t n) {
    using T = std::remove_reference_t<decltype(*values)>;
    fill_exponential(values, n, state_of(context), T(rate));
  });
}

// Draws in double and maps them one by one; for distributions nobody draws by the million.
template <class F>
void map_uniform(const KernelContext& context, const Tensor& out, F map) {
  if (out.numel() == 0) return;
  Dims sizes(out.sizes().begin(), out.sizes().end());
  Tensor draws = make_tensor(Meta(Dtype::kF64, sizes));
  double* values = data_of<double>(draws);
  fill_uniform(values, out.numel(), state_of(context), 0.0, 1.0);
  parallel_for(0, out.numel(), 1024, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) values[i] = map(values[i]);
  });
  copy_elements(out, draws);
}

void geometric_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  double per_trial = std::log1p(-args.real(1));
  map_uniform(context, outs[0],
              [&](double u) { return std::max(1.0, std::ceil(std::log1p(-u) / per_trial)); });
}
void cauchy_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  double median = args.real(1, 0), sigma = args.real(2, 1);
  map_uniform(context, outs[0],
              [&](double u) { return median + sigma * std::tan(M_PI * (u - 0.5)); });
}
void log_normal_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  draw_normal(context, outs[0], args.real(1, 1), args.real(2, 2));
  pointwise(exp_op, {outs[0]}, outs[0]);
}

void native_dropout_kernel(const KernelContext& context, Args args, ArrayRef<Tensor> outs) {
  const Tensor &x = args.tensor(0), &mask = outs[1];
  if (x.numel() == 0) return;
  double p = args.real(1);
  bool train = args.flag(2, true);
  fill_bernoulli(data_of<uint8_t>(mask), mask.numel(), state_of(context), train ? 1 - p : 1, 1);
  double scale = !train ? 1 : p == 1 ? 0 : 1 / (1 - p);
  pointwise(native_dropout_backward_op, {x, mask, scale}, outs[0]);
}

}  // namespace

void register_random(const KernelTable& table) {
  table.set(uniform_op, uniform_kernel);
  table.set(normal_functional_op, normal_functional_kernel);
  table.set(random_op, random_kernel);
  table.set(bernoulli_op, bernoulli_kernel);
  table.set(exponential_op, exponential_kernel);
  table.set(geometric_op, geometric_kernel);
  table.set(cauchy_op, cauchy_kernel);
  table.set(log_normal_op, log_normal_kernel);
  table.set(rand_op, rand_kernel);
  table.set(randn_op, randn_kernel);
  table.set(randint_op, randint_kernel);
  table.set(randperm_op, randperm_kernel);
  table.set(normal_op, normal_kernel);
  table.set(native_dropout_op, native_dropout_kernel);
}

}  // namespace fornax::cpu
