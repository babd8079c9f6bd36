// micro.*: one operator on tiny tensors, 2000 calls a repetition: the cost of a call.
#include "bench/data.h"
#include "bench/workload.h"

namespace fornax::bench {
namespace {

constexpr int kInner = 2000;

// `call` may keep its result in a variable of its own.
template <class F>
Prepared loop(F call) {
  Prepared p;
  p.inner = kInner;
  p.run = [call]() mutable {
    for (int i = 0; i < kInner; ++i) call();
    return Tensor();
  };
  return p;
}

template <class F>
void add_factory(Workloads& to, const char* name, F call) {
  to.push_back({name, [call] { return loop(call); }});
}

// op(a, b), with results kept alive until the next call as a program's variable would.
template <class F>
void add_binary(Workloads& to, const char* name, Dims sizes, F op, bool grad = false) {
  to.push_back({name, [sizes, op, grad] {
                  Tensor a = rnd(sizes), b = rnd(sizes, 2);
                  a.requires_grad_(grad);
                  return loop([a, b, op, r = Tensor()]() mutable { r = op(a, b); });
                }});
}

template <class F>
void add_view(Workloads& to, const char* name, F op) {
  to.push_back({name, [op] {
                  Tensor t = rnd({16, 16});
                  return loop([t, op, r = Tensor()]() mutable { r = op(t); });
                }});
}

struct Chain {
  Tensor w = rnd({1}), b = rnd({1}, 2), a = rnd({1}, 3).requires_grad_();
  Tensor forward() const {
    Tensor y = a;
    for (int i = 0; i < 50; ++i) {
      y = y * w;
      y = y + b;
    }
    return y;
  }
};

Prepared chain_forward() {
  Prepared p;
  p.inner = 100;
  p.run = [chain = Chain()] { return chain.forward(); };
  return p;
}

Prepared chain_both() {
  Prepared p;
  p.inner = 100;
  p.run = [chain = Chain()] {
    chain.a.mutable_grad() = {};
    chain.forward().backward();
    return Tensor();
  };
  return p;
}

// Twenty graphs are built outside the timed part.
Prepared chain_backward() {
  Prepared p;
  p.inner = 2000;
  p.run_selftimed = [chain = Chain()] {
    std::vector<Tensor> results;
    for (int i = 0; i < 20; ++i) results.push_back(chain.forward());
    Stopwatch watch;
    for (const Tensor& y : results) y.backward();
    return watch.read();
  };
  return p;
}

void add_arithmetic(Workloads& to) {
  auto sum = [](const Tensor& a, const Tensor& b) { return a + b; };
  add_binary(to, "micro.add1", {1}, sum);
  to.push_back({"micro.add1_inplace", [] {
                  Tensor a = rnd({1}), b = rnd({1}, 2);
                  return loop([a, b] { a.add_(b); });
                }});
  to.push_back({"micro.add1_out", [] {
                  Tensor a = rnd({1}), b = rnd({1}, 2), out = empty({1});
                  return loop([a, b, out]() mutable { add_out(out, a, b); });
                }});
  add_binary(to, "micro.add1_grad", {1}, sum, true);
  add_binary(to, "micro.add1_scalar", {1}, [](const Tensor& a, const Tensor&) { return a + 1.5; });
  add_binary(to, "micro.add1024", {1024}, sum);
  add_binary(to, "micro.sum1024", {1024}, [](const Tensor& a, const Tensor&) { return a.sum(); });
  to.push_back({"micro.item", [] {
                  Tensor a = rnd({1});
                  return loop([a] {
                    volatile float value = a.item<float>();
                    (void)value;
                  });
                }});
}

void add_views(Workloads& to) {
  add_view(to, "micro.view_view", [](const Tensor& t) { return t.view({4, 64}); });
  add_view(to, "micro.view_index_row", [](const Tensor& t) { return t.select(0, 3); });
  add_view(to, "micro.view_permute", [](const Tensor& t) { return t.permute({1, 0}); });
  add_view(to, "micro.view_detach", [](const Tensor& t) { return t.detach(); });
}

}  // namespace

void add_micro(Workloads& to) {
  add_factory(to, "micro.empty1", [r = Tensor()]() mutable { r = empty({1}); });
  add_factory(to, "micro.empty4096", [r = Tensor()]() mutable { r = empty({4096}); });
  add_factory(to, "micro.zeros1024", [r = Tensor()]() mutable { r = zeros({1024}); });
  add_arithmetic(to);
  add_views(to);
  to.push_back({"micro.chain100_fwd", chain_forward});
  to.push_back({"micro.chain100_fwdbwd", chain_both});
  to.push_back({"micro.chain100_bwd", chain_backward});
}

}  // namespace fornax::bench
