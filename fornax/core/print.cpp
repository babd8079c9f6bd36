// Tensors as text, in libtorch's layout: matrices row by row, higher dimensions as a series of
// matrices, a common width and scale, and a closing line with type and sizes.
#include <cmath>
#include <cstdio>

#include "fornax/core/op.h"

namespace fornax {
namespace {

enum class Style { kGeneral, kScientific, kFixed };

struct Format {
  double scale = 1;  // printed in front, and divided out
  int width = 0;
  Style style = Style::kGeneral;
};

// Real values, or the real and imaginary parts of complex ones one after the other.
struct Values {
  const double* data;
  bool complex;
  int64_t parts() const { return complex ? 2 : 1; }
};

// Width and scale such that n numbers line up; whole numbers print without a point.
Format format_of(const double* values, int64_t n) {
  bool whole = true, any = false;
  double least = 1, most = 1;
  for (int64_t i = 0; i < n; ++i) {
    double z = std::fabs(values[i]);
    if (!std::isfinite(z)) continue;
    whole = whole && z == std::ceil(z);
    least = any ? std::fmin(least, z) : z;
    most = any ? std::fmax(most, z) : z;
    any = true;
  }
  auto digits = [](double z) { return z != 0 ? int(std::floor(std::log10(z))) + 1 : 1; };
  int low = any ? digits(least) : 1, high = any ? digits(most) : 1;
  if (whole) {
    if (high > 9) return {1, 11, Style::kScientific};
    return {1, high + 1, Style::kGeneral};
  }
  if (high - low > 4) {
    bool wide = std::abs(high) > 99 || std::abs(low) > 99;
    return {1, wide ? 12 : 11, Style::kScientific};
  }
  if (high > 5 || high < 0) return {std::pow(10.0, high - 1), 7, Style::kFixed};
  return {1, high == 0 ? 7 : high + 6, Style::kFixed};
}

void append_number(std::string& out, double value, Style style, int width, const char* sign = "") {
  char text[400];
  const char* patterns[3][2] = {{"%*.6g", "%+*.6g"}, {"%*.4e", "%+*.4e"}, {"%*.4f", "%+*.4f"}};
  int n = std::snprintf(text, sizeof text, patterns[int(style)][*sign == '+'], width, value);
  out.append(text, size_t(n));
}

void append_value(std::string& out, const Values& values, int64_t i, const Format& format) {
  if (!values.complex) {
    append_number(out, values.data[i] / format.scale, format.style, format.width);
    return;
  }
  append_number(out, values.data[2 * i] / format.scale, format.style, format.width);
  append_number(out, values.data[2 * i + 1] / format.scale, format.style, 0, "+");
  out += 'j';
}

void append_scale(std::string& out, double scale) {
  append_number(out, scale, Style::kGeneral, 0);
  out += " *\n";
}

void print_row_block(std::string& out, const Values& m, int64_t rows, int64_t cols, int64_t first,
                     int64_t last, const Format& format, int64_t indent) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = first; c <= last; ++c) {
      append_value(out, m, r * cols + c, format);
      out += c == last ? '\n' : ' ';
    }
    if (r == rows - 1) continue;
    out.append(size_t(indent), ' ');
    if (format.scale != 1) out += ' ';
  }
}

void print_matrix(std::string& out, const Values& m, int64_t rows, int64_t cols, int64_t line_width,
                  int64_t indent) {
  Format format = format_of(m.data, rows * cols * m.parts());
  out.append(size_t(indent), ' ');
  int64_t width = m.complex ? 2 * format.width + 2 : format.width + 1;
  int64_t per_line = (line_width - indent) / width;
  if (per_line < 1) per_line = 1;
  for (int64_t first = 0; first < cols; first += per_line) {
    int64_t last = first + per_line <= cols ? first + per_line - 1 : cols - 1;
    if (per_line < cols) {
      if (first != 0) out += '\n';
      out += str("Columns ", first + 1, " to ", last + 1);
      out.append(size_t(indent), ' ');
    }
    if (format.scale != 1) {
      append_scale(out, format.scale);
      out.append(size_t(indent), ' ');
    }
    print_row_block(out, m, rows, cols, first, last, format, indent);
  }
}

void print_matrices(std::string& out, const Values& v, IntArrayRef sizes, int64_t line_width) {
  size_t lead = sizes.size() - 2;
  int64_t rows = sizes[lead], cols = sizes[lead + 1], count = 1;
  for (size_t d = 0; d < lead; ++d) count *= sizes[d];
  Dims at(lead, 0), steps = contiguous_strides(sizes);
  for (int64_t k = 0; k < count; ++k) {
    if (k > 0) out += '\n';
    out += '(';
    int64_t offset = 0;
    for (size_t d = 0; d < lead; ++d) {
      out += str(at[d] + 1, ",");
      offset += at[d] * steps[d];
    }
    out += ".,.) = \n";
    print_matrix(out, {v.data + offset * v.parts(), v.complex}, rows, cols, line_width, 1);
    for (size_t d = 0; d < lead; ++d) {  // the first dimension runs fastest
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

void print_values(std::string& out, const Values& v, IntArrayRef sizes, int64_t n,
                  int64_t line_width) {
  if (sizes.empty()) {
    Format plain;
    append_value(out, v, 0, plain);
    out += '\n';
    return;
  }
  if (n == 0) return;
  if (sizes.size() == 2) return print_matrix(out, v, sizes[0], sizes[1], line_width, 0);
  if (sizes.size() > 2) return print_matrices(out, v, sizes, line_width);
  Format format = format_of(v.data, n * v.parts());
  if (format.scale != 1) append_scale(out, format.scale);
  for (int64_t i = 0; i < n; ++i) {
    append_value(out, v, i, format);
    out += '\n';
  }
}

void print_type(std::string& out, const Tensor& t) {
  out += str("[ ", t.toString(), "{");
  for (int64_t d = 0; d < t.dim(); ++d) out += str(d ? "," : "", t.sizes()[size_t(d)]);
  out += "}";
}

// The tensor one level down, for what a transform made; undefined when its level has ended.
Tensor inner_of(const Tensor& t) {
  Interp* owner = thread_state.top;
  while (owner && owner->level != level_of(t)) owner = owner->below;
  if (!owner) return {};
  StateGuard guard;
  thread_state.top = owner;
  owner->sync(t);
  return rare_of(t).inner;
}

}  // namespace

std::string to_string(const Tensor& tensor, int64_t line_width) {
  if (!tensor.defined()) return "[ Tensor (undefined) ]";
  std::string out;
  if (tensor.impl()->flags & kWrappedFlag) {
    Tensor inner = inner_of(tensor);
    print_type(out, tensor);
    out += str(", of a function transform, level ", level_of(tensor), " ]");
    return inner.defined() ? out + " over\n" + to_string(inner, line_width) : out;
  }
  if (!tensor.is_meta()) {
    StateGuard guard;
    thread_state.top = nullptr;
    thread_state.set_grad_mode(false);
    thread_state.forward_grad_mode = false;
    bool complex = tensor.is_complex();
    Tensor plain = tensor.detach().to(complex ? Dtype::kC128 : Dtype::kF64).contiguous();
    Values values{static_cast<const double*>(plain.impl()->data()), complex};
    print_values(out, values, tensor.sizes(), tensor.numel(), line_width);
  }
  print_type(out, tensor);
  if (tensor.impl()->flags & kDualFlag)
    if (Rare* rare = rare_or_null(tensor); rare && rare->tangent.defined())
      out += ", tangent:\n" + to_string(rare->tangent, line_width);
  return out + " ]";
}

}  // namespace fornax
