// What PyTorch writes in Python, spelled with this library's functions. Signatures follow
// PyTorch 2.15's documentation.
#include "fornax/fornax.h"
#include "tools/fornax/call.h"

namespace fornax::replay {
namespace {

std::vector<Tensor> one(Tensor t) { return {std::move(t)}; }

template <Dtype to>
std::vector<Tensor> cast(Args a) {
  return one(a.tensor(0).to(to));
}
constexpr std::string_view kCast = "Tensor self, *, MemoryFormat? memory_format=None";

// `other` of a binary operator: a tensor, or a number that promotes as one.
template <class F>
std::vector<Tensor> reflected(Args a, F f) {
  if (a[1].is_tensor()) return one(f(a.tensor(1), a.tensor(0)));
  return one(f(a.number(1), a.tensor(0)));
}
constexpr std::string_view kReflected = "Tensor self, Tensor other";

// Calls an operator by record with an argument list; what Python passes as text or flags is
// translated before.
std::vector<Tensor> by_name(std::string_view name, std::initializer_list<Arg> args) {
  const Op* op = find_op(name);
  FX_CHECK(op, kUnsupported, "no operator ", name);
  Tensors r = call(*op, Form::kNew, args);
  return std::vector<Tensor>(r.begin(), r.end());
}

int64_t reduction(Args a, size_t i) {
  std::string_view text = a.has(i) ? a.text(i) : "mean";
  if (text == "none") return 0;
  if (text == "mean") return 1;
  FX_CHECK(text == "sum", kValue, "reduction must be none, mean or sum, got '", text, "'");
  return 2;
}

IntArrayRef ints_or(Args a, size_t i, IntArrayRef otherwise) {
  return a.has(i) ? a.ints(i) : otherwise;
}

// input, weight, bias, stride, padding, dilation, groups
std::vector<Tensor> conv(std::string_view name, Args a) {
  return by_name(name, {a[0], a[1], a[2], ints_or(a, 3, 1), a.has(4) ? a[4] : Arg(int64_t(0)),
                        ints_or(a, 5, 1), a.integer(6, 1)});
}
constexpr std::string_view kConv =
    "Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] "
    "dilation=1, int groups=1";
std::vector<Tensor> conv_transpose(std::string_view name, Args a) {
  return by_name(name, {a[0], a[1], a[2], ints_or(a, 3, 1), ints_or(a, 4, 0), ints_or(a, 5, 0),
                        a.integer(6, 1), ints_or(a, 7, 1)});
}
constexpr std::string_view kConvTranspose =
    "Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] "
    "output_padding=0, int groups=1, int[] "
    "dilation=1";

// input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
std::vector<Tensor> max_pool(std::string_view name, Args a) {
  auto r = by_name(
      name, {a[0], a.ints(1), ints_or(a, 2, {}), ints_or(a, 3, 0), ints_or(a, 4, 1), a.flag(5)});
  if (!a.flag(6)) r.pop_back();
  return r;
}
constexpr std::string_view kMaxPool =
    "Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1, bool "
    "ceil_mode=False, bool "
    "return_indices=False";
std::vector<Tensor> adaptive_max_pool(std::string_view name, Args a) {
  auto r = by_name(name, {a[0], a.ints(1)});
  if (!a.flag(2)) r.pop_back();
  return r;
}
constexpr std::string_view kAdaptiveMaxPool =
    "Tensor input, int[] output_size, bool return_indices=False";

std::vector<Tensor> where_function(Args a) {
  if (!a.has(1)) return by_name("nonzero_numpy", {a[0]});
  return by_name("where", {a[1], a[0], a[2]});  // the recorder's order
}

constexpr std::string_view kLoss =
    "Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, str "
    "reduction=\"mean\"";

}  // namespace

#define FX_REFLECTED(symbol) \
  [](Args a) { return reflected(a, [](const auto& x, const auto& y) { return x symbol y; }); }

ArrayRef<PythonFunction> python_functions() {
  static const PythonFunction kTable[] = {
      {"bool", kCast, cast<Dtype::kBool>},
      {"byte", kCast, cast<Dtype::kU8>},
      {"char", kCast, cast<Dtype::kI8>},
      {"short", kCast, cast<Dtype::kI16>},
      {"int", kCast, cast<Dtype::kI32>},
      {"long", kCast, cast<Dtype::kI64>},
      {"half", kCast, cast<Dtype::kF16>},
      {"bfloat16", kCast, cast<Dtype::kBF16>},
      {"float", kCast, cast<Dtype::kF32>},
      {"double", kCast, cast<Dtype::kF64>},
      {"cfloat", kCast, cast<Dtype::kC64>},
      {"cdouble", kCast, cast<Dtype::kC128>},
      {"__radd__", kReflected, FX_REFLECTED(+)},
      {"__rsub__", kReflected, FX_REFLECTED(-)},
      {"__rmul__", kReflected, FX_REFLECTED(*)},
      {"__rdiv__", kReflected, FX_REFLECTED(/)},
      {"__rmod__", kReflected, FX_REFLECTED(%)},
      {"__rand__", kReflected, FX_REFLECTED(&)},
      {"__ror__", kReflected, FX_REFLECTED(|)},
      {"__rxor__", kReflected, FX_REFLECTED(^)},
      {"__rpow__", kReflected,
       [](Args a) { return reflected(a, [](const auto& x, const auto& y) { return pow(x, y); }); }},
      {"__rmatmul__", kReflected, [](Args a) { return one(matmul(a.tensor(1), a.tensor(0))); }},
      {"where", "Tensor self, Tensor? condition=None, Tensor? other=None", where_function},
      {"sum_to_size", "Tensor self, int[] size",
       [](Args a) { return one(sum_to_size(a.tensor(0), a.ints(1))); }},
      {"broadcast_tensors", "Tensor[] tensors",
       [](Args a) { return by_name("broadcast_tensors", {a[0]}); }},
      {"roll", "Tensor input, int[] shifts, int[] dims=[]",
       [](Args a) {
         return by_name("roll", {a[0], a[1], a[2]});
       }},
      {"T", "Tensor self", [](Args a) { return one(a.tensor(0).t()); }},
      {"nn.functional.conv1d", kConv, [](Args a) { return conv("conv1d", a); }},
      {"nn.functional.conv2d", kConv, [](Args a) { return conv("conv2d", a); }},
      {"nn.functional.conv3d", kConv, [](Args a) { return conv("conv3d", a); }},
      {"nn.functional.conv_transpose1d", kConvTranspose,
       [](Args a) { return conv_transpose("conv_transpose1d", a); }},
      {"nn.functional.conv_transpose2d", kConvTranspose,
       [](Args a) { return conv_transpose("conv_transpose2d", a); }},
      {"nn.functional.conv_transpose3d", kConvTranspose,
       [](Args a) { return conv_transpose("conv_transpose3d", a); }},
      {"nn.functional.max_pool1d", kMaxPool,
       [](Args a) { return max_pool("max_pool1d_with_indices", a); }},
      {"nn.functional.max_pool2d", kMaxPool,
       [](Args a) { return max_pool("max_pool2d_with_indices", a); }},
      {"nn.functional.max_pool3d", kMaxPool,
       [](Args a) { return max_pool("max_pool3d_with_indices", a); }},
      {"nn.functional.adaptive_max_pool1d", kAdaptiveMaxPool,
       [](Args a) { return adaptive_max_pool("adaptive_max_pool1d", a); }},
      {"nn.functional.adaptive_max_pool2d", kAdaptiveMaxPool,
       [](Args a) { return adaptive_max_pool("adaptive_max_pool2d", a); }},
      {"nn.functional.adaptive_max_pool3d", kAdaptiveMaxPool,
       [](Args a) { return adaptive_max_pool("adaptive_max_pool3d", a); }},
      {"nn.functional.adaptive_avg_pool2d", "Tensor input, int[] output_size",
       [](Args a) {
         return by_name("adaptive_avg_pool2d", {a[0], a.ints(1)});
       }},
      {"nn.functional.mse_loss", kLoss,
       [](Args a) {
         return by_name("mse_loss", {a[0], a[1], reduction(a, 4)});
       }},
      {"nn.functional.l1_loss", kLoss,
       [](Args a) {
         return by_name("l1_loss", {a[0], a[1], reduction(a, 4)});
       }},
      {"nn.functional.softsign", "Tensor input",
       [](Args a) { return one(a.tensor(0) / (a.tensor(0).abs() + 1)); }},
      {"nn.functional.tanhshrink", "Tensor input",
       [](Args a) { return one(a.tensor(0) - a.tensor(0).tanh()); }},
      {"nn.functional.nll_loss",
       "Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
       "ignore_index=-100, bool? reduce=None, str "
       "reduction=\"mean\"",
       [](Args a) {
         return by_name("nll_loss_nd", {a[0], a[1], a[2], reduction(a, 6), a.integer(4, -100)});
       }},
      {"nn.functional.cross_entropy",
       "Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int "
       "ignore_index=-100, bool? reduce=None, str "
       "reduction=\"mean\", float label_smoothing=0.0",
       [](Args a) {
         return by_name("cross_entropy_loss",
                        {a[0], a[1], a[2], reduction(a, 6), a.integer(4, -100), a.real(7, 0.0)});
       }},
      {"nn.functional.batch_norm",
       "Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
       "Tensor? bias=None, bool "
       "training=False, float momentum=0.1, float eps=1e-05",
       [](Args a) {
         return by_name("batch_norm", {a[0], a[3], a[4], a[1], a[2], a.flag(5), a.real(6, 0.1),
                                       a.real(7, 1e-5), false});
       }},
      {"nn.functional.dropout", "Tensor input, float p=0.5, bool training=True, bool inplace=False",
       [](Args a) {
         return by_name("dropout", {a[0], a.real(1, 0.5), a.flag(2, true)});
       }},
  };
  return ArrayRef<PythonFunction>(kTable, std::size(kTable));
}
#undef FX_REFLECTED

}  // namespace fornax::replay
