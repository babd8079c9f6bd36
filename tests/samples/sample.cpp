#include "tests/samples/sample.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "tests/support/values.h"

namespace fornax::samples {
namespace {

using test::Number;
using test::Numbers;

// xorshift64*: the values must never change with the library's generators.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {
    for (int i = 0; i < 4; ++i) next();
  }
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545f4914f6cdd1du) >> 16;
  }
  int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }

 private:
  uint64_t state_;
};

enum class Domain {
  kAny,       // (-2, 2), never 0, an integer or a multiple of a half; integers -3 ... 3
  kPos,       // (0.25, 2.25); integers 1 ... 4
  kUnit,      // (-1, 1)
  kProb,      // (0, 1)
  kOne,       // (1, 3)
  kNonzero,   // as kAny; integers never 0
  kDistinct,  // no two elements of the tensor equal or near
  kSorted,    // ascending along the last dimension, distinct
  kBelow,     // integers 0 ... n - 1
};

struct TensorSpec {
  Dims sizes;
  Domain domain = Domain::kAny;
  Dtype dtype = Dtype::kUndefined;  // undefined: the suite's
  int64_t below = 0;
  bool constant = false, real_part = false;
};

// Floats are odd multiples of 1/128 (1/256 in every second tensor): exact in every dtype, away from
// the kinks at integers and halves, and no two tensors share a value.
double real_value(Domain domain, Random& random, int which, int64_t position, int64_t numel) {
  double odd = 1.0 / (which % 2 ? 256 : 128), range = which % 2 ? 1 : 2;
  auto between = [&](double lo, double hi) {
    int64_t steps = int64_t((hi - lo) / (2 * odd));
    return lo + (2 * double(random.below(steps)) + 1) * odd;
  };
  switch (domain) {
    case Domain::kPos: return between(0.25, 0.25 + range);
    case Domain::kUnit: return between(-0.9375, 0.9375);
    case Domain::kProb: return between(0.0625, 0.9375);
    case Domain::kOne: return between(1, 1 + range);
    case Domain::kDistinct:
    case Domain::kSorted: {
      double step = 4.0 / double(numel + 1);
      double quantum = odd / 4;
      return -2 + std::round(step * (double(position) + 0.75) / quantum) * quantum;
    }
    default: return between(-range, range);
  }
}

int64_t integer_value(Domain domain, Random& random, int64_t position, Dtype dtype, int64_t below) {
  bool is_signed = dtype != Dtype::kU8 && dtype != Dtype::kBool;
  switch (domain) {
    case Domain::kBelow: return random.below(std::max<int64_t>(below, 1));
    case Domain::kPos:
    case Domain::kOne: return 1 + random.below(4);
    case Domain::kNonzero: {
      int64_t v = 1 + random.below(3);
      return is_signed && random.below(2) ? -v : v;
    }
    case Domain::kDistinct:
    case Domain::kSorted: return position - (is_signed ? 3 : 0);
    case Domain::kProb: return random.below(2);
    default: return is_signed ? random.below(7) - 3 : random.below(6);
  }
}

std::vector<int64_t> order_of(const TensorSpec& spec, int64_t numel, Random& random) {
  std::vector<int64_t> order(static_cast<size_t>(numel));
  for (int64_t i = 0; i < numel; ++i) order[size_t(i)] = i;
  if (spec.domain != Domain::kDistinct) return order;
  for (int64_t i = numel; i > 1; --i)
    std::swap(order[size_t(i - 1)], order[size_t(random.below(i))]);
  return order;
}

Tensor make(const TensorSpec& spec, Dtype open, uint64_t seed, int which) {
  Dtype d = spec.dtype != Dtype::kUndefined ? spec.dtype : spec.real_part ? to_real(open) : open;
  Random random(seed * 977 + uint64_t(which));
  Numbers n;
  n.sizes = spec.sizes;
  int64_t numel = checked_numel(spec.sizes);
  std::vector<int64_t> order = order_of(spec, numel, random);
  for (int64_t i = 0; i < numel; ++i) {
    int64_t position = order[size_t(i)];
    if (is_bool(d)) {
      n.at.emplace_back(double(random.below(2)), 0);
    } else if (is_integral(d) || spec.domain == Domain::kBelow) {
      n.at.emplace_back(double(integer_value(spec.domain, random, position, d, spec.below)), 0);
    } else {
      double re = real_value(spec.domain, random, which, position, numel);
      double im = is_complex(d) ? real_value(Domain::kAny, random, which, position, numel) : 0;
      n.at.emplace_back(re, im);
    }
  }
  return test::write(n, d);
}

