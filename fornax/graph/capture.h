// From a function to its graph.
#pragma once

#include "fornax/core/tree.h"
#include "fornax/graph/graph.h"
#include "fornax/transforms/transforms.h"

namespace fornax::graph {

// The graph of f at these arguments, and f's results. f runs once, on the arguments' values;
// what it writes into its arguments and into tensors from outside is undone by not being done:
// it stands in the graph as writes. Branches are taken as the values say, but asking for a value
// (item) throws Error(kUnsupported): the graph could not ask again. Transforms inside f are
// captured as what they compute, so a captured grad(f) is forward and backward in one graph.
Graph capture_flat(func::detail::Erased f, TensorList arguments);

template <class F, class... A>
Graph capture(F f, const A&... args) {
  func::detail::Flat flat(f, args...);
  return capture_flat(flat, flat.inputs());
}

}  // namespace fornax::graph
