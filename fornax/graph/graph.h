// A functional program as data: operators on values, nothing overwritten.
//
//   graph(%0: f64[3], %1: f64[]) {
//     %2: f64[3] = clone(%0)
//     %3: f64[2] = slice(%2, dim=0, start=1, end=3, step=1)
//     %4: f64[2] = mul(%3, %1)
//     %5: f64[3] = slice_scatter(%2, %4, dim=0, start=1, end=3, step=1)
//     return %5
//   }
//
// Writes of the program it was captured from are scatters into new values; writes into its inputs
// are listed at the end ("write %0 = %5") and done by run().
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "fornax/core/op.h"

namespace fornax::graph {

struct Node;

// One tensor of the program. Belongs to its graph.
struct Value {
  int id = 0;            // its name in the text
  Node* node = nullptr;  // which computes it; null: an input
  int result = 0;        // which of the node's results
  Meta meta;             // dtype, device, sizes, strides
};

// One call. `args` holds attributes; its tensors are undefined, and `inputs` says per place which
// value stands there (null: none). A record that stores results into arguments gives new values
// here; the arguments keep theirs.
struct Node {
  const Op* op = nullptr;
  Ref<OwnedArgs> args;
  SmallVec<Value*, 3> inputs;
  SmallVec<Value*, 1> outputs;  // null: an undefined result
};

// Inputs are named by role, never by address: arguments first, in order, then what the program read
// from outside.
struct Input {
  Value* value = nullptr;
  Tensor captured;  // undefined: an argument
};

// Result `value` replaces what input `input` holds.
struct Write {
  size_t input = 0;
  Value* value = nullptr;
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  Value* add_input(Meta meta, Tensor captured = {});
  // Appends a call. `metas`: per flat result; sizes of kUndefined dtype stand for undefined ones.
  Node* add_node(const Op& op, Ref<OwnedArgs> args, ArrayRef<Value*> inputs, ArrayRef<Meta> metas);

  const std::vector<Input>& inputs() const { return inputs_; }
  size_t argument_count() const;
  const std::vector<Node*>& nodes() const { return order_; }
  size_t value_count() const { return values_.size(); }

  std::vector<Value*> outputs;  // null: an undefined result
  std::vector<Write> writes;

  // The same text for the same program. Parsed again by parse().
  std::string text() const;
  // Throws Error(kInternal) on the first thing that is wrong: a value used before it is computed,
  // one of another graph, a result whose meta isn't what the operator's shape rule says.
  void verify() const;

 private:
  friend class Parser;
  Value* add_value(Node* node, int result, Meta meta);

  std::deque<Value> values_;  // addresses stay
  std::deque<Node> nodes_;
  std::vector<Node*> order_;
  std::vector<Input> inputs_;
};

// Runs the program: eager calls, in order, through whatever transforms and tapes are active.
// `arguments` must have the metas' dtypes and sizes.
std::vector<Tensor> run(const Graph& graph, TensorList arguments);

// The graph of a text that Graph::text() made. Captured inputs come from `captured`, in order.
// Throws Error(kValue) naming the line; also where an operator has no record to be found by name
// (derivatives that are made from pointwise bodies) or an argument is a generator.
Graph parse(std::string_view text, TensorList captured = {});

}  // namespace fornax::graph
