#include "fornax/data/idx.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "fornax/base/compress.h"
#include "fornax/base/error.h"

namespace fornax {
namespace {

Dtype dtype_of_code(int code) {
  switch (code) {
    case 0x08: return Dtype::kU8;
    case 0x09: return Dtype::kI8;
    case 0x0b: return Dtype::kI16;
    case 0x0c: return Dtype::kI32;
    case 0x0d: return Dtype::kF32;
    case 0x0e: return Dtype::kF64;
    default: return Dtype::kUndefined;
  }
}

int64_t big_endian_32(ByteSpan bytes) {
  int64_t value = 0;
  for (std::byte b : bytes.first(4)) value = value << 8 | int64_t(b);
  return value;
}

// The path of `name` or `name`.gz in `dir`.
std::string find_file(const std::string& dir, const std::string& name) {
  std::string path = str(dir, "/", name);
  for (const char* suffix : {".gz", ""})
    if (::access((path + suffix).c_str(), F_OK) == 0) return path + suffix;
  fail(ErrorKind::kIo, "no ", name, ".gz in ", dir,
       ": install Debian's package dataset-fashion-mnist, or set FASHION_MNIST_DIR to the folder "
       "that has the files");
}

}  // namespace

RawTensor parse_idx(ByteSpan content, const std::string& name) {
  FX_CHECK(content.size() >= 4, kIo, name, ": ", content.size(), " bytes are too few for idx");
  auto code = int(content[2]), rank = int(content[3]);
  Dtype dtype = dtype_of_code(code);
  bool magic = content[0] == std::byte{0} && content[1] == std::byte{0};
  FX_CHECK(magic && dtype != Dtype::kUndefined, kIo, name, " does not start as an idx file: bytes ",
           int(content[0]), ", ", int(content[1]), ", element type ", code);
  FX_CHECK(size_t(rank) <= kMaxRank, kIo, name, " has ", rank, " dimensions, the most is ",
           kMaxRank);
  size_t header_bytes = 4 + 4 * size_t(rank);
  FX_CHECK(content.size() >= header_bytes, kIo, name, ": ", content.size(), " bytes, but ", rank,
           " dimensions take ", header_bytes);
  RawTensor tensor{"", dtype, {}, {}};
  for (int d = 0; d < rank; ++d)
    tensor.sizes.push_back(big_endian_32(content.subspan(4 + 4 * size_t(d))));
  std::optional<int64_t> bytes = checked_bytes(tensor.sizes, size_of(dtype));
  ByteSpan data = content.subspan(header_bytes);
  FX_CHECK(bytes && uint64_t(*bytes) == data.size(), kIo, name, ": shape ",
           IntArrayRef(tensor.sizes), " of ", dtype, " does not fit the ", data.size(),
           " bytes that follow");
  tensor.bytes.assign(data.begin(), data.end());
  swap_bytes(tensor.bytes, size_of(dtype));
  return tensor;
}

RawTensor read_idx(const std::string& path) {
  Bytes content = read_file(path, kMaxIdxBytes);
  bool gzip = content.size() >= 2 && content[0] == std::byte{0x1f} && content[1] == std::byte{0x8b};
  if (gzip) content = inflate(content, Wrap::kGzip, kMaxIdxBytes, path);
  return parse_idx(content, path);
}

std::string fashion_mnist_dir() {
  const char* dir = std::getenv("FASHION_MNIST_DIR");
  return dir && *dir ? dir : "/usr/share/datasets/fashion-mnist";
}

LabeledImages load_mnist(bool train, std::string dir) {
  if (dir.empty()) dir = fashion_mnist_dir();
  std::string prefix = train ? "train" : "t10k";
  std::string images_path = find_file(dir, prefix + "-images-idx3-ubyte");
  std::string labels_path = find_file(dir, prefix + "-labels-idx1-ubyte");
  LabeledImages data{read_idx(images_path), read_idx(labels_path)};
  const RawTensor &images = data.images, &labels = data.labels;
  FX_CHECK(images.dtype == Dtype::kU8 && images.sizes.size() == 3, kIo, images_path, " holds ",
           images.dtype, " of shape ", IntArrayRef(images.sizes), ", not images");
  FX_CHECK(labels.dtype == Dtype::kU8 && labels.sizes.size() == 1, kIo, labels_path, " holds ",
           labels.dtype, " of shape ", IntArrayRef(labels.sizes), ", not labels");
  FX_CHECK(images.sizes[0] == labels.sizes[0], kIo, dir, ": ", images.sizes[0], " images but ",
           labels.sizes[0], " labels");
  auto wrong = std::find_if(labels.bytes.begin(), labels.bytes.end(),
                            [](std::byte b) { return b >= std::byte{10}; });
  FX_CHECK(wrong == labels.bytes.end(), kIo, labels_path, ": label ", int(*wrong),
           " where 0 to 9 are expected");
  return data;
}

}  // namespace fornax
