#include "fornax/serialize/tensors.h"

#include "fornax/fornax.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

template <class T>
std::vector<T> items(const Tensor& t) {
  return std::vector<T>(t.data_ptr<T>(), t.data_ptr<T>() + t.numel());
}

const Tensor& named(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  fail(ErrorKind::kValue, "no tensor ", name);
}

// [[1, 2, 3], [4, 5, 6]]
Tensor matrix() { return tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, kFloat).view({2, 3}); }

TEST(Tensors, SafetensorsKeepsValuesAndShapes) {
  TempDir dir;
  Tensor weight = matrix().requires_grad_();
  save_safetensors(
      dir.file("m"),
      {{"weight", weight}, {"turned", matrix().permute({1, 0})}, {"none", empty({0, 4}, kLong)}},
      {{"step", "7"}});
  StringPairs metadata;
  NamedTensors back = load_safetensors(dir.file("m"), &metadata);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(metadata, (StringPairs{{"step", "7"}}));
  EXPECT_EQ(items<float>(named(back, "weight")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(named(back, "weight").requires_grad());
  EXPECT_EQ(named(back, "turned").sizes().vec(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(items<float>(named(back, "turned")), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(named(back, "none").sizes().vec(), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(named(back, "none").dtype(), Dtype::kI64);
}

TEST(Tensors, NpyAndNpz) {
  TempDir dir;
  save_npy(dir.file("a.npy"), matrix().permute({1, 0}));
  EXPECT_EQ(items<float>(load_npy(dir.file("a.npy"))), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  for (bool compress : {false, true}) {
    save_npz(dir.file("a.npz"), {{"x", matrix()}, {"y", scalar_tensor(2.5, kDouble)}}, compress);
    NamedTensors back = load_npz(dir.file("a.npz"));
    ASSERT_EQ(back.size(), 2u);
    EXPECT_EQ(items<float>(named(back, "x")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(items<double>(named(back, "y")), std::vector<double>{2.5});
    EXPECT_EQ(named(back, "y").dim(), 0);
  }
}

TEST(Tensors, Errors) {
  TempDir dir;
  expect_error(ErrorKind::kValue, "tensor 'w' to be saved is undefined", [&] {
    save_safetensors(dir.file("m"), {{"w", Tensor()}});
  });
  expect_error(ErrorKind::kUnsupported, "has no .npy type",
               [&] { save_npy(dir.file("a"), empty({1}, kBFloat16)); });
  EXPECT_EQ(dir.count(), 0u);
  expect_error(ErrorKind::kIo, "cannot open", [&] { load_npz(dir.file("none")); });
}

}  // namespace
}  // namespace fornax