// ---- text
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  bool done() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ == text_.size();
  }
  char peek() { return done() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) wrong(str("expected '", c, "'"));
  }
  std::string_view until(std::string_view stops) {
    size_t from = at_;
    while (at_ < text_.size() && stops.find(text_[at_]) == stops.npos) ++at_;
    return text_.substr(from, at_ - from);
  }
  // "name=" in front of a value.
  std::string_view name() {
    done();
    size_t i = at_;
    while (i < text_.size() && (std::isalnum(text_[i]) || text_[i] == '_')) ++i;
    if (i == at_ || i >= text_.size() || text_[i] != '=' || std::isdigit(text_[at_])) return {};
    std::string_view n = text_.substr(at_, i - at_);
    at_ = i + 1;
    return n;
  }
  [[noreturn]] void wrong(std::string_view what) {
    fail(ErrorKind::kValue, "sample '", text_, "' at ", int64_t(at_), ": ", what);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

template <class T>
T number_of(Reader& r, std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) r.wrong(str("bad number ", word));
  return value;
}

bool is_real(std::string_view word) {
  return word.find_first_of(".n") != word.npos || word == "inf" || word == "-inf" ||
         (word.find('e') != word.npos && word.find('x') == word.npos);
}

void apply_modifier(Reader& r, std::string_view word, TensorSpec& spec) {
  static const std::unordered_map<std::string_view, Domain> domains = {
      {"pos", Domain::kPos},      {"unit", Domain::kUnit},  {"prob", Domain::kProb},
      {"one", Domain::kOne},      {"nz", Domain::kNonzero}, {"distinct", Domain::kDistinct},
      {"sorted", Domain::kSorted}};
  if (auto it = domains.find(word); it != domains.end()) {
    spec.domain = it->second;
  } else if (word.starts_with('<')) {
    spec.domain = Domain::kBelow;
    spec.below = number_of<int64_t>(r, word.substr(1));
    if (spec.dtype == Dtype::kUndefined) spec.dtype = Dtype::kI64;
  } else if (word == "const") {
    spec.constant = true;
  } else if (word == "real") {
    spec.real_part = true;
  } else if (Dtype d = dtype_of_name(word); d != Dtype::kUndefined) {
    spec.dtype = d;
  } else {
    r.wrong(str("unknown modifier ", word));
  }
}

TensorSpec parse_tensor(Reader& r) {
  TensorSpec spec;
  r.expect('[');
  while (!r.take(']')) {
    spec.sizes.push_back(number_of<int64_t>(r, r.until(",]")));
    r.take(',');
  }
  while (r.take(':')) apply_modifier(r, r.until(" :)"), spec);
  return spec;
}

struct Context {
  Dtype dtype;
  uint64_t seed;
  int tensors = 0;
};

void add_tensor(Reader& r, Value& v, Tensor& to, Context& c) {
  TensorSpec spec = parse_tensor(r);
  to = make(spec, c.dtype, c.seed, c.tensors++);
  v.open.push_back(spec.dtype == Dtype::kUndefined);
  v.differentiable.push_back(is_differentiable(to.dtype()) && !spec.constant);
}

void parse_list_of_numbers(Reader& r, Value& v) {
  r.expect('{');
  bool real = false;
  std::vector<std::string_view> words;
  while (!r.take('}')) {
    words.push_back(r.until(",}"));
    real = real || is_real(words.back());
    r.take(',');
  }
  v.tag = real ? Tag::kReals : Tag::kInts;
  for (std::string_view w : words) {
    if (real)
      v.reals.push_back(number_of<double>(r, w));
    else
      v.ints.push_back(number_of<int64_t>(r, w));
  }
}

Value tagged(Tag tag, int64_t integer) {
  Value v;
  v.tag = tag;
  v.integer = integer;
  return v;
}

Value number_value(Reader& r, std::string_view word) {
  if (word.ends_with('j')) {
    word.remove_suffix(1);
    size_t split = word.find_last_of("+-");
    if (split == word.npos || split == 0) r.wrong("a complex number is written a+bj");
    Value v = tagged(Tag::kComplex, 0);
    v.number = Scalar(complex128(number_of<double>(r, word.substr(0, split)),
                                 number_of<double>(r, word.substr(split))));
    return v;
  }
  if (!is_real(word)) return tagged(Tag::kInt, number_of<int64_t>(r, word));
  Value v = tagged(Tag::kReal, 0);
  v.real = number_of<double>(r, word);
  return v;
}

Value word_value(Reader& r, std::string_view word) {
  static const std::unordered_map<std::string_view, Value> words = {
      {"-", Value()},
      {"None", Value()},
      {"true", tagged(Tag::kBool, 1)},
      {"True", tagged(Tag::kBool, 1)},
      {"false", tagged(Tag::kBool, 0)},
      {"False", tagged(Tag::kBool, 0)},
      {"Mean", tagged(Tag::kInt, 1)},
      {"contiguous", tagged(Tag::kMemoryFormat, int64_t(MemoryFormat::Contiguous))},
      {"contiguous_format", tagged(Tag::kMemoryFormat, int64_t(MemoryFormat::Contiguous))},
      {"preserve", tagged(Tag::kMemoryFormat, int64_t(MemoryFormat::Preserve))},
      {"channels_last", tagged(Tag::kMemoryFormat, int64_t(MemoryFormat::ChannelsLast))},
      {"channels_last_3d", tagged(Tag::kMemoryFormat, int64_t(MemoryFormat::ChannelsLast3d))},
      {"cpu", tagged(Tag::kDevice, Arg(Device(DeviceType::kCPU)).i)},
      {"meta", tagged(Tag::kDevice, Arg(Device(DeviceType::kMeta)).i)}};
  if (auto it = words.find(word); it != words.end()) return it->second;
  if (Dtype d = dtype_of_name(word); d != Dtype::kUndefined) return tagged(Tag::kDtype, int64_t(d));
  return number_value(r, word);
}

