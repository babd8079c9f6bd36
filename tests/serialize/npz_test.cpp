#include "fornax/serialize/npz.h"

#include "fornax/base/compress.h"
#include "tests/serialize/fixtures.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

NpzReader open(const Bytes& bytes) { return NpzReader(InputFile::from_bytes("a.npz", bytes)); }

void read_all(const Bytes& bytes) {
  NpzReader reader = open(bytes);
  for (const NpzEntry& e : reader.entries()) reader.read(e);
}

size_t find_text(const Bytes& bytes, std::string_view text, size_t from = 0) {
  return as_text(bytes).find(text, from);
}

void put16(Bytes& bytes, size_t at, uint16_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
void put32(Bytes& bytes, size_t at, uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

constexpr std::string_view kLocal = "PK\3\4", kCentral = "PK\1\2", kEnd = "PK\5\6";

TEST(Npz, ReadsNumpysFiles) {
  Bytes stored = unhex(fixtures::kNpzStored);
  NpzReader reader = open(stored);
  ASSERT_EQ(reader.entries().size(), 2u);
  EXPECT_EQ(values<int32_t>(reader.read("x").bytes), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(values<double>(reader.read("y").bytes), std::vector<double>{0.5});
  EXPECT_EQ(reader.read("y").name, "y");
  expect_error(ErrorKind::kIo, "no array 'z' among its 2", [&] { reader.read("z"); });

  Bytes deflated = unhex(fixtures::kNpzDeflated);
  std::vector<int64_t> x = values<int64_t>(open(deflated).read("x").bytes);
  ASSERT_EQ(x.size(), 500u);
  for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(x[size_t(i)], i);
}

TEST(Npz, ReadsZip64AndSkipsOtherMembers) {
  Bytes file = unhex(fixtures::kNpzZip64);
  NpzReader reader = open(file);
  ASSERT_EQ(reader.entries().size(), 1u);
  EXPECT_EQ(values<uint8_t>(reader.read("x").bytes), (std::vector<uint8_t>{7, 8}));
}

TEST(Npz, RoundTrip) {
  TempDir dir;
  RawTensor a{"layer/0.weight", Dtype::kF32, {100, 10}, bytes_of(std::vector<float>(1000, 0.25f))};
  RawTensor b{"b", Dtype::kBool, {}, Bytes(1, std::byte{1})};
  std::vector<RawTensorView> both = {a, b};
  for (bool compress : {false, true}) {
    std::string path = dir.file("a.npz");
    write_npz(path, both, compress);
    uint64_t size = InputFile(path).size();
    EXPECT_EQ(size < 1000, compress) << size;
    NpzReader reader(path);
    ASSERT_EQ(reader.entries().size(), 2u);
    for (const RawTensor& t : {a, b}) {
      RawTensor back = reader.read(t.name);
      EXPECT_EQ(back.dtype, t.dtype);
      EXPECT_EQ(back.sizes, t.sizes);
      EXPECT_EQ(back.bytes, t.bytes);
    }
  }
  write_npz(dir.file("empty.npz"), {}, true);
  EXPECT_TRUE(NpzReader(dir.file("empty.npz")).entries().empty());
  expect_error(ErrorKind::kValue, "two arrays are named 'b'", [&] {
    write_npz(dir.file("a.npz"), std::vector<RawTensorView>{b, b}, false);
  });
}

TEST(Npz, MoreMembersThanTheOldFormatCounts) {
  TempDir dir;
  std::vector<RawTensor> tensors;
  for (int i = 0; i < 65536; ++i)
    tensors.push_back({std::to_string(i), Dtype::kU8, {1}, Bytes(1, std::byte(i))});
  write_npz(dir.file("a.npz"), std::vector<RawTensorView>(tensors.begin(), tensors.end()), false);
  NpzReader reader(dir.file("a.npz"));
  ASSERT_EQ(reader.entries().size(), 65536u);
  EXPECT_EQ(reader.read(reader.entries()[65535]).bytes[0], std::byte{255});
}

TEST(Npz, RefusesDamage) {
  auto refused = [](const Bytes& file, std::string_view part) {
    expect_error(ErrorKind::kIo, part, [&] { read_all(file); });
  };
  const Bytes good = unhex(fixtures::kNpzStored), packed = unhex(fixtures::kNpzDeflated);
  refused({}, "too few");
  refused(Bytes(200), "no zip directory");

  Bytes bad = good;
  bad[find_text(bad, kCentral) - 1] ^= std::byte{1};  // the last byte of y
  refused(bad, "checksum");
  bad = packed;
  bad[find_text(bad, kCentral) - 40] ^= std::byte{255};
  refused(bad, "member 'x.npy'");
  bad = good;
  bad.pop_back();
  refused(bad, "no zip directory");

  size_t central = find_text(good, kCentral), end = find_text(good, kEnd);
  bad = good;
  put16(bad, central + 8, 1);
  refused(bad, "encrypted");
  bad = good;
  put16(bad, central + 10, 12);
  refused(bad, "compression method 12");
  bad = good;
  put32(bad, central + 20, 1 << 20);
  refused(bad, "reaches past");
  bad = good;
  put32(bad, central + 24, 5);
  refused(bad, "is stored, but has");
  bad = good;
  put32(bad, central + 42, 7);
  refused(bad, "has no header at 7");
  bad = good;
  bad[central + 46] = std::byte{'q'};
  refused(bad, "contradicts the directory");
  bad = good;
  bad[find_text(bad, kCentral, central + 1) + 46] = std::byte{'x'};
  refused(bad, "two members are named 'x.npy'");
  bad = good;
  put16(bad, end + 10, 7);
  refused(bad, "several disks");
  put16(bad, end + 8, 7);
  refused(bad, "7 members in a zip directory");
  bad = good;
  put32(bad, end + 16, 1 << 30);
  refused(bad, "reaches past");

  bad = packed;
  put32(bad, find_text(bad, kCentral) + 24, 100 << 20);
  refused(bad, "cannot unpack from");
  put32(bad, find_text(bad, kCentral) + 24, 100);
  refused(bad, "more than the limit of 100 bytes");
}

TEST(Npz, RefusesDamagedZip64) {
  auto refused = [](const Bytes& file, std::string_view part) {
    expect_error(ErrorKind::kIo, part, [&] { read_all(file); });
  };
  const Bytes good = unhex(fixtures::kNpzZip64);
  size_t locator = find_text(good, "PK\6\7"), record = find_text(good, "PK\6\6");
  ASSERT_NE(locator, std::string_view::npos);
  Bytes bad = good;
  bad[locator] = {};
  refused(bad, "zip64 locator missing");
  bad = good;
  put32(bad, locator + 8, 1 << 30);
  refused(bad, "past its locator");
  bad = good;
  bad[record] = {};
  refused(bad, "zip64 record missing");
  bad = good;
  put32(bad, record + 44, 0xffffffff);
  refused(bad, "zip directory");
}

TEST(Compress, Streams) {
  Bytes content = to_bytes(std::string(100000, 'a'));
  for (Wrap wrap : {Wrap::kRaw, Wrap::kZlib, Wrap::kGzip}) {
    Bytes packed = deflate(content, wrap);
    EXPECT_LT(packed.size(), 500u);
    EXPECT_EQ(inflate(packed, wrap, 100000, "x"), content);
    expect_error(ErrorKind::kIo, "limit of 99999", [&] { inflate(packed, wrap, 99999, "x"); });
    Bytes cut(packed.begin(), packed.end() - 9);
    expect_error(ErrorKind::kIo, "cut short", [&] { inflate(cut, wrap, 100000, "x"); });
  }
  Bytes twice = deflate(to_bytes("ab"), Wrap::kGzip), second = deflate(to_bytes("c"), Wrap::kGzip);
  twice.insert(twice.end(), second.begin(), second.end());
  EXPECT_EQ(inflate(twice, Wrap::kGzip, 10, "x"), to_bytes("abc"));
  Bytes tail = deflate(to_bytes("ab"), Wrap::kZlib);
  tail.push_back({});
  expect_error(ErrorKind::kIo, "after the end", [&] { inflate(tail, Wrap::kZlib, 10, "x"); });
  EXPECT_TRUE(inflate(deflate({}, Wrap::kGzip), Wrap::kGzip, 0, "x").empty());
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926u);  // the check value of this polynomial
}

}  // namespace
}  // namespace fornax
