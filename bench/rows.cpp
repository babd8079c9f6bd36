// red.*, row.*: reductions, scans and normalisations.
#include "bench/data.h"
#include "bench/workload.h"

namespace fornax::bench {
namespace {

constexpr double kN = 4096.0 * 4096.0;

std::vector<Tensor> large() { return {rnd({4096, 4096})}; }

void add_reductions(Workloads& to) {
  auto reduction = [&](const char* name, auto op) {
    add_simple(to, {name, large, [op](Inputs t) { return op(t[0]); }, 4 * kN});
  };
  reduction("red.sum_all", [](const Tensor& a) { return a.sum(); });
  reduction("red.sum_d0", [](const Tensor& a) { return a.sum(0); });
  reduction("red.sum_d1", [](const Tensor& a) { return a.sum(1); });
  reduction("red.mean_d1", [](const Tensor& a) { return a.mean(1); });
  reduction("red.amax_all", [](const Tensor& a) { return a.amax(); });
}

}  // namespace

void add_rows(Workloads& to) { add_reductions(to); }

}  // namespace fornax::bench
