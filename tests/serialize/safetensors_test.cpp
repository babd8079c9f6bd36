#include "fornax/serialize/safetensors.h"

#include <algorithm>

#include "tests/serialize/fixtures.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

// Header text and data as a file; the length field is right unless given.
Bytes make_file(std::string_view header, std::string_view data = "", int64_t length = -1) {
  uint64_t n = length < 0 ? header.size() : uint64_t(length);
  Bytes out(sizeof n);
  std::memcpy(out.data(), &n, sizeof n);
  for (std::string_view part : {header, data})
    out.insert(out.end(), as_bytes(part).begin(), as_bytes(part).end());
  return out;
}

SafetensorsReader open(const Bytes& bytes) {
  return SafetensorsReader(InputFile::from_bytes("model.safetensors", bytes));
}

void expect_refused(const Bytes& bytes, std::string_view part) {
  expect_error(ErrorKind::kIo, part, [&] { open(bytes); });
  expect_error(ErrorKind::kIo, "model.safetensors", [&] { open(bytes); });
}

RawTensor raw(std::string name, Dtype dtype, std::vector<int64_t> sizes, Bytes bytes) {
  return {std::move(name), dtype, std::move(sizes), std::move(bytes)};
}

std::vector<RawTensorView> views(const std::vector<RawTensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

TEST(Safetensors, ReadsEveryDtypeOfTheReference) {
  Bytes file = unhex(fixtures::kSafetensorsAllTypes);
  SafetensorsReader reader = open(file);
  ASSERT_EQ(reader.entries().size(), 10u);
  ASSERT_NE(reader.find_metadata("format"), nullptr);
  EXPECT_EQ(*reader.find_metadata("format"), "np");
  EXPECT_EQ(values<int64_t>(reader.read("i64").bytes), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(values<double>(reader.read("f64").bytes), std::vector<double>{1.5});
  EXPECT_EQ(values<float>(reader.read("c64").bytes), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<uint8_t>(reader.read("u8").bytes), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(values<int8_t>(reader.read("i8").bytes), std::vector<int8_t>{-1});
  EXPECT_EQ(values<uint8_t>(reader.read("b").bytes), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(values<uint16_t>(reader.read("f16").bytes), std::vector<uint16_t>{0x3e00});
  EXPECT_EQ(values<int16_t>(reader.read("i16").bytes), std::vector<int16_t>{-3});
  EXPECT_EQ(values<int32_t>(reader.read("i32").bytes), std::vector<int32_t>{7});
  RawTensor empty = reader.read("f32");
  EXPECT_EQ(empty.sizes, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(empty.dtype, Dtype::kF32);
  EXPECT_TRUE(empty.bytes.empty());
  EXPECT_EQ(reader.read("c64").dtype, Dtype::kC64);
}

TEST(Safetensors, WritesTheReferencesBytes) {
  for (std::string_view hex : {fixtures::kSafetensorsAllTypes, fixtures::kSafetensorsOddNames}) {
    Bytes file = unhex(hex);
    SafetensorsReader reader = open(file);
    std::vector<RawTensor> tensors;
    for (const SafetensorsEntry& e : reader.entries()) tensors.push_back(reader.read(e.name));
    EXPECT_EQ(safetensors_bytes(views(tensors), reader.metadata()), file);
    std::reverse(tensors.begin(), tensors.end());
    EXPECT_EQ(safetensors_bytes(views(tensors), reader.metadata()), file);
  }
}

TEST(Safetensors, ReadsOddNames) {
  Bytes file = unhex(fixtures::kSafetensorsOddNames);
  SafetensorsReader reader = open(file);
  RawTensor flag = reader.read("z\n\"\\\xc3\xa9");
  EXPECT_EQ(flag.dtype, Dtype::kBool);
  EXPECT_TRUE(flag.sizes.empty());
  EXPECT_EQ(values<uint8_t>(flag.bytes), std::vector<uint8_t>{1});
}

TEST(Safetensors, RoundTripThroughAFile) {
  TempDir dir;
  std::vector<RawTensor> tensors = {
      raw("w", Dtype::kBF16, {2, 1}, bytes_of<uint16_t>({0x3f80, 0xc000})),
      raw("big", Dtype::kF64, {40, 500}, bytes_of(std::vector<double>(20000, 0.1))),
      raw("", Dtype::kI8, {}, bytes_of<int8_t>({-5})),
  };
  std::string path = dir.file("m.safetensors");
  write_safetensors(path, views(tensors), {{"step", "12"}, {"note", "a\tb \"c\""}});
  EXPECT_EQ(dir.count(), 1u);
  SafetensorsReader reader(path);
  EXPECT_EQ(reader.metadata(), (StringPairs{{"step", "12"}, {"note", "a\tb \"c\""}}));
  EXPECT_EQ(reader.entries()[0].begin % 8, 0u);
  for (const RawTensor& t : tensors) {
    RawTensor back = reader.read(t.name);
    EXPECT_EQ(back.dtype, t.dtype);
    EXPECT_EQ(back.sizes, t.sizes);
    EXPECT_EQ(back.bytes, t.bytes);
  }
  expect_error(ErrorKind::kIo, "no tensor 'absent' among its 3", [&] { reader.read("absent"); });
}

TEST(Safetensors, ComplexTypesTheFormatLacks) {
  std::vector<RawTensor> tensors = {
      raw("z", Dtype::kC128, {1, 2}, bytes_of<double>({1, 2, 3, 4})),
      raw("h", Dtype::kC32, {}, bytes_of<uint16_t>({0x3c00, 0x4000})),
  };
  Bytes file = safetensors_bytes(views(tensors), {{"k", "v"}});
  std::string_view text = as_text(file);
  EXPECT_NE(text.find(R"("fornax.dtype.z":"complex128")"), text.npos);
  EXPECT_NE(text.find(R"("z":{"dtype":"F64","shape":[1,2,2])"), text.npos);
  EXPECT_NE(text.find(R"("h":{"dtype":"F16","shape":[2])"), text.npos);
  SafetensorsReader reader = open(file);
  EXPECT_EQ(reader.metadata(), (StringPairs{{"k", "v"}}));
  for (const RawTensor& t : tensors) {
    RawTensor back = reader.read(t.name);
    EXPECT_EQ(back.dtype, t.dtype);
    EXPECT_EQ(back.sizes, t.sizes);
    EXPECT_EQ(back.bytes, t.bytes);
  }
}

TEST(Safetensors, BoolBytesBecomeZeroOrOne) {
  Bytes file = make_file(R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                         std::string_view("\xff\x00\x02", 3));
  EXPECT_EQ(values<uint8_t>(open(file).read("b").bytes), (std::vector<uint8_t>{1, 0, 1}));
}

TEST(Safetensors, TypesThatFornaxLacksAreListedAndRefusedWhenRead) {
  Bytes file = make_file(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U32","shape":[1],"data_offsets":[2,6]},)"
                         R"("c":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})",
                         "1234567");
  SafetensorsReader reader = open(file);
  EXPECT_EQ(reader.find("b")->stored_dtype, "U32");
  EXPECT_EQ(values<char>(reader.read("c").bytes), std::vector<char>{'7'});
  expect_error(ErrorKind::kUnsupported, "dtype F4", [&] { reader.read("a"); });
  expect_refused(make_file(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "12"),
                 "impossible shape [3]");
}

TEST(Safetensors, AcceptsWhatTheReferenceAccepts) {
  EXPECT_TRUE(open(make_file("{}")).entries().empty());
  EXPECT_TRUE(open(make_file("{}   \n")).entries().empty());
  EXPECT_TRUE(open(make_file(R"({"__metadata__":null})")).metadata().empty());
  Bytes extra = make_file(
      R"({"a":{"extra":[{"x":-1.5e+3},true,null],"data_offsets":[0,1],"shape":[],"dtype":"U8"}})",
      "7");
  EXPECT_EQ(open(extra).read("a").bytes, to_bytes("7"));
  Bytes escaped =
      make_file(R"({"\u00e9\ud83d\ude00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
  EXPECT_NE(open(escaped).find("\xc3\xa9\xf0\x9f\x98\x80"), nullptr);
}

TEST(Safetensors, RefusesBrokenFrames) {
  expect_refused({}, "too few");
  expect_refused(to_bytes("1234567"), "7 bytes are too few");
  expect_refused(make_file("{}", "", 100'000'001), "header of 100000001 bytes, the most is");
  expect_refused(make_file("{}", "", INT64_MAX), "header of 9223372036854775807 bytes");
  expect_refused(make_file("{}", "", 3), "header of 3 bytes in a file of 10");
  expect_refused(make_file(""), "does not start with '{'");
  expect_refused(make_file(" {}"), "does not start with '{'");
  expect_refused(make_file("{}", "x"), "its tensors take 0 bytes, but 1 follow");
  expect_refused(make_file("{}x"), "text after the end");
}

TEST(Safetensors, RefusesBrokenJson) {
  for (std::string_view bad :
       {"{",
        "{\"a\"",
        "{\"a\":}",
        "{,}",
        "{\"__metadata__\":{\"a\":\"b\",}}",
        "{'a':1}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":[]}",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"\\x\":1}",
        "{\"\\u12g4\":1}",
        "{\"\\ud800\":1}",
        "{\"\\udc00\":1}",
        "{\"\\ud800\\u0041\":1}",
        "{\"a\nb\":1}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[01],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1e0],\"data_offsets\":[0,1]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":-}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":nul}}"}) {
    SCOPED_TRACE(bad);
    expect_refused(make_file(bad), "of the JSON text");
  }
  for (std::string_view bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    expect_refused(make_file(str("{\"", bad, "\":1}")), "no valid UTF-8");
  }
  std::string deep = R"({"a":{"x":)" + std::string(100000, '[');
  expect_refused(make_file(deep), "more than 32 nested");
}

TEST(Safetensors, RefusesRepeatedKeys) {
  std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_refused(make_file(str("{\"a\":", entry, ",\"a\":", entry, "}")), "key 'a' appears twice");
  expect_refused(make_file(str("{\"a\":", entry, ",\"\\u0061\":", entry, "}")),
                 "key 'a' appears twice");
  expect_refused(make_file(R"({"__metadata__":{},"__metadata__":{}})"), "appears twice");
  expect_refused(make_file(R"({"__metadata__":{"k":"1","k":"2"}})"), "key 'k' appears twice");
  expect_refused(make_file(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
                 "key 'dtype' appears twice");
}

TEST(Safetensors, RefusesFalsePlaces) {
  auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return str("{\"a\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":", offsets,
               "}}");
  };
  expect_refused(make_file(one("U8", "[1]", "[1,2]"), "12"), "must begin at 0");
  expect_refused(make_file(one("U8", "[1]", "[0]"), "1"), "lacks one of");
  expect_refused(make_file(one("U8", "[1]", "[0,1,2]"), "1"), "third offset");
  expect_refused(make_file(one("U8", "[2]", "[0,1]"), "1"), "needs 2 bytes");
  expect_refused(make_file(one("F32", "[]", "[0,3]"), "123"), "needs 4 bytes");
  expect_refused(make_file(one("U8", "[1]", "[0,1]")), "take 1 bytes, but 0 follow");
  expect_refused(make_file(one("U8", "[1]", "[0,1]"), "12"), "take 1 bytes, but 2 follow");
  expect_refused(make_file(one("Q8", "[1]", "[0,1]"), "1"), "unknown dtype 'Q8'");
  expect_refused(make_file(one("F64", "[2305843009213693952]", "[0,0]")), "impossible shape");
  expect_refused(make_file(one("U8", "[4294967296,4294967296]", "[0,0]")), "impossible shape");
  expect_refused(make_file(one("U8", "[9223372036854775808]", "[0,0]")), "integer above");
  expect_refused(make_file(one("U8", "[9223372036854775807]", "[0,9223372036854775807]")),
                 "take 9223372036854775807 bytes, but 0 follow");
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  expect_refused(make_file(one("U8", many + "]", "[0,1]"), "1"), "more than 64 dimensions");
  expect_refused(make_file(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                           "123"),
                 "tensor 'b' has data_offsets [1, 3], its data must begin at 2");
  expect_refused(make_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                           R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                           "123"),
                 "must begin at 1");
}

TEST(Safetensors, RefusesFalseComplexNotes) {
  std::string entry = R"("a":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}})";
  for (std::string_view note :
       {R"("fornax.dtype.a":"complex128")", R"("fornax.dtype.a":"complex32")",
        R"("fornax.dtype.a":"float32")", R"("fornax.dtype.b":"complex128")"}) {
    SCOPED_TRACE(note);
    Bytes file = make_file(str("{\"__metadata__\":{", note, "},", entry), std::string(24, 'x'));
    expect_refused(file, "not stored as its real and imaginary parts");
  }
}

TEST(Safetensors, WriterRefusesWhatReadersWould) {
  auto write = [](std::vector<RawTensor> tensors, StringPairs metadata = {}) {
    return [=] { safetensors_bytes(views(tensors), metadata); };
  };
  RawTensor good = raw("a", Dtype::kU8, {1}, to_bytes("1"));
  RawTensor reserved = raw("__metadata__", Dtype::kU8, {1}, to_bytes("1"));
  expect_error(ErrorKind::kValue, "two tensors are named 'a'", write({good, good}));
  expect_error(ErrorKind::kValue, "reserved", write({reserved}));
  expect_error(ErrorKind::kValue, "UTF-8", write({raw("\xff", Dtype::kU8, {1}, to_bytes("1"))}));
  expect_error(ErrorKind::kValue, "does not fit its 1 bytes",
               write({raw("a", Dtype::kF32, {1}, to_bytes("1"))}));
  expect_error(ErrorKind::kValue, "have the key 'k'", write({good}, {{"k", "1"}, {"k", "2"}}));
  expect_error(ErrorKind::kValue, "reserved", write({good}, {{"fornax.dtype.a", "complex128"}}));
}

TEST(Safetensors, FailedWriteLeavesTheOldFile) {
  TempDir dir;
  std::string path = dir.file("m.safetensors");
  write_safetensors(path, {}, {{"old", "1"}});
  RawTensor bad = raw("a", Dtype::kF32, {1}, to_bytes("1"));
  expect_error(ErrorKind::kValue, "does not fit",
               [&] { write_safetensors(path, views({bad}), {}); });
  EXPECT_NE(SafetensorsReader(path).find_metadata("old"), nullptr);
  EXPECT_EQ(dir.count(), 1u);
  expect_error(ErrorKind::kIo, "No such file or directory",
               [&] { write_safetensors(dir.file("none/m"), {}, {}); });
}

}  // namespace
}  // namespace fornax
