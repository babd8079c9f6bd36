#include "fornax/data/idx.h"

#include <cstdlib>
#include <filesystem>

#include "fornax/base/atomic_file.h"
#include "fornax/base/compress.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

void write(const std::string& path, ByteSpan bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

RawTensor parse(std::string_view hex) { return parse_idx(unhex(hex), "a.idx"); }

void expect_refused(std::string_view hex, std::string_view part) {
  expect_error(ErrorKind::kIo, part, [&] { parse(hex); });
  expect_error(ErrorKind::kIo, "a.idx", [&] { parse(hex); });
}

TEST(Idx, ReadsEveryElementType) {
  RawTensor u8 = parse(
      "00000802"
      "00000002"
      "00000003"
      "010203fffefd");
  EXPECT_EQ(u8.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values<uint8_t>(u8.bytes), (std::vector<uint8_t>{1, 2, 3, 255, 254, 253}));
  EXPECT_EQ(values<int8_t>(parse("00000901"
                                 "00000001"
                                 "ff")
                               .bytes),
            std::vector<int8_t>{-1});
  EXPECT_EQ(values<int16_t>(parse("00000b01"
                                  "00000001"
                                  "0102")
                                .bytes),
            std::vector<int16_t>{258});
  EXPECT_EQ(values<int32_t>(parse("00000c01"
                                  "00000001"
                                  "fffffffe")
                                .bytes),
            std::vector<int32_t>{-2});
  EXPECT_EQ(values<float>(parse("00000d01"
                                "00000001"
                                "3fc00000")
                              .bytes),
            std::vector<float>{1.5});
  EXPECT_EQ(values<double>(parse("00000e00"
                                 "bff8000000000000")
                               .bytes),
            std::vector<double>{-1.5});
}

TEST(Idx, ReadsPlainAndGzippedFiles) {
  TempDir dir;
  Bytes content = unhex(
      "00000801"
      "00000003"
      "010203");
  write(dir.file("plain"), content);
  write(dir.file("packed"), deflate(content, Wrap::kGzip));
  for (const char* name : {"plain", "packed"})
    EXPECT_EQ(values<uint8_t>(read_idx(dir.file(name)).bytes), (std::vector<uint8_t>{1, 2, 3}));
}

TEST(Idx, RefusesDamage) {
  expect_refused("", "too few");
  expect_refused("000008", "3 bytes are too few");
  expect_refused("01000800", "does not start as an idx file");
  expect_refused("00000a00", "element type 10");
  expect_refused("00000841", "65 dimensions");
  expect_refused(
      "00000802"
      "00000002",
      "8 bytes, but 2 dimensions take 12");
  expect_refused(
      "00000801"
      "00000002"
      "01",
      "shape [2] of uint8 does not fit the 1 bytes");
  expect_refused(
      "00000801"
      "00000001"
      "0101",
      "does not fit the 2 bytes");
  expect_refused(
      "00000803"
      "ffffffff"
      "ffffffff"
      "ffffffff",
      "does not fit the 0 bytes");
  TempDir dir;
  Bytes packed = deflate(unhex("00000801"
                               "00000003"
                               "010203"),
                         Wrap::kGzip);
  packed[12] ^= std::byte{64};
  write(dir.file("a"), packed);
  expect_error(ErrorKind::kIo, dir.file("a"), [&] { read_idx(dir.file("a")); });
}

TEST(Mnist, MissingFilesNameThePackageAndTheFolder) {
  TempDir dir;
  for (std::string_view part :
       {std::string_view("dataset-fashion-mnist"), std::string_view(dir.path()),
        std::string_view("FASHION_MNIST_DIR")})
    expect_error(ErrorKind::kIo, part, [&] { load_mnist(true, dir.path()); });
  ASSERT_EQ(::setenv("FASHION_MNIST_DIR", dir.path().c_str(), 1), 0);
  EXPECT_EQ(fashion_mnist_dir(), dir.path());
  expect_error(ErrorKind::kIo, dir.path(), [] { load_mnist(false); });
  ASSERT_EQ(::unsetenv("FASHION_MNIST_DIR"), 0);
  EXPECT_EQ(fashion_mnist_dir(), "/usr/share/datasets/fashion-mnist");
}

TEST(Mnist, ChecksThatImagesAndLabelsFit) {
  TempDir dir;
  auto labels = dir.file("t10k-labels-idx1-ubyte"), images = dir.file("t10k-images-idx3-ubyte");
  write(images, unhex("00000803"
                      "00000002"
                      "00000001"
                      "00000001"
                      "0a0b"));
  write(labels, unhex("00000801"
                      "00000002"
                      "0900"));
  EXPECT_EQ(load_mnist(false, dir.path()).labels.bytes, unhex("0900"));
  write(labels, unhex("00000801"
                      "00000002"
                      "0a00"));
  expect_error(ErrorKind::kIo, "label 10", [&] { load_mnist(false, dir.path()); });
  write(labels, unhex("00000801"
                      "00000001"
                      "00"));
  expect_error(ErrorKind::kIo, "2 images but 1 labels", [&] { load_mnist(false, dir.path()); });
  write(labels, unhex("00000901"
                      "00000002"
                      "0000"));
  expect_error(ErrorKind::kIo, "not labels", [&] { load_mnist(false, dir.path()); });
  write(images, unhex("00000801"
                      "00000001"
                      "00"));
  expect_error(ErrorKind::kIo, "not images", [&] { load_mnist(false, dir.path()); });
}

TEST(Mnist, ReadsTheRealFilesWhereInstalled) {
  if (!std::filesystem::exists(fashion_mnist_dir())) GTEST_SKIP() << "data set not installed";
  LabeledImages data = load_mnist(false);
  EXPECT_EQ(data.images.sizes, (std::vector<int64_t>{10000, 28, 28}));
  int per_class[10] = {};
  for (std::byte label : data.labels.bytes) ++per_class[int(label)];
  for (int n : per_class) EXPECT_EQ(n, 1000);
}

}  // namespace
}  // namespace fornax
