// Random operators. In-place draws (uniform_, normal_, ...) are functional records whose self gives
// sizes and dtype only, so they record, batch and capture like every other operator; no gradient
// flows into what was overwritten.
#include "fornax/ops/random.h"

#include <cmath>

#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

void no_gradient(Vjp&) {}
void no_tangent(Jvp&) {}

// ---- batching: one draw for all examples, or one for each
// The call on the first example of everything batched; the result has no batch dimension.
void draw_shared(Vmapped& v) {
  Tensors kept;
  kept.reserve(v.args().size());
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  for (size_t i = 0; i < args.size(); ++i)
    if (v.is(int(i))) args[i] = Arg(kept.emplace_back(args[i].t->select(0, 0)));
  Tensors outs = call(v.call.op, Form::kNew, Args(args.data(), args.size()));
  if (v.call.form == Form::kInplace) {
    const Tensor& self = v.call.args.tensor(0);
    self.copy_(outs[0].expand(self.sizes()));
    outs[0] = self;
    v.out_bdims = {v.is(0) ? 0 : -1};
  } else {
    v.out_bdims.assign(outs.size(), -1);
  }
  v.call.outs = std::move(outs);
}

void draw_vmap(Vmapped& v) {
  if (v.same_random) return draw_shared(v);
  int64_t rank = 0;
  for (size_t i = 0; i < v.args().size(); ++i)
    if (v.args()[i].is_tensor()) rank = std::max(rank, v.dim(int(i)));
  Tensors kept;
  kept.reserve(v.args().size());
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  bool in_place = v.call.form == Form::kInplace;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || (i == 0 && in_place)) continue;
    Tensor t = v.dim0(int(i));
    Dims sizes{t.sizes()[0]};
    for (int64_t d = t.dim() - 1; d < rank; ++d) sizes.push_back(1);
    for (size_t d = 1; d < t.sizes().size(); ++d) sizes.push_back(t.sizes()[d]);
    args[i] = Arg(kept.emplace_back(t.dim() - 1 < rank ? t.reshape(sizes) : t));
  }
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), 0);
}

// Draws whose argument `sizes_arg` is the size list.
template <int sizes_arg>
void sized_vmap(Vmapped& v) {
  SmallVec<Arg, 8> args(v.args().begin(), v.args().end());
  Dims sizes;
  if (!v.same_random) sizes.push_back(v.size);
  IntArrayRef logical = v.args().ints(sizes_arg);
  sizes.append(logical.begin(), logical.end());
  args[sizes_arg] = Arg(sizes);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  v.out_bdims.assign(v.call.outs.size(), v.same_random ? -1 : 0);
}

// ---- shape rules
void like_self(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  Meta m(x.dtype(), x.sizes(), x.device());
  if (!x.is_contiguous() && x.is_non_overlapping_and_dense())
    m.strides.assign(x.strides().begin(), x.strides().end());
  f.outs.push_back(m);
}

bool is_real_or_complex(Dtype d) { return is_float(d) || is_complex(d); }

void floating_self(Infer& f) {
  Dtype d = f.args.tensor(0).dtype();
  FX_CHECK(is_float(d), kType, f.op.name(), ": not defined for ", d);
  like_self(f);
}

void uniform_infer(Infer& f) {
  double from = f.args.real(1, 0), to = f.args.real(2, 1);
  FX_CHECK(from <= to && std::isfinite(to - from), kValue, "uniform: expected from <= to, got ",
           from, " and ", to);
  Dtype d = f.args.tensor(0).dtype();
  FX_CHECK(is_real_or_complex(d), kType, "uniform: not defined for ", d);
  like_self(f);
}

void check_std(const Infer& f, double std) {
  FX_CHECK(std >= 0, kValue, f.op.name(), ": std must not be negative, got ", std);
}

void normal_functional_infer(Infer& f) {
  check_std(f, f.args.real(2, 1));
  Dtype d = f.args.tensor(0).dtype();
  FX_CHECK(is_real_or_complex(d), kType, "normal: not defined for ", d);
  like_self(f);
}

// Overloads by argument: tensors broadcast, two numbers come with a size list.
void normal_infer(Infer& f) {
  Meta m;
  bool any = false;
  for (size_t i : {0, 1}) {
    if (!f.args[i].is_tensor()) continue;
    const Tensor& t = f.args.tensor(i);
    FX_CHECK(is_real_or_complex(t.dtype()), kType, "normal: not defined for ", t.dtype());
    m.sizes = any ? broadcast_sizes(m.sizes, t.sizes(), "normal")
                  : Dims(t.sizes().begin(), t.sizes().end());
    m.dtype = any ? promote_types(m.dtype, t.dtype()) : t.dtype();
    m.device = t.device();
    any = true;
  }
  if (!f.args[1].is_tensor()) check_std(f, f.args.real(1, 1));
  if (!any) {
    m = Meta(f.args.dtype(4, get_default_dtype()), f.args.ints(2), f.args.device(6));
    checked_numel(m.sizes);
  }
  f.outs.push_back(m);
}

