// Views, their copying and scattering forms, joins, repetitions and conversions. Nothing is saved.
#include "tests/samples/families.h"

namespace fornax::samples {
namespace {

void add_shapes(std::vector<Row>& r) {
  auto view = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kAll, std::move(calls), flags | kAliases, ""});
  };
  view("view", {"[2,6] {3,4}", "[2,6] {-1}", "[2,3] {2,1,3}", "[] {1,1}", "[0,3] {3,0}"},
       kReadsStrides);
  view("view_as", {"[2,6] [3,4]:const"}, kReadsStrides);
  view("reshape", {"[2,6] {3,4}", "[2,6] {-1}", "[] {1,1}", "[0,3] {3,0}"});
  view("reshape_as", {"[2,6] [3,4]:const"});
  view("flatten", {"[2,3,4]", "[2,3,4] 1", "[2,3,4] 0 1", "[]"});
  view("unflatten", {"[2,6] 1 {2,3}", "[2,6] -1 {-1,2}"});
  view("ravel", {"[2,3]", "[]"});
  view("permute", {"[2,3,4] {2,0,1}", "[2,3] {-1,0}", "[] {}", "[2,0] {1,0}"});
  view("movedim", {"[2,3,4] {0} {2}", "[2,3,4] {0,1} {1,2}", "[2,3] {0} {-1}"});
  view("transpose", {"[2,3,4] 0 2", "[2,3] -1 0", "[] 0 0"});
  for (const char* op : {"t", "numpy_T", "adjoint", "matrix_H"}) view(op, {"[2,3]"});
  for (const char* op : {"mT", "mH"}) view(op, {"[2,3]", "[2,3,4]"});
  view("squeeze", {"[2,1,3,1]", "[2,1,3] {1}", "[2,1,3] {0}", "[1,2,1] {0,2}", "[]"});
  view("unsqueeze", {"[2,3] 0", "[2,3] -1", "[2,3] 1", "[] 0"});
  view("expand", {"[3] {2,3}", "[2,1] {2,4}", "[2,1] {-1,3}", "[] {2}", "[1] {0}"});
  view("expand_as", {"[2,1] [2,3]:const"});
  view("atleast_1d", {"[]", "[2,3]"});
  view("atleast_2d", {"[]", "[3]", "[2,3]"});
  view("atleast_3d", {"[]", "[3]", "[2,3]"});
  view("broadcast_tensors", {"([2,1] [3])", "([] [2,2] [1])"});
  view("detach", {"[2,3]", "[]"}, kNoGradient);
}

void add_parts(std::vector<Row>& r) {
  auto view = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kAll, std::move(calls), flags | kAliases, ""});
  };
  view("select", {"[2,3] 0 1", "[2,3] 1 -1", "[2,3,4] -1 2"});
  view("slice", {"[5,3] 0 1 4", "[5,3] 0 - - 2", "[5,3] 0 -2", "[5,3] 1 3 1", "[5] 0 -100 100 3"});
  view("narrow", {"[5,3] 0 1 2", "[5,3] 1 0 0", "[5,3] -1 -2 2"});
  view("split", {"[5,3] 2", "[5,3] 2 1", "[5,3] {1,4}", "[5,3] {1,0,2} 1"});
  view("chunk", {"[5,3] 2", "[5,3] 2 1", "[5] 7"});
  view("tensor_split", {"[5,3] 2", "[5,3] {1,3}", "[5,3] {2} 1"});
  view("hsplit", {"[4,6] 2", "[4,6] {1,3}"});
  view("vsplit", {"[4,6] 2", "[4,6] {1,3}"});
  view("dsplit", {"[2,2,4] 2", "[2,2,4] {1,3}"});
  view("unbind", {"[2,3]", "[2,3] 1"});
  view("diagonal", {"[3,4]", "[3,4] 1", "[2,3,4] -1 1 2", "[2,3,4] 0 -1 0"});
  view("as_strided", {"[3,4] {2,2} {4,1}", "[3,4] {2,3} {1,2} 1", "[3,4] {2} {3}"}, kReadsStrides);
  view("unfold", {"[7] 0 3 2", "[2,5] 1 2 1", "[] 0 1 1"});
}

void add_bits(std::vector<Row>& r) {
  r.push_back({"real", kFloating | kInts | kBools, {"[2,3]", "[]"}, kAliases, ""});
  r.push_back({"imag", kComplexes, {"[2,3]", "[]"}, kAliases, ""});
  r.push_back({"view_as_real", kComplexes, {"[2,3]", "[]"}, kAliases | kRefusesBits, ""});
  r.push_back({"view_as_complex",
               kReals & ~set_of(Dtype::kBF16),
               {"[3,2]", "[2]"},
               kAliases | kReadsStrides,
               ""});
  r.push_back({"view.dtype",
               kAll & ~kComplexes,
               {"[2,8] u8"},
               kAliases | kReadsStrides | kNoGradient | kRefusesBits});
  for (const char* op : {"conj", "_conj", "resolve_conj", "resolve_neg"})
    r.push_back({op, kAll, {"[2,3]", "[]"}, kAliases, ""});
  r.push_back({"_neg_view", kNumbers, {"[2,3]", "[]"}, kAliases, ""});
}

