// Pooling: two records (maxima with their places, averages) and their gradients; the public names
// are spellings.
#include "fornax/ops/pool.h"

#include "fornax/ops/factory.h"
#include "fornax/ops/operators.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

Dims list_of(Args args, size_t i) {
  IntArrayRef v = args.ints(i);
  return Dims(v.begin(), v.end());
}

bool any_below(const Dims& d, int64_t least) {
  for (int64_t v : d)
    if (v < least) return true;
  return false;
}

int64_t windows(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                bool ceil_mode) {
  int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = (span >= 0 ? span / stride : -((-span + stride - 1) / stride)) + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

}  // namespace

PoolParams max_pool_params(Args args) {
  PoolParams p;
  p.kernel = list_of(args, 1);
  p.stride = list_of(args, 2);
  p.padding = list_of(args, 3);
  p.dilation = list_of(args, 4);
  p.ceil_mode = args.flag(5);
  p.output = list_of(args, 6);
  p.spatial = int64_t(p.adaptive() ? p.output.size() : p.kernel.size());
  return p;
}

PoolParams average_pool_params(Args args, size_t first) {
  PoolParams p;
  p.kernel = list_of(args, first);
  p.stride = list_of(args, first + 1);
  p.padding = list_of(args, first + 2);
  p.dilation.assign(p.kernel.size(), 1);
  p.ceil_mode = args.flag(first + 3);
  p.count_include_pad = args.flag(first + 4, true);
  p.divisor = args.integer(first + 5, 0);
  p.output = list_of(args, first + 6);
  p.spatial = int64_t(p.adaptive() ? p.output.size() : p.kernel.size());
  return p;
}

Dims pooled_sizes(IntArrayRef input, const PoolParams& p, std::string_view name) {
  int64_t rank = int64_t(input.size());
  FX_CHECK(rank == p.spatial + 1 || rank == p.spatial + 2, kShape, name, ": expected an input of ",
           p.spatial + 1, " or ", p.spatial + 2, " dimensions, got sizes ", input);
  Dims out(input.begin(), input.end());
  for (int64_t d = 0; d < p.spatial; ++d) {
    size_t i = size_t(d), at = size_t(rank - p.spatial + d);
    if (p.adaptive()) {
      FX_CHECK(p.output[i] >= 0, kValue, name, ": output_size must not be negative, got ",
               p.output);
      out[at] = p.output[i];
      continue;
    }
    FX_CHECK(input[at] > 0, kShape, name, ": spatial dimension ", d, " of sizes ", input,
             " is empty");
    out[at] =
        windows(input[at], p.kernel[i], p.stride[i], p.padding[i], p.dilation[i], p.ceil_mode);
    FX_CHECK(out[at] >= 1, kShape, name, ": the window of ", p.kernel[i], " (dilation ",
             p.dilation[i], ") is larger than the padded input of ", input[at], " + 2 * ",
             p.padding[i]);
  }
  for (size_t at = size_t(rank - p.spatial); p.adaptive() && at < size_t(rank); ++at)
    FX_CHECK(input[at] > 0 || out[at] == 0, kShape, name, ": spatial sizes of ", input,
             " must not be empty");
  FX_CHECK(input[size_t(rank - p.spatial - 1)] > 0, kShape, name,
           ": the channel dimension of sizes ", input, " is empty");
  return out;
}

namespace {

Dims layout_of(const Tensor& x, const Dims& sizes) {
  MemoryFormat f = x.suggest_memory_format();
  return f == MemoryFormat::Contiguous ? Dims() : strides_of(f, sizes);
}

void check_dtype(std::string_view name, Dtype d, bool integers) {
  FX_CHECK(is_float(d) || (integers && is_integer(d)), kType, name, ": not defined for ", d);
}

void pool_max_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  PoolParams p = max_pool_params(f.args);
  check_dtype("max_pool", x.dtype(), true);
  Meta values(x.dtype(), pooled_sizes(x.sizes(), p, "max_pool"), x.device());
  values.strides = layout_of(x, values.sizes);
  Meta indices = values;
  indices.dtype = Dtype::kI64;
  f.outs.push_back(std::move(values));
  f.outs.push_back(std::move(indices));
}

// Spatial dimensions as one.
Tensor flat(const Tensor& t, int64_t spatial) { return t.flatten(t.dim() - spatial, -1); }

void pool_max_vjp(Vjp& v) {
  v.set(0, call1(pool_max_backward_op, {v.grad(), v.out(1), IntArrayRef(v.meta(0).sizes),
                                        int64_t(max_pool_params(v.args()).spatial)}));
}

