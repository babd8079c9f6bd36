#include "fornax/serialize/npz.h"

#include <algorithm>
#include <cstring>

#include "fornax/base/atomic_file.h"
#include "fornax/base/compress.h"
#include "fornax/base/error.h"
#include "fornax/serialize/npy.h"

namespace fornax {
namespace {

// Zip's records, named as in PKWARE's APPNOTE; sizes without their variable parts.
constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50,
                   kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                   kLocator64Signature = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20, kMaxComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // the real value stands in a zip64 record
constexpr uint16_t kZip64Extra = 1, kStored = 0, kDeflated = 8;
constexpr uint16_t kEncryptedFlag = 1, kUtf8Flag = 1 << 11;
constexpr uint64_t kMaxDirectoryBytes = 256 << 20;
constexpr std::string_view kSuffix = ".npy";

// Little-endian fields one after another; what lies past the end reads as an error.
class FieldReader {
 public:
  FieldReader(ByteSpan bytes, std::string_view what) : bytes_(bytes), what_(what) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  uint16_t u16() { return get<uint16_t>(); }
  uint32_t u32() { return get<uint32_t>(); }
  uint64_t u64() { return get<uint64_t>(); }
  void skip(size_t n) { take(n); }
  ByteSpan take(size_t n) {
    FX_CHECK(n <= bytes_.size(), kIo, what_, ": a record of the zip directory is cut short");
    ByteSpan front = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return front;
  }
  size_t left() const { return bytes_.size(); }

