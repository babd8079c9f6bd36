#include "tools/fornax/check_record.h"

#include <cstring>
#include <string_view>

#include "fornax/autograd/forward.h"
#include "fornax/fornax.h"
#include "tools/fornax/call.h"
#include "tools/fornax/compare.h"

namespace fornax::replay {
namespace {

std::string_view base_name(std::string_view op) {
  op.remove_prefix(op.find("::") + 2);
  if (op.find("nn.functional.") == 0) return op;
  return op.substr(0, op.find('.'));
}

// Results of these are random: compared by shape, dtype and range.
bool is_random(std::string_view name) {
  constexpr std::string_view names[] = {"rand",
                                        "randn",
                                        "randint",
                                        "rand_like",
                                        "randn_like",
                                        "randint_like",
                                        "randperm",
                                        "normal",
                                        "normal_",
                                        "uniform",
                                        "uniform_",
                                        "bernoulli",
                                        "bernoulli_",
                                        "exponential",
                                        "exponential_",
                                        "cauchy",
                                        "cauchy_",
                                        "geometric",
                                        "geometric_",
                                        "log_normal",
                                        "log_normal_",
                                        "random_",
                                        "multinomial",
                                        "native_dropout",
                                        "dropout",
                                        "feature_dropout",
                                        "alpha_dropout",
                                        "poisson",
                                        "nn.functional.dropout",
                                        "nn.functional.dropout2d",
                                        "nn.functional.dropout3d",
                                        "nn.functional.alpha_dropout",
                                        "nn.functional.feature_alpha_dropout",
                                        "nn.functional.rrelu",
                                        "nn.functional.fractional_max_pool2d",
                                        "nn.functional.fractional_max_pool3d"};
  for (auto n : names)
    if (n == name) return true;
  return false;
}

bool is_uninitialised(std::string_view name) { return name.find("empty") != name.npos; }
bool is_dropout(std::string_view name) {
  return name.find("dropout") != name.npos && name.find("alpha") == name.npos;
}

std::optional<std::string> same_shape(const RecordTensor& want, const Tensor& got) {
  if (got.dtype() != want.tensor.dtype)
    return str("dtype ", got.dtype(), ", expected ", want.tensor.dtype);
  if (!(got.sizes() == IntArrayRef(want.tensor.sizes)))
    return str("sizes ", got.sizes(), ", expected ", IntArrayRef(want.tensor.sizes));
  return std::nullopt;
}

// Dropout gives zeros or scaled inputs: every nonzero result has the same ratio to its input.
std::optional<std::string> dropout_range(const Record& record, const Tensor& got) {
  const RecordTensor* input = record.args.empty() ? nullptr : record.args[0].as<RecordTensor>();
  if (!input || !(got.sizes() == IntArrayRef(input->tensor.sizes)) || !got.is_floating_point())
    return std::nullopt;
  Tensor x = to_tensor(*input).to(kDouble).contiguous(), y = got.detach().to(kDouble).contiguous();
  double ratio = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    double a = x.data_ptr<double>()[i], b = y.data_ptr<double>()[i];
    if (b == 0 || a == 0) continue;
    if (ratio == 0) ratio = b / a;
    if (std::abs(b / a - ratio) > 0.05 * std::abs(ratio))
      return str("element ", i, " is neither zero nor scaled by ", ratio);
  }
  return std::nullopt;
}

std::optional<std::string> compare_forward(const Record& record, const std::vector<Tensor>& outs) {
  if (outs.size() != record.out.size())
    return str(outs.size(), " results, expected ", record.out.size());
  std::string_view name = base_name(record.op);
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].defined()) return str("result ", i, " is undefined");
    std::optional<std::string> d;
    if (is_random(name) || is_uninitialised(name)) {
      d = same_shape(record.out[i], outs[i]);
      if (!d && i == 0 && is_dropout(name)) d = dropout_range(record, outs[i]);
    } else {
      d = difference(record.out[i].tensor, to_raw(outs[i]));
    }
    if (d) return str("result ", i, ": ", *d);
  }
  return std::nullopt;
}

std::optional<std::string> compare_optional(const char* what, size_t i,
                                            const std::optional<RecordTensor>& want,
                                            const Tensor& got, ArrayRef<double> sums = {}) {
  RawTensor raw;
  RawTensorView view, want_view;
  if (got.defined()) {
    raw = to_raw(got);
    view = raw;
  }
  if (want) want_view = want->tensor;
  auto d = difference_or_zeros(want ? &want_view : nullptr, got.defined() ? &view : nullptr,
                               {sums.data(), sums.size()});
  if (d) return str(what, " ", i, ": ", *d);
  return std::nullopt;
}

