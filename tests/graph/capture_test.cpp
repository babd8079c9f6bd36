// Captured programs: the text of their graphs, and that running them is running the program.
#include "fornax/graph/capture.h"
#include "tests/support/tensor_checks.h"

namespace fornax {
namespace {

using test::make;
using test::near;
using test::noise;
using test::values;

// The graph gives f's results on other values too, and leaves its arguments as f does.
template <class F, class... A>
::testing::AssertionResult captured_is_eager(const F& f, const A&... args) {
  graph::Graph g = graph::capture(f, args...);
  g.verify();
  Tensors inputs;
  (inputs.push_back(args.clone() * 0.5 + 0.25), ...);
  Tensors eager_inputs;
  for (const Tensor& t : inputs) eager_inputs.push_back(t.clone());
  std::vector<Tensor> got = graph::run(g, inputs);
  size_t next = 0;
  auto take = [&](const auto&) { return eager_inputs[next++]; };
  std::tuple<std::decay_t<A>...> rebuilt{take(args)...};
  Tensors want = flatten_tree(std::apply(f, rebuilt));
  if (got.size() != want.size()) return ::testing::AssertionFailure() << "other number of results";
  for (size_t k = 0; k < want.size(); ++k)
    if (auto ok = near(got[k], want[k]); !ok) return ok << " (result " << k << ")\n" << g.text();
  for (size_t k = 0; k < inputs.size(); ++k)
    if (auto ok = near(inputs[k], eager_inputs[k]); !ok)
      return ok << " (argument " << k << ")\n" << g.text();
  std::string text = g.text();
  bool derived = text.find("_backward(") != text.npos || text.find("_forward(") != text.npos;
  if (derived) return ::testing::AssertionSuccess();
  Tensors captured;
  for (const auto& in : g.inputs())
    if (in.captured.defined()) captured.push_back(in.captured);
  std::string again = graph::parse(text, captured).text();
  if (again != text) return ::testing::AssertionFailure() << text << "parsed as\n" << again;
  return ::testing::AssertionSuccess();
}

TEST(Capture, WritesThroughNestedOverlappingViews) {
  auto f = [](const Tensor& x, const Tensor& w) {
    Tensor y = x.clone(), t = y.slice(0, 1, 3), s = t.select(0, 0);
    s.mul_(w);
    t.mul_(w);
    return y + s;
  };
  Tensor x = noise({3}, 1), w = noise({}, 2);
  EXPECT_EQ(graph::capture(f, x, w).text(),
            "graph(%0: f64[3], %1: f64[]) {\n"
            "  %2: f64[3] = clone(%0)\n"
            "  %3: f64[2] = slice(%2, dim=0, start=1, end=3, step=1)\n"
            "  %4: f64[] = select(%3, dim=0, index=0)\n"
            "  %5: f64[] = mul(%4, %1)\n"
            "  %6: f64[2] = slice(%2, dim=0, start=1, end=3, step=1)\n"
            "  %7: f64[2] = select_scatter(%6, %5, dim=0, index=0)\n"
            "  %8: f64[3] = slice_scatter(%2, %7, dim=0, start=1, end=3, step=1)\n"
            "  %9: f64[2] = slice(%8, dim=0, start=1, end=3, step=1)\n"
            "  %10: f64[2] = mul(%9, %1)\n"
            "  %11: f64[3] = slice_scatter(%8, %10, dim=0, start=1, end=3, step=1)\n"
            "  %12: f64[2] = slice(%11, dim=0, start=1, end=3, step=1)\n"
            "  %13: f64[] = select(%12, dim=0, index=0)\n"
            "  %14: f64[3] = add(%11, %13, alpha=1)\n"
            "  return %14\n"
            "}\n");
  EXPECT_TRUE(captured_is_eager(f, x, w));
}

TEST(Capture, JointGraphOfForwardAndBackward) {
  auto f = [](const Tensor& x, const Tensor& w) {
    return func::grad([&](const Tensor& q) {
      Tensor y = q.clone();
      y.select(0, 0).mul_(w);
      return (y * y).sum();
    })(x);
  };
  Tensor x = noise({3}, 1), w = noise({}, 2);
  std::string text = graph::capture(f, x, w).text();
  EXPECT_NE(text.find("select_scatter"), text.npos) << text;
  EXPECT_EQ(text.find("captured"), text.npos) << text;  // w, saved at another level, stays %1
  EXPECT_TRUE(captured_is_eager(f, x, w));
}

TEST(Capture, OtherTransformsInside) {
  auto loss = [](const Tensor& x, const Tensor& w) { return (x * w).tanh().sum(); };
  auto per_row = [&](const Tensor& x, const Tensor& w) {
    return func::vmap(func::grad(loss), {0, std::nullopt})(x, w);
  };
  EXPECT_TRUE(captured_is_eager(per_row, noise({4, 3}, 1), noise({3}, 2)));
  auto along = [&](const Tensor& x, const Tensor& d) {
    return func::jvp([](const Tensor& t) { return t * t.exp(); }, x, d);
  };
  EXPECT_TRUE(captured_is_eager(along, noise({3}, 1), noise({3}, 2)));
}

TEST(Capture, WritesIntoArguments) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.select(0, 1).add_(y.select(0, 0));
    return x * 2;
  };
  Tensor x = noise({3}, 1), y = noise({2}, 2);
  graph::Graph g = graph::capture(f, x, y);
  ASSERT_EQ(g.writes.size(), 1u);
  EXPECT_EQ(g.writes[0].input, 0u);
  EXPECT_TRUE(near(x, noise({3}, 1)));  // capturing leaves them alone
  EXPECT_TRUE(captured_is_eager(f, x, y));
}

