// Gathers, scatters and searches.
#include "tests/samples/families.h"

namespace fornax::samples {

void add_indexing(std::vector<Row>& r) {
  constexpr DtypeSet kReal = kRealNumbers;
  r.push_back({"gather",
               kAll,
               {"[3,4] 0 [2,4]:<3", "[3,4] 1 [3,2]:<4", "[3,4] -1 [2,6]:<4", "[] 0 []:<1",
                "[3,4] 0 [0,4]:<3", "[3] 0 []:<3"},
               0,
               "index",
               kSingles | kFullComplex,
               {"[300,301] 0 [300,301]:<300"}});
  r.push_back({"scatter",
               kAll,
               {"[3,4] 0 [1,4]:<3 [1,4]", "[3,4] 1 [3,1]:<4 [3,1]", "[3,4] 1 [3,1]:<4 1",
                "[3] 0 [1]:<3 [2]", "[] 0 []:<1 []"},
               0,
               "index"});
  r.push_back(
      {"scatter_add",
       kAll,
       {"[3,4] 0 [2,4]:<3 [2,4]", "[3,4] 1 [3,6]:<4 [3,6]", "[3] 0 [2]:<3 [3]", "[] 0 []:<1 []"},
       0,
       "index"});
  r.push_back({"scatter_reduce",
               kReal,
               {"[3,4] 0 [2,4]:<3 [2,4] 'sum'", "[3,4] 0 [2,4]:<3 [2,4] 'mean'",
                "[3,4] 0 [2,4]:<3 [2,4] 'amax'", "[3,4] 0 [2,4]:<3 [2,4] 'amin' include_self=false",
                "[3,4] 0 [2,4]:<3 [2,4] 'prod'"},
               kNoSecond,
               "self index src result"});
  r.push_back({"index_select",
               kAll,
               {"[3,4] 0 [5]:<3", "[3,4] 1 [2]:<4", "[3] 0 []:<3", "[3,4] -1 [0]:<4"},
               0,
               "index",
               kSingles | kFullComplex,
               {"[300,301] 0 [700]:<300"}});
  r.push_back({"index_add",
               kAll,
               {"[3,4] 0 [2]:<3 [2,4]", "[3,4] 1 [5]:<4 [3,5]", "[3,4] 0 [2]:<3 [2,4] alpha=2"},
               0,
               "index"});
  r.push_back({"index_copy", kAll, {"[3,4] 0 [1]:<3 [1,4]", "[3,4] 1 [1]:<4 [3,1]"}, 0, "index"});
  r.push_back({"index_fill", kAll, {"[3,4] 0 [2]:<3 1", "[3,4] 1 [2]:<4 []"}, 0, "index"});
  r.push_back({"index_reduce",
               kReal,
               {"[3,4] 0 [2]:<3 [2,4] 'prod'", "[3,4] 0 [2]:<3 [2,4] 'mean'",
                "[3,4] 0 [2]:<3 [2,4] 'amax'", "[3,4] 0 [2]:<3 [2,4] 'amin' include_self=false"},
               kNoSecond,
               "self index source result"});
  r.push_back({"index",
               kAll,
               {"[3,4] ([2]:<3)", "[3,4] (- [2]:<4)", "[3,4] ([2]:<3 [2]:<4)",
                "[3,4] ([2,1]:<3 [3]:<4)", "[2,3,4] ([2]:<2 - [2]:<4)", "[3,4] ([]:<3)"},
               0,
               "indices",
               kSingles | kFullComplex,
               {"[300,301] ([700]:<300)"}});
  r.push_back({"index_put",
               kAll,
               {"[3,4] ([1]:<3) [1,4]", "[3,4] ([1]:<3) []", "[3,4] ([4]:<3) [4,4] true",
                "[3,4] ([2]:<3 [2]:<4) [2] true"},
               0,
               "indices"});
  r.push_back(
      {"take", kAll, {"[3,4] [5]:<12", "[3,4] []:<12", "[3] [2,2]:<3", "[3] [0]:<3"}, 0, "index"});
  r.push_back({"put", kAll, {"[3,4] [1]:<12 [1]", "[3,4] [3]:<12 [3] true"}, 0, "index source"});
  r.push_back({"take_along_dim", kAll, {"[3,4] [2,4]:<3 0", "[3,4] [5]:<12"}, 0, nullptr});
  r.push_back({"masked_select",
               kAll,
               {"[3,4] [3,4]:bool", "[3,4] [4]:bool", "[] []:bool"},
               kReadsValues,
               "mask"});
  r.push_back(
      {"masked_scatter", kAll, {"[3,4] [3,4]:bool [12]", "[3,4] [4]:bool [3,4]"}, 0, "mask"});
  r.push_back({"nonzero", kAll, {"[3,4]", "[]", "[0,3]"}, kNoGradient | kReadsValues});
  r.push_back({"argwhere", kAll, {"[3,4]", "[]"}, kNoGradient | kReadsValues});
  r.push_back({"nonzero_numpy", kAll, {"[3,4]"}, kNoGradient | kReadsValues});
  r.push_back(
      {"embedding",
       kFloating,
       {"[5,3] [2,2]:<5", "[5,3] [4]:<5 padding_idx=1", "[5,3] []:<5", "[5,3] [4]:<5 -1 true"},
       0,
       "indices",
       kSingles,
       {"[700,301] [300]:<700"}});
  r.push_back({"embedding_dense_backward",
               kFloating,
               {"[4,3] [4]:<5 5 -1 false", "[2,2,3] [2,2]:<5 5 1 false"},
               0,
               "indices",
               kSingles});
  r.push_back({"one_hot", kNone, {"[2,3]:<4 4", "[3]:<2", "[]:<3 3"}, kNoGradient | kReadsValues});
  r.push_back({"searchsorted",
               kInts | kReals,
               {"[5]:sorted [2,3]", "[2,4]:sorted [2,3]", "[5]:sorted [3] right=true",
                "[5]:sorted [3] out_int32=true", "[5]:sorted 1", "[5]:sorted [3] side='left'"},
               kNoGradient | kReadsValues});
  r.push_back({"bucketize",
               kInts | kReals,
               {"[2,3] [5]:sorted", "[] [5]:sorted right=true", "1 [5]:sorted"},
               kNoGradient | kReadsValues});
}

}  // namespace fornax::samples
