// Pooling against plain loops in double.
#include "fornax/backends/cpu/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "fornax/base/error.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

int64_t product(const int64_t* sizes, int n) {
  int64_t all = 1;
  for (int i = 0; i < n; i++) all *= sizes[i];
  return all;
}

// Where logical element (outer, channel, position) lies.
int64_t place(const Pool& p, int64_t positions, int64_t n, int64_t c, int64_t at) {
  if (p.layout == ConvLayout::kChannelsLast) return (n * positions + at) * p.channels + c;
  return (n * p.channels + c) * positions + at;
}

// The input positions that output position `o` covers, in order, and the divisor of its average.
struct Window {
  std::vector<int64_t> positions;
  double divisor = 1;
};

Window window_of(const Pool& p, int64_t o, bool dilated) {
  Window w;
  w.positions = {0};
  int64_t size = 1, counted = 1;
  int64_t rest = o, coordinate[3] = {0, 0, 0};
  for (int i = p.spatial; i-- > 0;) {
    coordinate[i] = rest % p.out_size[i];
    rest /= p.out_size[i];
  }
  for (int i = 0; i < p.spatial; i++) {
    std::vector<int64_t> inside;
    const int64_t in = p.in_size[i], x = coordinate[i];
    if (p.adaptive) {
      const auto first = int64_t(std::floor(double(x) * double(in) / double(p.out_size[i])));
      const auto end = int64_t(std::ceil(double(x + 1) * double(in) / double(p.out_size[i])));
      for (int64_t at = first; at < end; at++) inside.push_back(at);
      counted *= end - first;
    } else {
      int64_t with_padding = 0;
      for (int64_t k = 0; k < p.kernel[i]; k++) {
        const int64_t at = x * p.stride[i] - p.pad[i] + k * (dilated ? p.dilation[i] : 1);
        if (at < in + p.pad[i]) with_padding++;
        if (at >= 0 && at < in) inside.push_back(at);
      }
      counted *= with_padding;
    }
    size *= int64_t(inside.size());
    std::vector<int64_t> all;
    for (int64_t before : w.positions)
      for (int64_t at : inside) all.push_back(before * in + at);
    w.positions = all;
  }
  w.divisor = double(p.divisor != 0 ? p.divisor : p.count_include_pad ? counted : size);
  return w;
}

template <class T>
std::vector<T> random_values(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> whole(-9, 9);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& e : v) e = is_integer(dtype_of<T>) ? T(whole(random)) : T(float(real(random)));
  return v;
}

template <class T>
double tolerance() {
  switch (dtype_of<T>) {
    case Dtype::kF16: return 0x1p-10;
    case Dtype::kBF16: return 0x1p-7;
    case Dtype::kF32: return 0x1p-20;
    case Dtype::kF64: return 0x1p-48;
    default: return 0;
  }
}

template <class T>
void check_max(const Pool& p) {
  const int64_t ni = product(p.in_size, p.spatial), no = product(p.out_size, p.spatial);
  const auto in = random_values<T>(p.batch * p.channels * ni, 1),
             grad = random_values<T>(p.batch * p.channels * no, 2);
  std::vector<T> out(grad.size()), no_indices(grad.size()), grad_in(in.size(), T(77));
  std::vector<int64_t> indices(out.size(), -1);
  max_pool_forward(p, in.data(), out.data(), indices.data());
  max_pool_forward(p, in.data(), no_indices.data(), nullptr);
  std::vector<double> want_grad(in.size());
  for (int64_t n = 0; n < p.batch; n++)
    for (int64_t c = 0; c < p.channels; c++)
      for (int64_t o = 0; o < no; o++) {
        const Window w = window_of(p, o, true);
        int64_t best = w.positions.at(0);
        for (int64_t at : w.positions)
          if (double(in[size_t(place(p, ni, n, c, at))]) >
              double(in[size_t(place(p, ni, n, c, best))]))
            best = at;
        const auto here = size_t(place(p, no, n, c, o));
        const T value = in[size_t(place(p, ni, n, c, best))];
        ASSERT_EQ(double(out[here]), double(value)) << n << "," << c << "," << o;
        ASSERT_EQ(double(no_indices[here]), double(value));
        ASSERT_EQ(indices[here], best) << n << "," << c << "," << o;
        want_grad[size_t(place(p, ni, n, c, best))] += double(grad[here]);
      }
  max_pool_backward(p, grad.data(), indices.data(), grad_in.data());
  for (size_t i = 0; i < want_grad.size(); i++) {
    const double want = is_integer(dtype_of<T>) ? double(T(int64_t(want_grad[i]))) : want_grad[i];
    ASSERT_NEAR(double(grad_in[i]), want, tolerance<T>() * (1 + std::abs(want))) << i;
  }
}

