#include "fornax/serialize/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "fornax/base/atomic_file.h"
#include "fornax/base/error.h"
#include "fornax/serialize/json_cursor.h"

namespace fornax {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference's limit
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kComplexNote = "fornax.dtype.";

// The format's dtypes in the reference's order, which is also the order of tensors in a file it
// writes (backwards).
struct StoredDtype {
  std::string_view name;
  int bits;
  Dtype dtype;
};
constexpr StoredDtype kStoredDtypes[] = {
    {"BOOL", 8, Dtype::kBool},
    {"F4", 4, Dtype::kUndefined},
    {"F6_E2M3", 6, Dtype::kUndefined},
    {"F6_E3M2", 6, Dtype::kUndefined},
    {"U8", 8, Dtype::kU8},
    {"I8", 8, Dtype::kI8},
    {"F8_E5M2", 8, Dtype::kUndefined},
    {"F8_E4M3", 8, Dtype::kUndefined},
    {"F8_E8M0", 8, Dtype::kUndefined},
    {"F8_E4M3FNUZ", 8, Dtype::kUndefined},
    {"F8_E5M2FNUZ", 8, Dtype::kUndefined},
    {"I16", 16, Dtype::kI16},
    {"U16", 16, Dtype::kUndefined},
    {"F16", 16, Dtype::kF16},
    {"BF16", 16, Dtype::kBF16},
    {"I32", 32, Dtype::kI32},
    {"U32", 32, Dtype::kUndefined},
    {"F32", 32, Dtype::kF32},
    {"C64", 64, Dtype::kC64},
    {"F64", 64, Dtype::kF64},
    {"I64", 64, Dtype::kI64},
    {"U64", 64, Dtype::kUndefined},
};

const StoredDtype* find_stored(std::string_view name) {
  for (const StoredDtype& s : kStoredDtypes)
    if (s.name == name) return &s;
  return nullptr;
}

// Where a dtype of ours is stored: complex128 and complex32 as their parts.
const StoredDtype& stored_for(Dtype d) {
  if (d == Dtype::kC128) d = Dtype::kF64;
  if (d == Dtype::kC32) d = Dtype::kF16;
  for (const StoredDtype& s : kStoredDtypes)
    if (s.dtype == d) return s;
  fail(ErrorKind::kInternal, "dtype ", d, " has no place in safetensors");
}

bool stored_as_parts(Dtype d) { return d == Dtype::kC128 || d == Dtype::kC32; }

// Bytes of a tensor, or nullopt on overflow or where they are no whole number.
std::optional<uint64_t> stored_bytes(const std::vector<int64_t>& sizes, int bits) {
  bool whole = bits % 8 == 0;
  std::optional<int64_t> total = checked_bytes(sizes, whole ? bits / 8 : bits);
  if (!total || (!whole && *total % 8 != 0)) return std::nullopt;
  return uint64_t(whole ? *total : *total / 8);
}

SafetensorsEntry parse_entry(JsonCursor& json, const std::string& name) {
  SafetensorsEntry entry;
  entry.name = name;
  bool has_dtype = false, has_shape = false;
  std::vector<int64_t> offsets;
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      entry.stored_dtype = json.string();
      has_dtype = true;
    } else if (key == "shape") {
      has_shape = true;
      json.array([&] {
        if (entry.sizes.size() == kMaxRank)
          json.fail_here(str("tensor '", name, "' has more than ", kMaxRank, " dimensions,"));
        entry.sizes.push_back(json.size());
      });
    } else if (key == "data_offsets") {
      json.array([&] {
        if (offsets.size() == 2) json.fail_here(str("tensor '", name, "' has a third offset"));
        offsets.push_back(json.size());
      });
    } else {
      json.skip();
    }
  });
  if (!has_dtype || !has_shape || offsets.size() != 2)
    json.fail_here(str("tensor '", name, "' lacks one of dtype, shape and two data_offsets,"));
  entry.begin = uint64_t(offsets[0]);
  entry.end = uint64_t(offsets[1]);
  return entry;
}

}  // namespace

