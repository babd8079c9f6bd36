#include "fornax/serialize/tensors.h"

#include <cstring>

#include "fornax/base/error.h"
#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"
#include "fornax/serialize/npy.h"
#include "fornax/serialize/npz.h"

namespace fornax {
namespace {

std::span<std::byte> bytes_of(const Tensor& t) {
  return {static_cast<std::byte*>(t.data_ptr()), t.nbytes()};
}

// On the CPU, row by row, without lazy bits.
Tensor writable(const Tensor& tensor, const std::string& name) {
  FX_CHECK(tensor.defined(), kValue, "tensor '", name, "' to be saved is undefined");
  return tensor.detach().to(TensorOptions(kCPU)).contiguous();
}

// `kept` holds what the views borrow.
std::vector<RawTensorView> views_of(const NamedTensors& tensors, std::vector<Tensor>& kept) {
  std::vector<RawTensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const Tensor& t = kept.emplace_back(writable(tensor, name));
    views.emplace_back(name, t.dtype(), t.sizes(), bytes_of(t));
  }
  return views;
}

}  // namespace

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const StringPairs& metadata) {
  std::vector<Tensor> kept;
  write_safetensors(path, views_of(tensors, kept), metadata);
}

NamedTensors load_safetensors(const std::string& path, StringPairs* metadata) {
  SafetensorsReader reader(path);
  NamedTensors tensors;
  for (const SafetensorsEntry& e : reader.entries()) {
    FX_CHECK(e.dtype != Dtype::kUndefined, kUnsupported, path, ": tensor '", e.name, "' has dtype ",
             e.stored_dtype, ", which Fornax does not have");
    Tensor t = empty(e.sizes, e.dtype);
    reader.read(e, bytes_of(t));
    tensors.emplace_back(e.name, std::move(t));
  }
  if (metadata) *metadata = reader.metadata();
  return tensors;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  Tensor t = writable(tensor, path);
  write_npy(path, {"", t.dtype(), t.sizes(), bytes_of(t)});
}

Tensor load_npy(const std::string& path) { return to_tensor(read_npy(path)); }

void save_npz(const std::string& path, const NamedTensors& tensors, bool compress) {
  std::vector<Tensor> kept;
  write_npz(path, views_of(tensors, kept), compress);
}

NamedTensors load_npz(const std::string& path) {
  NpzReader reader(path);
  NamedTensors tensors;
  for (const NpzEntry& e : reader.entries())
    tensors.emplace_back(e.name, to_tensor(reader.read(e)));
  return tensors;
}

Tensor to_tensor(const RawTensor& raw) {
  check_complete(raw);
  Tensor t = empty(raw.sizes, raw.dtype);
  if (!raw.bytes.empty()) std::memcpy(t.data_ptr(), raw.bytes.data(), raw.bytes.size());
  return t;
}

}  // namespace fornax
