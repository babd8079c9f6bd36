#include "fornax/ops/factory.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fornax/core/copy.h"
#include "fornax/ops/pointwise.h"
#include "fornax/ops/records.h"

namespace fornax {
namespace {

// Arguments 1.. of the factory schemas: dtype, layout, device, pin_memory.
constexpr size_t kEmptyDtype = 1, kEmptyDevice = 3, kFullDtype = 2, kFullDevice = 4;

void empty_infer(Infer& f) {
  Meta m(f.args.dtype(kEmptyDtype, get_default_dtype()), f.args.ints(0),
         f.args.device(kEmptyDevice));
  checked_numel(m.sizes);
  MemoryFormat format = f.args.memory_format(5, MemoryFormat::Contiguous);
  if (format != MemoryFormat::Contiguous && format != MemoryFormat::Preserve)
    m.strides = strides_of(format, m.sizes);
  f.outs.push_back(m);
}

void full_infer(Infer& f) {
  Dtype d = f.args.number(1).dtype();
  if (is_float(d)) d = get_default_dtype();
  if (is_complex(d)) d = to_complex(get_default_dtype());
  Meta m(f.args.dtype(kFullDtype, d), f.args.ints(0), f.args.device(kFullDevice));
  checked_numel(m.sizes);
  f.outs.push_back(m);
}

// Arguments of the *_like and new_* schemas, from `at`: dtype, layout, device, pin_memory and, for
// *_like, memory_format. What is absent is self's.
TensorOptions options_like_self(Args args, size_t at) {
  const Tensor& self = args.tensor(0);
  TensorOptions o = TensorOptions(args.dtype(at, self.dtype()));
  o = o.device(args.has(at + 2) ? args.device(at + 2) : self.device());
  if (args.size() > at + 4 && args.has(at + 4))
    o = o.memory_format(args.memory_format(at + 4, MemoryFormat::Preserve));
  return o;
}

void empty_strided_infer(Infer& f) {
  IntArrayRef sizes = f.args.ints(0), strides = f.args.ints(1);
  FX_CHECK(sizes.size() == strides.size(), kShape, f.op.name(), ": ", sizes.size(), " sizes but ",
           strides.size(), " strides");
  for (int64_t s : strides)
    FX_CHECK(s >= 0, kValue, f.op.name(), ": strides must not be negative, got ", strides);
  Meta m(f.args.dtype(2, get_default_dtype()), sizes, f.args.device(4));
  checked_numel(sizes);
  m.strides = Dims(strides.begin(), strides.end());
  f.outs.push_back(m);
}

// physical_layout names the dimensions from the outermost to the innermost in memory.
void empty_permuted_infer(Infer& f) {
  IntArrayRef sizes = f.args.ints(0), order = f.args.ints(1);
  FX_CHECK(sizes.size() == order.size(), kShape, "empty_permuted: ", sizes.size(),
           " sizes but a layout of ", order.size());
  Meta m(f.args.dtype(2, get_default_dtype()), sizes, f.args.device(4));
  checked_numel(sizes);
  m.strides.assign(sizes.size(), -1);
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    int64_t d = order[k];
    FX_CHECK(d >= 0 && d < int64_t(sizes.size()) && m.strides[size_t(d)] < 0, kValue,
             "empty_permuted: the layout must be a permutation of the dimensions, got ", order);
    m.strides[size_t(d)] = step;
    step *= sizes[size_t(d)] > 1 ? sizes[size_t(d)] : 1;
  }
  f.outs.push_back(m);
}

// ---- sequences
// Number of elements of start, start + step, ... before end.
int64_t arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  FX_CHECK(!start.is_complex() && !end.is_complex() && !step.is_complex(), kType,
           "arange: complex bounds are not supported");
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    int64_t by = step.to_int();
    FX_CHECK(by != 0, kValue, "arange: step must not be 0");
    __int128 span = __int128(end.to_int()) - start.to_int();
    FX_CHECK(by > 0 ? span >= 0 : span <= 0, kValue, "arange: a step of ", by,
             " doesn't lead from ", start.to_int(), " to ", end.to_int());
    return int64_t((span + by - (by > 0 ? 1 : -1)) / by);
  }
  double from = start.to_double(), to = end.to_double(), by = step.to_double();
  FX_CHECK(by != 0 && std::isfinite(from) && std::isfinite(to), kValue,
           "arange: expected finite bounds and a step other than 0, got ", from, ", ", to, ", ",
           by);
  FX_CHECK(by > 0 ? to >= from : to <= from, kValue, "arange: a step of ", by,
           " doesn't lead from ", from, " to ", to);
  double n = std::ceil((to - from) / by);
  FX_CHECK(n < 9e18, kMemory, "arange: ", n, " elements are too many");
  return int64_t(n);
}

