#include "tools/fornax/record.h"

#include <cmath>

#include "fornax/base/atomic_file.h"
#include "fornax/base/compress.h"
#include "tests/support/files.h"
#include "tools/fornax/compare.h"

namespace fornax::replay {
namespace {

using namespace fornax::testing;

// A line with the given parts; the rest is the least a record needs.
std::string row(std::string_view args, std::string_view more = "", std::string_view out = "[]") {
  return str(R"({"op":"aten::f","schema":null,"dtype":"f32","args":)", args,
             R"(,"kwargs":{},"out":)", out, more, R"(,"case":"f/f32/0"})");
}

Record parse(std::string_view line) {
  RecordReader reader("a.jsonl", to_bytes(line));
  return reader.next().value();
}

// The one argument of a record.
RecordValue arg(std::string_view json) { return parse(row(str("[", json, "]"))).args.at(0); }

void expect_refused(std::string_view line, std::string_view part) {
  expect_error(ErrorKind::kIo, part, [&] { parse(line); });
  expect_error(ErrorKind::kIo, "a.jsonl:1", [&] { parse(line); });
}

template <class T>
std::vector<T> tensor_values(std::string_view json) {
  return values<T>(arg(json).as<RecordTensor>()->tensor.bytes);
}

TEST(Record, ReadsAWholeCall) {
  Record r = parse(
      R"({"op":"aten::add.Tensor","schema":"aten::add.Tensor(Tensor self) -> Tensor",)"
      R"("dtype":"f64","args":[{"t":"f64","s":[1,2],"d":[1.5,"nan"],"st":[1,1],"g":1},[1,null]],)"
      R"("kwargs":{"z":{"t":"f64","s":[],"d":[2],"g":1},"alpha":{"f":0.5}},)"
      R"("out":[{"t":"f64","s":[],"d":["-inf"]}],)"
      R"("vjp":{"grad_out":[{"t":"f64","s":[],"d":[1]}],"grads":[null,{"t":"f64","s":[],"d":[3]}]},)"
      R"("jvp":{"tangents":[{"t":"f64","s":[1,2],"d":[1,2]},{"t":"f64","s":[],"d":[1]}],)"
      R"("out":[null]},"case":"add/f64/3"})");
  EXPECT_EQ(r.op, "aten::add.Tensor");
  EXPECT_EQ(r.schema, "aten::add.Tensor(Tensor self) -> Tensor");
  EXPECT_EQ(r.dtype, Dtype::kF64);
  EXPECT_EQ(r.case_name, "add/f64/3");
  ASSERT_EQ(r.args.size(), 2u);
  const auto* self = r.args[0].as<RecordTensor>();
  ASSERT_NE(self, nullptr);
  EXPECT_EQ(self->tensor.sizes, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(self->strides, (std::vector<int64_t>{1, 1}));
  EXPECT_TRUE(self->requires_grad);
  EXPECT_EQ(values<double>(self->tensor.bytes)[0], 1.5);
  EXPECT_TRUE(std::isnan(values<double>(self->tensor.bytes)[1]));
  const auto* list = r.args[1].as<RecordList>();
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(*list->at(0).as<int64_t>(), 1);
  EXPECT_TRUE(list->at(1).is_none());
  ASSERT_EQ(r.kwargs.size(), 2u);
  EXPECT_EQ(r.kwargs[0].first, "z");
  EXPECT_EQ(*r.kwargs[1].second.as<double>(), 0.5);
  EXPECT_EQ(differentiable_inputs(r).size(), 2u);
  EXPECT_EQ(values<double>(r.out.at(0).tensor.bytes), std::vector<double>{-INFINITY});
  EXPECT_FALSE(r.vjp->grads.at(0));
  EXPECT_EQ(values<double>(r.vjp->grads.at(1)->tensor.bytes), std::vector<double>{3});
  EXPECT_EQ(r.jvp->tangents.size(), 2u);
  EXPECT_FALSE(r.jvp->out.at(0));
}

TEST(Record, ReadsEveryKindOfValue) {
  EXPECT_TRUE(arg("null").is_none());
  EXPECT_EQ(*arg("true").as<bool>(), true);
  EXPECT_EQ(*arg("-9223372036854775808").as<int64_t>(), INT64_MIN);
  EXPECT_EQ(*arg(R"({"f":"inf"})").as<double>(), INFINITY);
  EXPECT_EQ(*arg(R"({"c":[1,-2.5]})").as<std::complex<double>>(), std::complex<double>(1, -2.5));
  EXPECT_EQ(*arg(R"("mean")").as<std::string>(), "mean");
  EXPECT_EQ(*arg(R"({"dtype":"c128"})").as<Dtype>(), Dtype::kC128);
  EXPECT_EQ(arg(R"({"device":"cpu"})").as<RecordDevice>()->name, "cpu");
  EXPECT_EQ(arg(R"({"layout":"strided"})").as<RecordLayout>()->name, "strided");
  EXPECT_EQ(arg(R"({"memory_format":"channels_last"})").as<RecordMemoryFormat>()->name,
            "channels_last");
}

TEST(Record, ReadsEveryDtype) {
  EXPECT_EQ(tensor_values<uint8_t>(R"({"t":"b8","s":[3],"d":[1,0,true]})"),
            (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(tensor_values<uint8_t>(R"({"t":"u8","s":[1],"d":[255]})"), std::vector<uint8_t>{255});
  EXPECT_EQ(tensor_values<int8_t>(R"({"t":"i8","s":[1],"d":[-128]})"), std::vector<int8_t>{-128});
  EXPECT_EQ(tensor_values<int16_t>(R"({"t":"i16","s":[1],"d":[-2]})"), std::vector<int16_t>{-2});
  EXPECT_EQ(tensor_values<int32_t>(R"({"t":"i32","s":[1],"d":[7]})"), std::vector<int32_t>{7});
  EXPECT_EQ(tensor_values<int64_t>(R"({"t":"i64","s":[1],"d":[9223372036854775807]})"),
            std::vector<int64_t>{INT64_MAX});
  EXPECT_EQ(tensor_values<uint16_t>(R"({"t":"f16","s":[2],"d":[1.5,"-inf"]})"),
            (std::vector<uint16_t>{0x3e00, 0xfc00}));
  EXPECT_EQ(tensor_values<uint16_t>(R"({"t":"bf16","s":[1],"d":[-2]})"),
            std::vector<uint16_t>{0xc000});
  EXPECT_EQ(tensor_values<float>(R"({"t":"f32","s":[1],"d":[0.100000001]})"),
            std::vector<float>{0.1f});
  EXPECT_EQ(tensor_values<double>(R"({"t":"f64","s":[1],"d":[0.1]})"), std::vector<double>{0.1});
  EXPECT_EQ(tensor_values<uint16_t>(R"({"t":"c32","s":[1],"d":[1,2]})"),
            (std::vector<uint16_t>{0x3c00, 0x4000}));
  EXPECT_EQ(tensor_values<float>(R"({"t":"c64","s":[1],"d":[1,2]})"), (std::vector<float>{1, 2}));
  EXPECT_EQ(tensor_values<double>(R"({"t":"c128","s":[],"d":[1,2]})"), (std::vector<double>{1, 2}));
  EXPECT_TRUE(tensor_values<float>(R"({"t":"f32","s":[0,5],"d":[]})").empty());
}

TEST(RecordReader, GoesThroughAFile) {
  TempDir dir;
  std::string lines = str(row("[1]"), "\n\n", row("[2]"), "\nbroken\n", row("[3]"));
  for (bool packed : {false, true}) {
    AtomicFile file(dir.file("a"));
    file.write(packed ? deflate(to_bytes(lines), Wrap::kGzip) : to_bytes(lines));
    file.commit();
    RecordReader reader(dir.file("a"));
    EXPECT_EQ(*reader.next()->args[0].as<int64_t>(), 1);
    EXPECT_EQ(*reader.next()->args[0].as<int64_t>(), 2);
    expect_error(ErrorKind::kIo, "a:4: ", [&] { reader.next(); });
    EXPECT_EQ(*reader.next()->args[0].as<int64_t>(), 3);
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.line(), 5);
  }
}

TEST(RecordReader, RefusesWhatIsNoRecord) {
  expect_refused("1", "no object");
  expect_refused("{}", "key 'op' missing");
  expect_refused("{\"op\":1}", "op is no string");
  expect_refused(row("1"), "args is no list");
  expect_refused(row("[{}]"), "unknown kind of value");
  expect_refused(row("[{\"x\":1}]"), "unknown kind of value 'x'");
  expect_refused(row("[{\"f\":\"many\"}]"), "unknown value 'many'");
  expect_refused(row("[{\"c\":[1]}]"), "two parts");
  expect_refused(row("[18446744073709551615]"), "no 64-bit integer");
  expect_refused(row("[1e999]"), "number overflow");
  auto tensor = [](std::string_view t) { return row(str("[", t, "]")); };
  expect_refused(tensor(R"({"t":"f33","s":[],"d":[1]})"), "unknown dtype 'f33'");
  expect_refused(tensor(R"({"t":"f32","s":[2],"d":[1]})"), "has 1 values");
  expect_refused(tensor(R"({"t":"c64","s":[1],"d":[1]})"), "has 1 values");
  expect_refused(tensor(R"({"t":"f32","s":[-1],"d":[]})"), "has 0 values");
  expect_refused(tensor(R"({"t":"f32","s":[4611686018427387904,4],"d":[]})"), "has 0 values");
  expect_refused(tensor(R"({"t":"f32","s":[1],"d":[1],"st":[1,1]})"), "2 strides");
  expect_refused(tensor(R"({"t":"u8","s":[1],"d":[256]})"), "256 does not fit uint8");
  expect_refused(tensor(R"({"t":"b8","s":[1],"d":[2]})"), "2 does not fit bool");
  expect_refused(tensor(R"({"t":"i32","s":[1],"d":[2147483648]})"), "does not fit int32");
  expect_refused(tensor(R"({"t":"i64","s":[1],"d":[1.5]})"), "no 64-bit integer");
  expect_refused(row("[]", R"(,"vjp":{"grad_out":[],"grads":[null]})"), "1 gradients for 0");
  expect_refused(row(std::string(100000, '[')), "nested deeper than 16");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += str("\"", i, "\":0,");
  expect_refused(row(str("[", many, "\"a\":0}]")), "more than 64 keys");
}

template <class T>
RawTensor make(std::vector<int64_t> sizes, std::vector<T> items, Dtype dtype = dtype_of<T>) {
  return {"", dtype, std::move(sizes), bytes_of(items)};
}

TEST(Compare, Tolerances) {
  auto f64 = [](double v) { return make<double>({1}, {v}); };
  EXPECT_FALSE(difference(f64(1), f64(1 + 1.9e-7)));
  EXPECT_TRUE(difference(f64(1), f64(1 + 2.1e-7)));
  auto f32 = [](float v) { return make<float>({1}, {v}); };
  EXPECT_FALSE(difference(f32(100), f32(100.00130f)));
  EXPECT_TRUE(difference(f32(100), f32(100.00150f)));
  auto f16 = [](float v) { return make<Half>({1}, {Half(v)}); };
  EXPECT_FALSE(difference(f16(1), f16(1.002f)));
  EXPECT_TRUE(difference(f16(1), f16(1.005f)));
  auto bf16 = [](float v) { return make<BFloat16>({1}, {BFloat16(v)}); };
  EXPECT_FALSE(difference(bf16(1), bf16(1.0234375f)));
  EXPECT_TRUE(difference(bf16(1), bf16(1.03125f)));
  EXPECT_TRUE(difference(make<int64_t>({1}, {INT64_MAX}), make<int64_t>({1}, {INT64_MAX - 1})));
  EXPECT_FALSE(difference(make<int8_t>({2}, {1, -1}), make<int8_t>({2}, {1, -1})));
}

TEST(Compare, SpecialValues) {
  auto f64 = [](double v) { return make<double>({}, {v}); };
  EXPECT_FALSE(difference(f64(NAN), f64(-NAN)));
  EXPECT_TRUE(difference(f64(NAN), f64(1)));
  EXPECT_TRUE(difference(f64(1), f64(NAN)));
  EXPECT_FALSE(difference(f64(INFINITY), f64(INFINITY)));
  EXPECT_TRUE(difference(f64(INFINITY), f64(-INFINITY)));
  EXPECT_TRUE(difference(f64(INFINITY), f64(1e308)));
  EXPECT_TRUE(difference(f64(1e308), f64(INFINITY)));
  EXPECT_FALSE(difference(f64(0.0), f64(-0.0)));
  auto c64 = [](float re, float im) { return make<float>({}, {re, im}, Dtype::kC64); };
  // The modulus counts: the imaginary part alone would be out of its own tolerance.
  EXPECT_FALSE(difference(c64(100, 0), c64(100, 1e-3f)));
  EXPECT_TRUE(difference(c64(0, 0), c64(0, 1e-3f)));
  EXPECT_FALSE(difference(c64(INFINITY, 1), c64(INFINITY, 1)));
  EXPECT_TRUE(difference(c64(INFINITY, 1), c64(INFINITY, -1)));
  EXPECT_FALSE(difference(c64(NAN, 1), c64(2, NAN)));
}

TEST(Compare, NamesTheFirstDifference) {
  RawTensor want = make<float>({2, 2}, {1, 2, 3, 4}), got = make<float>({2, 2}, {1, 2, 3.5, 5});
  EXPECT_EQ(*difference(want, got), "value 3.5 at [1, 0], expected 3 (2 of 4 differ)");
  EXPECT_EQ(*difference(want, make<float>({4}, {1, 2, 3, 4})), "shape [4], expected [2, 2]");
  EXPECT_EQ(*difference(want, make<int32_t>({2, 2}, {1, 2, 3, 4})),
            "dtype int32, expected float32");
}

TEST(Compare, SumsOfTermsWidenTheTolerance) {
  RawTensor want = make<BFloat16>({2}, {BFloat16(1), BFloat16(1)});
  RawTensor got = make<BFloat16>({2}, {BFloat16(2), BFloat16(2)});
  std::vector<double> sums = {100, 1};
  EXPECT_EQ(*difference(want, got, sums), "value 2 at [1], expected 1 (1 of 2 differ)");
}

TEST(Compare, AbsentEqualsZeros) {
  RawTensor zeros = make<float>({2}, {0, -0.0f}), ones = make<float>({2}, {0, 1});
  RawTensorView zeros_view = zeros, ones_view = ones;
  EXPECT_FALSE(difference_or_zeros(nullptr, nullptr));
  EXPECT_FALSE(difference_or_zeros(&zeros_view, nullptr));
  EXPECT_FALSE(difference_or_zeros(nullptr, &zeros_view));
  EXPECT_EQ(*difference_or_zeros(nullptr, &ones_view), "value 1 at [1], expected 0");
  EXPECT_TRUE(difference_or_zeros(&ones_view, nullptr));
  EXPECT_TRUE(difference_or_zeros(&ones_view, &zeros_view));
}

}  // namespace
}  // namespace fornax::replay
