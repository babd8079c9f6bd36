// Tensors from nothing, fills and random numbers.
#include "tests/samples/families.h"

namespace fornax::samples {
namespace {

void add_constants(std::vector<Row>& r) {
  auto factory = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kNone, std::move(calls), flags | kNoGradient});
  };
  factory("empty", {"{2,3}", "{} f64", "{0,2} i64", "{2,3,2,2} f32 memory_format=channels_last"},
          kUninitialised);
  factory("empty_strided", {"{2,3} {1,2}", "{2} {0} f64"}, kUninitialised);
  factory("empty_permuted", {"{2,3} {1,0}"}, kUninitialised);
  factory("full", {"{2,3} 1", "{2} 1.5", "{} true", "{2} 3 f16", "{2} 1+2j"});
  factory("zeros", {"{2,3}", "{} i64"});
  factory("ones", {"{2,3}", "{0} bool"});
  factory("scalar_tensor", {"3", "1.5 f32", "true"});
  factory("arange", {"0 5", "1 10 3", "0.5 2.0 0.25", "5 0 -1", "0 0"});
  factory("linspace", {"0 1 5", "1 -1 4 f64", "0 1 1", "0 1 0"});
  factory("logspace", {"0 1 5", "0 3 4 2.0 f64"});
  factory("eye", {"3 3", "2 4", "0 2"});
  factory("tril_indices", {"3 4", "3 4 1"});
  factory("triu_indices", {"3 4", "3 4 -1"});
}

void add_like(std::vector<Row>& r) {
  auto like = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kAll, std::move(calls), flags | kNoGradient | kNoInplace});
  };
  like("empty_like", {"[2,3]", "[]", "[2,3] f64"}, kUninitialised);
  like("zeros_like", {"[2,3]", "[]", "[0]"});
  like("ones_like", {"[2,3]", "[]"});
  like("full_like", {"[2,3] 1", "[] 0"});
  like("new_empty", {"[2,3] {4}"}, kUninitialised);
  like("new_empty_strided", {"[2,3] {2,2} {1,2}"}, kUninitialised);
  like("new_zeros", {"[2,3] {4}"});
  like("new_ones", {"[2,3] {4}"});
  like("new_full", {"[2,3] {4} 1"});
}

void add_fills(std::vector<Row>& r) {
  r.push_back({"fill", kAll, {"[2,3] 1", "[2,3] []", "[] 1"}, 0, ""});
  r.push_back({"zero", kAll, {"[2,3]", "[]"}, 0, ""});
  for (const char* op : {"tril", "triu"})
    r.push_back({op,
                 kAll,
                 {"[3,4]", "[3,4] 1", "[2,3,3] -1", "[0,3]"},
                 0,
                 "",
                 kSingles | kFullComplex,
                 {"[300,301]"}});
}

void add_random(std::vector<Row>& r) {
  auto draw = [&](const char* op, DtypeSet dtypes, std::vector<const char*> calls) {
    r.push_back({op, dtypes, std::move(calls), kRandomValues | kNoGradient});
  };
  draw("rand", kNone, {"{2,3}", "{} -  f64"});
  draw("randn", kNone, {"{2,3}", "{2} - c64"});
  draw("randint", kNone, {"0 5 {2,3}", "-3 3 {4} - i32"});
  draw("randperm", kNone, {"5", "0"});
  draw("normal", kNone,
       {"0.0 1.0 {2,3}", "[2,3]:f32 1.0", "0.0 [3]:f32:pos", "[2,1]:f32 [3]:f32:pos"});
  draw("rand_like", kFloating & ~kComplexes, {"[2,3]"});
  draw("randn_like", kFloating, {"[2,3]"});
  draw("randint_like", kInts | kReals, {"[2,3] 0 3"});
  draw("uniform", kReals, {"[2,3]", "[2,3] -1.0 2.0"});
  draw("normal_functional", kFloating, {"[2,3]", "[2,3] 1.0 2.0"});
  draw("random", kRealNumbers, {"[2,3]", "[2,3] 0 2"});
  draw("bernoulli", kReals, {"[2,3] 0.5", "[2,3]:prob"});
  draw("exponential", kReals, {"[2,3]", "[2,3] 2.0"});
  draw("geometric", kInts | kReals, {"[2,3] 0.5"});
  draw("cauchy", kReals, {"[2,3]"});
  draw("log_normal", kReals, {"[2,3]"});
}

}  // namespace

void add_factories(std::vector<Row>& rows) {
  add_constants(rows);
  add_like(rows);
  add_fills(rows);
  add_random(rows);
}

}  // namespace fornax::samples
