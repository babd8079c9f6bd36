// A node of the tape: one call to differentiate. One type for all operators.
#pragma once

#include "fornax/core/op.h"

namespace fornax {

// Called with the gradients of a node's inputs, may replace them (post hook), or of its results
// (pre hook).
using NodeHook = Function<void(Tensors& gradients)>;

struct GradNode : RefCounted {
  struct Input {
    Edge edge;  // empty: needs no gradient
    Saved saved;
    GradMeta meta;
  };
  struct Output {
    Saved saved;
    GradMeta meta;
  };

  const Op* op = nullptr;  // null: a leaf, gradients accumulate into it
  uint64_t sequence = 0;   // the engine runs the highest first
  bool released = false;   // saved tensors are gone: backward ran without retain_graph
  const void* plan = nullptr;
  uint32_t saved_outs = 0;
  Ref<OwnedArgs> args;        // attributes; null when there are none
  Ref<Step> step;             // view operators: what their rule may read of the geometry
  SmallVec<Input, 2> inputs;  // per flat tensor argument
  SmallVec<Output, 1> outputs;
  SmallVec<int16_t, 6> first;       // argument -> flat index, -1: no tensor
  Ref<TensorImpl> leaf;             // accumulators only
  SmallVec<NodeHook, 1> pre_hooks;  // on the gradients of the results
  SmallVec<std::pair<uint32_t, Function<Tensor(const Tensor&)>>, 1>
      tensor_hooks;                                          // on one result's gradient
  SmallVec<std::pair<uint32_t, Ref<GradSlot>>, 1> retained;  // results that keep their gradient
  Function<void(Vjp&)> custom;                               // autograd::Function
  std::string custom_name;
  std::string forward_trace;  // anomaly mode: where the forward call was

  GradNode();
  ~GradNode();  // iterative: a chain may be a million long
  static void* operator new(size_t bytes);
  static void operator delete(void* p);
  std::string name() const;
  int list_size(int arg) const;
  // Drops what backward would need again.
  void release_saved();
};

// The edge a gradient of t flows along: its node, or its accumulator; empty if it needs none.
// Re-derives stale views.
Edge gradient_edge(const Tensor& t);
// t requires grad on the level that runs now.
bool is_tracked(const Tensor& t);
// A shallow copy. with_history: the history t has now comes along.
Saved save(const Tensor& t, bool with_history);
// The saved tensor, with its history where it can matter. `out`: the result that it is, if it is
// one of n's own. Throws Error(kAutograd) if it was modified or freed.
Tensor unpack_saved(const Saved& s, GradNode& n, uint32_t out);
// Throws where t, which a call of `name` writes, may not be written in grad mode. tracked: t itself
// requires grad.
void check_written(std::string_view name, const Tensor& t, bool tracked);
// t was written; `edge` is its new history. A write through a view changes the base's history, step
// by step.
void rebase(const Tensor& t, const Edge& edge);
GradMeta grad_meta_of(const Tensor& t);
uint64_t next_sequence();

// The engine: gradients of `outputs` (seeded with `seeds`; undefined = ones) flow back to `inputs`,
// or, if that is empty, into .grad of all leaves. Runs on the calling thread; re-entrant.
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = false;  // into .grad of `inputs` instead of returning
};
Tensors run_backward(ArrayRef<Tensor> outputs, ArrayRef<Tensor> seeds, ArrayRef<Tensor> inputs,
                     BackwardOptions options);

}  // namespace fornax
