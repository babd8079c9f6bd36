// Convolutions against plain loops in double: every dtype, engine, layout and all three passes.
#include "fornax/backends/cpu/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "fornax/base/error.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

using Z = Complex<double>;

template <class T>
Z to_z(T v) {
  if constexpr (is_complex(dtype_of<T>))
    return Z(double(v.re), double(v.im));
  else
    return Z(double(v));
}
template <class T>
T from_z(Z v) {
  if constexpr (is_complex(dtype_of<T>)) {
    using R = decltype(T().re);
    return T(R(v.re), R(v.im));
  } else {
    return T(v.re);
  }
}

int64_t product(const int64_t* sizes, int n) {
  int64_t all = 1;
  for (int i = 0; i < n; i++) all *= sizes[i];
  return all;
}

// A tensor [a, b, positions] kept in logical order, and its image in memory.
template <class T>
struct Tensor {
  int64_t a, b, positions;
  ConvLayout layout;
  std::vector<Z> values;
  std::vector<T> memory;

  Tensor(int64_t first, int64_t second, int64_t third, ConvLayout order, std::mt19937& random)
      : a(first), b(second), positions(third), layout(order) {
    std::uniform_real_distribution<double> real(-1, 1);
    std::uniform_int_distribution<int> whole(-3, 3);
    values.resize(size_t(a * b * positions));
    memory.resize(values.size());
    for (int64_t i = 0; i < int64_t(values.size()); i++) {
      T v;
      if constexpr (is_integer(dtype_of<T>))
        v = T(whole(random));
      else
        v = from_z<T>(Z(real(random), real(random)));
      values[size_t(i)] = to_z(v);
      memory[size_t(place(i))] = v;
    }
  }
  // Where logical element i lies in memory.
  int64_t place(int64_t i) const {
    if (layout == ConvLayout::kContiguous) return i;
    const int64_t p = i % positions, channel = i / positions % b, outer = i / positions / b;
    return (outer * positions + p) * b + channel;
  }
};

