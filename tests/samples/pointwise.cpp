// Elementwise operators. Saved arguments are those of PyTorch's derivative formulas.
#include <deque>

#include "tests/samples/families.h"

namespace fornax::samples {
namespace {

const char* keep(std::string text) {
  static auto* texts = new std::deque<std::string>;
  return texts->emplace_back(std::move(text)).c_str();
}

// One tensor: a matrix, a 0-dim tensor, an empty one. `domain` is a modifier with its colon.
Row unary(std::string_view op, DtypeSet dtypes, const char* saved, const char* domain = "",
          uint32_t flags = 0) {
  return {op,
          dtypes,
          {keep(std::string("[3,5]") + domain), keep(std::string("[]") + domain),
           keep(std::string("[0,3]") + domain)},
          flags,
          saved};
}

// Two tensors: equal, broadcast both ways, 0-dim, empty.
Row binary(std::string_view op, DtypeSet dtypes, const char* saved, const char* left = "",
           const char* right = "", uint32_t flags = 0, std::vector<const char*> more = {}) {
  std::string a = left, b = right;
  std::vector<const char*> calls = {keep("[2,3]" + a + " [2,3]" + b),
                                    keep("[2,1]" + a + " [4]" + b), keep("[3]" + a + " []" + b),
                                    keep("[]" + a + " []" + b), keep("[2,0]" + a + " [1]" + b)};
  calls.insert(calls.end(), more.begin(), more.end());
  return {op, dtypes, calls, flags, saved};
}

constexpr DtypeSet kReal = kRealNumbers, kNotBool = kInts | kReals;

void add_arithmetic(std::vector<Row>& r) {
  r.push_back(binary("add", kAll, "", "", "", 0, {"[2,3] [3] alpha=2", "[3] 2", "[3] 2 alpha=3"}));
  r.push_back(binary("sub", kNumbers, "", "", "", 0, {"[2,3] [3] alpha=2", "[3] 2"}));
  r.push_back(binary("rsub", kNumbers, "", "", "", 0, {"[2,3] [3] alpha=2", "[3] 2"}));
  r.push_back(binary("mul", kAll, "self other", "", "", 0, {"[3] 2"}));
  r.push_back(binary("div", kAll, "self other", "", ":nz", 0, {"[3] 2"}));
  r.push_back({"div.Tensor_mode",
               kNotBool,
               {"[2,3] [3]:nz rounding_mode='floor'", "[2,3] [3]:nz rounding_mode='trunc'",
                "[3] 2 rounding_mode='floor'", "[3] 2 rounding_mode='trunc'"},
               kNoGradient});
  r.push_back(binary("floor_divide", kNotBool, "", "", ":nz", kNoGradient, {"[3] 2"}));
  r.push_back(binary("fmod", kNotBool, "self other", "", ":nz", 0, {"[3] 2"}));
  r.push_back(binary("remainder", kNotBool, "self other", "", ":nz", 0, {"[3] 2", "7 [3]:nz"}));
  r.push_back(binary("pow", kAll, "self exponent result", ":pos", ":pos", 0,
                     {"[3] 2", "[3] 3", "[3]:pos 1", "[3] 0", "2 [3]:pos"}));
  r.push_back(binary("float_power", kAll, "self exponent result", ":pos", "", kWideResults,
                     {"[3]:pos 2", "[3]:nz -1", "2 [3]"}));
  r.push_back({"addcmul",
               kNumbers,
               {"[2,3] [2,3] [2,3]", "[2,3] [3] [2,1] value=2", "[] [] []", "[0,3] [3] [1]"},
               0,
               "tensor1 tensor2"});
  r.push_back({"addcdiv",
               kFloating,
               {"[2,3] [2,3] [2,3]", "[2,3] [3] [2,1] value=2", "[] [] []", "[0,3] [3] [1]"},
               0,
               "tensor1 tensor2"});
  r.push_back({"lerp",
               kFloating,
               {"[2,3] [2,3] [2,3]", "[2,3] [3] 0.25", "[2,3] [3] 0.75", "[2,1] [3] []"},
               0,
               "self end weight"});
  r.push_back(binary("ldexp", kAll, "self other result"));
  r.push_back(unary("neg", kNumbers, ""));
  r.push_back(unary("abs", kNumbers, "self"));
  r.push_back(unary("square", kAll, "self"));
  r.push_back(unary("reciprocal", kAll, "result", ":nz"));
  r.push_back(unary("sign", kReal, ""));
  r.push_back(unary("sgn", kAll, "self result"));
  r.push_back(unary("ceil", kNotBool, ""));
  r.push_back(unary("floor", kNotBool, ""));
  r.push_back(unary("trunc", kNotBool, ""));
  r.push_back(unary("frac", kReals, ""));
  r.push_back({"round", kNotBool, {"[3,5]", "[]", "[0,2]", "[3,5] decimals=0"}, 0, ""});
  r.push_back(unary("conj_physical", kAll, ""));
  r.push_back(unary("positive", kNumbers, "", "", kAliases));
  r.push_back(unary("angle", kAll, "self"));
  r.push_back(binary("polar", kSingles, "result", ":pos"));
  r.push_back(binary("complex", kSingles | set_of(Dtype::kF16), ""));
}

void add_binary_functions(std::vector<Row>& r) {
  r.push_back(binary("atan2", kReal, "self other"));
  r.push_back(binary("hypot", kReals, "self other result"));
  r.push_back(binary("copysign", kReal, "self result", "", ":nz", 0, {"[3] -2"}));
  r.push_back(binary("gcd", kInts, "", "", "", kNoGradient));
  r.push_back(binary("lcm", kInts, "", "", "", kNoGradient));
  r.push_back(binary("nextafter", kReals, "", "", "", kNoGradient));
  r.push_back(binary("maximum", kReal, "self other"));
  r.push_back(binary("minimum", kReal, "self other"));
  r.push_back(binary("fmax", kReals, "self other"));
  r.push_back(binary("fmin", kReals, "self other"));
  r.push_back(binary("logaddexp", kFloating, "self other result"));
  r.push_back(binary("logaddexp2", kReals, "self other result"));
  r.push_back(binary("xlogy", kReal, "self other", "", ":pos", 0, {"[3] 2", "2 [3]:pos"}));
  r.push_back(
      binary("special_xlog1py", kReal, "self other", "", ":pos", 0, {"[3] 2", "2 [3]:pos"}));
  r.push_back(binary("heaviside", kReal, "", "", "", kNoGradient));
}

void add_comparisons(std::vector<Row>& r) {
  for (const char* op : {"eq", "ne"})
    r.push_back(binary(op, kAll, "", "", "", kNoGradient, {"[3] 2"}));
  for (const char* op : {"lt", "le", "gt", "ge"})
    r.push_back(binary(op, kReal, "", "", "", kNoGradient, {"[3] 1"}));
  r.push_back({"isclose",
               kAll,
               {"[2,3] [2,3]", "[2,3] [3] rtol=0.5 atol=0.25", "[3] [3] equal_nan=true"},
               kNoGradient});
  r.push_back(unary("logical_not", kAll, "", "", kNoGradient));
  for (const char* op : {"logical_and", "logical_or", "logical_xor"})
    r.push_back(binary(op, kAll, "", "", "", kNoGradient));
  r.push_back(unary("bitwise_not", kBools | kInts, "", "", kNoGradient));
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor"})
    r.push_back(binary(op, kBools | kInts, "", "", "", kNoGradient, {"[3] 1", "1 [3]"}));
  for (const char* op : {"bitwise_left_shift", "bitwise_right_shift"})
    r.push_back(binary(op, kInts, "", "", ":pos", kNoGradient, {"[3] 1", "1 [3]:pos"}));
  for (const char* op : {"isnan", "isinf", "isfinite", "isreal"})
    r.push_back(unary(op, kAll, "", "", kNoGradient));
  for (const char* op : {"isposinf", "isneginf", "signbit"})
    r.push_back(unary(op, kReal, "", "", kNoGradient));
}

void add_selection(std::vector<Row>& r) {
  r.push_back(
      {"nan_to_num", kAll, {"[3,5]", "[]", "[3] nan=1.0 posinf=2.0 neginf=-2.0"}, 0, "self"});
  r.push_back({"clamp",
               kInts | kReals,
               {"[3,5] [5] [3,1]", "[3,5] - [5]", "[3,5] [5]", "[3,5] -1 1", "[3,5] - 1", "[3] -1"},
               0,
               "self min max"});
  r.push_back(binary("clamp_min", kReal, "self min", "", "", 0, {"[3,5] 1"}));
  r.push_back(binary("clamp_max", kReal, "self max", "", "", 0, {"[3,5] 1"}));
  r.push_back({"where",
               kAll,
               {"[2,3]:bool [2,3] [2,3]", "[2,1]:bool [3] []", "[2,3]:bool [2,3] 1",
                "[2,3]:bool 1 [2,3]", "[]:bool [] []", "[0]:bool [1] []"},
               0,
               "condition"});
  r.push_back({"masked_fill",
               kAll,
               {"[2,3] [2,3]:bool 1", "[2,3] [3]:bool []", "[] []:bool 1", "[0,3] [3]:bool 1"},
               0,
               "mask"});
}

void add_functions(std::vector<Row>& r) {
  constexpr DtypeSet kFloatAlso = kAll;  // integers are computed in the default dtype
  for (const char* op : {"exp", "exp2", "expm1", "tan", "tanh", "sigmoid"})
    r.push_back(unary(op, kFloatAlso, "result"));
  for (const char* op : {"sin", "cos", "sinh", "cosh", "atan", "asinh", "sinc"})
    r.push_back(unary(op, kFloatAlso, "self"));
  for (const char* op : {"log", "log2", "log10", "log1p"})
    r.push_back(unary(op, kFloatAlso, "self", ":pos"));
  for (const char* op : {"sqrt", "rsqrt"}) r.push_back(unary(op, kFloatAlso, "result", ":pos"));
  for (const char* op : {"asin", "acos", "atanh"})
    r.push_back(unary(op, kFloatAlso, "self", ":unit"));
  r.push_back(unary("acosh", kFloatAlso, "self", ":one"));
  for (const char* op : {"deg2rad", "rad2deg"}) r.push_back(unary(op, kReal, ""));
  r.push_back({"logit", kReal, {"[3,5]:prob", "[]:prob", "[3] eps=0.25"}, 0, "self"});
  r.push_back({"frexp", kReals, {"[3,5]", "[]", "[0,2]"}, 0, "exponent"});
}

void add_special(std::vector<Row>& r) {
  for (const char* op : {"erf", "erfc", "i0", "special_ndtr"})
    r.push_back(unary(op, kReal, "self"));
  r.push_back(unary("erfinv", kReal, "self result", ":unit"));
  for (const char* op : {"lgamma", "digamma", "special_entr"})
    r.push_back(unary(op, kReal, "self", ":pos"));
  for (const char* op :
       {"special_i0e", "special_i1", "special_i1e", "special_erfcx", "special_log_ndtr"})
    r.push_back(unary(op, kReal, "self result"));
  r.push_back(unary("special_ndtri", kReal, "result", ":prob"));
  r.push_back({"polygamma", kReal, {"1 [3,5]:pos", "2 []:pos", "0 [0]"}, 0, "self"});
  r.push_back({"mvlgamma", kReal, {"[3,5]:one 1", "[]:one 2"}, 0, "self"});
  r.push_back(binary("igamma", kReals, "self other", ":pos", ":pos"));
  r.push_back(binary("igammac", kReals, "self other", ":pos", ":pos"));
  r.push_back(binary("special_zeta", kReal, "self other", ":one", ":pos", 0, {"2 [3]:pos"}));
  for (const char* op :
       {"special_modified_bessel_i0", "special_modified_bessel_i1", "special_bessel_j0",
        "special_bessel_j1", "special_airy_ai", "special_spherical_bessel_j0"})
    r.push_back(unary(op, kReal, nullptr));
  for (const char* op : {"special_modified_bessel_k0", "special_modified_bessel_k1",
                         "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
                         "special_bessel_y0", "special_bessel_y1"})
    r.push_back(unary(op, kReal, nullptr, ":pos"));
  for (const char* op :
       {"special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
        "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w",
        "special_hermite_polynomial_h", "special_hermite_polynomial_he",
        "special_laguerre_polynomial_l", "special_legendre_polynomial_p",
        "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
        "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w"})
    r.push_back({op, kReal, {"[3,5]:unit [5]:<5:const", "[4]:unit 3", "[0] 2"}, kCounts, nullptr});
}

void add_activations(std::vector<Row>& r) {
  r.push_back(unary("relu", kNotBool, "result"));
  r.push_back(unary("relu6", kNotBool, "self"));
  for (const char* op : {"log_sigmoid", "mish", "selu", "hardsigmoid", "hardswish"})
    r.push_back(unary(op, kReals, "self"));
  r.push_back(unary("silu", kFloating, "self"));
  r.push_back({"gelu", kReals, {"[3,5]", "[]", "[0]", "[3,5] approximate='tanh'"}, 0, "self"});
  r.push_back({"elu", kReals, {"[3,5]", "[] 0.5", "[3] 1.5 2.0 0.5"}, 0, "self"});
  r.push_back({"celu", kReals, {"[3,5]", "[] 0.5"}, 0, "self"});
  r.push_back({"leaky_relu", kReals, {"[3,5]", "[] 0.25"}, 0, "self"});
  r.push_back({"hardtanh", kNotBool, {"[3,5]", "[] 0 1"}, 0, "self"});
  r.push_back({"hardshrink", kReals, {"[3,5]", "[] 0.25"}, 0, "self"});
  r.push_back({"softshrink", kReals, {"[3,5]", "[] 0.25"}, 0, "self"});
  r.push_back({"softplus", kReals, {"[3,5]", "[] 2.0", "[5] 2.0 1.0"}, 0, "self"});
  r.push_back({"threshold", kNotBool, {"[3,5] 1 2", "[] 0 -1"}, 0, "self"});
  r.push_back({"_prelu_kernel", kReals, {"[3,5] [3,5]", "[3,5] [5]"}, 0, "self weight"});
  r.push_back(
      {"prelu", kReals, {"[3,5] [5]", "[3,5] [1]", "[3] [1]", "[2,3,4] [3]"}, 0, "self weight"});
  r.push_back({"native_dropout_backward", kReals, {"[3,5] [3,5]:bool 2.0"}, 0, "grad_output mask"});
  r.push_back({"rrelu", kReals, {"[3,5]", "[3] 0.25 0.5"}, 0, "self"});
}

}  // namespace

void add_pointwise(std::vector<Row>& rows) {
  add_arithmetic(rows);
  add_binary_functions(rows);
  add_comparisons(rows);
  add_selection(rows);
  add_functions(rows);
  add_special(rows);
  add_activations(rows);
}

}  // namespace fornax::samples