Scalar number_or(Args args, size_t i, Scalar absent) {
  return args.has(i) ? args.number(i) : absent;
}

void arange_infer(Infer& f) {
  Scalar start = number_or(f.args, 0, 0), end = f.args.number(1), step = number_or(f.args, 2, 1);
  bool integral = start.is_integral() && end.is_integral() && step.is_integral();
  Dtype d = f.args.dtype(3, integral ? Dtype::kI64 : get_default_dtype());
  FX_CHECK(d != Dtype::kBool && !is_complex(d), kType, "arange: not defined for ", d);
  Dims sizes{arange_length(start, end, step)};
  f.outs.push_back(Meta(d, sizes, f.args.device(5)));
}

// linspace and logspace: bounds are numbers or 0-D tensors. `dtype_at` is where the options begin.
void spaced_infer(Infer& f, size_t dtype_at) {
  int64_t steps = f.args.integer(2);
  FX_CHECK(steps >= 0, kValue, f.op.name(), ": steps must not be negative, got ", steps);
  bool complex = false;
  for (size_t i : {0, 1}) {
    if (f.args[i].is_tensor())
      FX_CHECK(f.args.tensor(i).dim() == 0, kShape, f.op.name(),
               ": bounds must be 0-D tensors, got ", f.args.tensor(i).dim(), "-D");
    complex = complex || (f.args[i].is_tensor() ? f.args.tensor(i).is_complex()
                                                : f.args.number(i).is_complex());
  }
  Dtype real = get_default_dtype();
  Dtype d = f.args.dtype(dtype_at, complex ? to_complex(real) : real);
  FX_CHECK(!complex || is_complex(d), kType, f.op.name(), ": complex bounds need a complex dtype, ",
           "got ", d);
  f.outs.push_back(Meta(d, Dims{steps}, f.args.device(dtype_at + 2)));
}
void linspace_infer(Infer& f) { spaced_infer(f, 3); }
void logspace_infer(Infer& f) { spaced_infer(f, 4); }

void eye_infer(Infer& f) {
  int64_t n = f.args.integer(0), m = f.args.integer(1, n);
  FX_CHECK(n >= 0 && m >= 0, kValue, "eye: sizes must not be negative, got ", n, " and ", m);
  f.outs.push_back(Meta(f.args.dtype(2, get_default_dtype()), Dims{n, m}, f.args.device(4)));
}

// ---- triangles
// Elements of rows x cols on and below (upper: on and above) diagonal `offset`.
int64_t triangle_count(int64_t rows, int64_t cols, int64_t offset, bool upper) {
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t below = std::clamp<int64_t>(r + offset + 1, 0, cols);
    int64_t before = std::clamp<int64_t>(r + offset, 0, cols);
    count += upper ? cols - before : below;
  }
  return count;
}

template <bool upper>
void triangle_indices_infer(Infer& f) {
  int64_t rows = f.args.integer(0), cols = f.args.integer(1);
  FX_CHECK(rows >= 0 && cols >= 0, kValue, f.op.name(), ": sizes must not be negative, got ", rows,
           " and ", cols);
  Dtype d = f.args.dtype(3, Dtype::kI64);
  FX_CHECK(d == Dtype::kI64 || d == Dtype::kI32, kType, f.op.name(),
           ": the dtype must be int32 or int64, got ", d);
  int64_t n = triangle_count(rows, cols, f.args.integer(2, 0), upper);
  f.outs.push_back(Meta(d, Dims{2, n}, f.args.device(5)));
}

void triangle_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  FX_CHECK(x.dim() >= 2, kShape, f.op.name(), ": expected at least 2 dimensions, got ", x.dim());
  f.outs.push_back(Meta(x.dtype(), x.sizes(), x.device()));
}

