// The engine: every layout of operands gives what a plain nest of loops gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "fornax/base/threads.h"
#include "fornax/expr/expr.h"
#include "fornax/expr/loops.h"
#include "fornax/expr/vm.h"

namespace fornax::expr {
namespace {

// A tensor with its own buffer; strides in elements, each broadcast dimension repeats.
template <class T>
struct Layout {
  std::vector<T> memory;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  const T* data() const { return memory.data() + offset; }
  T* data() { return memory.data() + offset; }
  std::vector<int64_t> byte_strides() const {
    std::vector<int64_t> bytes;
    for (int64_t s : strides) bytes.push_back(s * int64_t(sizeof(T)));
    return bytes;
  }
};

struct Random {
  std::mt19937 engine;
  explicit Random(uint32_t seed) : engine(seed) {}
  int64_t below(int64_t n) { return int64_t(engine() % uint32_t(n)); }
};

// Permuted, gapped, and (for inputs) broadcast and reversed.
template <class T>
Layout<T> random_layout(const std::vector<int64_t>& sizes, Random& random, bool input) {
  const int dims = int(sizes.size());
  std::vector<int> order(static_cast<size_t>(dims));
  std::iota(order.begin(), order.end(), 0);
  if (random.below(2)) std::shuffle(order.begin(), order.end(), random.engine);
  Layout<T> t;
  t.strides.resize(size_t(dims));
  const bool gaps = random.below(3) == 0;
  int64_t step = 1;
  for (int i = dims - 1; i >= 0; --i) {
    const size_t d = size_t(order[size_t(i)]);
    if (input && random.below(4) == 0) continue;  // broadcast: stride 0
    if (gaps && random.below(2)) step *= 2;
    t.strides[d] = step;
    step *= sizes[d];
    if (input && random.below(8) == 0) {
      t.offset += t.strides[d] * (sizes[d] - 1);
      t.strides[d] = -t.strides[d];
    }
  }
  t.memory.resize(size_t(step) + 1);
  for (T& x : t.memory) x = T(float(int(random.below(2001)) - 1000) * 0.125f);
  return t;
}

int64_t offset_of(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                  int64_t position) {
  int64_t offset = 0;
  for (size_t d = sizes.size(); d-- > 0; position /= sizes[d])
    offset += position % sizes[d] * strides[d];
  return offset;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

template <class T>
void check_random_layouts(const std::vector<int64_t>& sizes, Random& random) {
  Arena arena;
  Scope scope(arena);
  const Expr a = input(0, Kind::kReal), b = input(1, Kind::kReal);
  const Program program = compile({a * b - a, max(a, b)}, {dtype_of<T>, Dtype::kF64},
                                  {InputSpec{dtype_of<T>}, InputSpec{Dtype::kF32}}, sizeof(T) == 8);
  const Layout<T> x = random_layout<T>(sizes, random, true);
  const Layout<float> y = random_layout<float>(sizes, random, true);
  Layout<T> out = random_layout<T>(sizes, random, false);
  Layout<double> out2 = random_layout<double>(sizes, random, false);
  const std::vector<T> untouched = out.memory;
  const std::vector<int64_t> sx = x.byte_strides(), sy = y.byte_strides(), so = out.byte_strides(),
                             so2 = out2.byte_strides();
  const Source in[] = {{x.data(), sx.data()}, {y.data(), sy.data()}};
  const Target to[] = {{out.data(), so.data()}, {out2.data(), so2.data()}};
  run(program, {int(sizes.size()), sizes.data(), in, to});

  std::vector<bool> written(out.memory.size());
  for (int64_t i = 0; i < count_of(sizes); ++i) {
    const float p = float(x.data()[offset_of(sizes, x.strides, i)]);
    const float q = y.data()[offset_of(sizes, y.strides, i)];
    const int64_t o = offset_of(sizes, out.strides, i);
    ASSERT_EQ(float(out.data()[o]), float(T(p * q - p))) << "element " << i;
    ASSERT_EQ(out2.data()[offset_of(sizes, out2.strides, i)], double(std::max(p, q)));
    written[size_t(out.offset + o)] = true;
  }
  for (size_t i = 0; i < written.size(); ++i)
    if (!written[i]) {
      ASSERT_EQ(float(out.memory[i]), float(untouched[i])) << "gap " << i;
    }
}

TEST(VmStrides, RandomLayoutsEqualPlainLoops) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    std::vector<int64_t> sizes;
    const int64_t dims = 1 + random.below(5);
    const int64_t limits[] = {600, 70, 20, 9, 6};
    for (int64_t d = 0; d < dims; ++d) sizes.push_back(1 + random.below(limits[dims - 1]));
    SCOPED_TRACE(testing::Message() << "round " << round);
    check_random_layouts<float>(sizes, random);
    if (round % 4 == 0) check_random_layouts<double>(sizes, random);
    if (HasFatalFailure()) return;
  }
}

TEST(VmStrides, LongRowsAndWideTiles) {
  Random random(2);
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{3, 2000}, {2000, 3}, {700, 700}, {5, 130, 530}, {130, 5, 530}}) {
    for (int round = 0; round < 8; ++round) {
      check_random_layouts<float>(sizes, random);
      if (HasFatalFailure()) return;
    }
  }
}

