// Random tensors. Every function draws from `generator`, or from default_generator() when none is
// given; equal seeds give equal numbers for any number of threads and every instruction set.
#pragma once

#include "fornax/core/tensor.h"

namespace fornax {

using OptionalGenerator = const std::optional<Generator>&;

// Uniform in [0, 1).
Tensor rand(IntArrayRef size, const TensorOptions& options = {});
Tensor rand(IntArrayRef size, OptionalGenerator generator, const TensorOptions& options = {});
// Normal with mean 0 and standard deviation 1.
Tensor randn(IntArrayRef size, const TensorOptions& options = {});
Tensor randn(IntArrayRef size, OptionalGenerator generator, const TensorOptions& options = {});
// Integers in [low, high), or [0, high); int64 unless options say otherwise.
Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& options = Dtype::kI64);
Tensor randint(int64_t low, int64_t high, IntArrayRef size,
               const TensorOptions& options = Dtype::kI64);
Tensor randint(int64_t high, IntArrayRef size, OptionalGenerator generator,
               const TensorOptions& options = Dtype::kI64);
Tensor randint(int64_t low, int64_t high, IntArrayRef size, OptionalGenerator generator,
               const TensorOptions& options = Dtype::kI64);
// A random order of 0 .. n-1; int64 unless options say otherwise.
Tensor randperm(int64_t n, const TensorOptions& options = Dtype::kI64);
Tensor randperm(int64_t n, OptionalGenerator generator, const TensorOptions& options = Dtype::kI64);
// Normal with the given mean and standard deviation, per element where they are tensors.
Tensor normal(double mean, double std, IntArrayRef size, OptionalGenerator generator = std::nullopt,
              const TensorOptions& options = {});
Tensor normal(const Tensor& mean, double std = 1, OptionalGenerator generator = std::nullopt);
Tensor normal(double mean, const Tensor& std, OptionalGenerator generator = std::nullopt);
Tensor normal(const Tensor& mean, const Tensor& std, OptionalGenerator generator = std::nullopt);

// Sizes of `self`; dtype and device too, unless options say otherwise.
Tensor rand_like(const Tensor& self, const TensorOptions& options = {});
Tensor randn_like(const Tensor& self, const TensorOptions& options = {});
Tensor randint_like(const Tensor& self, int64_t high, const TensorOptions& options = {});
Tensor randint_like(const Tensor& self, int64_t low, int64_t high,
                    const TensorOptions& options = {});

}  // namespace fornax