void pool_max_jvp(Jvp& j) {
  int64_t spatial = max_pool_params(j.call.args).spatial;
  Tensor picked = flat(j.tangent(0), spatial).gather(-1, flat(j.outs[1], spatial));
  j.set(0, picked.reshape(j.outs[1].sizes()));
}

// The batch joins the samples.
void fold_batch(Vmapped& v, int64_t spatial) {
  Args a = v.args();
  Tensor x = a.tensor(0);
  bool fold = x.dim() == spatial + 3;
  Tensor in = fold ? x.flatten(0, 1) : x;
  SmallVec<Arg, 10> args(a.begin(), a.end());
  args[0] = Arg(in);
  Call k{v.call.op, v.call.form, Args(args.data(), args.size()), v.call.outs};
  dispatch(k);
  if (fold)
    for (Tensor& t : v.call.outs) t = t.unflatten(0, {v.size, x.size(1)});
  v.out_bdims.assign(v.call.outs.size(), 0);
}

void pool_max_backward_infer(Infer& f) {
  const Tensor &g = f.args.tensor(0), &i = f.args.tensor(1);
  FX_CHECK(g.sizes() == i.sizes(), kShape, "max_pool_backward: gradient of sizes ", g.sizes(),
           ", indices of ", i.sizes());
  FX_CHECK(i.dtype() == Dtype::kI64, kType, "max_pool_backward: indices must be int64, got ",
           i.dtype());
  Meta m(g.dtype(), f.args.ints(2), g.device());
  m.strides = layout_of(i, m.sizes);
  f.outs.push_back(std::move(m));
}

void pool_max_backward_vjp(Vjp& v) {
  int64_t spatial = v.args().integer(3);
  Tensor i = v.in(1);
  v.set(0, flat(v.grad().contiguous(), spatial)
               .gather(-1, flat(i.contiguous(), spatial))
               .reshape(i.sizes()));
}

void pool_max_backward_vmap(Vmapped& v) {
  Tensor g = v.dim0(0), i = v.dim0(1);
  Dims sizes(v.args().ints(2).begin(), v.args().ints(2).end());
  bool fold = int64_t(sizes.size()) == v.args().integer(3) + 2;
  if (fold)
    sizes[0] *= v.size;
  else
    sizes.insert(sizes.begin(), v.size);
  v.run({fold ? g.flatten(0, 1) : g, fold ? i.flatten(0, 1) : i, sizes, v.args().integer(3)});
  if (fold)
    v.call.outs[0] = v.call.outs[0].unflatten(0, {v.size, sizes[0] / (v.size ? v.size : 1)});
}

void pool_average_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(is_float(x.dtype()) || x.dtype() == Dtype::kI64, kType, "avg_pool: not defined for ",
           x.dtype());
  PoolParams p = average_pool_params(f.args, 1);
  Meta m(x.dtype(), pooled_sizes(x.sizes(), p, "avg_pool"), x.device());
  m.strides = layout_of(x, m.sizes);
  f.outs.push_back(std::move(m));
}

void pool_average_vjp(Vjp& v) {
  Args a = v.args();
  v.set(0, call1(pool_average_backward_op, {v.grad(), IntArrayRef(v.meta(0).sizes), a[1], a[2],
                                            a[3], a[4], a[5], a[6], a[7]}));
}

void pool_average_backward_infer(Infer& f) {
  const Tensor& g = f.args.tensor(0);
  Meta m(g.dtype(), f.args.ints(1), g.device());
  m.strides = layout_of(g, m.sizes);
  f.outs.push_back(std::move(m));
}

void pool_average_backward_vjp(Vjp& v) {
  Args a = v.args();
  v.set(0, call1(pool_average_op, {v.grad(), a[2], a[3], a[4], a[5], a[6], a[7], a[8]}));
}

void pool_average_backward_vmap(Vmapped& v) {
  Args a = v.args();
  Tensor g = a.tensor(0);
  Dims sizes(a.ints(1).begin(), a.ints(1).end());
  bool fold = int64_t(sizes.size()) == average_pool_params(a, 2).spatial + 2;
  if (fold)
    sizes[0] *= v.size;
  else
    sizes.insert(sizes.begin(), v.size);
  v.run({fold ? g.flatten(0, 1) : g, sizes, a[2], a[3], a[4], a[5], a[6], a[7], a[8]});
  if (fold)
    v.call.outs[0] = v.call.outs[0].unflatten(0, {v.size, sizes[0] / (v.size ? v.size : 1)});
}

