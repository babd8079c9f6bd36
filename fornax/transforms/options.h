// Options of function transforms.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace fornax::func {

// What a random operator does under vmap.
enum class Randomness : uint8_t {
  kError,      // throws
  kDifferent,  // other numbers for every row
  kSame,       // the same numbers for all rows
};

// A dimension to map over, or none; for one argument or result, or for each of them.
class DimSpec {
 public:
  DimSpec(int64_t dim) : dims_{dim} {}
  DimSpec(int dim) : dims_{int64_t(dim)} {}
  DimSpec(std::nullopt_t) : dims_{std::nullopt} {}
  DimSpec(std::initializer_list<std::optional<int64_t>> dims) : dims_(dims), listed_(true) {}
  DimSpec(std::vector<std::optional<int64_t>> dims) : dims_(std::move(dims)), listed_(true) {}

  bool is_list() const { return listed_; }
  size_t size() const { return dims_.size(); }
  // The dimension of argument or result `i`.
  std::optional<int64_t> at(size_t i) const { return listed_ ? dims_[i] : dims_[0]; }

 private:
  std::vector<std::optional<int64_t>> dims_;
  bool listed_ = false;
};

struct VmapOptions {
  DimSpec in_dims = 0;
  DimSpec out_dims = 0;
  Randomness randomness = Randomness::kError;
  // Rows per pass; all at once if absent. Bounds memory.
  std::optional<int64_t> chunk_size = std::nullopt;
};

}  // namespace fornax::func
