// Matrix products.
#include "tests/samples/families.h"

namespace fornax::samples {

void add_products(std::vector<Row>& r) {
  auto product = [&](const char* op, std::vector<const char*> calls, const char* saved,
                     std::vector<const char*> large = {}) {
    r.push_back(
        {op, kNumbers, std::move(calls), 0, saved, kSingles | kFullComplex, std::move(large)});
  };
  product("mm", {"[2,3] [3,4]", "[1,3] [3,1]", "[2,0] [0,3]", "[0,3] [3,2]"}, "self mat2",
          {"[120,130] [130,140]"});
  product("bmm", {"[2,2,3] [2,3,4]", "[0,2,3] [0,3,4]", "[2,2,0] [2,0,4]"}, "self mat2",
          {"[9,40,50] [9,50,60]"});
  product("matmul",
          {"[2,3] [3,4]", "[3] [3]", "[2,3] [3]", "[3] [3,2]", "[2,2,3] [3,4]", "[2,1,2,3] [3,3,2]",
           "[3] [2,3,4]", "[2,2,3] [3]"},
          "self other");
  product("mv", {"[2,3] [3]", "[0,3] [3]", "[2,0] [0]"}, "self vec");
  product("dot", {"[3] [3]", "[0] [0]"}, "self tensor");
  product("vdot", {"[3] [3]", "[0] [0]"}, "self other");
  product("outer", {"[2] [3]", "[0] [3]"}, "self vec2");
  product("inner", {"[2,3] [4,3]", "[3] [3]", "[] [2]", "[2,2,3] [3]"}, "self other");
  product("addmm",
          {"[2,4] [2,3] [3,4]", "[4] [2,3] [3,4] beta=2 alpha=3", "[] [2,3] [3,4]",
           "[2,4] [2,3] [3,4] beta=0"},
          "mat1 mat2");
  product("baddbmm", {"[2,2,4] [2,2,3] [2,3,4]", "[4] [2,2,3] [2,3,4] beta=2 alpha=3"},
          "batch1 batch2");
  product("addbmm", {"[2,4] [2,2,3] [2,3,4]", "[4] [2,2,3] [2,3,4] beta=2 alpha=3"},
          "batch1 batch2");
  product("addmv", {"[2] [2,3] [3]", "[] [2,3] [3] beta=2 alpha=3"}, "mat vec");
  product("addr", {"[2,3] [2] [3]", "[3] [2] [3] beta=2 alpha=3"}, "vec1 vec2");
  product(
      "linear",
      {"[2,3] [4,3] [4]", "[2,3] [4,3]", "[3] [4,3] [4]", "[2,2,3] [4,3] [4]", "[0,3] [4,3] [4]"},
      "input weight", {"[120,130] [140,130] [140]"});
}

}  // namespace fornax::samples