constexpr Op triangle(std::string_view schema, std::string_view doc, void (*vjp)(Vjp&)) {
  return Op{.schema = schema,
            .doc = doc,
            .traits = kLinearOp,
            .infer = triangle_infer,
            .vjp = vjp,
            .vmap = [](Vmapped& v) {
              FX_CHECK(v.dim(0) >= 2, kShape, v.call.op.name(),
                       ": expected at least 2 dimensions, got ", v.dim(0));
              v.run({v.call.args.tensor(0), v.args().integer(1, 0)});
            }};
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

// A batched value is no 0-D tensor one level down: a broadcasting copy takes any.
void fill_vmap(Vmapped& v) {
  if (!v.is(1)) return pointwise_vmap(v);
  Tensor self = v.call.form == Form::kInplace ? v.call.args.tensor(0) : v.dim0(0);
  Dims sizes(self.sizes().size(), 1);
  sizes[0] = v.size;
  Tensor value = v.call.args.tensor(1).reshape(sizes);
  Arg args[] = {Arg(self), Arg(value), Arg(false)};
  Call k{copy_op, v.call.form, Args(args, 3), v.call.outs};
  dispatch(k);
  v.out_bdims = {0};
}

constexpr Op fill_record(Op op) {
  op.vmap = fill_vmap;
  return op;
}

void fill_infer(Infer& f) {
  FX_CHECK(!f.args[1].is_tensor() || f.args.tensor(1).dim() == 0, kShape,
           "fill: expected a 0-D value, got ",
           f.args.optional(1).defined() ? f.args.tensor(1).dim() : 0, "-D");
  pointwise_infer(f);
}

Tensor finish(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

TensorOptions like_options(const Tensor& self, const TensorOptions& o) {
  TensorOptions r =
      o.dtype(o.dtype_opt().value_or(self.dtype())).device(o.device_opt().value_or(self.device()));
  return r;
}

// Strides of a fresh tensor like `self`: dense ones are kept.
Tensor empty_with_layout_of(const Tensor& self, const TensorOptions& options) {
  MemoryFormat format = options.memory_format_opt().value_or(MemoryFormat::Preserve);
  if (format != MemoryFormat::Preserve) return empty(self.sizes(), options.memory_format(format));
  if (self.is_contiguous()) return empty(self.sizes(), options);
  for (MemoryFormat f : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (self.is_contiguous(f)) return empty(self.sizes(), options.memory_format(f));
  return empty(self.sizes(), options);
}

}  // namespace

constexpr Op empty_op{.schema =
                          "empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? "
                          "layout=None, Device? device=None, bool? "
                          "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
                      .doc = "A tensor of uninitialised memory.",
                      .traits = kNoGrad,
                      .infer = empty_infer};
constexpr Op full_op{.schema =
                         "full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                         "layout=None, Device? device=None, bool? "
                         "pin_memory=None) -> Tensor",
                     .doc = "A tensor of one value.",
                     .traits = kNoGrad,
                     .infer = full_infer};
constexpr Op fill_op = fill_record(
    inferred_by(fill_infer, pointwise(
                                "fill.Tensor(Tensor self, Tensor value) -> Tensor\n"
                                "fill.Scalar(Tensor self, Scalar value) -> Tensor",
                                "self with every element replaced by one value.", Promote::kFirst,
                                [](Body& b) { b.out(0, b.in(1)); }, 0b10)));
constexpr Op zero_op = pointwise("zero(Tensor self) -> Tensor", "Zeros in the shape of self.",
                                 Promote::kFirst, [](Body& b) { b.out(0, Expr(0)); });
constexpr Op alias_copy_op = pointwise("alias_copy(Tensor self) -> Tensor", "A copy.",
                                       Promote::kFirst, [](Expr x) { return x; });

#define FX_OPTIONS_TEXT \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define FX_LIKE_TEXT FX_OPTIONS_TEXT ", MemoryFormat? memory_format=None) -> Tensor"

constexpr Op empty_strided_op{
    .schema = "empty_strided(int[] size, int[] stride, *, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "Uninitialised memory under given strides.",
    .traits = kNoGrad,
    .infer = empty_strided_infer};
constexpr Op empty_permuted_op{
    .schema = "empty_permuted(int[] size, int[] physical_layout, *, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "Uninitialised dense memory in an order of dimensions.",
    .traits = kNoGrad,
    .infer = empty_permuted_infer};
constexpr Op zeros_op =
    composite("zeros(int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor", "Zeros.", [](Call& c) {
      TensorOptions o(c.args.dtype(1, get_default_dtype()));
      c.outs = {zeros(c.args.ints(0), o.device(c.args.device(3)))};
    });
constexpr Op ones_op =
    composite("ones(int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor", "Ones.", [](Call& c) {
      TensorOptions o(c.args.dtype(1, get_default_dtype()));
      c.outs = {ones(c.args.ints(0), o.device(c.args.device(3)))};
    });
constexpr Op scalar_tensor_op = composite(
    "scalar_tensor(Scalar s, *, " FX_OPTIONS_TEXT ") -> Tensor", "A 0-D tensor.", [](Call& c) {
      TensorOptions o(c.args.dtype(1, get_default_dtype()));
      c.outs = {scalar_tensor(c.args.number(0), o.device(c.args.device(3)))};
    });
constexpr Op empty_like_op = composite(
    "empty_like(Tensor self, *, " FX_LIKE_TEXT, "Uninitialised, in the shape of self.",
    [](Call& c) { c.outs = {empty_like(c.args.tensor(0), options_like_self(c.args, 1))}; });
constexpr Op zeros_like_op = composite(
    "zeros_like(Tensor self, *, " FX_LIKE_TEXT, "Zeros in the shape of self.",
    [](Call& c) { c.outs = {zeros_like(c.args.tensor(0), options_like_self(c.args, 1))}; });
constexpr Op ones_like_op = composite(
    "ones_like(Tensor self, *, " FX_LIKE_TEXT, "Ones in the shape of self.",
    [](Call& c) { c.outs = {ones_like(c.args.tensor(0), options_like_self(c.args, 1))}; });
constexpr Op full_like_op = composite(
    "full_like(Tensor self, Scalar fill_value, *, " FX_LIKE_TEXT, "One value in the shape of self.",
    [](Call& c) {
      c.outs = {full_like(c.args.tensor(0), c.args.number(1), options_like_self(c.args, 2))};
    });
constexpr Op new_empty_op =
    composite("new_empty(Tensor self, int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
              "Uninitialised, in the dtype of self.",
              [](Call& c) { c.outs = {empty(c.args.ints(1), options_like_self(c.args, 2))}; });
constexpr Op new_empty_strided_op = composite(
    "new_empty_strided(Tensor self, int[] size, int[] stride, *, " FX_OPTIONS_TEXT ") -> Tensor",
    "Uninitialised under given strides, in the dtype of self.", [](Call& c) {
      c.outs = {empty_strided(c.args.ints(1), c.args.ints(2), options_like_self(c.args, 3))};
    });
constexpr Op new_zeros_op =
    composite("new_zeros(Tensor self, int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
              "Zeros in the dtype of self.",
              [](Call& c) { c.outs = {zeros(c.args.ints(1), options_like_self(c.args, 2))}; });
constexpr Op new_ones_op =
    composite("new_ones(Tensor self, int[] size, *, " FX_OPTIONS_TEXT ") -> Tensor",
              "Ones in the dtype of self.",
              [](Call& c) { c.outs = {ones(c.args.ints(1), options_like_self(c.args, 2))}; });
constexpr Op new_full_op = composite(
    "new_full(Tensor self, int[] size, Scalar fill_value, *, " FX_OPTIONS_TEXT ") -> Tensor",
    "One value in the dtype of self.", [](Call& c) {
      c.outs = {full(c.args.ints(1), c.args.number(2), options_like_self(c.args, 3))};
    });
constexpr Op arange_op{
    .schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "arange.start(Scalar start, Scalar end, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "arange(Scalar end, *, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "start, start + step, ... before end.",
    .traits = kNoGrad,
    .infer = arange_infer};
constexpr Op linspace_op{
    .schema = "linspace(Scalar start, Scalar end, int steps, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " FX_OPTIONS_TEXT
              ") -> Tensor",
    .doc = "`steps` numbers at equal distances from start to end, both included.",
    .traits = kNoGrad,
    .infer = linspace_infer};
constexpr Op logspace_op{
    .schema = "logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, "
              "*, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, "
              "*, " FX_OPTIONS_TEXT
              ") -> Tensor\n"
              "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, "
              "*, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "base to the powers that linspace gives.",
    .traits = kNoGrad,
    .infer = logspace_infer};
constexpr Op eye_op{.schema = "eye.m(int n, int m, *, " FX_OPTIONS_TEXT
                              ") -> Tensor\n"
                              "eye(int n, *, " FX_OPTIONS_TEXT ") -> Tensor",
                    .doc = "n x m with ones on the diagonal.",
                    .traits = kNoGrad,
                    .infer = eye_infer};
constexpr Op tril_indices_op{
    .schema = "tril_indices(int row, int col, int offset=0, *, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "Rows and columns of the elements on and below a diagonal, row by row.",
    .traits = kNoGrad,
    .infer = triangle_indices_infer<false>};
constexpr Op triu_indices_op{
    .schema = "triu_indices(int row, int col, int offset=0, *, " FX_OPTIONS_TEXT ") -> Tensor",
    .doc = "Rows and columns of the elements on and above a diagonal, row by row.",
    .traits = kNoGrad,
    .infer = triangle_indices_infer<true>};
#undef FX_LIKE_TEXT
#undef FX_OPTIONS_TEXT
constexpr Op tril_op = triangle("tril(Tensor self, int diagonal=0) -> Tensor",
                                "Zero above a diagonal of the last two dimensions.", [](Vjp& v) {
                                  if (v.grad().defined())
                                    v.set(0, v.grad().tril(v.args().integer(1, 0)));
                                });
constexpr Op triu_op = triangle("triu(Tensor self, int diagonal=0) -> Tensor",
                                "Zero below a diagonal of the last two dimensions.", [](Vjp& v) {
                                  if (v.grad().defined())
                                    v.set(0, v.grad().triu(v.args().integer(1, 0)));
                                });

Tensor empty(IntArrayRef size, const TensorOptions& options) {
  return finish(call1(empty_op, {size, options.dtype_opt(), Arg(), options.device_opt(), Arg(),
                                 options.memory_format_opt()}),
                options);
}
Tensor full(IntArrayRef size, const Scalar& value, const TensorOptions& options) {
  return finish(
      call1(full_op, {size, value, options.dtype_opt(), Arg(), options.device_opt(), Arg()}),
      options);
}
Tensor zeros(IntArrayRef size, const TensorOptions& options) {
  return full(size, 0, options.dtype(options.dtype()));
}
Tensor ones(IntArrayRef size, const TensorOptions& options) {
  return full(size, 1, options.dtype(options.dtype()));
}

Tensor empty_like(const Tensor& self, const TensorOptions& options) {
  return empty_with_layout_of(self, like_options(self, options));
}
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options) {
  TensorOptions o = like_options(self, options);
  if (self.is_contiguous()) return full(self.sizes(), value, o);
  Tensor t = empty_with_layout_of(self, o.requires_grad(false));
  t.fill_(value);
  return finish(t, options);
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options) {
  return full_like(self, 0, options);
}
Tensor ones_like(const Tensor& self, const TensorOptions& options) {
  return full_like(self, 1, options);
}

Tensor scalar_tensor(const Scalar& value, const TensorOptions& options) {
  return full({}, value, options.dtype(options.dtype()));
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o) {
  return finish(
      call1(empty_strided_op, {size, stride, o.dtype_opt(), Arg(), o.device_opt(), Arg()}), o);
}
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, const TensorOptions& o) {
  return finish(call1(empty_permuted_op,
                      {size, physical_layout, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
                o);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& o) {
  return finish(call1(arange_op, {start, end, step, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
                o);
}
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return arange(start, end, 1, options);
}
Tensor arange(const Scalar& end, const TensorOptions& options) {
  return arange(0, end, 1, options);
}
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& o) {
  return finish(
      call1(linspace_op, {start, end, steps, o.dtype_opt(), Arg(), o.device_opt(), Arg()}), o);
}
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& o) {
  return finish(
      call1(logspace_op, {start, end, steps, base, o.dtype_opt(), Arg(), o.device_opt(), Arg()}),
      o);
}
Tensor eye(int64_t n, int64_t m, const TensorOptions& o) {
  return finish(call1(eye_op, {n, m, o.dtype_opt(), Arg(), o.device_opt(), Arg()}), o);
}
Tensor eye(int64_t n, const TensorOptions& options) { return eye(n, n, options); }
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& o) {
  return call1(tril_indices_op, {row, col, offset, o.dtype_opt(), Arg(), o.device_opt(), Arg()});
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& o) {
  return call1(triu_indices_op, {row, col, offset, o.dtype_opt(), Arg(), o.device_opt(), Arg()});
}

// As libtorch: literals of any float type become the default dtype, int becomes int64.
static Dtype literal_dtype(Dtype dtype) {
  if (dtype == Dtype::kF32 || dtype == Dtype::kF64) return get_default_dtype();
  if (dtype == Dtype::kC64 || dtype == Dtype::kC128) return to_complex(get_default_dtype());
  return dtype == Dtype::kI32 ? Dtype::kI64 : dtype;
}

Tensor tensor_of(const void* data, Dtype dtype, IntArrayRef size, const TensorOptions& options) {
  Tensor raw;
  {
    // Function transforms see the finished tensor only: it has memory.
    StateGuard guard;
    thread_state.top = nullptr;
    raw = empty(size, TensorOptions(dtype));
    if (raw.numel()) std::memcpy(raw.impl()->data(), data, raw.nbytes());
  }
  Dtype wanted = options.dtype_opt().value_or(literal_dtype(dtype));
  Tensor made = raw;
  if (wanted != dtype || options.device_opt()) made = raw.to(options.dtype(wanted));
  // Inside a function it is a local, which the function may write.
  if (thread_state.top && made.is_same(raw)) made = raw.clone();
  return finish(made, options);
}

void detail::check_row(size_t expected, size_t got) {
  FX_CHECK(expected == got, kShape, "tensor: rows of a nested list differ in length: ", expected,
           " and ", got);
}

}  // namespace fornax