 private:
  ByteSpan bytes_;
  std::string_view what_;
};

struct Directory {
  uint64_t offset = 0, bytes = 0, count = 0;
  uint64_t end = 0;  // where members and directory must have ended
};

Directory read_end64(const InputFile& file, uint64_t end_offset) {
  FX_CHECK(end_offset >= kLocator64Bytes + kEnd64Bytes, kIo, file.name(),
           ": zip64 record missing before the end of the directory");
  Bytes locator_bytes = file.read_at(end_offset - kLocator64Bytes, kLocator64Bytes);
  FieldReader locator(locator_bytes, file.name());
  FX_CHECK(locator.u32() == kLocator64Signature, kIo, file.name(), ": zip64 locator missing");
  uint32_t disk = locator.u32();
  uint64_t offset = locator.u64();
  FX_CHECK(disk == 0 && locator.u32() <= 1, kIo, file.name(), " is one of several disks");
  FX_CHECK(offset <= end_offset - kLocator64Bytes - kEnd64Bytes, kIo, file.name(),
           ": zip64 record at ", offset, " lies past its locator");
  Bytes record_bytes = file.read_at(offset, kEnd64Bytes);
  FieldReader record(record_bytes, file.name());
  FX_CHECK(record.u32() == kEnd64Signature, kIo, file.name(), ": zip64 record missing at ", offset);
  record.skip(8 + 2 + 2);
  bool one_disk = record.u32() == 0;
  one_disk = record.u32() == 0 && one_disk;
  Directory d;
  d.count = record.u64();
  one_disk = record.u64() == d.count && one_disk;
  d.bytes = record.u64();
  d.offset = record.u64();
  d.end = offset;
  FX_CHECK(one_disk, kIo, file.name(), " is one of several disks");
  return d;
}

// Finds the end record: the last place whose signature and comment length fit the file's end.
Directory find_directory(const InputFile& file) {
  FX_CHECK(file.size() >= kEndBytes, kIo, file.name(), ": ", file.size(),
           " bytes are too few for a zip archive");
  uint64_t tail_bytes = std::min<uint64_t>(file.size(), kEndBytes + kMaxComment);
  uint64_t tail_offset = file.size() - tail_bytes;
  Bytes tail = file.read_at(tail_offset, tail_bytes);
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    FieldReader end(ByteSpan(tail).subspan(at), file.name());
    if (end.u32() != kEndSignature) continue;
    uint16_t disk = end.u16(), directory_disk = end.u16(), here = end.u16();
    Directory d;
    d.count = end.u16();
    d.bytes = end.u32();
    d.offset = end.u32();
    uint16_t comment_bytes = end.u16();
    if (comment_bytes != end.left()) continue;
    d.end = tail_offset + at;
    if (d.count == 0xffff || d.bytes == kIn64 || d.offset == kIn64) {
      d = read_end64(file, d.end);
    } else {
      FX_CHECK(disk == 0 && directory_disk == 0 && here == d.count, kIo, file.name(),
               " is one of several disks");
    }
    FX_CHECK(d.offset <= d.end && d.bytes <= d.end - d.offset, kIo, file.name(),
             ": zip directory of ", d.bytes, " bytes at ", d.offset, " reaches past ", d.end);
    FX_CHECK(d.count <= d.bytes / kCentralBytes && d.bytes <= kMaxDirectoryBytes, kIo, file.name(),
             ": ", d.count, " members in a zip directory of ", d.bytes, " bytes");
    return d;
  }
  fail(ErrorKind::kIo, file.name(), " has no zip directory; is this an .npz file?");
}

// Replaces the fields that say "see the zip64 extra field".
void apply_zip64(FieldReader extra, NpzEntry& e, std::string_view file) {
  bool content = e.content_bytes == kIn64, stored = e.stored_bytes == kIn64,
       offset = e.header_offset == kIn64;
  if (!content && !stored && !offset) return;
  while (extra.left() >= 4) {
    uint16_t id = extra.u16(), size = extra.u16();
    ByteSpan body = extra.take(size);
    if (id != kZip64Extra) continue;
    FieldReader fields(body, file);
    if (content) e.content_bytes = fields.u64();
    if (stored) e.stored_bytes = fields.u64();
    if (offset) e.header_offset = fields.u64();
    return;
  }
  // Without such a field the value is meant: a size of exactly 0xffffffff bytes.
}

NpzEntry read_central(FieldReader& fields, const InputFile& file) {
  FX_CHECK(fields.u32() == kCentralSignature, kIo, file.name(), ": damaged zip directory");
  fields.skip(2 + 2);
  uint16_t flags = fields.u16(), method = fields.u16();
  fields.skip(2 + 2);
  NpzEntry e;
  e.crc = fields.u32();
  e.stored_bytes = fields.u32();
  e.content_bytes = fields.u32();
  uint16_t name_bytes = fields.u16(), extra_bytes = fields.u16(), comment_bytes = fields.u16();
  fields.skip(2 + 2 + 4);
  e.header_offset = fields.u32();
  e.name = as_text(fields.take(name_bytes));
  apply_zip64(FieldReader(fields.take(extra_bytes), file.name()), e, file.name());
  fields.skip(comment_bytes);
  FX_CHECK((flags & kEncryptedFlag) == 0, kIo, file.name(), ": member '", e.name, "' is encrypted");
  FX_CHECK(method == kStored || method == kDeflated, kIo, file.name(), ": member '", e.name,
           "' uses compression method ", method, ", known are 0 (stored) and 8 (deflated)");
  e.deflated = method == kDeflated;
  return e;
}

// Members may not reach into each other or into the directory: that is how zip bombs are made.
void check_places(std::vector<NpzEntry> entries, const Directory& d, const std::string& file) {
  std::sort(entries.begin(), entries.end(),
            [](const NpzEntry& a, const NpzEntry& b) { return a.header_offset < b.header_offset; });
  for (size_t i = 0; i < entries.size(); ++i) {
    const NpzEntry& e = entries[i];
    uint64_t next = i + 1 < entries.size() ? entries[i + 1].header_offset : d.offset;
    uint64_t head = kLocalBytes + e.name.size();
    bool fits = e.header_offset <= next && head <= next - e.header_offset &&
                e.stored_bytes <= next - e.header_offset - head;
    FX_CHECK(fits, kIo, file, ": member '", e.name, "' of ", e.stored_bytes, " bytes at ",
             e.header_offset, " reaches past ", next);
    FX_CHECK(e.deflated || e.stored_bytes == e.content_bytes, kIo, file, ": member '", e.name,
             "' is stored, but has ", e.stored_bytes, " bytes for ", e.content_bytes);
    FX_CHECK(e.content_bytes / kMaxDeflateRatio <= e.stored_bytes + 1, kIo, file, ": member '",
             e.name, "' cannot unpack from ", e.stored_bytes, " to ", e.content_bytes, " bytes");
  }
}

void check_names(const std::vector<NpzEntry>& entries, const std::string& file) {
  std::vector<std::string_view> names;
  for (const NpzEntry& e : entries) names.push_back(e.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  FX_CHECK(twice == names.end(), kIo, file, ": two members are named '", *twice, "'");
}

// Where the member's bytes begin: the local header's extra field has a length of its own.
uint64_t data_offset(const InputFile& file, const NpzEntry& e, const std::string& member) {
  Bytes bytes = file.read_at(e.header_offset, kLocalBytes);
  FieldReader local(bytes, file.name());
  FX_CHECK(local.u32() == kLocalSignature, kIo, file.name(), ": member '", member,
           "' has no header at ", e.header_offset);
  local.skip(2 + 2);
  uint16_t method = local.u16();
  local.skip(2 + 2 + 4 + 4 + 4);
  uint16_t name_bytes = local.u16(), extra_bytes = local.u16();
  Bytes name = file.read_at(e.header_offset + kLocalBytes, name_bytes);
  FX_CHECK(as_text(name) == member && method == (e.deflated ? kDeflated : kStored), kIo,
           file.name(), ": the header of member '", member, "' contradicts the directory");
  return e.header_offset + kLocalBytes + name_bytes + extra_bytes;
}

}  // namespace

NpzReader::NpzReader(InputFile file) : file_(std::move(file)) {
  Directory directory = find_directory(file_);
  Bytes bytes = file_.read_at(directory.offset, directory.bytes);
  FieldReader fields(bytes, file_.name());
  for (uint64_t i = 0; i < directory.count; ++i) entries_.push_back(read_central(fields, file_));
  FX_CHECK(fields.left() == 0, kIo, path(), ": ", fields.left(),
           " bytes of the zip directory belong to no member");
  check_places(entries_, directory, path());
  check_names(entries_, path());
  std::erase_if(entries_, [](const NpzEntry& e) { return !e.name.ends_with(kSuffix); });
  for (NpzEntry& e : entries_) e.name.resize(e.name.size() - kSuffix.size());
}

const NpzEntry* NpzReader::find(std::string_view name) const {
  for (const NpzEntry& e : entries_)
    if (e.name == name) return &e;
  return nullptr;
}

RawTensor NpzReader::read(const NpzEntry& e) const {
  std::string member = str(e.name, kSuffix);
  std::string where = str(path(), ": member '", member, "'");
  Bytes content = file_.read_at(data_offset(file_, e, member), e.stored_bytes);
  if (e.deflated) content = inflate(content, Wrap::kRaw, e.content_bytes, where);
  FX_CHECK(content.size() == e.content_bytes, kIo, where, " unpacks to ", content.size(),
           " bytes, the directory says ", e.content_bytes);
  uint32_t crc = crc32(content);
  FX_CHECK(crc == e.crc, kIo, where, " is damaged: its checksum is ", crc, ", it should be ",
           e.crc);
  RawTensor tensor = read_npy(InputFile::from_bytes(where, content));
  tensor.name = e.name;
  return tensor;
}

RawTensor NpzReader::read(std::string_view name) const {
  const NpzEntry* entry = find(name);
  FX_CHECK(entry, kIo, path(), ": there is no array '", name, "' among its ", entries_.size());
  return read(*entry);
}

namespace {

class FieldWriter {
 public:
  template <class T>
  void put(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void u16(uint64_t v) { put(uint16_t(v)); }
  void u32(uint64_t v) { put(uint32_t(v)); }
  void u64(uint64_t v) { put(v); }
  void text(std::string_view t) { text_ += t; }
  const std::string& str() const { return text_; }
  size_t size() const { return text_.size(); }

 private:
  std::string text_;
};

uint32_t clip32(uint64_t v) { return v >= kIn64 ? kIn64 : uint32_t(v); }

// Version needed, flags, method, time, date and checksum: common to both kinds of header. The date
// is constant, 1980-01-01, so that equal arrays give equal archives.
void put_common(FieldWriter& out, const NpzEntry& e, bool zip64) {
  constexpr uint16_t kFirstDay = 1 << 5 | 1;
  out.u16(zip64 ? 45 : 20);
  out.u16(kUtf8Flag);
  out.u16(e.deflated ? kDeflated : kStored);
  out.u16(0);
  out.u16(kFirstDay);
  out.u32(e.crc);
}

std::string local_header(const NpzEntry& e, const std::string& member) {
  bool zip64 = e.stored_bytes >= kIn64 || e.content_bytes >= kIn64;
  FieldWriter out;
  out.u32(kLocalSignature);
  put_common(out, e, zip64);
  out.u32(zip64 ? kIn64 : e.stored_bytes);
  out.u32(zip64 ? kIn64 : e.content_bytes);
  out.u16(member.size());
  out.u16(zip64 ? 20 : 0);
  out.text(member);
  if (zip64) {
    out.u16(kZip64Extra);
    out.u16(16);
    out.u64(e.content_bytes);
    out.u64(e.stored_bytes);
  }
  return out.str();
}

void put_central(FieldWriter& out, const NpzEntry& e) {
  FieldWriter extra;
  if (e.content_bytes >= kIn64) extra.u64(e.content_bytes);
  if (e.stored_bytes >= kIn64) extra.u64(e.stored_bytes);
  if (e.header_offset >= kIn64) extra.u64(e.header_offset);
  bool zip64 = extra.size() != 0;
  out.u32(kCentralSignature);
  out.u16(zip64 ? 45 : 20);
  put_common(out, e, zip64);
  out.u32(clip32(e.stored_bytes));
  out.u32(clip32(e.content_bytes));
  out.u16(e.name.size() + kSuffix.size());
  out.u16(zip64 ? extra.size() + 4 : 0);
  for (int i = 0; i < 3; ++i) out.u16(0);  // comment, disk, internal attributes
  out.u32(0);                              // external attributes
  out.u32(clip32(e.header_offset));
  out.text(e.name);
  out.text(kSuffix);
  if (!zip64) return;
  out.u16(kZip64Extra);
  out.u16(extra.size());
  out.text(extra.str());
}

std::string end_records(uint64_t count, uint64_t directory_bytes, uint64_t directory_offset) {
  FieldWriter out;
  if (count >= 0xffff || directory_bytes >= kIn64 || directory_offset >= kIn64) {
    out.u32(kEnd64Signature);
    out.u64(kEnd64Bytes - 12);
    out.u16(45);
    out.u16(45);
    out.u32(0);
    out.u32(0);
    out.u64(count);
    out.u64(count);
    out.u64(directory_bytes);
    out.u64(directory_offset);
    out.u32(kLocator64Signature);
    out.u32(0);
    out.u64(directory_offset + directory_bytes);
    out.u32(1);
  }
  out.u32(kEndSignature);
  out.u16(0);
  out.u16(0);
  for (int i = 0; i < 2; ++i) out.u16(std::min<uint64_t>(count, 0xffff));
  out.u32(clip32(directory_bytes));
  out.u32(clip32(directory_offset));
  out.u16(0);
  return out.str();
}

// One member: header, then the .npy file. Stored arrays are written without a copy.
NpzEntry write_member(AtomicFile& file, const RawTensorView& t, bool compress) {
  std::string head = npy_header(t);
  NpzEntry e;
  e.name = t.name;
  e.header_offset = file.position();
  e.content_bytes = head.size() + t.bytes.size();
  e.crc = crc32(t.bytes, crc32(as_bytes(head)));
  e.deflated = compress;
  std::string member = str(t.name, kSuffix);
  if (compress) {
    Bytes content(as_bytes(head).begin(), as_bytes(head).end());
    content.insert(content.end(), t.bytes.begin(), t.bytes.end());
    Bytes packed = deflate(content, Wrap::kRaw);
    e.stored_bytes = packed.size();
    file.write(local_header(e, member));
    file.write(packed);
  } else {
    e.stored_bytes = e.content_bytes;
    file.write(local_header(e, member));
    file.write(head);
    file.write(t.bytes);
  }
  return e;
}

}  // namespace

void write_npz(const std::string& path, std::span<const RawTensorView> tensors, bool compress) {
  std::vector<std::string_view> names;
  for (const RawTensorView& t : tensors) {
    FX_CHECK(!t.name.empty() && t.name.size() < 0xffff - kSuffix.size(), kValue,
             "the name of an array in ", path, " has ", t.name.size(), " bytes");
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  FX_CHECK(twice == names.end(), kValue, "two arrays are named '", *twice, "'");

  AtomicFile file(path);
  FieldWriter directory;
  for (const RawTensorView& t : tensors) put_central(directory, write_member(file, t, compress));
  uint64_t offset = file.position();
  file.write(directory.str());
  file.write(end_records(tensors.size(), directory.size(), offset));
  file.commit();
}

}  // namespace fornax