Value parse_value(Reader& r, Context& c) {
  Value v;
  if (r.peek() == '[') {
    v.tag = Tag::kTensor;
    add_tensor(r, v, v.tensor, c);
  } else if (r.take('(')) {
    v.tag = Tag::kTensors;
    while (!r.take(')')) {
      v.list.emplace_back();
      if (r.take('-')) {
        v.open.push_back(0);
        v.differentiable.push_back(0);
      } else {
        add_tensor(r, v, v.list.back(), c);
      }
    }
  } else if (r.peek() == '{') {
    parse_list_of_numbers(r, v);
  } else if (r.take('\'')) {
    v.tag = Tag::kString;
    v.text = r.until("'");
    r.expect('\'');
  } else {
    return word_value(r, r.until(" )"));
  }
  return v;
}

Value default_of(const Param& p, Context& c) {
  std::string text(p.fallback);
  if (text.empty()) return {};
  if (text[0] == '[') {  // lists are written with braces here
    text.front() = '{';
    text.back() = '}';
    std::erase(text, ' ');
  }
  for (char& ch : text)
    if (ch == '"') ch = '\'';
  Reader r(text);
  Value v = parse_value(r, c);
  if (p.type == "float" && v.tag == Tag::kInt && !p.list) {
    v.tag = Tag::kReal;
    v.real = double(v.integer);
  }
  return v;
}

}  // namespace

Arg Value::arg() const {
  switch (tag) {
    case Tag::kNone: return Arg();
    case Tag::kTensor: return Arg(tensor);
    case Tag::kTensors: return Arg(list);
    case Tag::kReal: return Arg(real);
    case Tag::kComplex: return Arg(number);
    case Tag::kInts: return Arg(IntArrayRef(ints));
    case Tag::kReals: return Arg(ArrayRef<double>(reals));
    case Tag::kString: return Arg(std::string_view(text));
    default: {
      Arg a(integer);
      a.tag = tag;
      return a;
    }
  }
}

Sample::Sample(const Op& op, std::string_view text, Dtype dtype, uint64_t seed)
    : op_(&op), text_(text), dtype_(dtype) {
  Schema schema = schema_of(op);
  Context context{dtype, seed};
  values_.resize(size_t(schema.n_params));
  std::vector<bool> given(values_.size(), false);
  Reader r(text_);
  for (size_t next = 0; !r.done();) {
    std::string_view name = r.name();
    int at = name.empty() ? int(next++) : schema.find(name);
    if (at < 0 || size_t(at) >= values_.size()) r.wrong(str("no parameter ", name));
    values_[size_t(at)] = parse_value(r, context);
    given[size_t(at)] = true;
  }
  for (size_t i = 0; i < values_.size(); ++i)
    if (!given[i]) values_[i] = default_of(schema.params[i], context);
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& v = values_[i];
    size_t n = v.tag == Tag::kTensor ? 1 : v.tag == Tag::kTensors ? v.list.size() : 0;
    for (size_t k = 0; k < n; ++k) {
      if (v.tag == Tag::kTensors && !v.list[k].defined()) continue;
      slots_.push_back({int(i), int(k), v.open[k] != 0, v.differentiable[k] != 0});
    }
  }
}

Tensor& Sample::tensor(const Slot& slot) {
  Value& v = values_[size_t(slot.arg)];
  return v.tag == Tag::kTensor ? v.tensor : v.list[size_t(slot.place)];
}

const Tensor& Sample::tensor(const Slot& slot) const {
  return const_cast<Sample*>(this)->tensor(slot);
}

Sample Sample::copy() const {
  return map([](const Tensor& t, const Slot&) { return test::contiguous_of(t); });
}

SmallVec<Arg, 8> Sample::args() const {
  SmallVec<Arg, 8> args;
  for (const Value& v : values_) args.push_back(v.arg());
  return args;
}

Tensors Sample::run(Form form, Tensors outs) const {
  SmallVec<Arg, 8> a = args();
  return call(*op_, form, Args(a.data(), a.size()), std::move(outs));
}

std::string Sample::describe() const { return str(op_->name(), "(", text_, ") ", name_of(dtype_)); }

const Row* row_of(const Op& op) {
  static const auto* index = [] {
    auto* m = new std::unordered_map<const Op*, const Row*>;
    for (const Row& row : rows())
      if (const Op* o = find_op(row.op)) m->emplace(o, &row);
    return m;
  }();
  auto it = index->find(&op);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace fornax::samples