// [size, generator, dtype, layout, device, pin_memory] from argument `at` on.
void sized_infer(Infer& f, size_t at, Dtype absent) {
  Meta m(f.args.dtype(at + 2, absent), f.args.ints(at), f.args.device(at + 4));
  checked_numel(m.sizes);
  f.outs.push_back(m);
}

void rand_infer(Infer& f) {
  sized_infer(f, 0, get_default_dtype());
  FX_CHECK(is_real_or_complex(f.outs[0].dtype), kType, f.op.name(), ": not defined for ",
           f.outs[0].dtype);
}

void check_range(const Infer& f, int64_t low, int64_t high) {
  FX_CHECK(low < high, kValue, f.op.name(), ": expected low < high, got ", low, " and ", high);
}

void randint_infer(Infer& f) {
  check_range(f, f.args.integer(0, 0), f.args.integer(1));
  sized_infer(f, 2, Dtype::kI64);
}

// Integers that the dtype counts without a gap: what randperm and randint may be asked for.
int64_t largest_exact(Dtype d) {
  switch (d) {
    case Dtype::kU8: return 255;
    case Dtype::kI8: return 127;
    case Dtype::kI16: return 32767;
    case Dtype::kI32: return INT32_MAX;
    case Dtype::kF16: return 2048;
    case Dtype::kBF16: return 256;
    case Dtype::kF32: return int64_t(1) << 24;
    case Dtype::kF64: return int64_t(1) << 53;
    default: return INT64_MAX;
  }
}

void randperm_infer(Infer& f) {
  int64_t n = f.args.integer(0);
  FX_CHECK(n >= 0, kValue, "randperm: n must not be negative, got ", n);
  Meta m(f.args.dtype(2, Dtype::kI64), Dims{n}, f.args.device(4));
  FX_CHECK(n - 1 <= largest_exact(m.dtype), kValue, "randperm: ", n, " is too large for ", m.dtype);
  f.outs.push_back(m);
}

void random_infer(Infer& f) {
  if (f.args.has(1) && f.args.has(2)) check_range(f, f.args.integer(1), f.args.integer(2));
  Dtype d = f.args.tensor(0).dtype();
  FX_CHECK(!is_complex(d), kType, "random: not defined for ", d);
  like_self(f);
}

// p: a number, a tensor, or (bernoulli) self itself.
void bernoulli_infer(Infer& f) {
  const Tensor& self = f.args.tensor(0);
  if (f.args[1].is_tensor()) {
    const Tensor& p = f.args.tensor(1);
    FX_CHECK(is_float(p.dtype()), kType, "bernoulli: probabilities must be real, got ", p.dtype());
    broadcast_sizes(self.sizes(), p.sizes(), "bernoulli");
  } else if (f.args.has(1)) {
    double p = f.args.real(1);
    FX_CHECK(p >= 0 && p <= 1, kValue, "bernoulli: p must be in [0, 1], got ", p);
  } else {
    FX_CHECK(is_float(self.dtype()), kType, "bernoulli: not defined for ", self.dtype());
  }
  like_self(f);
}

template <bool strict>
void positive_argument(Infer& f) {
  double x = f.args.real(1, 1);
  FX_CHECK(strict ? x > 0 : x >= 0, kValue, f.op.name(), ": the parameter must be positive, got ",
           x);
  floating_self(f);
}

void spread_infer(Infer& f) {
  double spread = f.args.real(2, 1);
  FX_CHECK(spread > 0, kValue, f.op.name(), ": the spread must be positive, got ", spread);
  floating_self(f);
}

void geometric_infer(Infer& f) {
  double p = f.args.real(1);
  FX_CHECK(p > 0 && p < 1, kValue, "geometric: p must be in (0, 1), got ", p);
  FX_CHECK(!is_complex(f.args.tensor(0).dtype()), kType, "geometric: not defined for ",
           f.args.tensor(0).dtype());
  like_self(f);
}

// ---- dropout
void check_probability(std::string_view name, double p) {
  FX_CHECK(p >= 0 && p <= 1, kValue, name, ": p must be in [0, 1], got ", p);
}

double dropout_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }

