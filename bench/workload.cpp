#include "bench/workload.h"

#include <time.h>

#include "bench/data.h"

namespace fornax::bench {
namespace {

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

Prepared prepare_forward(const Simple& simple) {
  auto inputs = std::make_shared<std::vector<Tensor>>(simple.inputs());
  Prepared p;
  p.bytes = simple.bytes;
  p.flops = simple.flops;
  p.run = [inputs, op = simple.op] {
    NoGradGuard no_grad;
    return op(*inputs);
  };
  return p;
}

// The fixed cotangent of y, in y's memory format.
Tensor cotangent_of(const Tensor& y) {
  Tensor g = rnd(y.sizes(), 77).to(y.dtype());
  if (y.dim() == 4 && y.is_contiguous(MemoryFormat::ChannelsLast))
    g = g.contiguous(MemoryFormat::ChannelsLast);
  return g;
}

Prepared prepare_backward(const Simple& simple) {
  auto inputs = std::make_shared<std::vector<Tensor>>(simple.inputs());
  for (Tensor& t : *inputs)
    if (t.is_floating_point() || t.is_complex()) t.requires_grad_();
  Tensor cotangent = cotangent_of(simple.op(*inputs));
  Prepared p;
  p.flops = 3 * simple.flops;
  p.run = [inputs, cotangent, op = simple.op] {
    for (const Tensor& t : *inputs) t.mutable_grad() = {};
    op(*inputs).backward(cotangent);
    return Tensor();
  };
  return p;
}

}  // namespace

Stopwatch::Stopwatch() : begin_{seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)} {}

Seconds Stopwatch::read() const {
  double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  return {seconds(CLOCK_MONOTONIC) - begin_.wall, cpu - begin_.cpu};
}

void add_simple(Workloads& to, Simple simple) {
  to.push_back({simple.name, [simple] { return prepare_forward(simple); }});
  if (simple.backward)
    to.push_back({simple.name + ".fwdbwd", [simple] { return prepare_backward(simple); }});
}

Workloads all_workloads() {
  Workloads all;
  add_micro(all);
  add_elementwise(all);
  add_rows(all);
  return all;
}

}  // namespace fornax::bench
