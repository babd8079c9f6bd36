// Indexing, sorting, searching: values, writes, gradients, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fornax/fornax.h"
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;
using test::error_of;
using test::gradients_match;
using test::make;
using test::near;
using test::noise;
using test::values;
using Sizes = std::vector<int64_t>;
using Inputs = std::vector<Tensor>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor counted(IntArrayRef sizes) {
  std::vector<double> v(size_t(checked_numel(sizes)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = double(i);
  return make(sizes, v);
}
Tensor ints(IntArrayRef sizes, const std::vector<double>& v) { return make(sizes, v, Dtype::kI64); }
Tensor bools(IntArrayRef sizes, const std::vector<double>& v) {
  return make(sizes, v, Dtype::kBool);
}
Sizes sizes_of(const Tensor& t) { return t.sizes().vec(); }

TEST(Index, GatherAndScatter) {
  Tensor x = counted({3, 3});
  Tensor at = ints({2, 3}, {0, 1, 2, 2, 2, 0});
  EXPECT_TRUE(near(x.gather(0, at), {0, 4, 8, 6, 7, 2}));
  EXPECT_TRUE(near(x.gather(1, at), {0, 1, 2, 5, 5, 3}));
  EXPECT_TRUE(near(x.gather(1, ints({2, 1}, {2, 0})), {2, 3}));
  Tensor src = make({2, 3}, {10, 20, 30, 40, 50, 60});
  EXPECT_TRUE(near(zeros_like(x).scatter(0, at, src), {10, 0, 60, 0, 20, 0, 40, 50, 30}));
  EXPECT_TRUE(near(x.scatter_add(1, at, src), {10, 21, 32, 63, 4, 95, 6, 7, 8}));
  EXPECT_TRUE(near(x.scatter(1, ints({3, 1}, {0, 1, 2}), -1.0), {-1, 1, 2, 3, -1, 5, 6, 7, -1}));
  Tensor one = ones({2}, TensorOptions(Dtype::kI64));
  one.scatter_(0, one.clone().fill_(0), one);  // the source is the target
  EXPECT_TRUE(near(one, {1, 1}));
  EXPECT_TRUE(near(x.take_along_dim(ints({3, 1}, {-1, 0, 1}), 1), {2, 3, 7}));
}

TEST(Index, ScatterReductions) {
  Tensor x = make({3}, {1, 2, 3}), at = ints({4}, {0, 0, 1, 1}), src = make({4}, {5, -6, 7, 9});
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "sum"), {0, 18, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "prod"), {-30, 126, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "mean"), {0, 6, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "amax"), {5, 9, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "amin", false), {-6, 7, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, src, "mean", false), {-0.5, 8, 3}));
  EXPECT_TRUE(near(x.scatter_reduce(0, at, make({4}, {kNan, 0, 1, 1}), "amax"), {kNan, 2, 3}));
  Tensor whole = make({2}, {7, -7}, Dtype::kI64);
  EXPECT_TRUE(near(whole.scatter_reduce(0, ints({2}, {0, 1}), ints({2}, {2, 2}), "mean"), {4, -3}));
  EXPECT_ERROR(x.scatter_reduce(0, at, src, "median"), "reduce is \"median\"");
  for (const char* reduce : {"sum", "prod", "mean", "amax"})
    for (bool include : {true, false}) {
      auto program = [&](const Inputs& v) {
        return v[0].scatter_reduce(1, ints({2, 3}, {0, 2, 2, 1, 1, 0}), v[1], reduce, include);
      };
      bool second = std::string_view(reduce) != "amax";
      EXPECT_TRUE(gradients_match(program, {noise({2, 3}, 1), noise({2, 3}, 8)}, second))
          << reduce << include;
    }
}

// Large enough for several threads; compared with a loop.
TEST(Index, ManyThreadsAgreeWithALoop) {
  constexpr int64_t kRows = 50, kCount = 40000, kWidth = 3;
  std::vector<double> want(size_t(kRows * kWidth), 0.0), places(kCount);
  Tensor src = noise({kCount, kWidth}, 3);
  const double* p = src.data_ptr<double>();
  for (int64_t i = 0; i < kCount; ++i) {
    int64_t row = (i * i + 7 * i) % kRows;
    places[size_t(i)] = double(row);
    for (int64_t j = 0; j < kWidth; ++j) want[size_t(row * kWidth + j)] += p[i * kWidth + j];
  }
  Tensor at = ints({kCount}, places), zero = zeros({kRows, kWidth}, TensorOptions(Dtype::kF64));
  EXPECT_TRUE(near(zero.index_add(0, at, src), want));
  EXPECT_TRUE(near(zero.scatter_add(0, at.unsqueeze(1).expand({kCount, kWidth}), src), want));
  EXPECT_TRUE(near(index_put(zero, at, src, true), want));
  EXPECT_TRUE(near(embedding_dense_backward(src, at, kRows, -1, false), want));
  Tensor back = src.index_select(0, at);
  EXPECT_EQ(back.select(0, 777).select(0, 1).item<double>(),
            src.select(0, int64_t(places[777])).select(0, 1).item<double>());
}