Program binary_program(Expr (*op)(Expr, Expr), Dtype dtype) {
  Arena arena;
  Scope scope(arena);
  return compile({op(input(0, Kind::kReal), input(1, Kind::kReal))}, {dtype},
                 {InputSpec{dtype}, InputSpec{dtype}}, dtype == Dtype::kF64);
}

TEST(VmStrides, EmptyAndScalarShapes) {
  const Program p = binary_program([](Expr a, Expr b) { return a + b; }, Dtype::kF32);
  const float a = 2, b = 3;
  float out = 0;
  const Source in[] = {{&a, nullptr}, {&b, nullptr}};
  const Target to[] = {{&out, nullptr}};
  run(p, {0, nullptr, in, to});
  EXPECT_EQ(out, 5.f);
  const int64_t sizes[] = {4, 0, 3}, strides[] = {0, 0, 0};
  out = 0;
  const Source none[] = {{nullptr, strides}, {nullptr, strides}};
  run(p, {3, sizes, none, to});
  EXPECT_EQ(out, 0.f);
}

// x <- x + x^T needs a copy by contract, but x <- y^T - x is exactly in place.
TEST(VmStrides, InPlaceOnEveryWalk) {
  const Program p = binary_program([](Expr a, Expr b) { return b - a * 0.5; }, Dtype::kF32);
  for (const int64_t n : {3, 40, 200, 600}) {
    for (const bool transposed : {false, true})
      for (const bool padded : {false, true}) {
        const int64_t row = padded ? n + 3 : n;
        std::vector<float> x(size_t(n * row)), y(size_t(n * n));
        for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97);
        for (size_t i = 0; i < y.size(); ++i) y[i] = float(i % 89);
        const std::vector<float> before = x;
        const int64_t sizes[] = {n, n}, sx[] = {row * 4, 4};
        const int64_t sy[] = {transposed ? 4 : n * 4, transposed ? n * 4 : 4};
        const Source in[] = {{x.data(), sx}, {y.data(), sy}};
        const Target to[] = {{x.data(), sx}};
        run(p, {2, sizes, in, to});
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            const float want =
                y[size_t(transposed ? j * n + i : i * n + j)] - before[size_t(i * row + j)] * 0.5f;
            ASSERT_EQ(x[size_t(i * row + j)], want) << n << transposed << padded;
          }
      }
  }
}

// Two outputs over two inputs: each input must be read before the output that replaces it.
TEST(VmStrides, TwoOutputsSwapTheirInputs) {
  Arena arena;
  Scope scope(arena);
  const Expr a = input(0, Kind::kReal), b = input(1, Kind::kReal);
  const Program p = compile({b, a + 1.0}, {Dtype::kF32, Dtype::kF32},
                            {InputSpec{Dtype::kF32}, InputSpec{Dtype::kF32}}, false);
  std::vector<float> x(1500), y(1500);
  for (int i = 0; i < 1500; ++i) {
    x[size_t(i)] = float(i);
    y[size_t(i)] = float(-i);
  }
  const void* in[] = {x.data(), y.data()};
  void* out[] = {x.data(), y.data()};
  run_contiguous(p, in, out, 1500);
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(x[size_t(i)], float(-i));
    ASSERT_EQ(y[size_t(i)], float(i + 1));
  }
  const Program swap = compile({b, a}, {Dtype::kF32, Dtype::kF32},
                               {InputSpec{Dtype::kF32}, InputSpec{Dtype::kF32}}, false);
  run_contiguous(swap, in, out, 1500);
  for (int i = 0; i < 1500; ++i) {
    ASSERT_EQ(x[size_t(i)], float(i + 1));
    ASSERT_EQ(y[size_t(i)], float(-i));
  }
}

