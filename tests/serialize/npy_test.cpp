#include "fornax/serialize/npy.h"

#include <cmath>

#include "tests/serialize/fixtures.h"
#include "tests/support/files.h"

namespace fornax {
namespace {

using namespace testing;

RawTensor read(const Bytes& bytes) { return read_npy(InputFile::from_bytes("a.npy", bytes)); }

// Version 1.0 with the given description and data.
Bytes make_npy(std::string_view description, std::string_view data = "") {
  std::string text = "\x93NUMPY";
  text += {'\x01', '\0', char(description.size() & 255), char(description.size() >> 8)};
  return to_bytes(str(text, description, data));
}

TEST(Npy, ReadsNumpysFiles) {
  RawTensor a = read(unhex(fixtures::kNpyF4));
  EXPECT_EQ(a.dtype, Dtype::kF32);
  EXPECT_EQ(a.sizes, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(values<float>(a.bytes), (std::vector<float>{1, 2.5, -3, INFINITY}));

  RawTensor f = read(unhex(fixtures::kNpyFortranBigEndian));
  EXPECT_EQ(f.dtype, Dtype::kI16);
  EXPECT_EQ(f.sizes, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values<int16_t>(f.bytes), (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));

  RawTensor v2 = read(unhex(fixtures::kNpyVersion2));
  EXPECT_TRUE(v2.sizes.empty());
  EXPECT_EQ(values<uint8_t>(v2.bytes), std::vector<uint8_t>{200});

  RawTensor v3 = read(unhex(fixtures::kNpyVersion3));
  EXPECT_EQ(v3.dtype, Dtype::kBool);
  EXPECT_EQ(values<uint8_t>(v3.bytes), (std::vector<uint8_t>{1, 0, 1}));

  RawTensor z = read(unhex(fixtures::kNpyComplexBig));
  EXPECT_EQ(z.dtype, Dtype::kC128);
  EXPECT_EQ(values<double>(z.bytes), (std::vector<double>{1.5, -2}));
}

TEST(Npy, WritesNumpysBytes) {
  TempDir dir;
  for (std::string_view hex : {fixtures::kNpyF4}) {
    Bytes file = unhex(hex);
    write_npy(dir.file("a.npy"), read(file));
    EXPECT_EQ(read_file(dir.file("a.npy"), 1000), file);
  }
}

TEST(Npy, RoundTripOfEveryDtype) {
  TempDir dir;
  for (int d = 0; d < kDtypeCount; ++d) {
    auto dtype = Dtype(d);
    RawTensor t{"", dtype, {3, 0, 2}, {}};
    RawTensor u{"", dtype, {2}, Bytes(size_t(2 * size_of(dtype)), std::byte{1})};
    for (const RawTensor& each : {t, u}) {
      if (dtype == Dtype::kBF16 || dtype == Dtype::kC32) {
        expect_error(ErrorKind::kUnsupported, "has no .npy type",
                     [&] { write_npy(dir.file("a.npy"), each); });
        continue;
      }
      write_npy(dir.file("a.npy"), each);
      RawTensor back = read_npy(dir.file("a.npy"));
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.sizes, each.sizes);
      EXPECT_EQ(back.bytes, each.bytes);
    }
  }
}

TEST(Npy, FortranOrderInThreeDimensions) {
  // numpy: np.arange(12, dtype='u1').reshape(2, 3, 2), column-major.
  Bytes file = make_npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n",
                        std::string_view("\0\6\2\10\4\12\1\7\3\11\5\13", 12));
  std::vector<uint8_t> want = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(values<uint8_t>(read(file).bytes), want);
}

TEST(Npy, RefusesPicklesAndStructures) {
  expect_error(ErrorKind::kUnsupported, "Python objects (a pickle)",
               [] { read(unhex(fixtures::kNpyObject)); });
  expect_error(ErrorKind::kUnsupported, "structured array",
               [] { read(unhex(fixtures::kNpyStructured)); });
  for (std::string_view type : {"<U5", "<u4", "|V2", "<M8[s]", "<f16", "", "<"}) {
    Bytes file = make_npy(str("{'descr': '", type, "', 'fortran_order': False, 'shape': ()}"));
    expect_error(ErrorKind::kUnsupported, "element type", [&] { read(file); });
  }
}

TEST(Npy, RefusesDamage) {
  auto refused = [](const Bytes& file, std::string_view part) {
    expect_error(ErrorKind::kIo, part, [&] { read(file); });
  };
  refused({}, "too few");
  refused(to_bytes("not a numpy file"), "magic");
  Bytes version = unhex(fixtures::kNpyF4);
  version[6] = std::byte{9};
  refused(version, ".npy version 9.0");
  Bytes cut = unhex(fixtures::kNpyF4);
  cut.pop_back();
  refused(cut, "needs 16 bytes, 15 follow");
  cut.resize(50);
  refused(cut, "cut short");
  Bytes longer = unhex(fixtures::kNpyF4);
  longer.push_back({});
  refused(longer, "needs 16 bytes, 17 follow");
  for (auto [text, part] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"", "'{' expected"},
           {"{}", "key 'descr' missing"},
           {"{'descr': '|u1', 'fortran_order': False, }", "key 'shape' missing"},
           {"{'descr': '|u1', 'descr': '|u1'}", "twice"},
           {"{'x': 1}", "unknown key 'x'"},
           {"{'descr': __import__('os')}", "quoted text expected"},
           {"{'descr': '|u1', 'fortran_order': 0, 'shape': ()}", "True or False"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", "size expected"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}", "')' expected"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", "text after"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape", "without closing"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "size above"},
           {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}",
            "impossible shape"},
           {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,)}",
            "needs 9223372036854775807 bytes, 0 follow"},
       })
    refused(make_npy(text), part);
}

}  // namespace
}  // namespace fornax
