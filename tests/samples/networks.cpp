// Convolutions, pooling, dropout, optimiser steps.
#include "tests/samples/families.h"

namespace fornax::samples {
namespace {

void add_convolutions(std::vector<Row>& r) {
  auto conv = [&](const char* op, std::vector<const char*> calls) {
    r.push_back({op, kFloating, std::move(calls), 0, "input weight", kSingles | kFullComplex});
  };
  conv("conv1d", {"[2,2,5] [3,2,2] [3]", "[1,2,5] [2,2,3] - {2} {1}", "[2,5] [3,2,2]",
                  "[1,4,5] [4,2,2] [4] {1} {0} {2} 2"});
  conv("conv2d", {"[1,2,4,4] [3,2,2,2] [3]", "[2,2,4,3] [2,2,3,2] - {2,1} {1,0}",
                  "[2,4,4] [3,2,2,2]", "[1,4,4,4] [4,2,2,2] [4] {1} {1} {2} 2"});
  conv("conv3d", {"[1,1,3,3,3] [2,1,2,2,2] [2]", "[1,2,3,3,2] [2,1,2,2,1] - {1} {1,0,0} {1} 2"});
  conv("conv_transpose1d", {"[2,2,4] [2,3,2] [3]", "[1,2,3] [2,2,3] - {2} {1} {1}",
                            "[1,4,3] [4,2,2] [4] {1} {0} {0} 2 {2}"});
  conv("conv_transpose2d", {"[1,2,3,3] [2,3,2,2] [3]", "[1,2,3,2] [2,2,3,2] - {2,1} {1,0} {1,0}"});
  conv("conv_transpose3d", {"[1,1,2,2,2] [1,2,2,2,2] [2]"});
  conv("convolution", {"[1,2,4,4] [3,2,2,2] [3] {1,1} {0,0} {1,1} false {0,0} 1",
                       "[1,2,3,3] [2,3,2,2] [3] {2,2} {1,1} {1,1} true {1,1} 1"});
  r.back().large = {"[4,8,28,28] [16,8,3,3] [16] {1,1} {1,1} {1,1} false {0,0} 1"};
  r.push_back({"convolution_backward",
               kFloating,
               {"[1,3,3,3] [1,2,4,4] [3,2,2,2] {3} {1,1} {0,0} {1,1} false {0,0} 1 {1,1,1}"},
               0,
               "grad_output input weight"});
}

void add_pooling(std::vector<Row>& r) {
  constexpr DtypeSet kPooled = kReals;
  auto pool = [&](const char* op, DtypeSet dtypes, std::vector<const char*> calls,
                  const char* saved) {
    r.push_back({op, dtypes, std::move(calls), 0, saved});
  };
  const char* kept = "self result1 indices result0";
  for (const char* op : {"max_pool1d", "max_pool1d_with_indices"})
    pool(op, kPooled | kInts,
         {"[2,2,6]:distinct {2}", "[2,7]:distinct {3} {2} {1} {1} true",
          "[1,1,7]:distinct {2} {1} {0} {2}"},
         kept);
  for (const char* op : {"max_pool2d", "max_pool2d_with_indices"}) {
    pool(op, kPooled | kInts,
         {"[1,2,4,4]:distinct {2}", "[2,5,5]:distinct {3,2} {2} {1} {1} true",
          "[1,1,5,5]:distinct {2} {1} {0} {2}"},
         kept);
    r.back().large = {"[4,8,28,28]:distinct {2}"};
  }
  for (const char* op : {"max_pool3d", "max_pool3d_with_indices"})
    pool(op, kPooled | kInts, {"[1,2,3,4,4]:distinct {2}", "[1,3,4,4]:distinct {2} {1}"}, kept);
  pool("avg_pool1d", kPooled, {"[2,2,6] {2}", "[2,7] {3} {2} {1} true false"}, "self");
  pool("avg_pool2d", kPooled,
       {"[1,2,4,4] {2}", "[2,5,5] {3,2} {2} {1} true false", "[1,1,4,4] {2} - {0} false true 3"},
       "self");
  pool("avg_pool3d", kPooled, {"[1,2,3,4,4] {2}", "[1,3,4,4] {2} {1}"}, "self");
  pool("adaptive_avg_pool1d", kPooled, {"[2,2,6] {3}", "[2,5] {2}"}, "self");
  pool("adaptive_avg_pool2d", kPooled, {"[1,2,4,6] {2,3}", "[2,5,5] {2,3}", "[1,1,4,4] {1}"},
       "self");
  pool("adaptive_avg_pool3d", kPooled, {"[1,2,3,4,4] {2,2,3}"}, "self");
  pool("adaptive_max_pool1d", kPooled, {"[2,2,6]:distinct {3}", "[2,5]:distinct {2}"}, kept);
  pool("adaptive_max_pool2d", kPooled, {"[1,2,4,6]:distinct {2,3}", "[2,5,5]:distinct {2,3}"},
       kept);
  pool("adaptive_max_pool3d", kPooled, {"[1,2,3,4,4]:distinct {2,2,3}"}, kept);
  pool("_pool_average", kPooled, {"[1,2,4,4] {2,2} {2,2} {0,0} false true - -"}, "self");
  pool("_pool_average_backward", kPooled, {"[1,2,2,2] {1,2,4,4} {2,2} {2,2} {0,0} false true - -"},
       "grad_output");
  pool("_pool_max", kPooled | kInts, {"[1,2,4,4]:distinct {2,2} {2,2} {0,0} {1,1} false -"}, kept);
  pool("_pool_max_backward", kPooled, {"[1,2,2,2] [1,2,2,2]:<16 {1,2,4,4} 2"},
       "grad_output indices");
}

void add_dropout(std::vector<Row>& r) {
  for (const char* op : {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}) {
    r.push_back({op,
                 kFloating,
                 {"[2,3] 0.5 true", "[2,3,2] 0.25 true", "[2,3] 0.5 false", "[2,3] 0.0 true"},
                 kRandomValues | kAliases});
  }
  r.push_back({"native_dropout", kFloating, {"[2,3] 0.5 true", "[] 0.25 true"}, kRandomValues});
}

void add_losses_of_two(std::vector<Row>& r) {
  r.push_back({"softsign", kReals, {"[3,5]", "[]"}, 0, nullptr});
  r.push_back({"tanhshrink", kFloating, {"[3,5]", "[]"}, 0, nullptr});
}

}  // namespace

void add_networks(std::vector<Row>& rows) {
  add_convolutions(rows);
  add_pooling(rows);
  add_dropout(rows);
  add_losses_of_two(rows);
}

}  // namespace fornax::samples