// ---- spellings
// ----------------------------------------------------------------------------------------------------
Dims spread(std::string_view name, const char* what, IntArrayRef values, int64_t spatial,
            int64_t least) {
  FX_CHECK(values.size() == 1 || int64_t(values.size()) == spatial, kShape, name, ": ", what,
           " must have 1 or ", spatial, " values, got ", values);
  Dims out;
  for (int64_t d = 0; d < spatial; ++d)
    out.push_back(values.size() == 1 ? values[0] : values[size_t(d)]);
  FX_CHECK(!any_below(out, least), kValue, name, ": ", what, " must be at least ", least, ", got ",
           values);
  for (int64_t v : out)
    FX_CHECK(v <= (int64_t(1) << 31), kValue, name, ": ", what, " is out of range: ", values);
  return out;
}

void check_padding(std::string_view name, const Dims& padding, const Dims& kernel) {
  for (size_t d = 0; d < padding.size(); ++d)
    FX_CHECK(padding[d] * 2 <= kernel[d], kValue, name, ": padding ", padding,
             " must be at most half the kernel size ", kernel);
}

Tensors max_pool(Call& c, int64_t spatial) {
  Args a = c.args;
  std::string_view name = c.op.name();
  Dims kernel = spread(name, "kernel_size", a.ints(1), spatial, 1);
  Dims stride = a.ints(2).empty() ? kernel : spread(name, "stride", a.ints(2), spatial, 1);
  Dims padding =
      a.has(3) ? spread(name, "padding", a.ints(3), spatial, 0) : Dims(size_t(spatial), 0);
  Dims dilation =
      a.has(4) ? spread(name, "dilation", a.ints(4), spatial, 1) : Dims(size_t(spatial), 1);
  check_padding(name, padding, kernel);
  return call(pool_max_op, Form::kNew,
              {a.tensor(0), kernel, stride, padding, dilation, a.flag(5), Arg()});
}
template <int64_t spatial>
void max_pool_body(Call& c) {
  c.outs = Tensors{max_pool(c, spatial)[0]};
}
template <int64_t spatial>
void max_pool_with_indices_body(Call& c) {
  c.outs = max_pool(c, spatial);
}

template <int64_t spatial>
void avg_pool_body(Call& c) {
  Args a = c.args;
  std::string_view name = c.op.name();
  Dims kernel = spread(name, "kernel_size", a.ints(1), spatial, 1);
  Dims stride = a.ints(2).empty() ? kernel : spread(name, "stride", a.ints(2), spatial, 1);
  Dims padding =
      a.has(3) ? spread(name, "padding", a.ints(3), spatial, 0) : Dims(size_t(spatial), 0);
  check_padding(name, padding, kernel);
  FX_CHECK(!a.has(6) || a.integer(6) != 0, kValue, name, ": divisor_override must not be zero");
  c.outs = Tensors{call1(pool_average_op, {a.tensor(0), kernel, stride, padding, a.flag(4),
                                           a.flag(5, true), a.has(6) ? a[6] : Arg(), Arg()})};
}

// Sizes of adaptive results; -1 keeps the input's.
Dims output_sizes(const Call& c, int64_t spatial) {
  Dims output = spread(c.op.name(), "output_size", c.args.ints(1), spatial, -1);
  const Tensor& x = c.args.tensor(0);
  for (int64_t d = 0; d < spatial; ++d)
    if (output[size_t(d)] == -1 && x.dim() >= spatial) output[size_t(d)] = x.size(d - spatial);
  return output;
}

template <int64_t spatial>
void adaptive_avg_pool_body(Call& c) {
  Args a = c.args;
  Dims output = output_sizes(c, spatial);
  c.outs = Tensors{
      call1(pool_average_op, {a.tensor(0), Arg(), Arg(), Arg(), false, true, Arg(), output})};
}
template <int64_t spatial>
void adaptive_max_pool_body(Call& c) {
  Args a = c.args;
  Dims output = output_sizes(c, spatial);
  c.outs = call(pool_max_op, Form::kNew, {a.tensor(0), Arg(), Arg(), Arg(), Arg(), false, output});
}

constexpr Op spelling(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

#define FX_POOL_MAX(n)                                                                       \
  "(Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n "] padding=0, int[" n \
  "] dilation=1, bool ceil_mode=False)"
#define FX_POOL_AVERAGE(n)                                             \
  "(Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n \
  "] padding=0, bool ceil_mode=False, bool count_include_pad=True"

}  // namespace

constexpr Op pool_max_op{
    .schema =
        "_pool_max(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, "
        "bool ceil_mode, int[]? "
        "output_size) -> (Tensor, Tensor)",
    .doc =
        "Maxima of windows and their flat indices in the input plane; output_size makes the "
        "windows adaptive.",
    .infer = pool_max_infer,
    .nondiff = 0b10,
    .vjp = pool_max_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0, 0b10};
        },
    .jvp = pool_max_jvp,
    .vmap = [](Vmapped& v) { fold_batch(v, max_pool_params(v.args()).spatial); }};