// Half precision gradients summed over broadcast dimensions are compared within rtol * sum |terms|.
// The terms are what the gradient is before the sum: the gradient of the same call on operands
// expanded to the result's sizes.
std::vector<std::vector<double>> term_sums(const Record& record) {
  std::vector<std::vector<double>> sums(record.vjp->grads.size());
  std::string reason;
  auto call = prepare_call(record, false, reason);
  if (!call || !call->op || call->op->kind != OpKind::kPointwise || record.out.size() != 1)
    return sums;
  const RecordTensor& out = record.out[0];
  std::vector<Tensor> leaves;
  std::vector<Dims> sizes;
  for (Tensor* t : call->inputs) {
    sizes.push_back(Dims(t->sizes().begin(), t->sizes().end()));
    *t = t->expand(out.tensor.sizes).clone(MemoryFormat::Contiguous).requires_grad_();
    leaves.push_back(*t);
  }
  std::vector<Tensor> grads = autograd::grad(
      run_call(*call), leaves, {to_tensor(record.vjp->grad_out[0])}, std::nullopt, false, true);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    Tensor s = sum_to_size(grads[i].to(kDouble).abs(), sizes[i]).contiguous();
    sums[i].assign(s.data_ptr<double>(), s.data_ptr<double>() + s.numel());
  }
  return sums;
}

std::optional<std::string> compare_vjp(const Record& record, std::string& reason) {
  auto call = prepare_call(record, true, reason);
  if (!call) return "can't be called with gradients: " + reason;
  std::vector<Tensor> inputs, tracked, seeds;
  for (Tensor* t : call->inputs) inputs.push_back(*t);
  for (const Tensor& t : run_call(*call))
    if (t.defined() && t.requires_grad()) tracked.push_back(t);
  // Statistics (mean, rstd) are differentiable results here and not there.
  if (tracked.size() > record.vjp->grad_out.size()) tracked.resize(record.vjp->grad_out.size());
  if (tracked.size() != record.vjp->grad_out.size())
    return str(tracked.size(), " differentiable results, expected ", record.vjp->grad_out.size());
  for (const RecordTensor& g : record.vjp->grad_out) seeds.push_back(to_tensor(g));
  std::vector<Tensor> grads = autograd::grad(tracked, inputs, seeds, std::nullopt, false, true);
  if (grads.size() != record.vjp->grads.size())
    return str(grads.size(), " gradients, expected ", record.vjp->grads.size());
  std::vector<std::vector<double>> sums(grads.size());
  if (record.dtype == Dtype::kF16 || record.dtype == Dtype::kBF16) sums = term_sums(record);
  for (size_t i = 0; i < grads.size(); ++i)
    if (auto d = compare_optional("gradient", i, record.vjp->grads[i], grads[i], sums[i])) return d;
  return std::nullopt;
}

std::vector<Tensor> forward_tangents(PreparedCall& call, const std::vector<Tensor>& tangents) {
  FX_CHECK(tangents.size() == call.inputs.size(), kValue, tangents.size(), " tangents for ",
           call.inputs.size(), " inputs");
  autograd::forward_ad::dual_level level;
  for (size_t i = 0; i < tangents.size(); ++i)
    *call.inputs[i] = autograd::forward_ad::make_dual(*call.inputs[i], tangents[i]);
  std::vector<Tensor> out;
  for (const Tensor& t : run_call(call))
    out.push_back(autograd::forward_ad::unpack_dual(t).tangent);
  return out;
}

std::optional<std::string> compare_jvp(const Record& record, std::string& reason) {
  auto call = prepare_call(record, false, reason);
  if (!call) return "can't be called with tangents: " + reason;
  std::vector<Tensor> tangents;
  for (const RecordTensor& t : record.jvp->tangents) tangents.push_back(to_tensor(t));
  std::vector<std::optional<RecordTensor>> want = record.jvp->out;
  std::vector<Tensor> got = forward_tangents(*call, tangents);
  if (got.size() != want.size()) return str(got.size(), " tangents, expected ", want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (auto d = compare_optional("tangent", i, want[i], got[i])) return d;
  return std::nullopt;
}

template <class F>
Outcome guarded(F check, std::string& reason, const char* part) {
  std::optional<std::string> d;
  try {
    d = check();
  } catch (const Error& e) {
    d = str("threw ", name_of(e.kind()), ": ", e.message());
  } catch (const std::exception& e) {
    d = str("threw ", e.what());
  }
  if (!d) return Outcome::kPassed;
  if (reason.empty()) reason = str(part, ": ", *d);
  return Outcome::kFailed;
}

}  // namespace

Outcome Verdict::whole() const {
  if (forward == Outcome::kSkipped) return Outcome::kSkipped;
  bool failed = forward == Outcome::kFailed || vjp == Outcome::kFailed || jvp == Outcome::kFailed;
  return failed ? Outcome::kFailed : Outcome::kPassed;
}

Verdict check_record(const Record& record) {
  Verdict v;
  std::string reason;
  try {
    if (!prepare_call(record, false, reason)) {
      v.forward = Outcome::kSkipped;
      v.reason = reason;
      return v;
    }
  } catch (const std::exception&) {
    // Reported below, where the call is made again.
  }
  v.forward = guarded(
      [&]() -> std::optional<std::string> {
        auto call = prepare_call(record, false, reason);
        NoGradGuard no_grad;
        return compare_forward(record, run_call(*call));
      },
      v.reason, "forward");
  bool random = is_random(base_name(record.op));
  if (record.vjp && !random)
    v.vjp = guarded([&] { return compare_vjp(record, reason); }, v.reason, "vjp");
  if (record.jvp && !random)
    v.jvp = guarded([&] { return compare_jvp(record, reason); }, v.reason, "jvp");
  return v;
}

}  // namespace fornax::replay
