// The idx format of MNIST and its successors: one array a file, big-endian, mostly gzipped.
#pragma once

#include <string>

#include "fornax/serialize/raw_tensor.h"

namespace fornax {

// What a file may unpack to at most: 1 GiB, twenty times the training images.
inline constexpr uint64_t kMaxIdxBytes = uint64_t(1) << 30;

// Reads FILE, plain or gzipped (told apart by its first bytes); u8, i8, i16, i32, f32 and f64.
// Throws Error(kIo) naming the file and values for anything damaged.
RawTensor read_idx(const std::string& path);
// The same from memory; `name` stands in error texts.
RawTensor parse_idx(ByteSpan content, const std::string& name);

// Images u8 [n, rows, columns] and labels u8 [n] below 10.
struct LabeledImages {
  RawTensor images, labels;
};

// The folder of Fashion-MNIST: $FASHION_MNIST_DIR, or where Debian's package puts it.
std::string fashion_mnist_dir();
// The training (60,000) or test images (10,000) of a folder of MNIST-like files,
// train-images-idx3-ubyte[.gz] and so on; an empty `dir` means fashion_mnist_dir(). Throws
// Error(kIo) naming the folder and Debian's package where files are missing.
LabeledImages load_mnist(bool train, std::string dir = "");

}  // namespace fornax
