#include "fornax/ops/optim.h"

#include "fornax/ops/records.h"

namespace fornax {
namespace {

// Results are the written lists themselves; every other list must fit the parameters.
void check_lists(const Infer& f, size_t n_lists) {
  std::string_view name = f.op.name();
  TensorList params = f.args.list(0);
  for (size_t a = 0; a < n_lists; ++a) {
    TensorList list = f.args.list(a);
    FX_CHECK(list.size() == params.size() || (a >= 2 && list.empty()), kShape, name, ": list ", a,
             " has ", list.size(), " tensors for ", params.size(), " parameters");
    for (size_t k = 0; k < list.size(); ++k) {
      const Tensor &t = list[k], &p = params[k];
      FX_CHECK(t.defined(), kValue, name, ": element ", k, " of list ", a, " is undefined");
      FX_CHECK(t.sizes() == p.sizes(), kShape, name, ": element ", k, " of list ", a, " has sizes ",
               t.sizes(), ", its parameter ", p.sizes());
      FX_CHECK(t.dtype() == p.dtype(), kType, name, ": element ", k, " of list ", a, " is ",
               t.dtype(), ", its parameter ", p.dtype());
      FX_CHECK(t.device() == p.device(), kDevice, name, ": element ", k, " of list ", a, " is on ",
               t.device(), ", its parameter on ", p.device());
    }
  }
  for (const Tensor& p : params)
    FX_CHECK(is_differentiable(p.dtype()) && p.dtype() != Dtype::kC32, kType, name,
             ": parameters must be floating or complex, got ", p.dtype());
}

void add_written(Infer& f) {
  size_t lists = 0;
  while (f.op.writes[lists] >= 0) ++lists;
  for (size_t k = 0; k < lists; ++k)
    for (const Tensor& t : f.args.list(size_t(f.op.writes[k]))) f.outs.push_back(meta_of(t));
}

void check_steps(const Infer& f, size_t at) {
  TensorList steps = f.args.list(at);
  FX_CHECK(steps.size() == f.args.list(0).size(), kShape, f.op.name(), ": ", steps.size(),
           " state_steps for ", f.args.list(0).size(), " parameters");
  for (const Tensor& t : steps)
    FX_CHECK(t.numel() == 1, kShape, f.op.name(), ": state_steps must have one element, got sizes ",
             t.sizes());
}

void sgd_infer(Infer& f) {
  check_lists(f, 3);
  FX_CHECK(f.args.real(4) == 0 || f.args.list(2).size() == f.args.list(0).size(), kValue,
           "_fused_sgd_: momentum needs a buffer for each parameter");
  add_written(f);
}

void adam_infer(Infer& f) {
  check_lists(f, 5);
  for (size_t a : {2, 3})
    FX_CHECK(f.args.list(a).size() == f.args.list(0).size(), kValue, f.op.name(), ": list ", a,
             " must have a tensor for each parameter");
  FX_CHECK(!f.args.flag(11) || f.args.list(4).size() == f.args.list(0).size(), kValue, f.op.name(),
           ": amsgrad needs max_exp_avg_sqs for each parameter");
  check_steps(f, 5);
  add_written(f);
}

void adagrad_infer(Infer& f) {
  check_lists(f, 3);
  FX_CHECK(f.args.list(2).size() == f.args.list(0).size(), kValue, f.op.name(),
           ": state_sums must have a tensor for each parameter");
  check_steps(f, 3);
  add_written(f);
}

void rmsprop_infer(Infer& f) {
  check_lists(f, 5);
  FX_CHECK(f.args.list(2).size() == f.args.list(0).size(), kValue, f.op.name(),
           ": square_avgs must have a tensor for each parameter");
  FX_CHECK(f.args.real(9) == 0 || f.args.list(4).size() == f.args.list(0).size(), kValue,
           f.op.name(), ": momentum needs a buffer for each parameter");
  add_written(f);
}

void foreach_add_infer(Infer& f) {
  for (const Tensor& t : f.args.list(0))
    FX_CHECK(t.defined() && is_float(t.dtype()), kType,
             "_foreach_add_: expected defined floating tensors, got ", t);
  add_written(f);
}

}  // namespace

constexpr Op fused_sgd_op{
    .schema =
        "_fused_sgd_(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] momentum_buffer_list, "
        "*, float weight_decay, float momentum, float lr, float dampening, bool nesterov, "
        "bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) "
        "-> (Tensor(a!)[], Tensor(c!)[])",
    .doc = "One step of stochastic gradient descent on lists.",
    .infer = sgd_infer,
};

constexpr Op fused_adam_op{
    .schema =
        "_fused_adam_(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, "
        "float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, "
        "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor(a!)[], "
        "Tensor(c!)[], Tensor(d!)[], Tensor(e!)[])",
    .doc = "One step of Adam on lists; weight decay is added to the gradient.",
    .infer = adam_infer,
};

constexpr Op fused_adamw_op{
    .schema =
        "_fused_adamw_(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] exp_avgs, "
        "Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, "
        "float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, "
        "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor(a!)[], "
        "Tensor(c!)[], Tensor(d!)[], Tensor(e!)[])",
    .doc = "One step of Adam on lists; weight decay shrinks the parameter.",
    .infer = adam_infer,
};

constexpr Op fused_adagrad_op{
    .schema =
        "_fused_adagrad_(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] state_sums, "
        "Tensor[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, "
        "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor(a!)[], "
        "Tensor(c!)[])",
    .doc = "One step of Adagrad on lists.",
    .infer = adagrad_infer,
};

constexpr Op fused_rmsprop_op{
    .schema =
        "_fused_rmsprop_(Tensor(a!)[] self, Tensor[] grads, Tensor(c!)[] square_avgs, "
        "Tensor(d!)[] grad_avgs, Tensor(e!)[] momentum_buffer_list, *, float lr, "
        "float alpha, float eps, float weight_decay, float momentum, bool maximize, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor(a!)[], Tensor(c!)[], "
        "Tensor(d!)[], Tensor(e!)[])",
    .doc = "One step of RMSprop on lists; centered where grad_avgs are given.",
    .infer = rmsprop_infer,
};

constexpr Op foreach_add_op{
    .schema = "_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> Tensor(a!)[]",
    .doc = "Adds a number to every tensor of a list, in place.",
    .infer = foreach_add_infer,
};

void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                 double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                 bool maximize, bool is_first_step, const Tensor& grad_scale,
                 const Tensor& found_inf) {
  call(fused_sgd_op, Form::kNew,
       {self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov,
        maximize, is_first_step, grad_scale, found_inf});
}

