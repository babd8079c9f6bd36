#include "tests/support/gradcheck.h"

#include <algorithm>
#include <cmath>

#include "fornax/autograd/autograd.h"

namespace fornax::test {
namespace {

// Fixed weights of moderate size, never 0.
Tensor weights_like(const Tensor& t, int which) {
  Numbers n;
  n.sizes = Dims(t.sizes().begin(), t.sizes().end());
  for (int64_t i = 0; i < t.numel(); ++i) {
    double a = 0.3 + 0.11 * double((i * 7 + which * 3) % 13);
    double b = t.is_complex() ? 0.9 - 0.17 * double((i * 5 + which) % 11) : 0;
    n.at.emplace_back(i % 2 ? -a : a, b);
  }
  return write(n, t.dtype());
}

double inner(const Tensor& w, const Tensor& x) {
  Numbers a = read(w), b = read(x);
  double sum = 0;
  for (size_t i = 0; i < a.at.size(); ++i)
    sum += a.at[i].real() * b.at[i].real() + a.at[i].imag() * b.at[i].imag();
  return sum;
}

std::vector<Tensor> fresh(const std::vector<Tensor>& ts, bool grad) {
  std::vector<Tensor> copies;
  for (const Tensor& t : ts) {
    copies.push_back(contiguous_of(t));
    if (grad) copies.back().requires_grad_();
  }
  return copies;
}

// The value whose gradient is checked, as a plain function of all inputs.
using Value = FunctionRef<double(const std::vector<Tensor>&)>;

// d value / d inputs[k], as the real and imaginary parts of a complex number.
std::vector<Number> differences(Value value, const std::vector<Tensor>& inputs, size_t k,
                                double step) {
  std::vector<Number> at = read(inputs[k]).at, result;
  std::vector<Tensor> moved = fresh(inputs, false);
  auto quotient = [&](size_t i, Number direction) {
    Number old = at[i];
    auto shifted = [&](double by) {
      at[i] = old + by * direction;
      moved[k] = write({inputs[k].impl()->sizes, at}, inputs[k].dtype());
      double v = value(moved);
      at[i] = old;
      return v;
    };
    return (shifted(step) - shifted(-step)) / (2 * step);
  };
  for (size_t i = 0; i < at.size(); ++i) {
    double re = quotient(i, {1, 0});
    double im = inputs[k].is_complex() ? quotient(i, {0, 1}) : 0;
    result.emplace_back(re, im);
  }
  return result;
}

std::string compare(const std::vector<Tensor>& analytic, const std::vector<Tensor>& inputs,
                    Value value, const GradcheckOptions& o, std::string_view what) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<Number> want = differences(value, inputs, k, o.step);
    std::vector<Number> got(want.size(), Number(0));
    if (analytic[k].defined()) {
      if (!(analytic[k].sizes() == inputs[k].sizes()))
        return str(what, " of input ", int64_t(k), " has sizes ", analytic[k].sizes());
      if (analytic[k].dtype() != inputs[k].dtype())
        return str(what, " of input ", int64_t(k), " is ", analytic[k].dtype());
      got = read(analytic[k]).at;
    }
    for (size_t i = 0; i < want.size(); ++i) {
      double allowed = o.absolute + o.relative * std::abs(want[i]);
      if (!(std::abs(got[i] - want[i]) <= allowed))
        return str(what, " of input ", int64_t(k), " element ", int64_t(i), " is (", got[i].real(),
                   ", ", got[i].imag(), "), differences give (", want[i].real(), ", ",
                   want[i].imag(), ")");
    }
  }
  return {};
}

// The results that need a gradient, with weights for them.
struct Outputs {
  std::vector<Tensor> results, weights;
};

Outputs outputs_of(DifferentiableFunction f, const std::vector<Tensor>& inputs) {
  Outputs o;
  Tensors all = f(inputs);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined() || !all[i].requires_grad()) continue;
    o.results.push_back(all[i]);
    o.weights.push_back(weights_like(all[i], int(i)));
  }
  return o;
}

std::string check_first(DifferentiableFunction f, const std::vector<Tensor>& given,
                        const GradcheckOptions& options) {
  std::vector<Tensor> inputs = fresh(given, true);
  Outputs o = outputs_of(f, inputs);
  if (o.results.empty()) return "no result needs a gradient";
  std::vector<Tensor> analytic = autograd::grad(o.results, inputs, o.weights, {}, false, true);
  auto value = [&](const std::vector<Tensor>& at) {
    std::vector<Tensor> tracked = fresh(at, true);
    Outputs here = outputs_of(f, tracked);
    double sum = 0;
    for (size_t i = 0; i < here.results.size(); ++i) sum += inner(o.weights[i], here.results[i]);
    return sum;
  };
  return compare(analytic, inputs, value, options, "gradient");
}

// inputs, then the weights of the results.
std::vector<Tensor> gradients_at(DifferentiableFunction f, const std::vector<Tensor>& at, size_t n,
                                 bool create_graph) {
  std::vector<Tensor> inputs(at.begin(), at.begin() + long(n));
  std::vector<Tensor> weights(at.begin() + long(n), at.end());
  Outputs o = outputs_of(f, inputs);
  return autograd::grad(o.results, inputs, weights, {}, create_graph, true);
}

std::string check_second(DifferentiableFunction f, const std::vector<Tensor>& given,
                         const GradcheckOptions& options) {
  std::vector<Tensor> all = fresh(given, true);
  Outputs o = outputs_of(f, all);
  if (o.results.empty()) return "no result needs a gradient";
  for (const Tensor& w : o.weights) all.push_back(contiguous_of(w).requires_grad_());
  std::vector<Tensor> first = gradients_at(f, all, given.size(), true);
  std::vector<Tensor> results, weights, analytic(all.size());
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i].defined()) continue;
    Tensor w = weights_like(first[i], int(i) + 5);
    weights.push_back(w);
    results.push_back(first[i]);
  }
  auto value = [&](const std::vector<Tensor>& at) {
    std::vector<Tensor> g = gradients_at(f, fresh(at, true), given.size(), false);
    double sum = 0;
    size_t next = 0;
    for (size_t i = 0; i < g.size(); ++i)
      if (first[i].defined()) sum += g[i].defined() ? inner(weights[next], g[i]) : 0, ++next;
    return sum;
  };
  std::vector<Tensor> outs, seeds;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad()) continue;
    outs.push_back(results[i]);
    seeds.push_back(weights[i]);
  }
  if (!outs.empty()) analytic = autograd::grad(outs, all, seeds, {}, false, true);
  return compare(analytic, all, value, options, "second gradient");
}

}  // namespace

std::string gradcheck(DifferentiableFunction f, const std::vector<Tensor>& inputs,
                      GradcheckOptions options) {
  return options.second ? check_second(f, inputs, options) : check_first(f, inputs, options);
}

bool is_differentiable_at(DifferentiableFunction f, const std::vector<Tensor>& inputs) {
  for (const Tensor& t : f(fresh(inputs, true)))
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

}  // namespace fornax::test
