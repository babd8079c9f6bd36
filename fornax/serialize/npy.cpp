#include "fornax/serialize/npy.h"

#include <algorithm>
#include <cstring>

#include "fornax/base/atomic_file.h"
#include "fornax/base/error.h"

namespace fornax {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeaderBytes = 1 << 20;

struct NpyType {
  std::string_view code;
  Dtype dtype;
};
constexpr NpyType kNpyTypes[] = {
    {"b1", Dtype::kBool}, {"u1", Dtype::kU8},  {"i1", Dtype::kI8},    {"i2", Dtype::kI16},
    {"i4", Dtype::kI32},  {"i8", Dtype::kI64}, {"f2", Dtype::kF16},   {"f4", Dtype::kF32},
    {"f8", Dtype::kF64},  {"c8", Dtype::kC64}, {"c16", Dtype::kC128},
};

struct Header {
  Dtype dtype = Dtype::kUndefined;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<int64_t> sizes;
};

// Reads the Python dictionary that describes the array: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }. Only these three keys, only literals.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      std::string_view key = string();
      expect(':');
      value(key);
      if (accept(',')) continue;
      expect('}');
      break;
    }
    if (peek() != 0 || at_ != text_.size()) fail_here("text after the dictionary");
    for (int i = 0; i < 3; ++i)
      if (!seen_[i]) fail_here(str("key '", kKeys[i], "' missing"));
    return header_;
  }

 private:
  static constexpr std::string_view kKeys[] = {"descr", "fortran_order", "shape"};

  [[noreturn]] void fail_here(std::string_view what) const {
    fail(ErrorKind::kIo, file_, ": ", what, " at byte ", at_, " of the array's description");
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_here(str("'", c, "' expected"));
  }
  std::string_view string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') fail_here("quoted text expected");
    size_t from = ++at_;
    size_t end = text_.find(quote, from);
    if (end == std::string_view::npos) fail_here("text without closing quote");
    at_ = end + 1;
    return text_.substr(from, end - from);
  }
  void value(std::string_view key) {
    const auto* which = std::find(std::begin(kKeys), std::end(kKeys), key);
    if (which == std::end(kKeys)) fail_here(str("unknown key '", key, "'"));
    bool& seen = seen_[which - std::begin(kKeys)];
    if (seen) fail_here(str("key '", key, "' twice"));
    seen = true;
    if (key == "descr") return descr();
    if (key == "shape") return shape();
    header_.fortran_order = boolean();
  }
  void descr() {
    FX_CHECK(peek() != '[', kUnsupported, file_,
             " holds a structured array; Fornax reads arrays of plain numbers");
    std::string_view text = string();
    char order = text.empty() ? '\0' : text[0];
    bool known_order = order == '<' || order == '>' || order == '=' || order == '|';
    std::string_view code = known_order ? text.substr(1) : text;
    FX_CHECK(!code.starts_with('O'), kUnsupported, file_,
             " holds Python objects (a pickle), which could run code when read; save numbers, with "
             "allow_pickle=False");
    for (const NpyType& type : kNpyTypes)
      if (type.code == code) header_.dtype = type.dtype;
    FX_CHECK(header_.dtype != Dtype::kUndefined, kUnsupported, file_, " has element type '", text,
             "', which Fornax does not have");
    header_.big_endian = order == '>';
  }
  bool boolean() {
    peek();
    for (bool value : {false, true}) {
      std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail_here("True or False expected");
  }
  void shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.sizes.size() == kMaxRank) fail_here(str("more than ", kMaxRank, " dimensions"));
      header_.sizes.push_back(integer());
      if (accept(',')) continue;
      expect(')');
      break;
    }
  }
  int64_t integer() {
    peek();
    size_t from = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        fail_here("size above 9223372036854775807");
    }
    if (at_ == from) fail_here("size expected");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  bool seen_[3] = {};
  Header header_;
};

// Column-major to row-major: `out` is walked in order, `in` by its strides.
void transpose_items(const Header& h, ByteSpan in, std::span<std::byte> out, size_t item) {
  size_t rank = h.sizes.size();
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * h.sizes[d - 1];
  int64_t from = 0;
  for (size_t to = 0; to < out.size(); to += item) {
    std::memcpy(out.data() + to, in.data() + size_t(from) * item, item);
    for (size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < h.sizes[d]) break;
      from -= stride[d] * h.sizes[d];
      index[d] = 0;
    }
  }
}