void native_dropout_infer(Infer& f) {
  check_probability("dropout", f.args.real(1));
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_real_or_complex(x.dtype()), kType, "dropout: not defined for ", x.dtype());
  like_self(f);
  Meta mask = f.outs[0];
  mask.dtype = Dtype::kBool;
  f.outs.push_back(mask);
}

void native_dropout_vjp(Vjp& v) {
  if (!v.grad(0).defined()) return;
  bool train = v.args().flag(2, true);
  v.set(0, train ? native_dropout_backward(v.grad(0), v.out(1), dropout_scale(v.args().real(1)))
                 : v.grad(0));
}
Saves native_dropout_saves(const SaveQuery& q) {
  Saves s;
  s.out = q.args.flag(2, true) ? 0b10 : 0;
  return s;
}
void native_dropout_jvp(Jvp& j) {
  Args args = j.call.args;
  bool train = args.flag(2, true);
  const Tensor& t = j.tangents[size_t(j.first[0])];
  if (!t.defined()) return;
  j.set(0, train ? native_dropout_backward(t, j.outs[1], dropout_scale(args.real(1))) : t);
}

void dropout_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  double p = c.args.real(1);
  check_probability("dropout", p);
  if (!c.args.flag(2) || p == 0 || x.numel() == 0) {
    c.outs = {x};
    return;
  }
  c.outs = {std::get<0>(native_dropout(x, p, true))};
}

// One number per channel: the noise of x[:, :, 0, 0, ...], kept broadcastable.
Tensor channel_noise(const Tensor& x, double keep) {
  FX_CHECK(x.dim() >= 2, kShape, "feature dropout: expected at least 2 dimensions, got ", x.dim());
  Tensor first = x;
  for (int64_t d = x.dim() - 1; d >= 2; --d) first = first.select(d, 0);
  Dims sizes(size_t(x.dim()), 1);
  for (size_t d : {0, 1}) sizes[d] = x.sizes()[d];
  return call1(bernoulli_op, {first, keep, Arg()}).reshape(sizes);
}

template <bool channels>
Tensor noise_of(const Tensor& x, double keep) {
  return channels ? channel_noise(x, keep) : call1(bernoulli_op, {x, keep, Arg()});
}

void feature_dropout_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  double p = c.args.real(1);
  check_probability("feature_dropout", p);
  if (!c.args.flag(2) || p == 0 || x.numel() == 0) {
    c.outs = {x};
    return;
  }
  c.outs = {x.mul(channel_noise(x, 1 - p).mul(dropout_scale(p)))};
}

// Keeps mean and variance of self-normalising networks: dropped elements become -alpha', and the
// whole is scaled.
template <bool channels>
void alpha_dropout_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  double p = c.args.real(1);
  check_probability("alpha_dropout", p);
  if (!c.args.flag(2) || p == 0 || x.numel() == 0) {
    c.outs = {x};
    return;
  }
  if (p == 1) {
    c.outs = {x.mul(0)};
    return;
  }
  constexpr double kAlpha = 1.7580993408473766;
  double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Tensor noise = noise_of<channels>(x, 1 - p);
  Tensor shift = noise.sub(1).mul(kAlpha * a).add(kAlpha * a * p);
  c.outs = {x.mul(noise.mul(a)).add(shift)};
}

void rrelu_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  double lower = c.args.has(1) ? c.args.number(1).to_double() : 1.0 / 8;
  double upper = c.args.has(2) ? c.args.number(2).to_double() : 1.0 / 3;
  FX_CHECK(is_float(x.dtype()), kType, "rrelu: not defined for ", x.dtype());
  FX_CHECK(lower <= upper, kValue, "rrelu: expected lower <= upper, got ", lower, " and ", upper);
  if (!c.args.flag(3)) {
    c.outs = {x.leaky_relu((lower + upper) / 2)};
    return;
  }
  Tensor slope = call1(uniform_op, {x, lower, upper, c.args[4]});
  c.outs = {where(x.gt(0), x, x.mul(slope))};
}

// ---- *_like
TensorOptions like_options_of(Args args, size_t at) {
  TensorOptions o;
  const Tensor& self = args.tensor(0);
  o = o.dtype(args.dtype(at, self.dtype()));
  o = o.device(args.has(at + 2) ? args.device(at + 2) : self.device());
  if (args.has(at + 4)) o = o.memory_format(args.memory_format(at + 4, MemoryFormat::Preserve));
  return o;
}