template <class T>
void check_avg(const Pool& p) {
  const int64_t ni = product(p.in_size, p.spatial), no = product(p.out_size, p.spatial);
  const auto in = random_values<T>(p.batch * p.channels * ni, 1),
             grad = random_values<T>(p.batch * p.channels * no, 2);
  std::vector<T> out(grad.size()), grad_in(in.size(), T(77));
  avg_pool_forward(p, in.data(), out.data());
  avg_pool_backward(p, grad.data(), grad_in.data());
  std::vector<double> want_grad(in.size());
  const bool whole = is_integer(dtype_of<T>);
  for (int64_t n = 0; n < p.batch; n++)
    for (int64_t c = 0; c < p.channels; c++)
      for (int64_t o = 0; o < no; o++) {
        const Window w = window_of(p, o, false);
        const auto here = size_t(place(p, no, n, c, o));
        double sum = 0;
        for (int64_t at : w.positions) {
          const auto from = size_t(place(p, ni, n, c, at));
          sum += double(in[from]);
          const double share = double(grad[here]) / w.divisor;
          want_grad[from] += whole ? std::trunc(share) : share;
        }
        const double want = whole ? std::trunc(sum / w.divisor) : sum / w.divisor;
        ASSERT_NEAR(double(out[here]), want, tolerance<T>() * (1 + std::abs(want)))
            << n << "," << c << "," << o;
      }
  for (size_t i = 0; i < want_grad.size(); i++)
    ASSERT_NEAR(double(grad_in[i]), want_grad[i], tolerance<T>() * (1 + std::abs(want_grad[i])))
        << i;
}

int64_t pooled(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
               bool ceil) {
  const int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
  int64_t out = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  // A window must start inside the input or its left padding.
  if (ceil && (out - 1) * stride >= in + pad) out--;
  return out;
}
Pool sized(Pool p, bool ceil = false) {
  for (int i = 0; i < p.spatial; i++)
    p.out_size[i] = pooled(p.in_size[i], p.kernel[i], p.stride[i], p.pad[i], p.dilation[i], ceil);
  return p;
}

std::vector<Pool> poolings() {
  return {
      sized({.batch = 2, .channels = 3, .in_size = {8, 40}, .kernel = {2, 2}, .stride = {2, 2}}),
      sized({.batch = 2,
             .channels = 5,
             .in_size = {9, 57},
             .kernel = {3, 3},
             .stride = {2, 2},
             .pad = {1, 1}}),
      sized({.batch = 1,
             .channels = 70,
             .in_size = {7, 6},
             .kernel = {3, 3},
             .stride = {2, 2},
             .pad = {1, 1}},
            true),
      sized({.batch = 1,
             .channels = 2,
             .in_size = {10, 11},
             .kernel = {3, 2},
             .stride = {1, 3},
             .pad = {1, 0}},
            true),
      sized({.batch = 1,
             .channels = 2,
             .in_size = {12, 13},
             .kernel = {3, 3},
             .stride = {1, 2},
             .pad = {1, 1},
             .dilation = {2, 3}}),
      sized({.spatial = 1,
             .batch = 3,
             .channels = 4,
             .in_size = {1200},
             .kernel = {5},
             .stride = {2},
             .pad = {2}}),
      sized({.spatial = 3,
             .batch = 2,
             .channels = 3,
             .in_size = {4, 5, 6},
             .kernel = {2, 3, 2},
             .stride = {2, 1, 2},
             .pad = {1, 1, 0}}),
      sized({.batch = 1, .channels = 600, .in_size = {5, 5}, .kernel = {5, 5}, .stride = {5, 5}}),
      {.adaptive = true, .batch = 2, .channels = 3, .in_size = {7, 7}, .out_size = {1, 1}},
      {.adaptive = true, .batch = 2, .channels = 66, .in_size = {10, 7}, .out_size = {3, 5}},
      {.adaptive = true, .batch = 1, .channels = 2, .in_size = {3, 4}, .out_size = {7, 4}},
      {.spatial = 1, .adaptive = true, .batch = 1, .channels = 2, .in_size = {31}, .out_size = {8}},
      {.spatial = 3,
       .adaptive = true,
       .batch = 1,
       .channels = 2,
       .in_size = {4, 5, 6},
       .out_size = {2, 2, 4}},
      sized({.batch = 0, .channels = 3, .in_size = {8, 8}, .kernel = {2, 2}, .stride = {2, 2}}),
      sized({.batch = 2, .channels = 0, .in_size = {8, 8}, .kernel = {2, 2}, .stride = {2, 2}}),
  };
}

template <class T, class Check>
void check_all(Check check) {
  int number = 0;
  for (Pool p : poolings()) {
    p.dtype = dtype_of<T>;
    for (ConvLayout layout : {ConvLayout::kContiguous, ConvLayout::kChannelsLast}) {
      SCOPED_TRACE(str(name_of(p.dtype), " pooling ", number, " layout ", int(layout)));
      p.layout = layout;
      check(p);
      if (testing::Test::HasFatalFailure()) return;
    }
    number++;
  }
}

