// Levels of function transforms: the wrappers that an interpreter puts around tensors of the level
// below, and the interpreter that keeps a tape of its own.
#pragma once

#include "fornax/autograd/node.h"

namespace fornax {

// A tensor of `level` around `inner`; bdim is the batch dimension that it hides, -1 for none.
Tensor wrap_tensor(const Tensor& inner, int level, int bdim = -1);
// What a wrapper of `level` holds; other tensors (also undefined ones) as they are.
const Tensor& unwrap_tensor(const Tensor& t, int level);
inline bool is_at_level(const Tensor& t, int level) { return t.defined() && level_of(t) == level; }
// A number that no other level of this process has had.
int next_level();
// The tensor t is a view of, or t.
inline Tensor root_of(const Tensor& t) { return t.impl()->base ? Tensor(t.impl()->base) : t; }

// A call's arguments one level down. `flat` may be changed: the arguments point into it.
class LoweredArgs {
 public:
  LoweredArgs(Args args, int level);
  LoweredArgs(const LoweredArgs&) = delete;
  Args args() const { return Args(args_.data(), args_.size()); }
  Arg& arg(size_t i) { return args_[i]; }

  Tensors flat;
  uint64_t batched = 0;  // arguments that hide a batch dimension (of a list: at least one element)

 private:
  SmallVec<Arg, 8> args_;
};

// A view whose base got another inner value derives itself anew, by its steps. Runs on the level
// that owns t, which is the one that runs now.
void rederive_view(const Tensor& t, int level);

// Turns the results of a call one level down into results of `call`: fresh ones are wrapped, views
// linked to their base, what was written keeps its handle and gets a new version. `bdims` may be
// empty. `link_detached`: detach() is linked too, for levels whose inner values are swapped.
struct WrapOptions {
  int level = 0;
  ArrayRef<int> bdims = {};
  bool link_detached = false;
};
void wrap_results(Call& call, Tensors& outs, const WrapOptions& options);

// fn(tensor, differentiable) for every tensor that the call stores a result into.
template <class F>
void for_each_written(const Call& call, F fn) {
  auto differentiable = [&](size_t k) {
    return !call.op.is(kNoGrad) && !(call.op.nondiff >> k & 1);
  };
  if (call.form == Form::kInplace) fn(call.args.tensor(0), differentiable(0));
  if (!call.op.writes.any) return;
  for (size_t k = 0; k < 8; ++k) {
    if (call.op.writes[k] < 0) continue;
    for (const Tensor& t : call.args.list(size_t(call.op.writes[k])))
      if (t.defined()) fn(t, differentiable(k));
  }
}

// Makes `interp` the top level until the end of the scope.
class PushLevel : StateGuard {
 public:
  explicit PushLevel(Interp& interp) : PushLevel(interp, next_level()) {}
  PushLevel(Interp& interp, int level);  // a level that existed before
};

// A tape of its own, over wrappers. Recording starts switched on, whatever it was outside; what is
// recorded on lower levels is decided there.
struct GradInterp final : Interp {
  class Push : PushLevel {
   public:
    explicit Push(GradInterp& interp) : Push(interp, next_level()) {}
    Push(GradInterp& interp, int level) : PushLevel(interp, level) {
      thread_state.set_grad_mode(true);
    }
  };
  void process(Call& call) override;
  void process_custom(CustomCall& call) override;
};

}  // namespace fornax