SafetensorsReader::SafetensorsReader(InputFile file) : file_(std::move(file)) {
  FX_CHECK(file_.size() >= kLengthBytes, kIo, path(), ": ", file_.size(),
           " bytes are too few for a safetensors file");
  uint64_t header_bytes = 0;
  file_.read_at(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  FX_CHECK(header_bytes <= kMaxHeaderBytes, kIo, path(), ": header of ", header_bytes,
           " bytes, the most is ", kMaxHeaderBytes, "; is this a safetensors file?");
  FX_CHECK(header_bytes <= file_.size() - kLengthBytes, kIo, path(), ": header of ", header_bytes,
           " bytes in a file of ", file_.size());
  Bytes header = file_.read_at(kLengthBytes, header_bytes);
  data_offset_ = kLengthBytes + header_bytes;
  parse_header(as_text(header), file_.size() - data_offset_);
}

void SafetensorsReader::parse_header(std::string_view header, uint64_t data_bytes) {
  FX_CHECK(!header.empty() && header[0] == '{', kIo, path(),
           ": the header does not start with '{'; is this a safetensors file?");
  JsonCursor json(header, path());
  json.object([&](const std::string& key) {
    if (key != kMetadataKey) {
      entries_.push_back(parse_entry(json, key));
      return;
    }
    if (json.null()) return;
    json.object([&](const std::string& name) { metadata_.emplace_back(name, json.string()); });
  });
  json.end();
  check_places(data_bytes);
  by_name_.resize(entries_.size());
  for (size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = uint32_t(i);
  std::sort(by_name_.begin(), by_name_.end(),
            [this](uint32_t a, uint32_t b) { return entries_[a].name < entries_[b].name; });
  undo_complex_convention();
}

void SafetensorsReader::check_places(uint64_t data_bytes) {
  // By offsets; tensors without elements share theirs, so the order of the header decides then.
  std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t expected = 0;
  for (SafetensorsEntry& e : entries_) {
    FX_CHECK(e.begin == expected && e.end >= e.begin, kIo, path(), ": tensor '", e.name,
             "' has data_offsets [", e.begin, ", ", e.end, "], its data must begin at ", expected);
    const StoredDtype* stored = find_stored(e.stored_dtype);
    FX_CHECK(stored, kIo, path(), ": tensor '", e.name, "' has the unknown dtype '", e.stored_dtype,
             "'");
    std::optional<uint64_t> bytes = stored_bytes(e.sizes, stored->bits);
    FX_CHECK(bytes, kIo, path(), ": tensor '", e.name, "' of dtype ", e.stored_dtype,
             " has an impossible shape ", IntArrayRef(e.sizes));
    FX_CHECK(*bytes == e.end - e.begin, kIo, path(), ": tensor '", e.name, "' of dtype ",
             e.stored_dtype, " and shape ", IntArrayRef(e.sizes), " needs ", *bytes,
             " bytes, its data_offsets [", e.begin, ", ", e.end, "] give ", e.end - e.begin);
    e.dtype = stored->dtype;
    expected = e.end;
  }
  FX_CHECK(expected == data_bytes, kIo, path(), ": its tensors take ", expected, " bytes, but ",
           data_bytes, " follow the header");
}

void SafetensorsReader::undo_complex_convention() {
  std::erase_if(metadata_, [this](const auto& pair) {
    if (!pair.first.starts_with(kComplexNote)) return false;
    std::string_view name = std::string_view(pair.first).substr(kComplexNote.size());
    const SafetensorsEntry* found = find(name);
    SafetensorsEntry* entry = found ? &entries_[size_t(found - entries_.data())] : nullptr;
    Dtype dtype = dtype_of_name(pair.second);
    bool fits = entry && stored_as_parts(dtype) && entry->dtype == to_real(dtype) &&
                !entry->sizes.empty() && entry->sizes.back() == 2;
    FX_CHECK(fits, kIo, path(), ": metadata says that tensor '", name, "' has dtype '", pair.second,
             "', but it is not stored as its real and imaginary parts");
    entry->dtype = dtype;
    entry->sizes.pop_back();
    return true;
  });
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [this](uint32_t i, std::string_view n) { return entries_[i].name < n; });
  if (at == by_name_.end() || entries_[*at].name != name) return nullptr;
  return &entries_[*at];
}

const std::string* SafetensorsReader::find_metadata(std::string_view key) const {
  for (const auto& [name, value] : metadata_)
    if (name == key) return &value;
  return nullptr;
}

void SafetensorsReader::read(const SafetensorsEntry& entry, std::span<std::byte> into) const {
  FX_CHECK(entry.dtype != Dtype::kUndefined, kUnsupported, path(), ": tensor '", entry.name,
           "' has dtype ", entry.stored_dtype, ", which Fornax does not have");
  FX_CHECK(into.size() == entry.end - entry.begin, kValue, path(), ": tensor '", entry.name,
           "' has ", entry.end - entry.begin, " bytes, space was given for ", into.size());
  file_.read_at(data_offset_ + entry.begin, into);
  if (entry.dtype == Dtype::kBool) normalize_bools(into);
}

RawTensor SafetensorsReader::read(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  FX_CHECK(entry, kIo, path(), ": there is no tensor '", name, "' among its ", entries_.size());
  RawTensor tensor{entry->name, entry->dtype, entry->sizes, Bytes(entry->end - entry->begin)};
  read(*entry, tensor.bytes);
  return tensor;
}

namespace {

// Throws for what a reader would refuse.
void check_writable(std::span<const RawTensorView> tensors, const StringPairs& metadata) {
  std::vector<std::string_view> names;
  for (const RawTensorView& t : tensors) {
    check_complete(t);
    FX_CHECK(t.name != kMetadataKey, kValue, "tensor name ", kMetadataKey, " is reserved");
    FX_CHECK(is_utf8(t.name), kValue, "tensor name '", t.name, "' is no valid UTF-8");
    FX_CHECK(!stored_as_parts(t.dtype) || t.sizes.size() < kMaxRank, kValue, "tensor ", t.name,
             ": ", t.dtype, " is stored with one dimension more, and it has ", kMaxRank);
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  FX_CHECK(twice == names.end(), kValue, "two tensors are named '", *twice, "'");

  std::vector<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    FX_CHECK(is_utf8(key) && is_utf8(value), kValue, "metadata '", key, "' is no valid UTF-8");
    FX_CHECK(!key.starts_with(kComplexNote), kValue, "metadata key '", key,
             "' is reserved: ", kComplexNote, "* is written by the library");
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  twice = std::adjacent_find(keys.begin(), keys.end());
  FX_CHECK(twice == keys.end(), kValue, "two metadata entries have the key '", *twice, "'");
}

std::vector<RawTensorView> in_file_order(std::span<const RawTensorView> tensors) {
  std::vector<RawTensorView> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(), [](const RawTensorView& a, const RawTensorView& b) {
    const StoredDtype *da = &stored_for(a.dtype), *db = &stored_for(b.dtype);
    return da != db ? da > db : a.name < b.name;
  });
  return sorted;
}

void append_metadata(std::string& header, const std::vector<RawTensorView>& sorted,
                     const StringPairs& metadata) {
  bool first = true;
  auto pair = [&](std::string_view key, std::string_view value) {
    header += first ? "\"__metadata__\":{" : ",";
    append_json_string(header, key);
    header += ':';
    append_json_string(header, value);
    first = false;
  };
  for (const auto& [key, value] : metadata) pair(key, value);
  for (const RawTensorView& t : sorted)
    if (stored_as_parts(t.dtype)) pair(str(kComplexNote, t.name), name_of(t.dtype));
  if (!first) header += '}';
}

// The length and the JSON text, padded so that the data begin at a multiple of 8.
std::string make_header(const std::vector<RawTensorView>& sorted, const StringPairs& metadata) {
  std::string header(kLengthBytes, '\0');
  header += '{';
  append_metadata(header, sorted, metadata);
  uint64_t offset = 0;
  for (const RawTensorView& t : sorted) {
    if (header.back() != '{') header += ',';
    append_json_string(header, t.name);
    header += str(":{\"dtype\":\"", stored_for(t.dtype).name, "\",\"shape\":[");
    for (size_t i = 0; i < t.sizes.size(); ++i) header += str(i ? "," : "", t.sizes[i]);
    if (stored_as_parts(t.dtype)) header += t.sizes.empty() ? "2" : ",2";
    header += str("],\"data_offsets\":[", offset, ",", offset + t.bytes.size(), "]}");
    offset += t.bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t json_bytes = header.size() - kLengthBytes;
  FX_CHECK(json_bytes <= kMaxHeaderBytes, kValue, "names, shapes and metadata of ", sorted.size(),
           " tensors take ", json_bytes, " bytes, the most is ", kMaxHeaderBytes);
  std::memcpy(header.data(), &json_bytes, kLengthBytes);
  return header;
}

}  // namespace

void write_safetensors(const std::string& path, std::span<const RawTensorView> tensors,
                       const StringPairs& metadata) {
  check_writable(tensors, metadata);
  std::vector<RawTensorView> sorted = in_file_order(tensors);
  AtomicFile file(path);
  file.write(make_header(sorted, metadata));
  for (const RawTensorView& t : sorted) file.write(t.bytes);
  file.commit();
}

Bytes safetensors_bytes(std::span<const RawTensorView> tensors, const StringPairs& metadata) {
  check_writable(tensors, metadata);
  std::vector<RawTensorView> sorted = in_file_order(tensors);
  std::string header = make_header(sorted, metadata);
  ByteSpan head = as_bytes(header);
  Bytes out(head.begin(), head.end());
  for (const RawTensorView& t : sorted) out.insert(out.end(), t.bytes.begin(), t.bytes.end());
  return out;
}

}  // namespace fornax
