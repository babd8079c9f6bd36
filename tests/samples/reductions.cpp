// Reductions, scans and sorts along dimensions.
#include "tests/samples/families.h"

namespace fornax::samples {
namespace {

constexpr DtypeSet kReal = kRealNumbers, kNotBool = kInts | kReals;

void add_sums(std::vector<Row>& r) {
  std::vector<const char*> large = {"[300,301]", "[300,301] {0}", "[300,301] {1}",
                                    "[7,90,200] {1}"};
  std::vector<const char*> dims = {
      "[2,3]",       "[2,3] {1}", "[2,3,2] {0,2} true", "[2,3] {-2} true", "[]",
      "[] {0} true", "[2,0] {1}", "[0,3] {0} true",     "[2,3] {}"};
  r.push_back({"sum", kAll, dims, 0, "", kSingles | kFullComplex, large});
  r.back().calls.push_back("[2,3] {0} dtype=f64");
  r.push_back({"mean", kFloating, dims, 0, "", kSingles | kFullComplex, large});
  r.push_back({"nansum",
               kReal | kFullComplex,
               {"[2,3]", "[2,3] {1}", "[2,3] {0} true", "[]", "[2,0] {1}"},
               0,
               "self",
               kSingles,
               large});
  r.push_back(
      {"nanmean", kFloating, {"[2,3]", "[2,3] {1}", "[2,3] {0} true", "[]"}, 0, "self", kSingles});
  r.push_back({"prod",
               kAll,
               {"[2,3]", "[2,3] 1", "[2,3] 0 true", "[]", "[2,0] 1", "[0]"},
               0,
               "self result",
               kSingles | kFullComplex,
               {"[300,301]:unit 1"}});
  r.push_back({"count_nonzero",
               kAll,
               {"[2,3]", "[2,3] {1}", "[]", "[2,3] {0,1}", "[2,0] {1}"},
               kNoGradient,
               nullptr,
               kNone,
               {"[300,301] {0}"}});
  for (const char* op : {"all", "any"})
    r.push_back({op,
                 kAll,
                 {"[2,3]", "[2,3] {1}", "[2,3] {0} true", "[]", "[2,0] {1}", "[0]"},
                 kNoGradient,
                 nullptr,
                 kNone,
                 {"[300,301] {0}"}});
}

void add_moments(std::vector<Row>& r) {
  std::vector<const char*> by_correction = {"[3,4]", "[3,4] {1}",
                                            "[3,4] {0} correction=0 keepdim=true",
                                            "[3,4] {0,1} correction=0.5", "[] correction=0"};
  std::vector<const char*> by_flag = {"[3,4]", "[3,4] {1}", "[3,4] {0} false true"};
  std::vector<const char*> large = {"[300,301]", "[300,301] {0}", "[300,301] {1}"};
  for (const char* op : {"var.correction", "var_mean.correction"})
    r.push_back({op, kFloating, by_correction, 0, "self", kSingles | kFullComplex, large});
  for (const char* op : {"std.correction", "std_mean.correction"}) {
    std::vector<const char*> calls(by_correction.begin(), by_correction.end() - 1);
    r.push_back(
        {op, kFloating, calls, 0, "self result result0 result1", kSingles | kFullComplex, large});
  }
  for (const char* op : {"var.dim", "var_mean.dim"})
    r.push_back({op, kFloating, by_flag, 0, "self"});
  for (const char* op : {"std.dim", "std_mean.dim"})
    r.push_back({op, kFloating, by_flag, 0, "self result result0 result1"});
}

void add_extrema(std::vector<Row>& r) {
  std::vector<const char*> large = {"[300,301]:distinct", "[300,301]:distinct 0",
                                    "[300,301]:distinct 1"};
  for (const char* op : {"amax", "amin"})
    r.push_back({op,
                 kReal,
                 {"[2,3]", "[2,3] {1}", "[2,3,2] {0,2} true", "[]", "[2,3] {}"},
                 0,
                 "self result",
                 kSingles,
                 {"[300,301] {0}", "[300,301] {1}"}});
  r.push_back(
      {"aminmax",
       kReal,
       {"[2,3]:distinct", "[2,3]:distinct dim=1", "[2,3]:distinct dim=0 keepdim=true", "[]"},
       0,
       "self min max"});
  for (const char* op : {"max", "min"})
    r.push_back({op, kReal, {"[2,3]:distinct", "[]"}, 0, "self result"});
  for (const char* op : {"max.dim", "min.dim"})
    r.push_back({op,
                 kReal,
                 {"[2,3]:distinct 1", "[2,3]:distinct 0 true", "[2,3]:distinct -1", "[] 0",
                  "[0,3]:distinct 1"},
                 0,
                 "indices",
                 kSingles,
                 {"[300,301]:distinct 0", "[300,301]:distinct 1"}});
  for (const char* op : {"argmax", "argmin"})
    r.push_back({op,
                 kNotBool,
                 {"[2,3]:distinct", "[2,3]:distinct 1", "[2,3]:distinct 0 true", "[]"},
                 kNoGradient,
                 nullptr,
                 kNone,
                 large});
}

void add_norms(std::vector<Row>& r) {
  r.push_back({"linalg_vector_norm",
               kFloating,
               {"[2,3]", "[2,3] 2 {1}", "[2,3] 1 {0} true", "[2,3] 3", "[2,3] inf", "[2,3] 0.5",
                "[]", "[2,3] -inf {1}", "[2,3] 0 {1}"},
               0,
               "self result",
               kSingles | kFullComplex,
               {"[300,301] 2 {0}", "[300,301] 2"}});
  r.push_back({"norm",
               kFloating,
               {"[2,3]", "[2,3] 1 {1}", "[2,3] 2 {0} true", "[2,3] 3"},
               0,
               "self result"});
  r.push_back({"logsumexp",
               kReal | kFullComplex,
               {"[2,3] {1}", "[2,3] {0,1} true", "[] {0}"},
               0,
               "self result"});
}

void add_scans(std::vector<Row>& r) {
  r.push_back({"cumsum",
               kAll,
               {"[2,3] 1", "[2,3] 0", "[] 0", "[2,0] 1", "[2,3] -1 dtype=f64"},
               0,
               "",
               kSingles | kFullComplex,
               {"[300,301] 0", "[300,301] 1"}});
  r.push_back({"cumprod",
               kAll,
               {"[2,3] 1", "[2,3] 0", "[] 0", "[2,0] 1"},
               0,
               "self result",
               kSingles | kFullComplex,
               {"[300,301]:unit 0"}});
  r.push_back({"logcumsumexp",
               kFloating,
               {"[2,3] 1", "[2,3] 0", "[] 0"},
               0,
               "self result",
               kSingles | kFullComplex,
               {"[300,301]:unit 0"}});
  for (const char* op : {"cummax", "cummin"})
    r.push_back({op,
                 kReal,
                 {"[2,4]:distinct 1", "[2,4]:distinct 0", "[] 0", "[2,0] 1"},
                 0,
                 "self indices",
                 kSingles,
                 {"[300,301]:distinct 0"}});
  r.push_back({"_linear_recurrence", kFloating, {"[2,3] [2,3] 1", "[2,3] [2,3] 0"}, 0, nullptr});
}

void add_sorts(std::vector<Row>& r) {
  std::vector<const char*> large = {"[300,301]:distinct dim=0", "[300,301]:distinct dim=1"};
  r.push_back({"sort",
               kReal,
               {"[3,4]:distinct", "[3,4]:distinct dim=0 descending=true",
                "[3,4]:distinct stable=true dim=1", "[]", "[2,0]"},
               0,
               "indices",
               kSingles,
               large});
  r.push_back({"argsort",
               kReal,
               {"[3,4]:distinct dim=0 stable=true", "[3,4]:distinct descending=true stable=true",
                "[] stable=true"},
               kNoGradient});
  r.push_back({"msort", kReal, {"[3,4]:distinct", "[3]:distinct"}, 0, nullptr});
  r.push_back({"topk",
               kReal,
               {"[3,4]:distinct 2", "[3,4]:distinct 1 0", "[3,4]:distinct 3 1 false", "[] 1",
                "[2,3]:distinct 0"},
               0,
               "indices",
               kSingles,
               {"[300,301]:distinct 5 0", "[300,301]:distinct 5"}});
  r.push_back({"kthvalue",
               kNotBool,
               {"[3,4]:distinct 2", "[3,4]:distinct 1 0 true", "[] 1"},
               0,
               "indices",
               kSingles});
}

}  // namespace

void add_reductions(std::vector<Row>& rows) {
  add_sums(rows);
  add_moments(rows);
  add_extrema(rows);
  add_norms(rows);
  add_scans(rows);
  add_sorts(rows);
  rows.push_back(
      {"sum_to_size", kAll, {"[2,3] {1,3}", "[2,3] {3}", "[2,3] {2,3}", "[2,3] {}"}, kAliases, ""});
}

}  // namespace fornax::samples