template <class T>
class MaxPoolOf : public testing::Test {};
using AllTypes =
    testing::Types<float, double, BFloat16, Half, uint8_t, int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(MaxPoolOf, AllTypes);
TYPED_TEST(MaxPoolOf, AllWindows) {
  check_all<TypeParam>([](const Pool& p) { check_max<TypeParam>(p); });
}

template <class T>
class AvgPoolOf : public testing::Test {};
using Averaged = testing::Types<float, double, BFloat16, Half, int64_t>;
TYPED_TEST_SUITE(AvgPoolOf, Averaged);
TYPED_TEST(AvgPoolOf, AllWindows) {
  check_all<TypeParam>([](const Pool& p) { check_avg<TypeParam>(p); });
  check_all<TypeParam>([](Pool p) {
    p.count_include_pad = false;
    check_avg<TypeParam>(p);
    p.divisor = 3;
    check_avg<TypeParam>(p);
  });
}

// Values as PyTorch prints them.
TEST(Pool, MaxPropagatesNanAndTakesTheFirstOfEquals) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  for (ConvLayout layout : {ConvLayout::kContiguous, ConvLayout::kChannelsLast}) {
    const Pool p = sized({.layout = layout,
                          .spatial = 1,
                          .batch = 1,
                          .channels = 1,
                          .in_size = {12},
                          .kernel = {3},
                          .stride = {3}});
    const float in[] = {1, nan, 2, nan, nan, 5, 4, 4, 3, -inf, -inf, -inf};
    float out[4];
    int64_t indices[4];
    max_pool_forward(p, in, out, indices);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(indices[0], 1);
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_EQ(indices[1], 4);
    EXPECT_EQ(out[2], 4);
    EXPECT_EQ(indices[2], 6);
    EXPECT_EQ(out[3], -inf);
    EXPECT_EQ(indices[3], 9);
  }
}

// ceil_mode with padding: the last window reaches beyond input and padding, which isn't counted.
TEST(Pool, AverageCountsPaddingButNothingBeyond) {
  const Pool p{.spatial = 1,
               .batch = 1,
               .channels = 1,
               .in_size = {5},
               .out_size = {4},
               .kernel = {3},
               .stride = {2},
               .pad = {1}};
  const float in[] = {1, 2, 3, 4, 5};
  float out[4];
  avg_pool_forward(p, in, out);
  EXPECT_FLOAT_EQ(out[0], 1.f);
  EXPECT_FLOAT_EQ(out[1], 3.f);
  EXPECT_FLOAT_EQ(out[2], 3.f);
  EXPECT_FLOAT_EQ(out[3], 0.f);
}

TEST(Pool, SameOnAnyNumberOfThreads) {
  for (ConvLayout layout : {ConvLayout::kContiguous, ConvLayout::kChannelsLast}) {
    const Pool p = sized({.layout = layout,
                          .batch = 4,
                          .channels = 100,
                          .in_size = {30, 30},
                          .kernel = {3, 3},
                          .stride = {2, 2},
                          .pad = {1, 1}});
    const int64_t ni = 4 * 100 * 900, no = 4 * 100 * 225;
    const auto in = random_values<float>(ni, 1), grad = random_values<float>(no, 2);
    std::vector<float> out[2], grad_in[2];
    for (int threads : {1, 2}) {
      ThreadLimit limit(threads);
      auto& o = out[threads - 1];
      auto& g = grad_in[threads - 1];
      o.resize(size_t(no));
      g.resize(size_t(ni));
      avg_pool_forward(p, in.data(), o.data());
      avg_pool_backward(p, grad.data(), g.data());
    }
    EXPECT_EQ(out[0], out[1]);
    EXPECT_EQ(grad_in[0], grad_in[1]);
  }
}

TEST(Pool, Errors) {
  float x[16] = {};
  const int64_t outside[] = {0, 4, 0, 0}, negative[] = {0, 0, -1, 0};
  const Pool p{.batch = 1, .channels = 4, .in_size = {2, 2}, .kernel = {2, 2}};
  EXPECT_THROW(max_pool_backward(p, x, outside, x), Error);
  EXPECT_THROW(max_pool_backward(p, x, negative, x), Error);
  Pool bad = p;
  bad.dtype = Dtype::kC64;
  EXPECT_THROW(avg_pool_forward(bad, x, x), Error);
  bad = p;
  bad.stride[0] = 0;
  EXPECT_THROW(avg_pool_forward(bad, x, x), Error);
  bad = p;
  bad.in_size[1] = int64_t(1) << 31;
  EXPECT_THROW(max_pool_forward(bad, x, x, nullptr), Error);
}

}  // namespace
}  // namespace fornax::cpu