TEST(Capture, OutsideTensors) {
  Tensor state = zeros({4}, Dtype::kF64), part = state.slice(0, 0, 2), weights = noise({2}, 3);
  auto f = [&](const Tensor& x) {
    part.add_(x * weights);
    return state.sum() * x;
  };
  Tensor x = noise({2}, 1);
  graph::Graph g = graph::capture(f, x);
  EXPECT_TRUE(near(state, {0, 0, 0, 0}));
  EXPECT_EQ(g.argument_count(), 1u);
  EXPECT_EQ(g.inputs().size(), 3u);
  graph::run(g, Tensors{x});
  std::vector<Tensor> second = graph::run(g, Tensors{x});
  Tensor want_state = x * weights * 2;
  EXPECT_TRUE(near(part, want_state));
  EXPECT_TRUE(near(second[0], want_state.sum() * x));
}

TEST(Capture, DetachAndSeveralResults) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 3;
    y.detach().add_(1);
    auto pieces = y.split(2);
    pieces[0].mul_(2);
    auto [value, index] = y.sort();
    return std::tuple(y, value, index.to(Dtype::kF64), pieces[1] * 1);
  };
  EXPECT_TRUE(captured_is_eager(f, noise({4}, 1)));
}

TEST(Capture, StoresInOtherDtypesAndLayouts) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor local = x.to(Dtype::kF32).t().clone();
    local.add_(y);
    local.t().select(0, 1).copy_(y.select(0, 0));
    return std::pair(local.to(Dtype::kF64), local.t().contiguous().view({6}).to(Dtype::kF64));
  };
  EXPECT_TRUE(captured_is_eager(f, noise({2, 3}, 1), noise({2}, 2)));
}

TEST(Capture, SchemaWrites) {
  Tensor mean = zeros({2}, Dtype::kF64), var = ones({2}, Dtype::kF64);
  const Op* op = find_op("native_batch_norm");
  if (!op || !op->infer) GTEST_SKIP() << "not in this build";
  auto f = [&](const Tensor& x) {
    Tensors r = call(*op, Form::kNew, {x, Arg(), Arg(), mean, var, true, 0.1, 1e-5});
    return std::pair(r[0], mean * 1);
  };
  Tensor x = noise({4, 2}, 1);
  graph::Graph g = graph::capture(f, x);
  EXPECT_EQ(g.writes.size(), 2u);
  EXPECT_TRUE(near(mean, {0, 0}));
  auto got = graph::run(g, Tensors{x});
  Tensor want = x.mean(Dims{0}) * 0.1;
  EXPECT_TRUE(near(mean, want));
  EXPECT_TRUE(near(got[1], want));
}

TEST(Capture, Errors) {
  Tensor x = noise({2}, 1);
  EXPECT_ERROR(graph::capture([](const Tensor& t) { return t + t.sum().item(); }, x), "value");
  EXPECT_ERROR(graph::capture([](const Tensor& t) { return t.nonzero(); }, x), "values");
  Tensor whole = noise({4}, 1);
  auto f = [](const Tensor& a, const Tensor& b) { return a.add_(b.sum()); };
  EXPECT_ERROR(graph::capture(f, whole.slice(0, 0, 3), whole.slice(0, 1, 4)), "shares memory");
  graph::Graph g = graph::capture([](const Tensor& t) { return t * 2; }, x);
  EXPECT_ERROR(graph::run(g, Tensors{}), "expected 1 arguments");
  EXPECT_ERROR(graph::run(g, Tensors{noise({3}, 1)}), "argument 0");
}

TEST(Capture, GraphsRunUnderTransformsAndTheTape) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.select(0, 0).mul_(y.select(0, 1).clone());
    return (y * y).sum();
  };
  Tensor x = noise({3}, 1);
  graph::Graph g = graph::capture(f, x);
  auto again = [&](const Tensor& t) { return graph::run(g, Tensors{t})[0]; };
  EXPECT_TRUE(near(func::grad(again)(x), func::grad(f)(x)));
  Tensor leaf = x.clone().requires_grad_();
  again(leaf).backward();
  EXPECT_TRUE(near(leaf.grad(), func::grad(f)(x)));
  Tensor rows = noise({2, 3}, 2);
  EXPECT_TRUE(near(func::vmap(again)(rows), func::vmap(f)(rows)));
}

TEST(Verify, FindsWhatIsWrong) {
  auto f = [](const Tensor& x) { return (x * 2).sum(); };
  graph::Graph g = graph::capture(f, noise({3}, 1));
  g.verify();
  g.nodes()[0]->outputs[0]->meta.sizes = Dims{4};
  EXPECT_ERROR(g.verify(), "its shape rule gives");
  graph::Graph h = graph::capture(f, noise({3}, 1));
  h.nodes()[0]->inputs[0] = h.outputs[0];
  EXPECT_ERROR(h.verify(), "before it is computed");
}

TEST(Functionalize, SameResultsAndEffects) {
  auto f = [](const Tensor& x) {
    Tensor t = x.slice(0, 1, 3);
    t.mul_(2);
    x.select(0, 1).add_(1);
    return t + 1;
  };
  Tensor a = noise({3}, 1), b = a.clone();
  Tensor want = f(a), got = func::functionalize(f)(b);
  EXPECT_TRUE(near(got, want));
  EXPECT_TRUE(near(b, a));
}

}  // namespace
}  // namespace fornax