// The description's length field has 2 bytes in version 1, 4 later.
Header read_header(const InputFile& file, uint64_t& data_offset) {
  uint8_t start[8];
  FX_CHECK(file.size() >= 10, kIo, file.name(), ": ", file.size(),
           " bytes are too few for an .npy file");
  file.read_at(0, std::as_writable_bytes(std::span(start)));
  FX_CHECK(std::memcmp(start, kMagic.data(), kMagic.size()) == 0, kIo, file.name(),
           " does not start with NumPy's magic bytes; is this an .npy file?");
  int version = start[6];
  FX_CHECK(version >= 1 && version <= 3 && start[7] == 0, kIo, file.name(), ": .npy version ",
           version, ".", int(start[7]), ", known are 1.0, 2.0 and 3.0");
  uint32_t length = 0;
  size_t length_bytes = version == 1 ? 2 : 4;
  file.read_at(8, std::as_writable_bytes(std::span(&length, 1)).first(length_bytes));
  FX_CHECK(length <= kMaxHeaderBytes, kIo, file.name(), ": description of ", length,
           " bytes, the most is ", kMaxHeaderBytes);
  Bytes text = file.read_at(8 + length_bytes, length);
  data_offset = 8 + length_bytes + length;
  return HeaderParser(as_text(text), file.name()).parse();
}

}  // namespace

RawTensor read_npy(const InputFile& file) {
  uint64_t data_offset = 0;
  Header header = read_header(file, data_offset);
  int64_t item = size_of(header.dtype);
  std::optional<int64_t> bytes = checked_bytes(header.sizes, item);
  FX_CHECK(bytes, kIo, file.name(), ": impossible shape ", IntArrayRef(header.sizes));
  FX_CHECK(uint64_t(*bytes) == file.size() - data_offset, kIo, file.name(), ": shape ",
           IntArrayRef(header.sizes), " of ", header.dtype, " needs ", *bytes, " bytes, ",
           file.size() - data_offset, " follow the description");
  RawTensor tensor{"", header.dtype, header.sizes, file.read_at(data_offset, uint64_t(*bytes))};
  if (header.big_endian) {
    swap_bytes(tensor.bytes, is_complex(header.dtype) ? item / 2 : item);
  }
  if (header.fortran_order && header.sizes.size() > 1) {
    Bytes row_major(tensor.bytes.size());
    transpose_items(header, tensor.bytes, row_major, size_t(item));
    tensor.bytes = std::move(row_major);
  }
  if (header.dtype == Dtype::kBool) normalize_bools(tensor.bytes);
  return tensor;
}

RawTensor read_npy(const std::string& path) { return read_npy(InputFile(path)); }

std::string npy_header(const RawTensorView& tensor) {
  check_complete(tensor);
  const NpyType* type = nullptr;
  for (const NpyType& t : kNpyTypes)
    if (t.dtype == tensor.dtype) type = &t;
  FX_CHECK(type, kUnsupported, "dtype ", tensor.dtype,
           " has no .npy type; convert the tensor first, to float32 or complex64");
  std::string_view order = size_of(tensor.dtype) == 1 ? "|" : "<";
  std::string text = str("{'descr': '", order, type->code, "', 'fortran_order': False, 'shape': (");
  for (size_t d = 0; d < tensor.sizes.size(); ++d) text += str(d ? ", " : "", tensor.sizes[d]);
  text += tensor.sizes.size() == 1 ? ",), }" : "), }";
  // Spaces and a newline fill up so that the data begin at a multiple of 64. 64 dimensions stay far
  // below version 1's limit of 65535.
  size_t total = (kMagic.size() + 4 + text.size() + 1 + 63) / 64 * 64;
  size_t length = total - kMagic.size() - 4;
  text.resize(length - 1, ' ');
  std::string header(kMagic);
  header += {'\x01', '\0', char(length & 255), char(length >> 8)};
  return header + text + '\n';
}

void write_npy(const std::string& path, const RawTensorView& tensor) {
  std::string header = npy_header(tensor);
  AtomicFile file(path);
  file.write(header);
  file.write(tensor.bytes);
  file.commit();
}

}  // namespace fornax
