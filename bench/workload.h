// A workload: a name, and a function that makes its inputs and returns what is timed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fornax/fornax.h"

namespace fornax::bench {

// One repetition. The result is freed outside the timed part.
using Repetition = std::function<Tensor()>;

struct Seconds {
  double wall = 0, cpu = 0;
};
// Runs from its construction. cpu: the process's time over all threads.
class Stopwatch {
 public:
  Stopwatch();
  Seconds read() const;

 private:
  Seconds begin_;
};

struct Prepared {
  Repetition run;
  // In place of `run`, for workloads that have untimed work of their own in each repetition.
  std::function<Seconds()> run_selftimed = nullptr;
  double bytes = 0;  // read and written once; 0: no rate is reported
  double flops = 0;
  int64_t inner = 0;  // micro: calls in one repetition
  // First losses or the sum of |output|, filled while running.
  std::shared_ptr<std::vector<double>> check = nullptr;
};

struct Workload {
  std::string name;
  std::function<Prepared()> make;
};
using Workloads = std::vector<Workload>;

// bench/<group>.cpp: each adds the workloads of its prefixes.
void add_micro(Workloads& to);
void add_elementwise(Workloads& to);
void add_rows(Workloads& to);

// The groups above in the order of the listing.
Workloads all_workloads();

using Inputs = const std::vector<Tensor>&;
struct Simple {
  std::string name;
  std::function<std::vector<Tensor>()> inputs;
  std::function<Tensor(Inputs)> op;
  double bytes = 0, flops = 0;
  bool backward = false;
};
// op on inputs without gradients; with `backward` also NAME.fwdbwd: forward with gradients for all
// floating inputs, then backward with a fixed cotangent, three times the flops.
void add_simple(Workloads& to, Simple simple);

}  // namespace fornax::bench