void rand_like_body(Call& c) { c.outs = {rand_like(c.args.tensor(0), like_options_of(c.args, 1))}; }
void randn_like_body(Call& c) {
  c.outs = {randn_like(c.args.tensor(0), like_options_of(c.args, 1))};
}
void randint_like_body(Call& c) {
  c.outs = {randint_like(c.args.tensor(0), c.args.integer(1, 0), c.args.integer(2),
                         like_options_of(c.args, 3))};
}

constexpr Op draw(std::string_view schema, std::string_view doc, void (*infer)(Infer&)) {
  return Op{.schema = schema,
            .doc = doc,
            .traits = kRandom,
            .infer = infer,
            .vjp = no_gradient,
            .jvp = no_tangent,
            .vmap = draw_vmap};
}
template <int sizes_arg>
constexpr Op sized_draw(std::string_view schema, std::string_view doc, void (*infer)(Infer&)) {
  return Op{.schema = schema,
            .doc = doc,
            .traits = kRandom | kNoGrad,
            .infer = infer,
            .vmap = sized_vmap<sizes_arg>};
}
constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

#define FX_OPTIONS_TEXT \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

constexpr Op uniform_op =
    draw("uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor",
         "Uniform in [from, to), in the shape and dtype of self.", uniform_infer);
constexpr Op normal_functional_op = draw(
    "normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> "
    "Tensor",
    "Normally distributed, in the shape and dtype of self.", normal_functional_infer);
constexpr Op random_op = draw(
    "random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor\n"
    "random(Tensor self, *, Generator? generator=None) -> Tensor",
    "Integers in [from, to); all that the dtype counts exactly if no bounds are given.",
    random_infer);
constexpr Op bernoulli_op = draw(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor\n"
    "bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor\n"
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    "1 with probability p (self, where p is absent), else 0.", bernoulli_infer);
constexpr Op exponential_op =
    draw("exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor",
         "Exponentially distributed with rate lambd.", positive_argument<true>);
constexpr Op geometric_op =
    draw("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
         "The number of trials up to the first success, of probability p.", geometric_infer);
constexpr Op cauchy_op = draw(
    "cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> "
    "Tensor",
    "Cauchy distributed.", spread_infer);
constexpr Op log_normal_op = draw(
    "log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> "
    "Tensor",
    "e to a normally distributed power.", spread_infer);
constexpr Op rand_op =
    sized_draw<0>("rand.generator(int[] size, *, Generator? generator, " FX_OPTIONS_TEXT
                  ") -> Tensor\n"
                  "rand(int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
                  "Uniform in [0, 1).", rand_infer);
constexpr Op randn_op =
    sized_draw<0>("randn.generator(int[] size, *, Generator? generator, " FX_OPTIONS_TEXT
                  ") -> Tensor\n"
                  "randn(int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
                  "Normally distributed with mean 0 and standard deviation 1.", rand_infer);
constexpr Op randint_op = sized_draw<2>(
    "randint.low_generator(int low, int high, int[] size, *, Generator? generator, " FX_OPTIONS_TEXT
    ") -> Tensor\n"
    "randint.low(int low, int high, int[] size, *, " FX_OPTIONS_TEXT
    ") -> Tensor\n"
    "randint.generator(int high, int[] size, *, Generator? generator, " FX_OPTIONS_TEXT
    ") -> Tensor\n"
    "randint(int high, int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
    "Integers in [low, high).", randint_infer);
// Every example of a batch would need a permutation of its own: the general loop draws them.
constexpr Op randperm_op{.schema =
                             "randperm.generator(int n, *, Generator? generator, " FX_OPTIONS_TEXT
                             ") -> Tensor\n"
                             "randperm(int n, *, " FX_OPTIONS_TEXT ") -> Tensor",
                         .doc = "A random order of 0 .. n-1.",
                         .traits = kRandom | kNoGrad,
                         .infer = randperm_infer};
constexpr Op normal_op = draw(
    "normal.float_float(float mean, float std, int[] size, *, Generator? "
    "generator=None, " FX_OPTIONS_TEXT
    ") -> Tensor\n"
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor\n"
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor\n"
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    "Normally distributed with mean and standard deviation, per element for tensors.",
    normal_infer);
constexpr Op rand_like_op = composite("rand_like(Tensor self, *, " FX_OPTIONS_TEXT
                                      ", MemoryFormat? memory_format=None) -> Tensor",
                                      "Uniform in [0, 1), in the shape of self.", rand_like_body);
constexpr Op randn_like_op = composite(
    "randn_like(Tensor self, *, " FX_OPTIONS_TEXT ", MemoryFormat? memory_format=None) -> Tensor",
    "Normally distributed, in the shape of self.", randn_like_body);