constexpr Op pool_max_backward_op{
    .schema =
        "_pool_max_backward(Tensor grad_output, Tensor indices, int[] input_size, int spatial) -> "
        "Tensor",
    .doc = "Zeros with every gradient added where its maximum was found.",
    .infer = pool_max_backward_infer,
    .vjp = pool_max_backward_vjp,
    .saves =
        [](const SaveQuery&) {
          return Saves{0b10, 0};
        },
    .vmap = pool_max_backward_vmap};
constexpr Op pool_average_op{
    .schema =
        "_pool_average(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool "
        "ceil_mode, bool count_include_pad, "
        "int? divisor, int[]? output_size) -> Tensor",
    .doc = "Averages of windows; output_size makes the windows adaptive.",
    .traits = kLinearOp,
    .infer = pool_average_infer,
    .vjp = pool_average_vjp,
    .vmap = [](Vmapped& v) { fold_batch(v, average_pool_params(v.args(), 1).spatial); }};
constexpr Op pool_average_backward_op{
    .schema =
        "_pool_average_backward(Tensor grad_output, int[] input_size, int[] kernel_size, int[] "
        "stride, int[] padding, bool "
        "ceil_mode, bool count_include_pad, int? divisor, int[]? output_size) -> Tensor",
    .doc = "Every gradient spread over its window.",
    .traits = kLinearOp,
    .infer = pool_average_backward_infer,
    .vjp = pool_average_backward_vjp,
    .vmap = pool_average_backward_vmap};

constexpr Op max_pool1d_op = spelling("max_pool1d" FX_POOL_MAX("1") " -> Tensor",
                                      "Maxima of windows over [.., L].", max_pool_body<1>);
constexpr Op max_pool2d_op = spelling("max_pool2d" FX_POOL_MAX("2") " -> Tensor",
                                      "Maxima of windows over [.., H, W].", max_pool_body<2>);
constexpr Op max_pool3d_op = spelling("max_pool3d" FX_POOL_MAX("3") " -> Tensor",
                                      "Maxima of windows over [.., D, H, W].", max_pool_body<3>);
constexpr Op max_pool1d_with_indices_op =
    spelling("max_pool1d_with_indices" FX_POOL_MAX("1") " -> (Tensor, Tensor)",
             "Maxima of windows and their places.", max_pool_with_indices_body<1>);
constexpr Op max_pool2d_with_indices_op =
    spelling("max_pool2d_with_indices" FX_POOL_MAX("2") " -> (Tensor, Tensor)",
             "Maxima of windows and their places.", max_pool_with_indices_body<2>);
constexpr Op max_pool3d_with_indices_op =
    spelling("max_pool3d_with_indices" FX_POOL_MAX("3") " -> (Tensor, Tensor)",
             "Maxima of windows and their places.", max_pool_with_indices_body<3>);
constexpr Op avg_pool1d_op = spelling("avg_pool1d" FX_POOL_AVERAGE("1") ") -> Tensor",
                                      "Averages of windows over [.., L].", avg_pool_body<1>);
constexpr Op avg_pool2d_op =
    spelling("avg_pool2d" FX_POOL_AVERAGE("2") ", int? divisor_override=None) -> Tensor",
             "Averages of windows over [.., H, W].", avg_pool_body<2>);
constexpr Op avg_pool3d_op =
    spelling("avg_pool3d" FX_POOL_AVERAGE("3") ", int? divisor_override=None) -> Tensor",
             "Averages of windows over [.., D, H, W].", avg_pool_body<3>);
constexpr Op adaptive_avg_pool1d_op =
    spelling("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
             "Averages of as many windows as output_size says.", adaptive_avg_pool_body<1>);
constexpr Op adaptive_avg_pool2d_op =
    spelling("adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
             "Averages of as many windows as output_size says.", adaptive_avg_pool_body<2>);
constexpr Op adaptive_avg_pool3d_op =
    spelling("adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
             "Averages of as many windows as output_size says.", adaptive_avg_pool_body<3>);
constexpr Op adaptive_max_pool1d_op =
    spelling("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
             "Maxima of as many windows as output_size says.", adaptive_max_pool_body<1>);
constexpr Op adaptive_max_pool2d_op =
    spelling("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
             "Maxima of as many windows as output_size says.", adaptive_max_pool_body<2>);
constexpr Op adaptive_max_pool3d_op =
    spelling("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
             "Maxima of as many windows as output_size says.", adaptive_max_pool_body<3>);

#undef FX_POOL_MAX
#undef FX_POOL_AVERAGE

}  // namespace fornax
