// Reverse mode for programs: backward, grad, grad modes.
#pragma once

#include <optional>
#include <vector>

#include "fornax/core/tensor.h"

namespace fornax {

// Whether calls are recorded on this thread.
struct GradMode {
  static bool is_enabled();
  static void set_enabled(bool on);
};
inline bool is_grad_enabled() { return GradMode::is_enabled(); }
inline void set_grad_enabled(bool on) { GradMode::set_enabled(on); }

// Sets grad mode until the end of the scope.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : old_(GradMode::is_enabled()) { GradMode::set_enabled(on); }
  ~AutoGradMode() { GradMode::set_enabled(old_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool old_;
};
class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

// No recording, and tensors made inside have no version: they can't be saved for backward or
// written outside.
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  static bool is_enabled();

 private:
  bool old_inference_, old_grad_;
};

namespace autograd {

// Gradients of `outputs` accumulate into .grad of the leaves (of `inputs` only, if given).
// `grad_outputs` may hold undefined tensors for one-element outputs. Throws Error(kAutograd) where
// there is no history.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& grad_outputs = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const std::vector<Tensor>& inputs = {});

// Gradients of `outputs` with respect to `inputs`, without touching .grad. Unused inputs give an
// undefined tensor if allow_unused, else Error(kAutograd).
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {},
                         std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                         bool allow_unused = false);

// Backward checks gradients for NaN and names the forward call.
class AnomalyMode {
 public:
  static bool is_enabled();
  static void set_enabled(bool on);
};
class DetectAnomalyGuard {
 public:
  DetectAnomalyGuard() : old_(AnomalyMode::is_enabled()) { AnomalyMode::set_enabled(true); }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(old_); }

 private:
  bool old_;
};

}  // namespace autograd
}  // namespace fornax
