// One fuzzer per reader. What a reader accepts must survive being written and read again.

#include "fornax/base/compress.h"
#include "fornax/base/error.h"
#include "fornax/data/idx.h"
#include "fornax/serialize/npy.h"
#include "fornax/serialize/npz.h"
#include "fornax/serialize/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/serialize/fixtures.h"
#include "tests/support/files.h"
#include "tools/fornax/compare.h"
#include "tools/fornax/record.h"

namespace fornax::fuzz {
namespace {

using testing::to_bytes;
using testing::unhex;

InputFile as_file(const Bytes& bytes) { return InputFile::from_bytes("fuzz", bytes); }

void expect_same(const RawTensor& a, const RawTensor& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_TRUE(a.bytes == b.bytes);
}

// Tensors of dtypes that Fornax has, all of them readable.
std::vector<RawTensor> read_all(const SafetensorsReader& reader) {
  std::vector<RawTensor> tensors;
  for (const SafetensorsEntry& e : reader.entries()) {
    EXPECT_EQ(reader.find(e.name), &e);
    if (e.dtype != Dtype::kUndefined) tensors.push_back(reader.read(e.name));
  }
  return tensors;
}

void read_safetensors(const Bytes& bytes) {
  SafetensorsReader reader(as_file(bytes));
  std::vector<RawTensor> tensors = read_all(reader);
  std::vector<RawTensorView> views(tensors.begin(), tensors.end());
  Bytes again = safetensors_bytes(views, reader.metadata());
  SafetensorsReader second(as_file(again));
  EXPECT_EQ(second.entries().size(), tensors.size());
  EXPECT_EQ(second.metadata(), reader.metadata());
  for (const RawTensor& t : tensors) expect_same(t, second.read(t.name));
}

// The header's length is mended, so that edits of the text are seen by the parser.
void read_safetensors_header(const Bytes& bytes) {
  Bytes file(8);
  uint64_t length = bytes.size();
  std::memcpy(file.data(), &length, sizeof length);
  file.insert(file.end(), bytes.begin(), bytes.end());
  file.resize(file.size() + 46);
  read_safetensors(file);
}

void read_npy_twice(const Bytes& bytes) {
  RawTensor tensor = read_npy(as_file(bytes));
  std::string header = npy_header(tensor);
  Bytes again = to_bytes(header);
  again.insert(again.end(), tensor.bytes.begin(), tensor.bytes.end());
  expect_same(tensor, read_npy(as_file(again)));
}

void read_npz(const Bytes& bytes) {
  NpzReader reader(as_file(bytes));
  for (const NpzEntry& e : reader.entries()) {
    try {
      expect_same(reader.read(e), reader.read(e.name));
    } catch (const Error&) {
    }
  }
}

void read_idx_content(const Bytes& bytes) { check_complete(parse_idx(bytes, "fuzz")); }

void read_gzip(const Bytes& bytes) {
  constexpr uint64_t kLimit = 1 << 20;
  Bytes content = inflate(bytes, Wrap::kGzip, kLimit, "fuzz");
  EXPECT_LE(content.size(), kLimit);
  EXPECT_TRUE(inflate(deflate(content, Wrap::kGzip, 1), Wrap::kGzip, kLimit, "fuzz") == content);
}

void read_records(const Bytes& bytes) {
  replay::RecordReader reader("fuzz", bytes);
  for (;;) {
    try {
      std::optional<replay::Record> record = reader.next();
      if (!record) return;
      for (const replay::RecordTensor& t : record->out)
        EXPECT_FALSE(replay::difference(t.tensor, t.tensor));
    } catch (const Error&) {
    }
  }
}

const std::vector<std::string_view> kJsonWords = {"\"shape\":[",
                                                  "\"dtype\":\"F32\"",
                                                  "\"data_offsets\":[0,0]",
                                                  "__metadata__",
                                                  "null",
                                                  "{",
                                                  "}",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "\"",
                                                  "\\u0000",
                                                  "\\ud83d",
                                                  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                                                  "1e9"};

TEST(Fuzz, Safetensors) {
  Corpus corpus = {"safetensors",
                   {unhex(fixtures::kSafetensorsAllTypes), unhex(fixtures::kSafetensorsOddNames)},
                   kJsonWords};
  run(corpus, 20000, read_safetensors);
}

TEST(Fuzz, SafetensorsHeader) {
  Corpus corpus = {"safetensors-header", {}, kJsonWords};
  Bytes file = unhex(fixtures::kSafetensorsAllTypes);
  corpus.seeds.emplace_back(file.begin() + 8, file.end() - 46);
  corpus.seeds.push_back(
      to_bytes(R"({"__metadata__":{"fornax.dtype.z":"complex128","a\u00e9":"b"},)"
               R"("z":{"dtype":"F64","shape":[1,2],"data_offsets":[0,16]},)"
               R"("f":{"dtype":"F4","shape":[60],"data_offsets":[16,46]}})"));
  run(corpus, 40000, read_safetensors_header);
}

TEST(Fuzz, Npy) {
  Corpus corpus = {"npy", {}, {"'descr'", "'fortran_order'", "True", "(", ")", "{", "}", "L", "O"}};
  for (std::string_view hex :
       {fixtures::kNpyF4, fixtures::kNpyFortranBigEndian, fixtures::kNpyVersion2,
        fixtures::kNpyVersion3, fixtures::kNpyComplexBig, fixtures::kNpyObject})
    corpus.seeds.push_back(unhex(hex));
  run(corpus, 40000, read_npy_twice);
}

TEST(Fuzz, Npz) {
  Corpus corpus = {"npz", {}, {"PK\1\2", "PK\3\4", "PK\5\6", "PK\6\6", "PK\6\7", ".npy"}};
  for (std::string_view hex : {fixtures::kNpzStored, fixtures::kNpzDeflated, fixtures::kNpzZip64})
    corpus.seeds.push_back(unhex(hex));
  run(corpus, 40000, read_npz);
}

TEST(Fuzz, Idx) {
  Corpus corpus = {"idx",
                   {unhex("0000080200000002000000030102030405060708"),
                    unhex("00000b010000000101020000"), unhex("00000e00bff8000000000000")},
                   {}};
  corpus.seeds[0].resize(18);
  run(corpus, 100000, read_idx_content);
}

TEST(Fuzz, Gzip) {
  Bytes text = to_bytes(std::string(3000, 'a') + "some text, not quite random: 0123456789");
  Corpus corpus = {"gzip", {deflate(text, Wrap::kGzip), deflate(text, Wrap::kGzip, 1)}, {}};
  run(corpus, 20000, read_gzip);
}

TEST(Fuzz, Records) {
  Corpus corpus = {"records", {}, kJsonWords};
  corpus.seeds.push_back(to_bytes(
      R"({"op":"aten::add.Tensor","schema":"aten::add.Tensor(Tensor self) -> Tensor","dtype":"f64",)"
      R"("args":[{"t":"f64","s":[1,2],"d":[1.5,"nan"],"st":[1,1],"g":1},[1,null,true,"mean"]],)"
      R"("kwargs":{"alpha":{"f":0.5},"c":{"c":[1,"-inf"]},"dtype":{"dtype":"f32"}},)"
      R"("out":[{"t":"f64","s":[],"d":["-inf"]},{"t":"c64","s":[1],"d":[1,2]}],)"
      R"("vjp":{"grad_out":[{"t":"f64","s":[],"d":[1]}],"grads":[null]},)"
      R"("jvp":{"tangents":[{"t":"f64","s":[1,2],"d":[1,2]}],"out":[null,null]},"case":"add/3"})"));
  corpus.seeds.push_back(to_bytes(
      R"({"op":"torch::f","schema":null,"dtype":"i64","args":[{"t":"i64","s":[2],"d":[-7,7]}],)"
      R"("kwargs":{"device":{"device":"cpu"},"m":{"memory_format":"channels_last"}},)"
      R"("out":[{"t":"b8","s":[2],"d":[1,0]},{"t":"bf16","s":[1],"d":[1.5]}],"case":"f/i64/0"})"));
  run(corpus, 40000, read_records);
}

}  // namespace
}  // namespace fornax::fuzz
