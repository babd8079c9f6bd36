// Views, joins: values, geometry, aliasing, histories through writes, gradients, errors.
#include <gtest/gtest.h>

#include "fornax/fornax.h"
#include "fornax/transforms/transforms.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::error_of;
using test::gradients_match;
using test::make;
using test::near;
using test::noise;
using test::values;
using Sizes = std::vector<int64_t>;
using Inputs = std::vector<Tensor>;

Tensor counted(IntArrayRef sizes) {
  std::vector<double> v(size_t(checked_numel(sizes)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = double(i);
  return make(sizes, v);
}

Sizes sizes_of(const Tensor& t) { return t.sizes().vec(); }
Sizes strides_of(const Tensor& t) { return t.strides().vec(); }

TEST(View, DimensionsMoveWithoutACopy) {
  Tensor x = counted({2, 3, 4});
  Tensor t = x.transpose(0, -1);
  EXPECT_EQ(sizes_of(t), Sizes({4, 3, 2}));
  EXPECT_EQ(strides_of(t), Sizes({1, 4, 12}));
  EXPECT_EQ(t.data_ptr(), x.data_ptr());
  EXPECT_EQ(sizes_of(x.movedim(0, 2)), Sizes({3, 4, 2}));
  EXPECT_EQ(sizes_of(x.movedim({0, 1}, {-1, 0})), Sizes({3, 4, 2}));
  EXPECT_EQ(strides_of(x.moveaxis(2, 0)), Sizes({1, 12, 4}));
  EXPECT_EQ(sizes_of(x.mT()), Sizes({2, 4, 3}));
  EXPECT_EQ(sizes_of(x.numpy_T()), Sizes({4, 3, 2}));
  EXPECT_EQ(sizes_of(counted({2, 3}).t()), Sizes({3, 2}));
  EXPECT_EQ(sizes_of(counted({3}).t()), Sizes({3}));
  EXPECT_EQ(sizes_of(x.unsqueeze(-1)), Sizes({2, 3, 4, 1}));
  EXPECT_EQ(strides_of(x.unsqueeze(1)), Sizes({12, 12, 4, 1}));
  Tensor ones_around = counted({1, 2, 1, 3, 1});
  EXPECT_EQ(sizes_of(ones_around.squeeze()), Sizes({2, 3}));
  EXPECT_EQ(sizes_of(ones_around.squeeze(2)), Sizes({1, 2, 3, 1}));
  EXPECT_EQ(sizes_of(ones_around.squeeze(1)), Sizes({1, 2, 1, 3, 1}));
  EXPECT_EQ(sizes_of(ones_around.squeeze(IntArrayRef({0, -1}))), Sizes({2, 1, 3}));
  EXPECT_EQ(sizes_of(x.flatten(1)), Sizes({2, 12}));
  EXPECT_EQ(sizes_of(x.flatten()), Sizes({24}));
  EXPECT_EQ(sizes_of(x.unflatten(2, {2, -1})), Sizes({2, 3, 2, 2}));
  EXPECT_EQ(sizes_of(x.transpose(0, 1).ravel()), Sizes({24}));
}

TEST(View, PartsHaveTheRightElements) {
  Tensor x = counted({4, 5});
  EXPECT_TRUE(near(x.slice(0, 1, 4, 2), {5, 6, 7, 8, 9, 15, 16, 17, 18, 19}));
  EXPECT_TRUE(near(x.slice(1, -2), {3, 4, 8, 9, 13, 14, 18, 19}));
  EXPECT_EQ(x.slice(0, 3, 1).numel(), 0);
  EXPECT_EQ(x.slice(0, INT64_MIN, INT64_MAX, INT64_MAX).size(0), 1);
  EXPECT_TRUE(near(x.narrow(1, 1, 2).select(0, 3), {16, 17}));
  EXPECT_TRUE(near(x.narrow(0, -1, 1), {15, 16, 17, 18, 19}));
  EXPECT_TRUE(near(x.diagonal(), {0, 6, 12, 18}));
  EXPECT_TRUE(near(x.diagonal(2), {2, 8, 14}));
  EXPECT_TRUE(near(x.diagonal(-1), {5, 11, 17}));
  EXPECT_EQ(x.diagonal(7).numel(), 0);
  EXPECT_TRUE(near(counted({6}).unfold(0, 3, 2), {0, 1, 2, 2, 3, 4}));
  EXPECT_TRUE(near(counted({6}).as_strided({2, 2}, {1, 2}, 1), {1, 3, 2, 4}));
  std::vector<Tensor> pieces = x.split(2, 1);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(sizes_of(pieces[2]), Sizes({4, 1}));
  EXPECT_TRUE(near(pieces[2], {4, 9, 14, 19}));
  EXPECT_EQ(x.split({1, 4}, 1)[1].size(1), 4);
  EXPECT_EQ(x.chunk(3).size(), 2u);
  EXPECT_EQ(x.tensor_split(3)[0].size(0), 2);
  EXPECT_EQ(x.tensor_split({1, 3})[1].size(0), 2);
  EXPECT_TRUE(near(x.unbind(1)[4], {4, 9, 14, 19}));
  EXPECT_EQ(x.hsplit(5).size(), 5u);
  EXPECT_EQ(sizes_of(atleast_3d(counted({4}))), Sizes({1, 4, 1}));
}

TEST(View, ComplexPartsAndLazySigns) {
  Tensor pairs = make({2, 2}, {1, 2, 3, -4});
  Tensor z = pairs.view_as_complex();
  EXPECT_TRUE(near(real(z), {1, 3}));
  EXPECT_TRUE(near(imag(z), {2, -4}));
  Tensor c = z.conj();
  EXPECT_TRUE(c.is_conj());
  EXPECT_EQ(c.storage(), z.storage());
  EXPECT_TRUE(near(imag(c), {-2, 4}));
  EXPECT_TRUE(imag(c).is_neg());
  EXPECT_TRUE(near(imag(c.resolve_conj()), {-2, 4}));
  EXPECT_FALSE(c.conj().is_conj());
  c.mul_(2);  // a write through the lazy conjugate reaches the base
  EXPECT_TRUE(near(pairs, {2, 4, 6, -8}));
  imag(z.conj()).fill_(7);
  EXPECT_TRUE(near(pairs, {2, -7, 6, -7}));
  EXPECT_TRUE(near(z.unsqueeze(0).mH().view({2}).resolve_conj().view_as_real(), {2, 7, 6, 7}));
}

TEST(View, BytesAsAnotherDtype) {
  Tensor x = tensor({1.0, -2.0}, TensorOptions(Dtype::kF32));
  Tensor bits = x.view(Dtype::kI32);
  EXPECT_EQ(bits.select(0, 0).item<int64_t>(), 0x3f800000);
  EXPECT_EQ(sizes_of(x.view(Dtype::kU8)), Sizes({8}));
  EXPECT_EQ(sizes_of(x.view(Dtype::kF64)), Sizes({1}));
  EXPECT_FALSE(error_of([] { zeros({3}).view(Dtype::kF64); }).empty());
}

TEST(View, WritesReachBaseAndSiblings) {
  Tensor x = zeros({3, 3}, TensorOptions(Dtype::kF64));
  Tensor row = x.select(0, 1), column = x.t().select(0, 1);
  row.fill_(5);
  EXPECT_TRUE(near(column, {0, 5, 0}));
  x.diagonal().add_(1);
  EXPECT_TRUE(near(x, {1, 0, 0, 5, 6, 5, 0, 0, 1}));
  EXPECT_EQ(x._version(), column._version());
  EXPECT_FALSE(error_of([&] { zeros({1}).expand({3}).add_(1); }).empty());
}

// A sibling view made before its base was on the tape must see the write (OPERATORS.md, 3.1).
TEST(View, HistoryReachesSiblingsMadeBefore) {
  Tensor z = zeros({3}, TensorOptions(Dtype::kF64));
  Tensor a = z.slice(0, 0, 2), b = z.slice(0, 1, 3);
  Tensor q = make({2}, {3, 4}).requires_grad_();
  a.copy_(q);
  EXPECT_TRUE(b.requires_grad());
  (b * b).sum().backward();
  EXPECT_TRUE(near(q.grad(), {0, 8}));
}

TEST(View, GradientAfterWritesThroughViews) {
  auto program = [](const Inputs& x) {
    Tensor y = x[0] * 2.0;
    y.t().select(0, 1).mul_(x[1]);
    y.diagonal().sin_();
    y.slice(1, 0, 2).select(1, 0).copy_(x[1] * x[1]);
    return y;
  };
  EXPECT_TRUE(gradients_match(program, {noise({3, 3}, 1), noise({3}, 2)}));
}

TEST(View, GradientThroughEveryView) {
  Tensor x = noise({3, 4}, 3);
  auto check = [&](auto f, const Tensor& input) {
    return gradients_match([f](const Inputs& v) { return f(v[0]); }, {input});
  };
  EXPECT_TRUE(check([](const Tensor& t) { return t.transpose(0, 1) * t.mT(); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.slice(1, 1, 4, 2).unsqueeze(1); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.narrow(0, 1, 2).squeeze(0); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.split(3, 1)[1] * t.split(3, 1)[0]; }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.unbind(1)[2] * t.unbind(1)[0]; }, x));
  EXPECT_TRUE(
      check([](const Tensor& t) { return t.diagonal(1) * t.diagonal(0).slice(0, 0, 3); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.unfold(1, 3, 1); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.flatten().unflatten(0, {2, 6}); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.movedim(0, 1).expand({2, 4, 3}); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.as_strided({2, 3}, {1, 2}, 1); }, x));
  EXPECT_TRUE(check([](const Tensor& t) { return t.t().as_strided({2, 2}, {1, 1}, 2); }, x));
  EXPECT_TRUE(check(
      [](const Tensor& t) {
        Tensor z = t.view({6, 2}).view_as_complex();
        return real(z.conj() * z) + imag(z.conj());
      },
      x));
}

TEST(View, WriteThroughAsStridedIsRecorded) {
  auto program = [](const Inputs& x) {
    Tensor y = x[0] * 1.0;
    y.as_strided({2, 2}, {3, 1}, 1).mul_(x[1]);
    return y;
  };
  EXPECT_TRUE(gradients_match(program, {noise({3, 3}, 1), noise({2, 2}, 2)}));
}

TEST(View, ScatterForms) {
  Tensor x = zeros({3, 3}, TensorOptions(Dtype::kF64)), row = make({3}, {1, 2, 3});
  EXPECT_TRUE(near(x.select_scatter(row, 0, 1), {0, 0, 0, 1, 2, 3, 0, 0, 0}));
  EXPECT_TRUE(near(x.diagonal_scatter(row), {1, 0, 0, 0, 2, 0, 0, 0, 3}));
  EXPECT_TRUE(near(x.slice_scatter(row.unsqueeze(1), 1, 2), {0, 0, 1, 0, 0, 2, 0, 0, 3}));
  EXPECT_TRUE(near(x.as_strided_scatter(row, {3}, {2}, 1), {0, 1, 0, 2, 0, 3, 0, 0, 0}));
  EXPECT_TRUE(near(x, std::vector<double>(9, 0.0)));
  EXPECT_FALSE(error_of([&] { x.select_scatter(make({2}, {1, 2}), 0, 1); }).empty());
  auto program = [](const Inputs& v) { return v[0].diagonal_scatter(v[1], 1) * v[0]; };
  EXPECT_TRUE(gradients_match(program, {noise({3, 3}, 1), noise({2}, 2)}));
  auto strided = [](const Inputs& v) { return v[0].as_strided_scatter(v[1], {2, 2}, {1, 3}, 1); };
  EXPECT_TRUE(gradients_match(strided, {noise({3, 3}, 1), noise({2, 2}, 2)}));
}

TEST(View, InPlaceDimensionChanges) {
  Tensor x = counted({2, 3});
  x.t_();
  EXPECT_EQ(sizes_of(x), Sizes({3, 2}));
  x.unsqueeze_(0).transpose_(0, 2);
  EXPECT_EQ(sizes_of(x), Sizes({2, 3, 1}));
  x.squeeze_();
  EXPECT_TRUE(near(x, {0, 1, 2, 3, 4, 5}));
  auto program = [](const Inputs& v) {
    Tensor y = v[0] * v[0];
    y.t_();
    Tensor row = y.select(0, 1);
    row.unsqueeze_(0);
    row.mul_(3.0);
    return y;
  };
  EXPECT_TRUE(gradients_match(program, {noise({2, 3}, 1)}));
  EXPECT_FALSE(error_of([] { zeros({2, 2}).requires_grad_().t_(); }).empty());
}

TEST(View, ErrorsNameTheNumbers) {
  Tensor x = counted({2, 3});
  EXPECT_ERROR(x.transpose(0, 2), "dimension 2 is out of range");
  EXPECT_ERROR(x.select(1, 3), "index 3 is out of range for dimension 1 of size 3");
  EXPECT_ERROR(x.select(1, INT64_MIN), "out of range");
  EXPECT_ERROR(x.narrow(1, 2, 2), "exceed dimension 1 of size 3");
  EXPECT_ERROR(x.narrow(1, INT64_MIN, 2), "out of range");
  EXPECT_ERROR(x.slice(0, 0, 1, 0), "step must be positive");
  EXPECT_ERROR(x.split({1, 1}, 1), "don't sum to dimension 1 of size 3");
  EXPECT_ERROR(x.split(0), "size 0");
  EXPECT_ERROR(x.diagonal(0, 1, 1), "both 1");
  EXPECT_ERROR(x.unfold(1, 4, 1), "size 4");
  EXPECT_ERROR(x.as_strided({3}, {3}), "past a storage of 6");
  EXPECT_ERROR(x.view_as_complex(), "size 2");
  EXPECT_ERROR(x.select(0, 0).select(0, 0).select(0, 0), "0-dim");
  EXPECT_ERROR(x.t().view({6}), "reshape");
}

TEST(Join, CatAndStack) {
  Tensor a = counted({2, 2}), b = make({1, 2}, {7, 8}, Dtype::kF32);
  Tensor y = cat({a, b});
  EXPECT_EQ(y.dtype(), Dtype::kF64);
  EXPECT_TRUE(near(y, {0, 1, 2, 3, 7, 8}));
  EXPECT_TRUE(near(cat({a.t(), a}, 1), {0, 2, 0, 1, 1, 3, 2, 3}));
  EXPECT_TRUE(near(cat({empty({0}, TensorOptions(Dtype::kF64)), a}, 0), {0, 1, 2, 3}));
  EXPECT_TRUE(near(stack({a, a + 1.0}, 1), {0, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(sizes_of(hstack({counted({2}), counted({3})})), Sizes({5}));
  EXPECT_EQ(sizes_of(vstack({counted({2}), counted({2})})), Sizes({2, 2}));
  EXPECT_EQ(sizes_of(dstack({counted({2}), counted({2})})), Sizes({1, 2, 2}));
  EXPECT_TRUE(near(column_stack({counted({2}), counted({2})}), {0, 0, 1, 1}));
  Tensor out = empty({0}, TensorOptions(Dtype::kF64));
  cat_out(out, {a, a});
  EXPECT_EQ(sizes_of(out), Sizes({4, 2}));
  Tensor image = counted({1, 2, 2, 2}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(cat({image, image}, 1).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_ERROR(cat({a, counted({2, 3})}), "tensor 1 has sizes [2, 3]");
  EXPECT_ERROR(stack({a, counted({2, 3})}), "tensor 1 has sizes [2, 3]");
  EXPECT_ERROR(cat({counted({})}), "0-dim");
  auto program = [](const Inputs& v) { return cat({v[0], v[1].t(), v[0] * v[0]}, 1); };
  EXPECT_TRUE(gradients_match(program, {noise({2, 3}, 1), noise({1, 2}, 2)}));
}

TEST(Join, RepeatAndReorder) {
  Tensor x = counted({2, 2});
  EXPECT_TRUE(near(x.repeat({1, 2}), {0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(sizes_of(x.repeat({2, 1, 1})), Sizes({2, 2, 2}));
  EXPECT_NE(x.repeat({1, 1}).data_ptr(), x.data_ptr());
  EXPECT_TRUE(near(x.tile({2}), {0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_TRUE(near(x.repeat_interleave(2, 1), {0, 0, 1, 1, 2, 2, 3, 3}));
  Tensor times = tensor({0, 3}, TensorOptions(Dtype::kI64));
  EXPECT_TRUE(near(x.repeat_interleave(times, 0), {2, 3, 2, 3, 2, 3}));
  EXPECT_TRUE(near(repeat_interleave(times), {1, 1, 1}));
  EXPECT_TRUE(near(counted({5}).roll({2}), {3, 4, 0, 1, 2}));
  EXPECT_TRUE(near(x.roll({1, -1}, {0, 1}), {3, 2, 1, 0}));
  EXPECT_TRUE(near(counted({2, 3}).flip({1}), {2, 1, 0, 5, 4, 3}));
  EXPECT_TRUE(near(counted({2, 3}).t().flip({0, 1}), {5, 2, 4, 1, 3, 0}));
  EXPECT_TRUE(near(counted({2, 3}).rot90(), {2, 5, 1, 4, 0, 3}));
  EXPECT_TRUE(near(counted({2, 3}).rot90(-1), {3, 0, 4, 1, 5, 2}));
  std::vector<Tensor> grid = meshgrid({counted({2}), counted({3})}, "xy");
  EXPECT_EQ(sizes_of(grid[0]), Sizes({3, 2}));
  EXPECT_TRUE(near(grid[1], {0, 0, 1, 1, 2, 2}));
  auto program = [](const Inputs& v) {
    return v[0].repeat({2, 1}).roll({1}, {1}).flip({0}).repeat_interleave(2, 0);
  };
  EXPECT_TRUE(gradients_match(program, {noise({2, 3}, 1)}));
}

TEST(View, UnderVmap) {
  Tensor x = noise({3, 4, 2}, 1);
  auto same = [&](auto f) {
    Tensor batched = vmap([f](const Tensor& t) { return f(t); })(x);
    std::vector<Tensor> one_by_one;
    for (int64_t i = 0; i < x.size(0); ++i) one_by_one.push_back(f(x.select(0, i)));
    return near(batched, stack(one_by_one));
  };
  EXPECT_TRUE(same([](const Tensor& t) { return t.transpose(0, 1); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.slice(0, 1, 4, 2).t(); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.unsqueeze(-1).squeeze(); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.split(3)[1] + t.unbind(0)[0]; }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.diagonal(-1).flip({0}); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.as_strided({2, 2}, {2, 1}); }));
  EXPECT_TRUE(same([](const Tensor& t) { return cat({t, t.roll({1}, {0})}, 1); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.unfold(0, 2, 1).movedim(0, -1); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.select_scatter(t.select(0, 1), 0, 0); }));
  EXPECT_TRUE(same([](const Tensor& t) { return t.repeat({2, 1}).flatten(); }));
}

}  // namespace
}  // namespace fornax