// Outputs too large for the caches take another way to memory; aligned and not, and in place.
TEST(VmStrides, LargeOutputs) {
  const Program p = binary_program([](Expr a, Expr b) { return a - b; }, Dtype::kF32);
  const Program wide = [] {
    Arena arena;
    Scope scope(arena);
    return compile({exp(input(0, Kind::kReal) - input(1, Kind::kReal)) + 1.0}, {Dtype::kF64},
                   {InputSpec{Dtype::kF32}, InputSpec{Dtype::kF32}}, false);
  }();
  const int64_t n = kStreamBytes / 4 + 1234;
  std::vector<float> x(size_t(n + 16)), y(size_t(n + 16)), out(size_t(n + 32));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = float(i % 1021);
    y[i] = float(i % 1019);
  }
  const void* in[] = {x.data(), y.data()};
  for (const int64_t shift : {0, 1}) {
    const int64_t start = int64_t((64 - reinterpret_cast<uintptr_t>(out.data()) % 64) % 64 / 4);
    float* to = out.data() + start + shift;
    std::fill(out.begin(), out.end(), -1.f);
    void* o[] = {to};
    run_contiguous(p, in, o, n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i], x[size_t(i)] - y[size_t(i)]) << i;
    ASSERT_EQ(to[n], -1.f);
  }
  std::vector<double> doubles(size_t(n + 8));
  const int64_t start = int64_t((64 - reinterpret_cast<uintptr_t>(doubles.data()) % 64) % 64 / 8);
  void* o[] = {doubles.data() + start};
  run_contiguous(wide, in, o, n);
  for (int64_t i = 0; i < n; i += 97) {
    const double want = std::exp(double(x[size_t(i)] - y[size_t(i)])) + 1;
    ASSERT_TRUE(want > 1e38 || std::abs(doubles[size_t(start + i)] - want) <= want * 1e-6) << i;
  }
  const std::vector<float> before = x;
  void* in_place[] = {x.data()};
  run_contiguous(p, in, in_place, n);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(x[size_t(i)], before[size_t(i)] - y[size_t(i)]) << i;
}

TEST(VmStrides, ThreadsGiveTheSameValues) {
  const Program p = binary_program([](Expr a, Expr b) { return tanh(a) * b; }, Dtype::kF32);
  const int64_t rows = 300, cols = 1000;
  std::vector<float> x(size_t(rows * cols)), y(static_cast<size_t>(cols));
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 1013) * 0.01f - 5.f;
  for (size_t i = 0; i < y.size(); ++i) y[i] = float(i);
  const int64_t sizes[] = {rows, cols}, sx[] = {4, rows * 4}, sy[] = {0, 4};
  std::vector<float> one(x.size()), many(x.size());
  const Source in[] = {{x.data(), sx}, {y.data(), sy}};
  const Target first[] = {{one.data(), nullptr}}, second[] = {{many.data(), nullptr}};
  const int before = get_num_threads();
  set_num_threads(1);
  run(p, {2, sizes, in, first});
  set_num_threads(4);
  run(p, {2, sizes, in, second});
  set_num_threads(before);
  EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * 4), 0);
  EXPECT_NEAR(one[size_t(2 * cols + 7)], std::tanh(x[size_t(7 * rows + 2)]) * 7, 1e-5);
}

// ---- Direct loops

template <class T>
void check_copy_2d() {
  const DirectLoops& loops = direct_loops();
  const int64_t kSize = sizeof(T);
  for (const int64_t rows : {1, 3, 8, 17, 40})
    for (const int64_t cols : {1, 4, 8, 23, 64}) {
      std::vector<T> a(size_t(rows * cols)), d(size_t(rows * cols)), back(size_t(rows * cols));
      for (size_t i = 0; i < a.size(); ++i)
        std::memset(static_cast<void*>(&a[i]), int(i * 7 + 1), sizeof(T));
      loops.copy_2d(d.data(), cols * kSize, kSize, a.data(), kSize, rows * kSize, rows, cols,
                    int(kSize));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(std::memcmp(&d[size_t(i * cols + j)], &a[size_t(j * rows + i)], sizeof(T)), 0);
      loops.copy_2d(back.data(), kSize, rows * kSize, d.data(), cols * kSize, kSize, rows, cols,
                    int(kSize));
      ASSERT_EQ(std::memcmp(back.data(), a.data(), a.size() * sizeof(T)), 0);
    }
}

TEST(VmLoops, CopyTransposesEveryElementSize) {
  check_copy_2d<uint8_t>();
  check_copy_2d<uint16_t>();
  check_copy_2d<uint32_t>();
  check_copy_2d<uint64_t>();
  check_copy_2d<complex128>();
}

TEST(VmLoops, ArithmeticByName) {
  const DirectLoops& loops = direct_loops();
  const float a[] = {1, -2, 0, std::numeric_limits<float>::quiet_NaN()}, b[] = {4, 5, 6, 7};
  float d[4];
  loops.f32.add_scaled(d, a, b, 0.5f, 3);
  EXPECT_EQ(d[0], 3.f);
  EXPECT_EQ(d[1], 0.5f);
  loops.f32.relu(d, a, 4);
  EXPECT_EQ(d[0], 1.f);
  EXPECT_EQ(d[1], 0.f);
  EXPECT_NE(d[3], d[3]);
  loops.f32.div(d, b, a, 2);
  EXPECT_EQ(d[1], -2.5f);
  double e[3];
  const double x[] = {1, 2, 3};
  loops.f64.mul_scalar(e, x, 3, 3);
  EXPECT_EQ(e[2], 9.0);
  BFloat16 h[3];
  const float wide[] = {1.00390625f, 1.01171875f, -2.f};  // ties go to even
  loops.f32_to_bf16(h, wide, 3);
  EXPECT_EQ(float(h[0]), 1.f);
  EXPECT_EQ(float(h[1]), 1.015625f);
  EXPECT_EQ(float(h[2]), -2.f);
}

}  // namespace
}  // namespace fornax::expr
