// ew.*: elementwise operators, copies and layouts, mostly of 4096 x 4096 floats.
#include "bench/data.h"
#include "bench/workload.h"

namespace fornax::bench {
namespace {

constexpr double kN = 4096.0 * 4096.0;

// n tensors of 4096 x 4096 with seeds 1, 2, ...
std::function<std::vector<Tensor>()> large(uint32_t n) {
  return [n] {
    std::vector<Tensor> t;
    for (uint32_t i = 1; i <= n; ++i) t.push_back(rnd({4096, 4096}, i));
    return t;
  };
}

std::function<std::vector<Tensor>()> large_of(Dtype dtype, uint32_t n) {
  return [dtype, n] {
    std::vector<Tensor> t;
    for (uint32_t i = 1; i <= n; ++i) t.push_back(rnd({4096, 4096}, i).to(dtype));
    return t;
  };
}

void add_memory(Workloads& to) {
  add_simple(to, {"ew.add", large(2), [](Inputs t) { return t[0] + t[1]; }, 12 * kN});
  add_simple(to, {"ew.mul", large(2), [](Inputs t) { return t[0] * t[1]; }, 12 * kN});
  add_simple(to, {"ew.copy", large(1), [](Inputs t) { return t[0].clone(); }, 8 * kN});
  add_simple(to, {"ew.fill", large(1), [](Inputs t) { return t[0].fill_(1.5); }, 4 * kN});
  add_simple(to,
             {"ew.add_inplace", large(2), [](Inputs t) { return t[0].add_(t[1], 1e-9); }, 12 * kN});
  add_simple(to, {"ew.add_out", large(3),
                  [](Inputs t) {
                    Tensor out = t[2];
                    return add_out(out, t[0], t[1]);
                  },
                  12 * kN});
}

void add_functions(Workloads& to) {
  auto unary = [&](const char* name, auto op) {
    add_simple(to, {name, large(1), [op](Inputs t) { return op(t[0]); }, 8 * kN});
  };
  unary("ew.exp", [](const Tensor& a) { return a.exp(); });
  unary("ew.tanh", [](const Tensor& a) { return a.tanh(); });
  unary("ew.gelu", [](const Tensor& a) { return gelu(a); });
  unary("ew.gelu_tanh", [](const Tensor& a) { return gelu(a, "tanh"); });
  unary("ew.sigmoid", [](const Tensor& a) { return a.sigmoid(); });
  unary("ew.relu", [](const Tensor& a) { return a.relu(); });
  unary("ew.sin", [](const Tensor& a) { return a.sin(); });
  unary("ew.erf", [](const Tensor& a) { return a.erf(); });
  unary("ew.sqrt", [](const Tensor& a) { return a.abs_().sqrt(); });
  unary("ew.log1p", [](const Tensor& a) { return a.log1p(); });
  unary("ew.pow3", [](const Tensor& a) { return a.pow(3); });
  unary("ew.neg", [](const Tensor& a) { return -a; });
}

void add_types(Workloads& to) {
  add_simple(to,
             {"ew.where", large(3), [](Inputs t) { return where(t[0] > 0, t[1], t[2]); }, 16 * kN});
  add_simple(to, {"ew.cmp_gt", large(2), [](Inputs t) { return t[0] > t[1]; }, 9 * kN});
  add_simple(to, {"ew.to_bf16", large(1), [](Inputs t) { return t[0].to(kBFloat16); }, 6 * kN});
  add_simple(to,
             {"ew.bf16_add", large_of(kBFloat16, 2), [](Inputs t) { return t[0] + t[1]; }, 6 * kN});
  add_simple(to, {"ew.f16_exp", large_of(kHalf, 1), [](Inputs t) { return t[0].exp(); }, 4 * kN});
  add_simple(
      to, {"ew.i64_add",
           [] {
             return std::vector<Tensor>{rint({4096, 4096}, 1000, 1), rint({4096, 4096}, 1000, 2)};
           },
           [](Inputs t) { return t[0] + t[1]; }, 24 * kN});
  add_simple(to, {"ew.c64_mul",
                  [] {
                    return std::vector<Tensor>{crnd({2048, 4096}, 1), crnd({2048, 4096}, 3)};
                  },
                  [](Inputs t) { return t[0] * t[1]; }, 12 * kN});
}

void add_broadcasts(Workloads& to) {
  auto sum = [](Inputs t) { return t[0] + t[1]; };
  auto pair = [](Dims a, Dims b) {
    return [a, b] { return std::vector<Tensor>{rnd(a), rnd(b, 2)}; };
  };
  add_simple(to, {"ew.add_row", pair({4096, 4096}, {4096}), sum, 8 * kN});
  add_simple(to, {"ew.add_col", pair({4096, 4096}, {4096, 1}), sum, 8 * kN});
  add_simple(to, {"ew.add_outer", pair({4096, 1}, {1, 4096}), sum, 4 * kN});
}

void add_layouts(Workloads& to) {
  add_simple(to, {"ew.nchw_nhwc",
                  [] {
                    return std::vector<Tensor>{rnd({8, 256, 56, 56})};
                  },
                  [](Inputs t) { return t[0].contiguous(MemoryFormat::ChannelsLast); },
                  8.0 * 8 * 256 * 56 * 56});
  add_simple(to, {"ew.chain5", large(3),
                  [](Inputs t) { return tanh(t[0] * t[1] + t[2]) * sigmoid(t[0]); }, 16 * kN});
  add_simple(to,
             {"ew.bias_gelu_res",
              [] {
                return std::vector<Tensor>{rnd({1024, 3072}), rnd({3072}, 2), rnd({1024, 3072}, 3)};
              },
              [](Inputs t) { return gelu(t[0] + t[1]) + t[2]; }, 12.0 * 1024 * 3072});
}

}  // namespace

void add_elementwise(Workloads& to) {
  add_memory(to);
  add_functions(to);
  add_types(to);
  add_broadcasts(to);
  add_layouts(to);
}

}  // namespace fornax::bench
