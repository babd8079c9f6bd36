#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tests/suites/reference_parts.h"

namespace fornax::samples::suites {
namespace {

using test::Number;
using test::Numbers;

constexpr double kPi = std::numbers::pi;

// The operands and numbers of one element.
struct X {
  const Sample* sample;
  Number v[8];
  bool given[8];
  Number operator[](int i) const { return v[i]; }
  double r(int i = 0) const { return v[i].real(); }
  int64_t n(int i = 0) const { return int64_t(v[i].real()); }
  bool has(int i) const { return given[i]; }
  double or_else(int i, double absent) const { return given[i] ? r(i) : absent; }
  std::string_view text(int i) const { return sample->values()[size_t(i)].text; }
  bool integers() const { return is_integral(sample->dtype()); }
};

Dims broadcast(const Sample& s) {
  Dims sizes;
  for (const auto& slot : s.slots()) {
    IntArrayRef t = s.tensor(slot).sizes();
    while (sizes.size() < t.size()) sizes.insert(sizes.begin(), 1);
    for (size_t d = 0; d < t.size(); ++d) {
      int64_t& to = sizes[sizes.size() - t.size() + d];
      if (to == 1) to = t[d];
    }
  }
  return sizes;
}

size_t place(const Dims& sizes, const Dims& out, int64_t flat) {
  int64_t at = 0, step = 1;
  for (size_t d = sizes.size(), o = out.size(); o-- > 0;) {
    int64_t index = flat % out[o];
    flat /= out[o];
    if (d == 0) continue;
    --d;
    if (sizes[d] != 1) at += index * step;
    step *= sizes[d];
  }
  return size_t(at);
}

std::optional<std::vector<Numbers>> each(const Sample& s, Number (*f)(const X&)) {
  std::vector<Numbers> operands(s.values().size());
  X x{};
  x.sample = &s;
  for (size_t i = 0; i < s.values().size(); ++i) {
    const Value& v = s.values()[i];
    x.given[i] = v.tag != Tag::kNone;
    if (v.tag == Tag::kTensor) operands[i] = test::read(v.tensor);
    if (v.tag >= Tag::kBool && v.tag <= Tag::kComplex) {
      auto c = v.arg().number().to_complex();
      x.v[i] = {c.re, c.im};
    }
  }
  Numbers out;
  out.sizes = broadcast(s);
  int64_t numel = 1;
  for (int64_t n : out.sizes) numel *= n;
  for (int64_t flat = 0; flat < numel; ++flat) {
    for (size_t i = 0; i < operands.size(); ++i)
      if (s.values()[i].tag == Tag::kTensor)
        x.v[i] = operands[i].at[place(operands[i].sizes, out.sizes, flat)];
    out.at.push_back(f(x));
  }
  return std::vector<Numbers>{out};
}

double floor_mod(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
double sign(double x) { return double((x > 0) - (x < 0)); }
double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }
double normal_cdf(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
Number divide(const X& x) {
  std::string_view mode = x.text(2);
  if (mode == "floor") return std::floor(x.r(0) / x.r(1));
  if (mode == "trunc") return std::trunc(x.r(0) / x.r(1));
  return x[0] / x[1];
}
double clamp(const X& x, double v) {
  if (x.has(1)) v = std::max(v, x.r(1));
  if (x.has(2)) v = std::min(v, x.r(2));
  return v;
}
double elu(double x, double alpha, double scale, double input_scale) {
  return scale * (x > 0 ? x : alpha * std::expm1(input_scale * x));
}
double gelu(const X& x) {
  double v = x.r();
  if (x.text(1) != "tanh") return v * normal_cdf(v);
  return v / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (v + 0.044715 * v * v * v)));
}
Number power(const X& x) {
  if (x[0].imag() == 0 && x[1].imag() == 0) return std::pow(x.r(0), x.r(1));
  return std::pow(x[0], x[1]);
}
Number sinc(Number x) { return x == 0.0 ? Number(1) : std::sin(kPi * x) / (kPi * x); }
// cosh, sinh of small arguments are no concern of a bound of 1e-10.
Number expm1(Number x) { return x.imag() == 0 ? Number(std::expm1(x.real())) : std::exp(x) - 1.0; }
Number log1p(Number x) { return x.imag() == 0 ? Number(std::log1p(x.real())) : std::log(1.0 + x); }

// std::laguerre refuses negative arguments.
double laguerre(double x, int64_t n) {
  double before = 1, now = 1 - x;
  if (n == 0) return before;
  for (int64_t k = 1; k < n; ++k) {
    double next = ((2 * double(k) + 1 - x) * now - double(k) * before) / double(k + 1);
    before = now;
    now = next;
  }
  return now;
}
// Euler-Maclaurin from 40 terms on.
double zeta(double s, double q) {
  if (s == 1) return INFINITY;
  double sum = 0, a = q + 40;
  for (int k = 0; k < 40; ++k) sum += std::pow(q + k, -s);
  return sum + std::pow(a, 1 - s) / (s - 1) + std::pow(a, -s) / 2 + s * std::pow(a, -s - 1) / 12 -
         s * (s + 1) * (s + 2) * std::pow(a, -s - 3) / 720;
}
double logit(const X& x) {
  double p = x.r();
  if (x.has(1)) p = std::min(std::max(p, x.r(1)), 1 - x.r(1));
  return std::log(p / (1 - p));
}

#define FX_EACH(name, ...)                                              \
  t[name] = [](const Sample& s) {                                       \
    return each(s, [](const X& x) -> Number { return (__VA_ARGS__); }); \
  };

void add_arithmetic(ReferenceTable& t) {
  FX_EACH("add", x[0] + x[2] * x[1])
  FX_EACH("sub", x[0] - x[2] * x[1])
  FX_EACH("rsub", x[1] - x[2] * x[0])
  FX_EACH("mul", x[0] * x[1])
  FX_EACH("div", divide(x))
  FX_EACH("floor_divide", std::floor(x.r(0) / x.r(1)))
  FX_EACH("fmod", std::fmod(x.r(0), x.r(1)))
  FX_EACH("remainder", floor_mod(x.r(0), x.r(1)))
  FX_EACH("pow", power(x))
  FX_EACH("float_power", power(x))
  FX_EACH("addcmul", x[0] + x[3] * x[1] * x[2])
  FX_EACH("addcdiv", x[0] + x[3] * x[1] / x[2])
  FX_EACH("lerp", x[0] + x[2] * (x[1] - x[0]))
  FX_EACH("neg", -x[0])
  FX_EACH("abs", std::abs(x[0]))
  FX_EACH("square", x[0] * x[0])
  FX_EACH("reciprocal", 1.0 / x[0])
  FX_EACH("sign", sign(x.r()))
  FX_EACH("sgn", x[0] == 0.0 ? Number(0) : x[0] / std::abs(x[0]))
  FX_EACH("ceil", std::ceil(x.r()))
  FX_EACH("floor", std::floor(x.r()))
  FX_EACH("trunc", std::trunc(x.r()))
  FX_EACH("frac", x.r() - std::trunc(x.r()))
  FX_EACH("round", std::nearbyint(x.r()))
  FX_EACH("conj_physical", std::conj(x[0]))
  FX_EACH("positive", x[0])
  FX_EACH("angle", std::arg(x[0]))
  FX_EACH("polar", std::polar(x.r(0), x.r(1)))
  FX_EACH("complex", Number(x.r(0), x.r(1)))
}

void add_binary(ReferenceTable& t) {
  FX_EACH("atan2", std::atan2(x.r(0), x.r(1)))
  FX_EACH("hypot", std::hypot(x.r(0), x.r(1)))
  FX_EACH("copysign", std::copysign(x.r(0), x.r(1)))
  FX_EACH("gcd", double(std::gcd(x.n(0), x.n(1))))
  FX_EACH("lcm", double(std::lcm(x.n(0), x.n(1))))
  FX_EACH("maximum", std::max(x.r(0), x.r(1)))
  FX_EACH("minimum", std::min(x.r(0), x.r(1)))
  FX_EACH("fmax", std::max(x.r(0), x.r(1)))
  FX_EACH("fmin", std::min(x.r(0), x.r(1)))
  FX_EACH("logaddexp", std::log(std::exp(x[0]) + std::exp(x[1])))
  FX_EACH("logaddexp2", std::log2(std::exp2(x.r(0)) + std::exp2(x.r(1))))
  FX_EACH("xlogy", x.r(0) == 0 ? 0 : x.r(0) * std::log(x.r(1)))
  FX_EACH("special_xlog1py", x.r(0) == 0 ? 0 : x.r(0) * std::log1p(x.r(1)))
  FX_EACH("heaviside", x.r(0) == 0 ? x.r(1) : double(x.r(0) > 0))
  FX_EACH("eq", double(x[0] == x[1]))
  FX_EACH("ne", double(x[0] != x[1]))
  FX_EACH("lt", double(x.r(0) < x.r(1)))
  FX_EACH("le", double(x.r(0) <= x.r(1)))
  FX_EACH("gt", double(x.r(0) > x.r(1)))
  FX_EACH("ge", double(x.r(0) >= x.r(1)))
  FX_EACH("isclose",
          double(x[0] == x[1] || std::abs(x[0] - x[1]) <= x.r(3) + std::abs(x.r(2) * x[1])))
  FX_EACH("logical_not", double(x[0] == 0.0))
  FX_EACH("logical_and", double(x[0] != 0.0 && x[1] != 0.0))
  FX_EACH("logical_or", double(x[0] != 0.0 || x[1] != 0.0))
  FX_EACH("logical_xor", double((x[0] != 0.0) != (x[1] != 0.0)))
  FX_EACH("bitwise_not", x.sample->dtype() == Dtype::kBool ? double(!x.n()) : double(~x.n()))
  FX_EACH("bitwise_and", double(x.n(0) & x.n(1)))
  FX_EACH("bitwise_or", double(x.n(0) | x.n(1)))
  FX_EACH("bitwise_xor", double(x.n(0) ^ x.n(1)))
  FX_EACH("bitwise_left_shift", double(x.n(0) << x.n(1)))
  FX_EACH("bitwise_right_shift", double(x.n(0) >> x.n(1)))
}

void add_predicates_and_selection(ReferenceTable& t) {
  FX_EACH("isnan", double(std::isnan(x.r())))
  FX_EACH("isinf", double(std::isinf(x.r())))
  FX_EACH("isfinite", double(std::isfinite(x.r())))
  FX_EACH("isreal", double(x[0].imag() == 0))
  FX_EACH("isposinf", double(std::isinf(x.r()) && x.r() > 0))
  FX_EACH("isneginf", double(std::isinf(x.r()) && x.r() < 0))
  FX_EACH("signbit", double(std::signbit(x.r())))
  FX_EACH("nan_to_num", x[0])
  FX_EACH("clamp", clamp(x, x.r()))
  FX_EACH("clamp_min", std::max(x.r(0), x.r(1)))
  FX_EACH("clamp_max", std::min(x.r(0), x.r(1)))
  FX_EACH("where", x[0] != 0.0 ? x[1] : x[2])
  FX_EACH("masked_fill", x[1] != 0.0 ? x[2] : x[0])
}

void add_elementary(ReferenceTable& t) {
  FX_EACH("exp", std::exp(x[0]))
  FX_EACH("exp2", std::exp(x[0] * std::log(2.0)))
  FX_EACH("expm1", expm1(x[0]))
  FX_EACH("log", std::log(x[0]))
  FX_EACH("log2", std::log(x[0]) / std::log(2.0))
  FX_EACH("log10", std::log10(x[0]))
  FX_EACH("log1p", log1p(x[0]))
  FX_EACH("sqrt", std::sqrt(x[0]))
  FX_EACH("rsqrt", 1.0 / std::sqrt(x[0]))
  FX_EACH("sin", std::sin(x[0]))
  FX_EACH("cos", std::cos(x[0]))
  FX_EACH("tan", std::tan(x[0]))
  FX_EACH("sinh", std::sinh(x[0]))
  FX_EACH("cosh", std::cosh(x[0]))
  FX_EACH("tanh", std::tanh(x[0]))
  FX_EACH("asin", x[0].imag() == 0 ? Number(std::asin(x.r())) : std::asin(x[0]))
  FX_EACH("acos", x[0].imag() == 0 ? Number(std::acos(x.r())) : std::acos(x[0]))
  FX_EACH("atan", std::atan(x[0]))
  FX_EACH("asinh", std::asinh(x[0]))
  FX_EACH("acosh", x[0].imag() == 0 ? Number(std::acosh(x.r())) : std::acosh(x[0]))
  FX_EACH("atanh", x[0].imag() == 0 ? Number(std::atanh(x.r())) : std::atanh(x[0]))
  FX_EACH("sinc", sinc(x[0]))
  FX_EACH("deg2rad", x.r() * kPi / 180)
  FX_EACH("rad2deg", x.r() * 180 / kPi)
  FX_EACH("sigmoid", 1.0 / (1.0 + std::exp(-x[0])))
}

void add_special(ReferenceTable& t) {
  FX_EACH("erf", std::erf(x.r()))
  FX_EACH("erfc", std::erfc(x.r()))
  FX_EACH("lgamma", std::lgamma(x.r()))
  FX_EACH("i0", std::cyl_bessel_i(0, std::abs(x.r())))
  FX_EACH("special_i0e", std::exp(-std::abs(x.r())) * std::cyl_bessel_i(0, std::abs(x.r())))
  FX_EACH("special_i1", sign(x.r()) * std::cyl_bessel_i(1, std::abs(x.r())))
  FX_EACH("special_i1e",
          sign(x.r()) * std::exp(-std::abs(x.r())) * std::cyl_bessel_i(1, std::abs(x.r())))
  FX_EACH("special_erfcx", std::exp(x.r() * x.r()) * std::erfc(x.r()))
  FX_EACH("special_ndtr", normal_cdf(x.r()))
  FX_EACH("special_log_ndtr", std::log(normal_cdf(x.r())))
  FX_EACH("special_entr", x.r() == 0 ? 0 : -x.r() * std::log(x.r()))
  FX_EACH("special_modified_bessel_i0", std::cyl_bessel_i(0, std::abs(x.r())))
  FX_EACH("special_modified_bessel_i1", sign(x.r()) * std::cyl_bessel_i(1, std::abs(x.r())))
  FX_EACH("special_modified_bessel_k0", std::cyl_bessel_k(0, x.r()))
  FX_EACH("special_modified_bessel_k1", std::cyl_bessel_k(1, x.r()))
  FX_EACH("special_scaled_modified_bessel_k0", std::exp(x.r()) * std::cyl_bessel_k(0, x.r()))
  FX_EACH("special_scaled_modified_bessel_k1", std::exp(x.r()) * std::cyl_bessel_k(1, x.r()))
  FX_EACH("special_bessel_j0", std::cyl_bessel_j(0, std::abs(x.r())))
  FX_EACH("special_bessel_j1", sign(x.r()) * std::cyl_bessel_j(1, std::abs(x.r())))
  FX_EACH("special_bessel_y0", std::cyl_neumann(0, x.r()))
  FX_EACH("special_bessel_y1", std::cyl_neumann(1, x.r()))
  FX_EACH("special_spherical_bessel_j0", sinc(x[0] / kPi))
  FX_EACH("special_hermite_polynomial_h", std::hermite(unsigned(x.n(1)), x.r()))
  FX_EACH(
      "special_hermite_polynomial_he",
      std::pow(2.0, -double(x.n(1)) / 2) * std::hermite(unsigned(x.n(1)), x.r() / std::sqrt(2.0)))
  FX_EACH("special_laguerre_polynomial_l", laguerre(x.r(), x.n(1)))
  FX_EACH("special_legendre_polynomial_p", std::legendre(unsigned(x.n(1)), x.r()))
  FX_EACH("special_chebyshev_polynomial_t", std::cos(x.r(1) * std::acos(x.r())))
  FX_EACH("special_chebyshev_polynomial_u",
          std::sin((x.r(1) + 1) * std::acos(x.r())) / std::sin(std::acos(x.r())))
  FX_EACH("special_zeta", zeta(x.r(0), x.r(1)))
}

void add_activations(ReferenceTable& t) {
  FX_EACH("relu", std::max(x.r(), 0.0))
  FX_EACH("relu6", std::min(std::max(x.r(), 0.0), 6.0))
  FX_EACH("log_sigmoid", -softplus(-x.r()))
  FX_EACH("silu", x[0] / (1.0 + std::exp(-x[0])))
  FX_EACH("mish", x.r() * std::tanh(softplus(x.r())))
  FX_EACH("selu",
          elu(x.r(), 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1))
  FX_EACH("hardsigmoid", std::min(std::max(x.r() + 3, 0.0), 6.0) / 6)
  FX_EACH("hardswish", x.r() * std::min(std::max(x.r() + 3, 0.0), 6.0) / 6)
  FX_EACH("gelu", gelu(x))
  FX_EACH("elu", elu(x.r(), x.r(1), x.r(2), x.r(3)))
  FX_EACH("celu", elu(x.r(), x.r(1), 1, 1 / x.r(1)))
  FX_EACH("leaky_relu", x.r() > 0 ? x.r() : x.r() * x.r(1))
  FX_EACH("hardtanh", std::min(std::max(x.r(), x.r(1)), x.r(2)))
  FX_EACH("hardshrink", std::abs(x.r()) <= x.r(1) ? 0.0 : x.r())
  FX_EACH("softshrink", sign(x.r()) * std::max(std::abs(x.r()) - x.r(1), 0.0))
  FX_EACH("softplus", x.r() * x.r(1) > x.r(2) ? x.r() : softplus(x.r() * x.r(1)) / x.r(1))
  FX_EACH("threshold", x.r() > x.r(1) ? x.r() : x.r(2))
  FX_EACH("_prelu_kernel", x.r() > 0 ? x.r() : x.r() * x.r(1))
  FX_EACH("native_dropout_backward", x.r(0) * x.r(1) * x.r(2))
  FX_EACH("logit", logit(x))
}

}  // namespace

void add_pointwise_references(ReferenceTable& t) {
  add_arithmetic(t);
  add_binary(t);
  add_predicates_and_selection(t);
  add_elementary(t);
  add_special(t);
  add_activations(t);
}

}  // namespace fornax::samples::suites
