// The sample table: for every operator, calls to try it with, written as one line of text each.
//
// A call is the arguments in the schema's order, then named ones; what is left out has the schema's
// default:
//   "[2,3] [3] alpha=2"        "([2,3] [1,3]) dim=0"        "[4,5]:distinct 1 true"
// An argument is
//   [2,3]        a tensor of these sizes in the dtype the suite asks for, with fixed random values
//   [2,3]:MODS   the same, restricted (see Domain) and typed by modifiers joined with ':'
//   (A B -)      a list of tensors, '-' an undefined one
//   {1,-2}       a list of numbers; real if one of them has a point
//   3 0.5 1+2j   numbers          true false       'text'       -   absent
//   f32 …        a dtype          contiguous preserve channels_last channels_last_3d   cpu meta
// Modifiers: pos, unit, one, nz, distinct, sorted, prob (domains); f32 i64 bool … (a fixed dtype);
// <N (integers 0 … N-1, int64 unless a dtype is given); const (no gradient is asked for); real (the
// suite's dtype without its complex part).
#pragma once

#include <complex>
#include <string>
#include <string_view>
#include <vector>

#include "fornax/core/op.h"

namespace fornax::samples {

// ---- dtypes: a bit per Dtype
using DtypeSet = uint16_t;
constexpr DtypeSet set_of(Dtype d) { return DtypeSet(1u << int(d)); }
constexpr bool contains(DtypeSet set, Dtype d) { return (set >> int(d) & 1) != 0; }
inline constexpr DtypeSet kNone = 0, kBools = set_of(Dtype::kBool), kInts = 0b111110,
                          kHalves = set_of(Dtype::kF16) | set_of(Dtype::kBF16),
                          kSingles = set_of(Dtype::kF32) | set_of(Dtype::kF64),
                          kReals = kHalves | kSingles,
                          kFullComplex = set_of(Dtype::kC64) | set_of(Dtype::kC128),
                          kComplexes = set_of(Dtype::kC32) | kFullComplex,
                          kFloating = kReals | kComplexes, kNumbers = kInts | kFloating,
                          kRealNumbers = kBools | kInts | kReals, kAll = kBools | kNumbers;

enum RowFlag : uint32_t {
  kRandomValues = 1,     // results differ from call to call: values are not compared
  kNoGradient = 2,       // has no derivative anywhere it is defined
  kNoSecond = 4,         // PyTorch defines no double backward
  kNoInplace = 8,        // f_ is not defined though the sizes would allow it
  kNoOut = 16,           // f_out is not defined
  kUninitialised = 32,   // results hold whatever was in memory
  kPermutesInput = 64,   // any order of equal results is right
  kAliases = 128,        // may return its argument itself
  kLoose = 256,          // differences of 100 times the usual bound
  kReadsValues = 512,    // no meta device: sizes or checks depend on values
  kWideResults = 1024,   // f64 and c128 whatever the operands are
  kReadsStrides = 2048,  // the result depends on strides and offset by definition
  kDtypeGiven = 16384,   // the result's dtype is an argument's or fixed
  kCounts = 8192,        // works in proportion to the values of its integers
  kRefusesBits = 4096,   // lazily conjugated or negated arguments are an error by definition
};

struct Row {
  std::string_view op;  // as find_op takes it
  DtypeSet dtypes;      // of open tensors; every other dtype must be refused
  std::vector<const char*> calls;
  uint32_t flags = 0;
  // Arguments and results PyTorch keeps for backward, by schema name ("self other result"), and by
  // "resultN" for one of several. nullptr: what the record says is taken.
  const char* saved = nullptr;
  // Dtypes gradients are checked in; others of `dtypes` have none in PyTorch either.
  DtypeSet gradients = set_of(Dtype::kF64) | set_of(Dtype::kC128);
  // Calls with operands large enough to be split among threads.
  std::vector<const char*> large = {};
};

struct ErrorRow {
  std::string_view op;
  const char* call;
  ErrorKind kind;
  std::string_view text;  // part of the message
};

struct Exclusion {
  std::string_view op, reason;
};

const std::vector<Row>& rows();
const std::vector<ErrorRow>& error_rows();
// Records without a row, each for a stated reason.
const std::vector<Exclusion>& exclusions();
// nullptr if there is none.
const Row* row_of(const Op& op);

// ---- a call with owned arguments
struct Value {
  Tag tag = Tag::kNone;
  Tensor tensor;
  std::vector<Tensor> list;
  int64_t integer = 0;
  double real = 0;
  Scalar number;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  std::string text;
  // Per tensor of `tensor` / `list`.
  std::vector<uint8_t> open;            // takes the suite's dtype
  std::vector<uint8_t> differentiable;  // a gradient may be asked for

  Arg arg() const;
};

struct Slot {
  int arg, place;
  bool open, differentiable;
};

class Sample {
 public:
  // Builds the call. Throws Error(kValue) on text that isn't a call of `op`.
  Sample(const Op& op, std::string_view text, Dtype dtype, uint64_t seed = 1);

  const Op& op() const { return *op_; }
  const std::string& text() const { return text_; }
  Dtype dtype() const { return dtype_; }
  std::vector<Value>& values() { return values_; }
  const std::vector<Value>& values() const { return values_; }

  // Defined tensors in argument order.
  const std::vector<Slot>& slots() const { return slots_; }
  Tensor& tensor(const Slot& slot);
  const Tensor& tensor(const Slot& slot) const;
  // fn(tensor) replaces every tensor.
  template <class F>
  Sample map(F fn) const {
    Sample copy = *this;
    for (const Slot& s : copy.slots_) copy.tensor(s) = fn(copy.tensor(s), s);
    return copy;
  }
  // The same values in tensors of other bytes.
  Sample copy() const;

  SmallVec<Arg, 8> args() const;
  // Results without hidden ones.
  Tensors run(Form form = Form::kNew, Tensors outs = {}) const;
  // "add([2,3] [3]) float64"
  std::string describe() const;

 private:
  const Op* op_;
  std::string text_;
  Dtype dtype_;
  std::vector<Value> values_;
  std::vector<Slot> slots_;
};

}  // namespace fornax::samples