constexpr Op randint_like_op =
    composite("randint_like.low_dtype(Tensor self, int low, int high, *, " FX_OPTIONS_TEXT
              ", MemoryFormat? memory_format=None) -> Tensor\n"
              "randint_like(Tensor self, int high, *, " FX_OPTIONS_TEXT
              ", MemoryFormat? memory_format=None) -> Tensor",
              "Integers in [low, high), in the shape of self.", randint_like_body);
#undef FX_OPTIONS_TEXT
constexpr Op native_dropout_op{
    .schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    .doc = "Elements dropped with probability p, the others scaled by 1 / (1 - p); and which stay.",
    .traits = kRandom,
    .infer = native_dropout_infer,
    .nondiff = 0b10,
    .vjp = native_dropout_vjp,
    .saves = native_dropout_saves,
    .jvp = native_dropout_jvp,
    .vmap = draw_vmap};
constexpr Op dropout_op = composite("dropout(Tensor input, float p, bool train) -> Tensor",
                                    "native_dropout in training, else the input.", dropout_body);
constexpr Op feature_dropout_op =
    composite("feature_dropout(Tensor input, float p, bool train) -> Tensor",
              "Whole channels dropped in training.", feature_dropout_body);
constexpr Op alpha_dropout_op =
    composite("alpha_dropout(Tensor input, float p, bool train) -> Tensor",
              "Dropout that keeps mean and variance of self-normalising networks.",
              alpha_dropout_body<false>);
constexpr Op feature_alpha_dropout_op =
    composite("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
              "alpha_dropout of whole channels.", alpha_dropout_body<true>);
constexpr Op rrelu_op = composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    "leaky_relu with slopes drawn from [lower, upper) in training, else their middle.", rrelu_body);

// ---- C++ functions
namespace {

Tensor tracked(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

}  // namespace

Tensor rand(IntArrayRef size, OptionalGenerator generator, const TensorOptions& o) {
  return tracked(call1(rand_op, {size, generator, o.dtype_opt(), Arg(), o.device_opt(), Arg()}), o);
}
Tensor rand(IntArrayRef size, const TensorOptions& o) { return rand(size, std::nullopt, o); }
Tensor randn(IntArrayRef size, OptionalGenerator generator, const TensorOptions& o) {
  return tracked(call1(randn_op, {size, generator, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
                 o);
}
Tensor randn(IntArrayRef size, const TensorOptions& o) { return randn(size, std::nullopt, o); }

Tensor randint(int64_t low, int64_t high, IntArrayRef size, OptionalGenerator generator,
               const TensorOptions& o) {
  return tracked(
      call1(randint_op, {low, high, size, generator, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
      o);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const TensorOptions& o) {
  return randint(low, high, size, std::nullopt, o);
}
Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& o) {
  return randint(0, high, size, std::nullopt, o);
}
Tensor randint(int64_t high, IntArrayRef size, OptionalGenerator generator,
               const TensorOptions& o) {
  return randint(0, high, size, generator, o);
}
Tensor randperm(int64_t n, OptionalGenerator generator, const TensorOptions& o) {
  return tracked(call1(randperm_op, {n, generator, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
                 o);
}
Tensor randperm(int64_t n, const TensorOptions& o) { return randperm(n, std::nullopt, o); }

Tensor normal(double mean, double std, IntArrayRef size, OptionalGenerator generator,
              const TensorOptions& o) {
  return tracked(
      call1(normal_op, {mean, std, size, generator, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
      o);
}
Tensor normal(const Tensor& mean, double std, OptionalGenerator generator) {
  return call1(normal_op, {mean, std, Arg(), generator});
}
Tensor normal(double mean, const Tensor& std, OptionalGenerator generator) {
  return call1(normal_op, {mean, std, Arg(), generator});
}
Tensor normal(const Tensor& mean, const Tensor& std, OptionalGenerator generator) {
  return call1(normal_op, {mean, std, Arg(), generator});
}

// Like the in-place draw on an empty tensor: layout and batching are self's.
Tensor rand_like(const Tensor& self, const TensorOptions& options) {
  Tensor t = empty_like(self, options.requires_grad(false));
  return tracked(t.uniform_(), options);
}
Tensor randn_like(const Tensor& self, const TensorOptions& options) {
  Tensor t = empty_like(self, options.requires_grad(false));
  return tracked(t.normal_(), options);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const TensorOptions& options) {
  Tensor t = empty_like(self, options.requires_grad(false));
  return tracked(t.random_(low, high), options);
}
Tensor randint_like(const Tensor& self, int64_t high, const TensorOptions& options) {
  return randint_like(self, 0, high, options);
}

}  // namespace fornax