// Calls body(in index, weight index, out index) for every product of the convolution.
template <class Body>
void each_product(const Conv& c, Body body) {
  int64_t in[3] = {1, 1, 1}, k[3] = {1, 1, 1}, out[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  for (int i = 0; i < c.spatial; i++) {
    in[i] = c.in_size[i], k[i] = c.kernel[i], out[i] = c.out_size[i], stride[i] = c.stride[i];
    pad[i] = c.pad[i], dilation[i] = c.dilation[i];
  }
  const int64_t in_group = c.in_channels / c.groups, out_group = c.out_channels / c.groups;
  const int64_t taps = product(k, 3), places = product(out, 3);
  for (int64_t n = 0; n < c.batch; n++)
    for (int64_t o = 0; o < c.out_channels; o++)
      for (int64_t p = 0; p < places; p++)
        for (int64_t t = 0; t < taps; t++) {
          const int64_t at[3] = {
              p / out[2] / out[1] * stride[0] + t / k[2] / k[1] * dilation[0] - pad[0],
              p / out[2] % out[1] * stride[1] + t / k[2] % k[1] * dilation[1] - pad[1],
              p % out[2] * stride[2] + t % k[2] * dilation[2] - pad[2]};
          bool inside = true;
          for (int i = 0; i < 3; i++) inside = inside && at[i] >= 0 && at[i] < in[i];
          if (!inside) continue;
          for (int64_t i = 0; i < in_group; i++) {
            const int64_t channel = o / out_group * in_group + i;
            const int64_t in_index = (n * c.in_channels + channel) * product(in, 3) +
                                     (at[0] * in[1] + at[1]) * in[2] + at[2];
            body(in_index, (o * in_group + i) * taps + t, (n * c.out_channels + o) * places + p);
          }
        }
}

template <class T>
double slack(double magnitude) {
  double one = 0, sum = 0x1p-23;
  switch (to_real(dtype_of<T>)) {
    case Dtype::kF16: one = 0x1p-11; break;
    case Dtype::kBF16: one = 0x1p-8; break;
    case Dtype::kF32: one = 0x1p-23; break;
    case Dtype::kF64: one = sum = 0x1p-52; break;
    default: return 0;
  }
  return one * (magnitude + 1e-2) + sum * 40 * (magnitude + 2);
}

template <class T>
void expect_tensor(const std::vector<Z>& want, const std::vector<double>& magnitude,
                   const Tensor<T>& got, const char* what) {
  for (size_t i = 0; i < want.size(); i++) {
    const Z v = to_z(got.memory[size_t(got.place(int64_t(i)))]);
    if constexpr (is_integer(dtype_of<T>)) {
      ASSERT_EQ(T(int64_t(want[i].re)), T(int64_t(v.re))) << what << " at " << i;
    } else {
      const double most = slack<T>(magnitude[i]);
      ASSERT_LE(std::abs(v.re - want[i].re), most)
          << what << " at " << i << ": " << v.re << " instead of " << want[i].re;
      ASSERT_LE(std::abs(v.im - want[i].im), most) << what << " at " << i;
    }
  }
}

struct Sums {
  std::vector<Z> value;
  std::vector<double> magnitude;

  explicit Sums(size_t n) : value(n), magnitude(n) {}
  void add(size_t i, Z v) {
    value[i] = value[i] + v;
    magnitude[i] += std::abs(v.re) + std::abs(v.im);
  }
};

template <class T>
void check(const Conv& conv, bool with_bias) {
  Conv c = conv;
  c.dtype = dtype_of<T>;
  std::mt19937 random(3);
  const int64_t in_places = product(c.in_size, c.spatial),
                out_places = product(c.out_size, c.spatial), taps = product(c.kernel, c.spatial);
  Tensor<T> in(c.batch, c.in_channels, in_places, c.in_layout, random);
  Tensor<T> weight(c.out_channels, c.in_channels / c.groups, taps, c.weight_layout, random);
  Tensor<T> out(c.batch, c.out_channels, out_places, c.out_layout, random);
  Tensor<T> bias(1, c.out_channels, 1, ConvLayout::kContiguous, random);
  Tensor<T> in_bias(1, c.in_channels, 1, ConvLayout::kContiguous, random);
  Sums forward(out.values.size()), data(in.values.size()), weights(weight.values.size()),
      sums(bias.values.size());
  each_product(c, [&](int64_t i, int64_t w, int64_t o) {
    forward.add(size_t(o), in.values[size_t(i)] * weight.values[size_t(w)]);
    data.add(size_t(i), out.values[size_t(o)] * weight.values[size_t(w)]);
    weights.add(size_t(w), in.values[size_t(i)] * out.values[size_t(o)]);
  });
  for (size_t i = 0; i < out.values.size(); i++) {
    const size_t channel = i / size_t(out_places) % size_t(c.out_channels);
    sums.add(channel, out.values[i]);
    if (with_bias) forward.add(i, bias.values[channel]);
  }
  for (size_t i = 0; with_bias && i < in.values.size(); i++)
    data.add(i, in_bias.values[i / size_t(in_places) % size_t(c.in_channels)]);

  Tensor<T> result = out;
  conv_forward(c, in.memory.data(), weight.memory.data(), with_bias ? bias.memory.data() : nullptr,
               result.memory.data());
  expect_tensor(forward.value, forward.magnitude, result, "forward");
  Tensor<T> grad_in = in;
  conv_backward_data(c, out.memory.data(), weight.memory.data(),
                     with_bias ? in_bias.memory.data() : nullptr, grad_in.memory.data());
  expect_tensor(data.value, data.magnitude, grad_in, "gradient to input");
  Tensor<T> grad_weight = weight, grad_bias = bias;
  conv_backward_weights(c, in.memory.data(), out.memory.data(), grad_weight.memory.data(),
                        with_bias ? grad_bias.memory.data() : nullptr);
  expect_tensor(weights.value, weights.magnitude, grad_weight, "gradient to weight");
  if (with_bias) expect_tensor(sums.value, sums.magnitude, grad_bias, "gradient to bias");
}

// Fills in out_size.
Conv sized(Conv c) {
  for (int i = 0; i < c.spatial; i++)
    c.out_size[i] =
        (c.in_size[i] + c.pad[i] + c.pad_right[i] - c.dilation[i] * (c.kernel[i] - 1) - 1) /
            c.stride[i] +
        1;
  return c;
}

std::vector<Conv> geometries() {
  return {
      {.batch = 2, .in_channels = 3, .out_channels = 4, .in_size = {7, 8}, .kernel = {3, 3}},
      {.batch = 2,
       .in_channels = 5,
       .out_channels = 16,
       .in_size = {7, 8},
       .kernel = {3, 3},
       .pad = {1, 1},
       .pad_right = {1, 1}},
      // Leaves the last row and column unread.
      {.batch = 1,
       .in_channels = 3,
       .out_channels = 8,
       .in_size = {10, 12},
       .kernel = {3, 3},
       .stride = {2, 2}},
      {.batch = 1,
       .in_channels = 3,
       .out_channels = 8,
       .in_size = {15, 14},
       .kernel = {7, 7},
       .stride = {2, 2},
       .pad = {3, 3},
       .pad_right = {3, 3}},
      {.batch = 2, .in_channels = 8, .out_channels = 16, .in_size = {6, 5}, .kernel = {1, 1}},
      {.batch = 1,
       .in_channels = 8,
       .out_channels = 8,
       .in_size = {6, 5},
       .kernel = {1, 1},
       .stride = {2, 2}},
      {.batch = 1,
       .in_channels = 4,
       .out_channels = 6,
       .in_size = {12, 11},
       .kernel = {3, 2},
       .pad = {2, 0},
       .pad_right = {1, 3},
       .dilation = {2, 3}},
      // Grouped, depthwise, depthwise with a multiplier.
      {.batch = 2,
       .in_channels = 6,
       .out_channels = 4,
       .groups = 2,
       .in_size = {6, 6},
       .kernel = {3, 3},
       .pad = {1, 1},
       .pad_right = {1, 1}},
      {.batch = 2,
       .in_channels = 32,
       .out_channels = 32,
       .groups = 32,
       .in_size = {6, 6},
       .kernel = {3, 3},
       .pad = {1, 1},
       .pad_right = {1, 1}},
      {.batch = 1,
       .in_channels = 4,
       .out_channels = 8,
       .groups = 4,
       .in_size = {9, 6},
       .kernel = {3, 3},
       .stride = {2, 1},
       .pad = {1, 1},
       .pad_right = {1, 1}},
      {.spatial = 1,
       .batch = 3,
       .in_channels = 4,
       .out_channels = 5,
       .in_size = {20},
       .kernel = {5},
       .stride = {3},
       .pad = {2},
       .pad_right = {2}},
      {.spatial = 1,
       .batch = 1,
       .in_channels = 16,
       .out_channels = 32,
       .in_size = {30},
       .kernel = {3},
       .pad = {4},
       .dilation = {2}},
      {.spatial = 3,
       .batch = 2,
       .in_channels = 3,
       .out_channels = 4,
       .in_size = {4, 5, 6},
       .kernel = {3, 2, 3},
       .stride = {1, 2, 2},
       .pad = {1, 0, 1},
       .pad_right = {1, 1, 1}},
      // Padding beyond the input: some windows see nothing but zeros.
      {.batch = 1,
       .in_channels = 2,
       .out_channels = 3,
       .in_size = {2, 3},
       .kernel = {2, 2},
       .pad = {3, 4},
       .pad_right = {4, 3}},
      {.batch = 0, .in_channels = 2, .out_channels = 3, .in_size = {4, 4}, .kernel = {2, 2}},
      {.batch = 2, .in_channels = 0, .out_channels = 3, .in_size = {4, 4}, .kernel = {2, 2}},
  };
}

constexpr ConvLayout kLayouts[] = {ConvLayout::kContiguous, ConvLayout::kChannelsLast};

template <class T>
void check_all() {
  int number = 0;
  for (Conv c : geometries()) {
    SCOPED_TRACE(str(name_of(dtype_of<T>), " geometry ", number++));
    for (ConvLayout activations : kLayouts)
      for (ConvLayout weight : kLayouts) {
        SCOPED_TRACE(str("layouts ", int(activations), int(weight)));
        c.in_layout = c.out_layout = activations;
        c.weight_layout = weight;
        check<T>(sized(c), weight == activations);
        if (testing::Test::HasFatalFailure()) return;
      }
    c.in_layout = ConvLayout::kContiguous;
    c.out_layout = ConvLayout::kChannelsLast;
    check<T>(sized(c), true);
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class T>
class ConvOf : public testing::Test {};
using All = testing::Types<float, double, BFloat16, Half, Complex<float>, Complex<double>, uint8_t,
                           int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(ConvOf, All);
TYPED_TEST(ConvOf, AllPasses) { check_all<TypeParam>(); }

TEST(Conv, OwnEngineInFloat) {
  set_conv_engine(ConvEngine::kOwn);
  check_all<float>();
  check_all<Half>();
  set_conv_engine(ConvEngine::kAuto);
}

TEST(Conv, LibraryInReducedTypes) {
  set_conv_engine(ConvEngine::kLibrary);
  check_all<BFloat16>();
  check_all<Half>();
  set_conv_engine(ConvEngine::kAuto);
}

// Several steps of patches, and sizes at which oneDNN takes its blocked kernels.
TEST(Conv, LargerSizes) {
  const Conv c = sized({.batch = 2,
                        .in_channels = 32,
                        .out_channels = 48,
                        .in_size = {40, 40},
                        .kernel = {3, 3},
                        .pad = {1, 1},
                        .pad_right = {1, 1}});
  check<float>(c, true);
  check<double>(c, true);
}

TEST(Conv, SecondCallUsesTheCachedPrimitive) {
  for (int i = 0; i < 3; i++) check<float>(sized(geometries()[1]), true);
}

// A primitive is made for a number of threads; one made for another must not be used.
TEST(Conv, NumberOfThreadsChangesBetweenCalls) {
  const Conv c = sized({.batch = 4,
                        .in_channels = 32,
                        .out_channels = 32,
                        .in_size = {14, 14},
                        .kernel = {3, 3},
                        .pad = {1, 1},
                        .pad_right = {1, 1}});
  const int before = get_num_threads();
  for (int threads : {1, 4, 2, 1}) {
    set_num_threads(threads);
    check<float>(c, true);
  }
  set_num_threads(before);
}

TEST(Conv, SameBitsOnAnyNumberOfThreads) {
  Conv c = sized({.dtype = Dtype::kF64,
                  .batch = 3,
                  .in_channels = 8,
                  .out_channels = 8,
                  .in_size = {20, 20},
                  .kernel = {3, 3}});
  std::vector<double> in(size_t(3 * 8 * 400)), weight(size_t(8 * 8 * 9)), out(size_t(3 * 8 * 324));
  for (size_t i = 0; i < in.size(); i++) in[i] = std::sin(double(i));
  for (size_t i = 0; i < weight.size(); i++) weight[i] = std::cos(double(i));
  auto other = out;
  conv_forward(c, in.data(), weight.data(), nullptr, out.data());
  {
    ThreadLimit limit(1);
    conv_forward(c, in.data(), weight.data(), nullptr, other.data());
  }
  EXPECT_EQ(out, other);
}

// conv_transpose1d of [1, 2, 3] with weight [1, 10, 100], stride 2: hand-computed.
TEST(Conv, TransposedByItsDocumentedRoles) {
  Conv c{.spatial = 1,
         .batch = 1,
         .in_channels = 1,
         .out_channels = 1,
         .in_size = {7},
         .kernel = {3},
         .out_size = {3},
         .stride = {2}};
  const float x[] = {1, 2, 3}, weight[] = {1, 10, 100}, bias[] = {0.5f};
  float y[7];
  conv_backward_data(c, x, weight, bias, y);
  const float want[] = {1.5f, 10.5f, 102.5f, 20.5f, 203.5f, 30.5f, 300.5f};
  for (int i = 0; i < 7; i++) EXPECT_EQ(y[i], want[i]) << i;
}

TEST(Conv, Errors) {
  Conv c{.batch = 1, .in_channels = 3, .out_channels = 4, .groups = 2, .in_size = {4, 4}};
  EXPECT_THROW(conv_forward(c, nullptr, nullptr, nullptr, nullptr), Error);
  c.groups = 1;
  c.out_size[0] = 9;
  EXPECT_THROW(conv_forward(c, nullptr, nullptr, nullptr, nullptr), Error);
  float x[48];
  Conv b{.dtype = Dtype::kBool, .batch = 1, .in_channels = 1, .out_channels = 1};
  EXPECT_THROW(conv_forward(b, x, x, nullptr, x), Error);
}

}  // namespace
}  // namespace fornax::cpu
