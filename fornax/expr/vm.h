// Block VM: a DAG of expressions becomes a linear program in which every instruction is one SIMD
// loop over a chunk of elements that stays in the first-level cache. compile() once per (body,
// dtypes, uniformity); a Program is immutable and runs on any number of threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "fornax/base/array_ref.h"
#include "fornax/base/dtype.h"

namespace fornax::expr {

class Expr;

// Inputs plus outputs of one program.
inline constexpr int kMaxOperands = 64;

struct InputSpec {
  Dtype dtype = Dtype::kF32;
  bool uniform = false;    // one value for all elements: a scalar argument, passed by address
  bool conjugate = false;  // read as conj(x); no effect on real dtypes
  bool negate = false;     // read as -x; not for bool
};

// Reads a, b, c; writes n elements at d. The operands are of the loop's own types; uniform ones are
// a single value.
using Loop = void (*)(void* d, const void* a, const void* b, const void* c, int64_t n);

// Operand numbers index one table: inputs, outputs, constants, uniforms, slots.
struct Instruction {
  Loop loop;
  uint16_t d, a, b, c;
};

struct Program {
  std::vector<Instruction> prelude;  // once per call: what is the same for every element
  std::vector<Instruction> code;     // once per chunk
  std::vector<uint64_t> constants;
  std::vector<InputSpec> inputs;
  std::vector<Dtype> outputs;
  uint64_t used_inputs = 0;  // bit i: input i is read
  int uniforms = 0;
  int slots = 0;
  int slot_bytes = 4;  // widest element of a slot
  int cost = 1;        // rough weight of one element, 1 = an addition
};

// outputs[i] is computed and stored as output_types[i]. Reals are f64 if `f64`, else f32. Integers
// are exact modulo 2^64; they narrow, and reals convert, when they are stored. The arena of
// `outputs` must be current, and gains nodes when a root is complex.
// Throws Error(kUnsupported) for more than kMaxOperands operands, or a primitive that has no loop.
Program compile(ArrayRef<Expr> outputs, ArrayRef<Dtype> output_types, ArrayRef<InputSpec> inputs,
                bool f64);

// Strides are in BYTES, one per dimension, 0 where a value repeats.
struct Source {
  const void* data = nullptr;
  const int64_t* strides = nullptr;  // null: a uniform input, `data` holds one value of its dtype
};
struct Target {
  void* data = nullptr;
  const int64_t* strides = nullptr;  // null: contiguous, row-major
};

struct Iteration {
  int ndim = 0;
  const int64_t* sizes = nullptr;
  const Source* inputs = nullptr;   // as many as program.inputs
  const Target* outputs = nullptr;  // as many as program.outputs
};

// Evaluates the program over the whole shape, on several threads when it is large. An output may
// be exactly an input (same address and strides); any other overlap gives unspecified values, and
// so does an output whose elements overlap each other. Unused inputs may have null data.
void run(const Program& program, const Iteration& iteration);

// The same where every operand is contiguous (or uniform): the cheapest way in.
void run_contiguous(const Program& program, const void* const* inputs, void* const* outputs,
                    int64_t n);

}  // namespace fornax::expr