TEST(Index, SlicesAlongADimension) {
  Tensor x = counted({3, 2});
  Tensor at = ints({3}, {2, 0, 2});
  EXPECT_TRUE(near(x.index_select(0, at), {4, 5, 0, 1, 4, 5}));
  EXPECT_TRUE(near(x.t().index_select(1, at), {4, 0, 4, 5, 1, 5}));
  Tensor rows = make({3, 2}, {1, 1, 10, 10, 100, 100});
  EXPECT_TRUE(near(x.index_add(0, at, rows), {10, 11, 2, 3, 105, 106}));
  EXPECT_TRUE(near(x.index_add(0, at, rows, -1), {-10, -9, 2, 3, -97, -96}));
  EXPECT_TRUE(near(x.index_copy(0, at, rows), {10, 10, 2, 3, 100, 100}));
  EXPECT_TRUE(near(x.index_fill(0, ints({1}, {-1}), 7), {0, 1, 2, 3, 7, 7}));
  EXPECT_TRUE(near(x.index_reduce(0, at, rows, "amax"), {10, 10, 2, 3, 100, 100}));
  Tensor kept = x.clone();
  kept.t().index_add_(1, at, rows.t());  // in place through a view
  EXPECT_TRUE(near(kept, {10, 11, 2, 3, 105, 106}));
  auto program = [&](const Inputs& v) {
    Tensor y = v[0].index_add(0, at, v[1], 2).index_copy(0, ints({1}, {1}), v[1].slice(0, 0, 1));
    return y.index_fill(1, ints({1}, {0}), 3) + y.index_select(0, at) * v[1];
  };
  EXPECT_TRUE(gradients_match(program, {noise({3, 2}, 1), noise({3, 2}, 2)}));
}