void _fused_adam_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                  TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                  double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                  const Tensor& grad_scale, const Tensor& found_inf) {
  call(fused_adam_op, Form::kNew,
       {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2,
        weight_decay, eps, amsgrad, maximize, grad_scale, found_inf});
}

void _fused_adamw_(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                   TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                   double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                   const Tensor& grad_scale, const Tensor& found_inf) {
  call(fused_adamw_op, Form::kNew,
       {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2,
        weight_decay, eps, amsgrad, maximize, grad_scale, found_inf});
}

void _fused_adagrad_(TensorList self, TensorList grads, TensorList state_sums,
                     TensorList state_steps, double lr, double lr_decay, double weight_decay,
                     double eps, bool maximize, const Tensor& grad_scale, const Tensor& found_inf) {
  call(fused_adagrad_op, Form::kNew,
       {self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale,
        found_inf});
}

void _fused_rmsprop_(TensorList self, TensorList grads, TensorList square_avgs,
                     TensorList grad_avgs, TensorList momentum_buffer_list, double lr, double alpha,
                     double eps, double weight_decay, double momentum, bool maximize,
                     const Tensor& grad_scale, const Tensor& found_inf) {
  call(fused_rmsprop_op, Form::kNew,
       {self, grads, square_avgs, grad_avgs, momentum_buffer_list, lr, alpha, eps, weight_decay,
        momentum, maximize, grad_scale, found_inf});
}

void _foreach_add_(TensorList self, const Scalar& scalar) {
  call(foreach_add_op, Form::kNew, {self, scalar});
}

}  // namespace fornax