void add_copies(std::vector<Row>& r) {
  auto copy = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kAll, std::move(calls), flags, ""});
  };
  copy("clone", {"[2,3]", "[]", "[2,3,2,2] channels_last", "[0,2]"});
  copy("contiguous", {"[2,3]", "[]", "[2,3,2,2] channels_last"}, kAliases);
  copy("alias_copy", {"[2,3]", "[]"});
  copy("_to_copy", {"[2,3] f64", "[2,3]", "[2,3] i32"}, kDtypeGiven);
  copy("chalf", {"[2,3]"}, kDtypeGiven | kNoSecond);
  r.back().gradients = kNone;
  copy("copy", {"[2,3] [2,3]", "[2,3] [3]", "[2,3] []", "[] []"});
  copy("view_copy", {"[2,6] {3,4}"}, kReadsStrides);
  copy("as_strided_copy", {"[3,4] {2,2} {4,1}"}, kReadsStrides);
  copy("diagonal_copy", {"[3,4]", "[3,4] 1"});
  copy("expand_copy", {"[2,1] {2,3}"});
  copy("narrow_copy", {"[5,3] 0 1 2"});
  copy("permute_copy", {"[2,3,4] {2,0,1}"});
  copy("select_copy", {"[2,3] 0 1"});
  copy("slice_copy", {"[5,3] 0 1 4 2"});
  copy("split_copy", {"[5,3] 2"});
  copy("squeeze_copy", {"[2,1,3]", "[2,1,3] {1}"});
  copy("t_copy", {"[2,3]"});
  copy("transpose_copy", {"[2,3] 0 1"});
  copy("unbind_copy", {"[2,3]", "[2,3] 1"});
  copy("unfold_copy", {"[7] 0 3 2"});
  copy("unsqueeze_copy", {"[2,3] 1"});
  copy("select_scatter", {"[2,3] [3] 0 1", "[2,3] [2] 1 -1"});
  copy("slice_scatter", {"[5,3] [2,3] 0 1 3", "[5,3] [3,3] 0 - - 2"});
  copy("diagonal_scatter", {"[3,4] [3]", "[3,4] [3] 1"});
  copy("as_strided_scatter", {"[3,4] [2,2] {2,2} {4,1}"}, kReadsStrides);
}

void add_joins(std::vector<Row>& r) {
  auto join = [&](const char* op, std::vector<const char*> calls, uint32_t flags = 0) {
    r.push_back({op, kAll, std::move(calls), flags, ""});
  };
  join("cat", {"([2,3] [1,3])", "([2,3] [2,1]) 1", "([2,3] [0] [1,3])", "([2]) -1"});
  r.back().large = {"([300,100] [300,201]) 1", "([100,301] [200,301]) 0"};
  join("stack", {"([2,3] [2,3])", "([2,3] [2,3]) 1", "([] []) 0", "([2,3] [2,3]) -1"});
  join("hstack", {"([2,3] [2,1])", "([2] [3])", "([] [])"});
  join("vstack", {"([2,3] [1,3])", "([3] [3])"});
  join("dstack", {"([2,3] [2,3])", "([3] [3])"});
  join("column_stack", {"([2] [2])", "([2,3] [2])"});
  join("repeat", {"[2,3] {2,1}", "[3] {2,2}", "[] {3}", "[2] {0}"});
  join("tile", {"[2,3] {2,1}", "[2,3] {2}", "[3] {2,2}"});
  join("repeat_interleave", {"[2,3] 2", "[2,3] 2 1", "[2,3] [2]:<3 0"}, kReadsValues);
  r.push_back(
      {"repeat_interleave.Tensor", kNone, {"[3]:<4", "[3]:<4:i32"}, kNoGradient | kReadsValues});
  join("roll", {"[2,3] {1}", "[2,3] {1} {0}", "[2,3] {-1,2} {0,1}", "[0,3] {1} {0}"});
  join("flip", {"[2,3] {0}", "[2,3] {0,1}", "[2,3] {-1}", "[] {}", "[0,3] {0}"});
  join("fliplr", {"[2,3]"});
  join("flipud", {"[2,3]"});
  join("rot90", {"[2,3]", "[2,3] 2", "[2,3,2] -1 {1,2}", "[2,3] 0"});
  join("meshgrid", {"([2] [3])", "([2] [3]) indexing='xy'", "([2] [])"}, kAliases);
}

}  // namespace

void add_views(std::vector<Row>& rows) {
  add_shapes(rows);
  add_parts(rows);
  add_bits(rows);
  add_copies(rows);
  add_joins(rows);
}

}  // namespace fornax::samples
