// Tensors to and from safetensors, .npy and .npz files.
//
// Saving writes the values in row-major order: history, strides, device and sharing of memory are
// not kept. Loading gives contiguous CPU tensors that require no gradient. Errors are those of the
// formats' own headers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fornax/core/tensor.h"
#include "fornax/serialize/safetensors.h"

namespace fornax {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const StringPairs& metadata = {});
// In the order of the file, which is by falling alignment and name. `metadata` receives the file's.
NamedTensors load_safetensors(const std::string& path, StringPairs* metadata = nullptr);

void save_npy(const std::string& path, const Tensor& tensor);
Tensor load_npy(const std::string& path);

void save_npz(const std::string& path, const NamedTensors& tensors, bool compress = false);
NamedTensors load_npz(const std::string& path);

// A copy of the bytes as a tensor.
Tensor to_tensor(const RawTensor& raw);

}  // namespace fornax