TEST(Index, TensorsAndMasks) {
  Tensor x = counted({3, 4});
  Tensor rows = ints({2}, {2, -1}), columns = ints({2}, {0, 3});
  EXPECT_TRUE(near(x.index({rows}), {8, 9, 10, 11, 8, 9, 10, 11}));
  EXPECT_TRUE(near(x.index({rows, columns}), {8, 11}));
  EXPECT_TRUE(near(x.index({Slice(), columns}), {0, 3, 4, 7, 8, 11}));
  EXPECT_TRUE(near(x.index({rows.unsqueeze(1), columns}), {8, 11, 8, 11}));
  EXPECT_TRUE(near(x.index({x.gt(8.5)}), {9, 10, 11}));
  EXPECT_TRUE(near(x.index({bools({3}, {1, 0, 1}), 1}), {1, 9}));
  EXPECT_TRUE(near(x.index({1, Slice(None, None, 2)}), {4, 6}));
  EXPECT_TRUE(near(x.index({"...", 1}), {1, 5, 9}));
  EXPECT_EQ(sizes_of(x.index({None, Ellipsis, Slice(1, 3)})), Sizes({1, 3, 2}));
  EXPECT_EQ(sizes_of(x.index({true})), Sizes({1, 3, 4}));
  EXPECT_EQ(sizes_of(x.index({false})), Sizes({0, 3, 4}));
  // Indices that a kept dimension separates go to the front.
  Tensor c = counted({2, 3, 4});
  EXPECT_EQ(sizes_of(c.index({ints({5}, {0, 1, 0, 1, 0}), Slice(), ints({5}, {0, 1, 2, 3, 0})})),
            Sizes({5, 3}));
  EXPECT_TRUE(near(c.index({ints({1}, {1}), Slice(), ints({1}, {2})}), {14, 18, 22}));
  EXPECT_EQ(sizes_of(c.index({Slice(), ints({2, 2}, {0, 1, 2, 0})})), Sizes({2, 2, 2, 4}));
  EXPECT_EQ(x[1][2].item<double>(), 6);
  EXPECT_TRUE(near(x[ints({}, {1})], {4, 5, 6, 7}));
  EXPECT_TRUE(near(x.take(ints({2, 2}, {0, -1, 5, 5})), {0, 11, 5, 5}));
  EXPECT_TRUE(near(x.masked_select(bools({4}, {0, 1, 0, 0})), {1, 5, 9}));
  EXPECT_TRUE(near(make({2, 2}, {0, 3, -1, kNan}).nonzero(), {0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(sizes_of(counted({}).nonzero()), Sizes({0, 0}));
  auto program = [&](const Inputs& v) {
    return v[0].index({rows, columns}) * v[0].index({v[0].gt(0.0)}).sum() +
           v[0].take(ints({2}, {3, 3}));
  };
  EXPECT_TRUE(gradients_match(program, {noise({3, 4}, 1)}));
}

TEST(Index, Puts) {
  Tensor x = zeros({3, 3}, TensorOptions(Dtype::kF64));
  x.index_put_({1, Slice()}, make({3}, {1, 2, 3}));
  x.index_put_({Slice(), 0}, 9.0);
  EXPECT_TRUE(near(x, {9, 0, 0, 9, 2, 3, 9, 0, 0}));
  x.index_put_({x.gt(5.0)}, -1);
  EXPECT_TRUE(near(x, {-1, 0, 0, -1, 2, 3, -1, 0, 0}));
  x.index_put_({ints({2}, {0, 2}), ints({2}, {1, 2})}, make({2}, {5, 6}));
  EXPECT_TRUE(near(x, {-1, 5, 0, -1, 2, 3, -1, 0, 6}));
  Tensor twice = ints({3}, {0, 0, 1});
  EXPECT_TRUE(near(index_put(x, twice, ones({3, 3}, TensorOptions(Dtype::kF64)), true),
                   {1, 7, 2, 0, 3, 4, -1, 0, 6}));
  x.t().index_put_({0}, make({3}, {1, 2, 3}));  // through a view
  EXPECT_TRUE(near(x.select(1, 0), {1, 2, 3}));
  EXPECT_TRUE(near(x.put(ints({2}, {0, -1}), make({2}, {50, 60})).diagonal(), {50, 2, 60}));
  EXPECT_TRUE(near(
      make({2, 2}, {1, 2, 3, 4}).masked_scatter(bools({2, 2}, {1, 0, 0, 1}), make({3}, {7, 8, 9})),
      {7, 2, 3, 8}));
  auto program = [&](const Inputs& v) {
    Tensor y = v[0] * 1.0;
    y.index_put_({ints({3}, {2, 0, 1}), Slice(0, 2)}, v[1]);  // distinct places
    Tensor z = index_put(y, ints({2}, {2, 2}), v[1].slice(0, 0, 2).sum(1, true), true);
    return z.put(ints({2}, {1, 5}), v[1].select(0, 0), true)
        .masked_scatter(bools({3}, {0, 0, 1}), v[1]);
  };
  EXPECT_TRUE(gradients_match(program, {noise({3, 3}, 1), noise({3, 2}, 2)}));
}

TEST(Index, Embedding) {
  Tensor table = counted({4, 2});
  Tensor at = ints({2, 2}, {3, 0, 1, 1});
  EXPECT_TRUE(near(embedding(table, at), {6, 7, 0, 1, 2, 3, 2, 3}));
  Tensor g = ones({2, 2, 2}, TensorOptions(Dtype::kF64));
  EXPECT_TRUE(near(embedding_dense_backward(g, at, 4, -1, false), {1, 1, 2, 2, 0, 0, 1, 1}));
  EXPECT_TRUE(near(embedding_dense_backward(g, at, 4, 1, false), {1, 1, 0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(near(embedding_dense_backward(g, at, 4, -1, true), {1, 1, 1, 1, 0, 0, 1, 1}));
  EXPECT_TRUE(near(ints({3}, {1, 0, 2}).one_hot(), {0, 1, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(sizes_of(ints({2}, {0, 1}).one_hot(5)), Sizes({2, 5}));
  auto program = [&](const Inputs& v) { return embedding(v[0] * v[0], at, 3); };
  // Row 3 is padding: no gradient, so differences are taken only where the index avoids it.
  auto inside = [](const Inputs& v) { return embedding(v[0] * v[0], ints({3}, {0, 1, 1}), 3); };
  EXPECT_TRUE(gradients_match(inside, {noise({4, 2}, 1)}));
  Tensor w = noise({4, 2}, 1).requires_grad_();
  program({w}).sum().backward();
  EXPECT_TRUE(near(w.grad().select(0, 3), {0, 0}));
}

TEST(Index, ErrorsNameIndexDimensionAndSize) {
  Tensor x = counted({2, 3});
  auto at = [](double i) { return ints({1}, {i}); };
  Tensor least = full({1}, INT64_MIN, TensorOptions(Dtype::kI64));
  const char* kText = "is out of range for dimension 1 of size 3";
  EXPECT_ERROR(x.index_select(1, at(3)), kText);
  EXPECT_ERROR(x.index_select(1, at(-1)), kText);
  EXPECT_ERROR(x.index_select(1, least), "index -9223372036854775808");
  EXPECT_ERROR(x.gather(1, at(3).unsqueeze(0)), kText);
  EXPECT_ERROR(x.scatter(1, least.unsqueeze(0), 1), kText);
  EXPECT_ERROR(x.index({Slice(), at(3)}), kText);
  EXPECT_ERROR(x.index({Slice(), at(-4)}), kText);
  EXPECT_ERROR(x.index({Slice(), least}), kText);
  EXPECT_ERROR(x.index_put_({Slice(), at(3)}, 1), kText);
  EXPECT_ERROR(x.index_add(1, least, counted({2, 1})), kText);
  EXPECT_ERROR(x.index_fill(1, at(-4), 1), kText);
  EXPECT_ERROR(x.take(least), "out of range for dimension 0 of size 6");
  EXPECT_ERROR(x.put(least, counted({1})), "out of range for dimension 0 of size 6");
  EXPECT_ERROR(embedding(x, at(2)), "out of range for dimension 0 of size 2");
  EXPECT_ERROR(x.index({0, 0, 0}), "3 indices into a tensor of 2 dimensions");
  EXPECT_ERROR(x.index({bools({3}, {1, 1, 1})}), "mask of sizes [3]");
  EXPECT_ERROR(x.index({"dots"}), "no index");
  EXPECT_ERROR(x.gather(1, ints({3, 1}, {0, 0, 0})), "exceeds self");
  EXPECT_ERROR(x.index({counted({1})}), "got float64");
  EXPECT_ERROR(x.masked_scatter(x.gt(-1.0), counted({2})), "source only 2");
}

TEST(Sort, OrdersNanLastAndStably) {
  Tensor x = make({6}, {3, kNan, -kInf, 3, 0, -0.0});
  auto [up, from] = x.sort();
  EXPECT_TRUE(near(up, {-kInf, 0, -0.0, 3, 3, kNan}));
  EXPECT_TRUE(near(from, {2, 4, 5, 0, 3, 1}));
  auto [down, down_from] = x.sort(0, true);
  EXPECT_TRUE(near(down_from, {1, 0, 3, 4, 5, 2}));
  Tensor m = make({2, 3}, {3, 1, 2, 0, 5, 4});
  EXPECT_TRUE(near(std::get<0>(m.sort(0)), {0, 1, 2, 3, 5, 4}));
  EXPECT_TRUE(near(m.argsort(1, true), {0, 2, 1, 1, 2, 0}));
  EXPECT_TRUE(near(m.t().msort(), {1, 0, 2, 4, 3, 5}));
  EXPECT_TRUE(near(std::get<0>(bools({3}, {1, 0, 1}).sort()), {0, 1, 1}));
  for (Dtype d : {Dtype::kF32, Dtype::kBF16, Dtype::kF16, Dtype::kI8, Dtype::kI32, Dtype::kI64})
    EXPECT_TRUE(near(std::get<0>(make({4}, {5, -3, 0, -128}, d).sort()), {-128, -3, 0, 5}));
  EXPECT_TRUE(
      gradients_match([](const Inputs& v) { return std::get<0>((v[0] * v[0]).sort(0, true)); },
                      {noise({4, 2}, 1)}));
}

TEST(Sort, LongRowsOnAllThreads) {
  for (int64_t n : {511, 4096, 300000}) {
    std::vector<double> v(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) v[size_t(i)] = std::floor(1000 * std::sin(double(i) * 1.3));
    std::vector<int64_t> order(v.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return v[size_t(a)] < v[size_t(b)]; });
    auto [sorted, from] = make({n}, v, Dtype::kF32).sort();
    const int64_t* p = from.data_ptr<int64_t>();
    EXPECT_TRUE(std::equal(order.begin(), order.end(), p)) << n;
    EXPECT_EQ(sorted.select(0, n - 1).item<double>(), v[size_t(order.back())]);
  }
}

TEST(Sort, TopkAndKthvalue) {
  Tensor x = make({2, 5}, {3, 9, 1, 7, 5, -1, kNan, 4, 2, 0});
  auto [largest, at] = x.topk(2);
  EXPECT_TRUE(near(largest, {9, 7, kNan, 4}));
  EXPECT_TRUE(near(at, {1, 3, 1, 2}));
  EXPECT_TRUE(near(std::get<0>(x.topk(3, 1, false)), {1, 3, 5, -1, 0, 2}));
  EXPECT_TRUE(near(std::get<0>(x.topk(1, 0)), {3, kNan, 4, 7, 5}));
  auto [third, third_at] = x.kthvalue(3);
  EXPECT_TRUE(near(third, {5, 2}));
  EXPECT_TRUE(near(third_at, {4, 3}));
  EXPECT_EQ(sizes_of(std::get<0>(x.kthvalue(1, 0, true))), Sizes({1, 5}));
  std::vector<double> v(2000);
  for (size_t i = 0; i < v.size(); ++i) v[i] = double((i * 7919) % 2000);
  EXPECT_TRUE(near(std::get<0>(make({2000}, v).topk(5)), {1999, 1998, 1997, 1996, 1995}));
  EXPECT_TRUE(near(std::get<0>(make({2000}, v).kthvalue(1234)), {1233}));
  EXPECT_ERROR(x.topk(6), "k is 6, dimension 1 has size 5");
  EXPECT_ERROR(x.kthvalue(0), "k is 0");
  auto program = [](const Inputs& a) {
    return std::get<0>(a[0].topk(2, 0)) + std::get<0>(a[0].kthvalue(2, 0));
  };
  EXPECT_TRUE(gradients_match(program, {noise({4, 3}, 1)}));
}

TEST(Sort, Searching) {
  Tensor edges = make({4}, {1, 3, 3, 5}), x = make({5}, {0, 3, 4, 5, kNan});
  EXPECT_TRUE(near(x.bucketize(edges), {0, 1, 3, 3, 4}));
  EXPECT_TRUE(near(x.bucketize(edges, true, true), {0, 3, 3, 4, 4}));
  EXPECT_EQ(x.bucketize(edges, true).dtype(), Dtype::kI32);
  Tensor rows = make({2, 3}, {1, 2, 3, 10, 20, 30}), wanted = make({2, 2}, {2, 9, 9, 25});
  EXPECT_TRUE(near(searchsorted(rows, wanted), {1, 3, 0, 2}));
  EXPECT_TRUE(near(searchsorted(rows, wanted, false, false, "right"), {2, 3, 0, 2}));
  EXPECT_EQ(searchsorted(edges, 3.5).item<int64_t>(), 3);
  EXPECT_EQ(searchsorted(ints({3}, {1, 3, 5}), 3.5).item<int64_t>(), 2);
  EXPECT_TRUE(near(searchsorted(make({3}, {5, 1, 3}), make({1}, {4}), false, false, std::nullopt,
                                ints({3}, {1, 2, 0})),
                   {2}));
}

TEST(Index, UnderVmap) {
  Tensor x = noise({3, 4, 5}, 1);
  Tensor at = ints({3, 2}, {0, 1, 3, 3, 2, 0});
  auto same = [&](auto f, const Tensor& index, bool batched_index) {
    Tensor batched = vmap([f](const Tensor& t, const Tensor& i) { return f(t, i); },
                          {0, batched_index ? std::optional<int64_t>(0) : std::nullopt})(x, index);
    std::vector<Tensor> one_by_one;
    for (int64_t i = 0; i < x.size(0); ++i)
      one_by_one.push_back(f(x.select(0, i), batched_index ? index.select(0, i) : index));
    return near(batched, stack(one_by_one));
  };
  for (bool batched : {true, false}) {
    Tensor index = batched ? at : at.select(0, 1);
    auto check = [&](auto f) { return same(f, index, batched); };
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) { return t.index_select(1, i); }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) { return t.index({i}); }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) { return t.index({Slice(), i}); }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) { return t.index({i, i}); }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) {
      return t.gather(0, i.unsqueeze(1).expand({2, 5}));
    }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) {
      return t.index_add(0, i, t.slice(0, 0, 2)) + t.index_fill(0, i, 2.0);
    }));
    EXPECT_TRUE(check([](const Tensor& t, const Tensor& i) { return embedding(t, i); }));
    EXPECT_TRUE(check(
        [](const Tensor& t, const Tensor& i) { return index_put(t, i, t.slice(0, 0, 2), true); }));
  }
  EXPECT_TRUE(
      same([](const Tensor& t, const Tensor&) { return std::get<0>(t.sort(0)); }, at, true));
}

}  // namespace
}  // namespace fornax
