// The VM's engine: walks a shape in chunks, brings operands into contiguous form, runs the program.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fornax/base/error.h"
#include "fornax/base/threads.h"
#include "fornax/expr/kernels/table.h"
#include "fornax/expr/vm.h"

namespace fornax::expr {
namespace {

// Elements per chunk: a handful of buffers of this many f32 or f64 stay in the first-level cache.
constexpr int64_t kChunk = 512;
// Operands larger than this together do not stay in the second-level cache.
constexpr int64_t kCacheBytes = 1 << 20;
// Rows at least this long are chunks of their own; shorter ones are gathered into chunks.
constexpr int64_t kLongRow = 128;
// Blocks of a transposed input: bytes down (four cache lines), columns across.
constexpr int64_t kTileBytes = 256;
constexpr int64_t kTileColumns = 256;
constexpr int kMaxDims = 64;

// ---- Memory of one thread, kept between calls

struct Scratch {
  char* data = nullptr;
  size_t bytes = 0;
  ~Scratch() { std::free(data); }
};

char* scratch(size_t bytes) {
  static thread_local Scratch memory;
  if (memory.bytes < bytes) {
    std::free(memory.data);
    memory.bytes = 0;
    const size_t size = (bytes + bytes / 2 + 4095) / 4096 * 4096;
    memory.data = static_cast<char*>(std::aligned_alloc(4096, size));
    FX_CHECK(memory.data != nullptr, kMemory, "cannot allocate ", size, " bytes");
    memory.bytes = size;
  }
  return memory.data;
}

// ---- A program with its operands' addresses, on one thread

class Machine {
 public:
  // `extra`: bytes of scratch memory for the caller, at extra().
  Machine(const Program& program, int64_t chunk, size_t extra) : program_(program) {
    const int inputs = int(program.inputs.size()), outputs = int(program.outputs.size());
    const int constants = int(program.constants.size());
    const int before_slots = inputs + outputs + constants + program.uniforms;
    // The gap keeps slots from starting in the same cache set.
    const size_t slot = (size_t(chunk) * size_t(program.slot_bytes) + 63) / 64 * 64 + 64;
    const size_t slot_bytes = slot * size_t(program.slots);
    const bool small = before_slots + program.slots <= kSmallTable &&
                       program.uniforms <= kSmallUniforms && slot_bytes + extra <= kSmallBytes;
    char* memory = small_memory_;
    pointers_ = small_pointers_;
    uint64_t* uniforms = small_uniforms_;
    if (!small) {
      const size_t table = size_t(before_slots + program.slots + 7) / 8 * 64;
      const size_t values = size_t(program.uniforms + 7) / 8 * 64;
      memory = scratch(table + values + slot_bytes + extra);
      pointers_ = reinterpret_cast<const void**>(memory);
      uniforms = reinterpret_cast<uint64_t*>(memory + table);
      memory += table + values;
    }
    const void** p = pointers_ + inputs + outputs;
    for (int i = 0; i < constants; ++i) *p++ = &program.constants[size_t(i)];
    for (int i = 0; i < program.uniforms; ++i) *p++ = uniforms + i;
    for (int i = 0; i < program.slots; ++i) *p++ = memory + size_t(i) * slot;
    extra_ = memory + slot_bytes;
  }

  const void*& operand(int i) { return pointers_[i]; }  // inputs, then outputs
  char* extra() const { return extra_; }

  // Uniform inputs must be set.
  void start() { step(program_.prelude, 1); }
  void execute(int64_t n) { step(program_.code, n); }

 private:
  static constexpr int kSmallTable = 96, kSmallUniforms = 32;
  static constexpr size_t kSmallBytes = 2048;

  void step(const std::vector<Instruction>& code, int64_t n) {
    const void** p = pointers_;
    for (const Instruction& i : code) i.loop(const_cast<void*>(p[i.d]), p[i.a], p[i.b], p[i.c], n);
  }

  const Program& program_;
  const void** pointers_;
  char* extra_;
  const void* small_pointers_[kSmallTable];
  uint64_t small_uniforms_[kSmallUniforms];
  alignas(64) char small_memory_[kSmallBytes];
};

// Elements that a thread should get at least.
int64_t grain_of(const Program& program) {
  return std::clamp<int64_t>(65536 / (program.cost + 1), 1024, 32768);
}

// ---- Contiguous operands

struct Linear {
  const Program& program;
  const void* const* inputs;
  void* const* outputs;
  int64_t n;

  int count() const { return int(program.inputs.size() + program.outputs.size()); }
  int64_t stride(int i) const {
    const int inputs_count = int(program.inputs.size());
    if (i >= inputs_count) return size_of(program.outputs[size_t(i - inputs_count)]);
    const InputSpec& spec = program.inputs[size_t(i)];
    const bool varies = !spec.uniform && (program.used_inputs >> i & 1) != 0;
    return varies ? size_of(spec.dtype) : 0;
  }
  const char* address(int i) const {
    const int inputs_count = int(program.inputs.size());
    return static_cast<const char*>(i < inputs_count ? inputs[i] : outputs[i - inputs_count]);
  }
};

void prefetch(const void* address, int64_t bytes) {
  const char* p = static_cast<const char*>(address);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// A short run: no offsets, no chunks. The functions give the operands' addresses.
template <class Input, class Output>
inline void run_once(const Program& program, int64_t n, Input input, Output output) {
  Machine machine(program, n, 0);
  const int inputs = int(program.inputs.size()), outputs = int(program.outputs.size());
  for (int i = 0; i < inputs; ++i) machine.operand(i) = input(i);
  for (int i = 0; i < outputs; ++i) machine.operand(inputs + i) = output(i);
  machine.start();
  machine.execute(n);
}

// Large outputs are computed into a buffer and streamed to memory from there.
class Streams {
 public:
  explicit Streams(const Linear& linear) : linear_(linear) {
    const int count = linear.count();
    first_ = int(linear.program.inputs.size());
    for (int i = first_; i < count; ++i) {
      const char* data = linear.address(i);
      bool streamed = linear.n * linear.stride(i) >= kStreamBytes &&
                      reinterpret_cast<uintptr_t>(data) % 64 == 0;
      for (int k = 0; k < first_; ++k) streamed &= linear.address(k) != data;  // in place: cached
      if (streamed) mask_ |= uint64_t(1) << i;
      if (streamed) bytes_ += kChunk * linear.stride(i);
    }
  }
  bool any() const { return mask_ != 0; }
  size_t buffer_bytes() const { return size_t(bytes_); }

  // Puts buffers in place of the outputs, which start at element `from`.
  void attach(Machine& machine, int64_t from) {
    char* buffer = machine.extra();
    for (int i = first_; i < linear_.count(); ++i) {
      if ((mask_ >> i & 1) == 0) continue;
      target_[i] = const_cast<char*>(linear_.address(i)) + from * linear_.stride(i);
      machine.operand(i) = buffer;
      buffer += kChunk * linear_.stride(i);
    }
  }
  bool has(int i) const { return (mask_ >> i & 1) != 0; }
  void flush(Machine& machine, int64_t m) {
    for (int i = first_; i < linear_.count(); ++i) {
      if (!has(i)) continue;
      loops_.stream(target_[i], machine.operand(i), m * linear_.stride(i));
      target_[i] += m * linear_.stride(i);
    }
  }
  void end() const { loops_.stream_end(); }

 private:
  const Linear& linear_;
  const DirectLoops& loops_ = direct_loops();
  int first_ = 0;
  int64_t bytes_ = 0;
  uint64_t mask_ = 0;
  char* target_[kMaxOperands];
};

void run_range(const Linear& linear, int64_t from, int64_t to) {
  const Program& program = linear.program;
  Streams streams(linear);
  const bool whole = program.code.size() == 1 && program.slots == 0 && !streams.any();
  const int64_t chunk = whole ? to - from : kChunk;
  const int count = linear.count();
  int64_t strides[kMaxOperands];
  int64_t bytes = 0;
  Machine machine(program, std::min(chunk, kChunk), streams.buffer_bytes());
  for (int i = 0; i < count; ++i) {
    strides[i] = streams.has(i) ? 0 : linear.stride(i);
    bytes += strides[i];
    machine.operand(i) = linear.address(i) + from * strides[i];
  }
  streams.attach(machine, from);
  machine.start();
  const bool ahead = !whole && (to - from) * bytes > kCacheBytes;
  for (int64_t at = from; at < to; at += chunk) {
    const int64_t m = std::min(chunk, to - at), next = std::min(chunk, to - at - m);
    for (int i = 0; i < count && ahead && next > 0; ++i)
      if (strides[i] != 0)
        prefetch(static_cast<const char*>(machine.operand(i)) + m * strides[i], next * strides[i]);
    machine.execute(m);
    for (int i = 0; i < count; ++i)
      if (strides[i] != 0)
        machine.operand(i) = static_cast<const char*>(machine.operand(i)) + m * strides[i];
    if (streams.any()) streams.flush(machine, m);
  }
  if (streams.any()) streams.end();
}

void run_linear(const Linear& linear) {
  const int64_t n = linear.n;
  const int64_t grain = grain_of(linear.program);
  if (n <= grain) return run_range(linear, 0, n);
  const int64_t blocks = (n + kChunk - 1) / kChunk;
  parallel_for(0, blocks, (grain + kChunk - 1) / kChunk, [&](int64_t from, int64_t to) {
    run_range(linear, from * kChunk, std::min(to * kChunk, n));
  });
}

void run_long(const Program& program, const Iteration& it, int64_t n) {
  const void* inputs[kMaxOperands];
  void* outputs[kMaxOperands];
  for (int i = 0; i < int(program.inputs.size()); ++i) inputs[i] = it.inputs[i].data;
  for (int i = 0; i < int(program.outputs.size()); ++i) outputs[i] = it.outputs[i].data;
  run_linear({program, inputs, outputs, n});
}

// ---- Any strides: the shape in a simple form

struct Plan {
  const Program* program;
  int count = 0;  // operands that vary
  int operand[kMaxOperands];
  int64_t size[kMaxOperands];  // bytes of an element
  char* data[kMaxOperands];
  int64_t strides[kMaxOperands][kMaxDims];
  bool is_output[kMaxOperands];
  int dims = 0;
  int64_t sizes[kMaxDims];
  const void* uniform[kMaxOperands];  // by operand; null if it varies

  int64_t inner() const { return sizes[dims - 1]; }
  int64_t inner_stride(int k) const { return strides[k][dims - 1]; }
  bool repeats(int k) const {  // one row for all
    for (int d = 0; d + 1 < dims; ++d)
      if (strides[k][d] != 0) return false;
    return true;
  }
  bool linear(int k) const {
    int64_t want = size[k];
    for (int d = dims - 1; d >= 0; want *= sizes[d--])
      if (strides[k][d] != want) return false;
    return true;
  }
};

bool is_contiguous(const int64_t* strides, const int64_t* sizes, int ndim, int64_t bytes) {
  if (strides == nullptr) return true;
  for (int d = ndim - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[d] != bytes) return false;
    bytes *= sizes[d];
  }
  return true;
}

bool all_contiguous(const Program& program, const Iteration& it) {
  for (int i = 0; i < int(program.inputs.size()); ++i) {
    const InputSpec& spec = program.inputs[size_t(i)];
    if (spec.uniform || it.inputs[i].data == nullptr) continue;
    if (!is_contiguous(it.inputs[i].strides, it.sizes, it.ndim, size_of(spec.dtype))) return false;
  }
  for (int i = 0; i < int(program.outputs.size()); ++i)
    if (!is_contiguous(it.outputs[i].strides, it.sizes, it.ndim,
                       size_of(program.outputs[size_t(i)])))
      return false;
  return true;
}

void add_operand(Plan& plan, const Iteration& it, int operand, const void* data,
                 const int64_t* strides, int64_t bytes, bool output) {
  const int k = plan.count++;
  plan.operand[k] = operand;
  plan.size[k] = bytes;
  plan.data[k] = static_cast<char*>(const_cast<void*>(data));
  plan.is_output[k] = output;
  int64_t contiguous = bytes;
  int to = plan.dims;
  for (int d = it.ndim - 1; d >= 0; contiguous *= it.sizes[d--])
    if (it.sizes[d] != 1) plan.strides[k][--to] = strides ? strides[d] : contiguous;
}

// True when dimension a belongs outside b: by the first operand that tells, outputs first.
bool is_outer(const Plan& plan, int a, int b) {
  for (int k = plan.count - 1; k >= 0; --k) {
    const int64_t x = std::abs(plan.strides[k][a]), y = std::abs(plan.strides[k][b]);
    if (x != y && x != 0 && y != 0) return x > y;
  }
  return true;
}

void swap_dims(Plan& plan, int a, int b) {
  std::swap(plan.sizes[a], plan.sizes[b]);
  for (int k = 0; k < plan.count; ++k) std::swap(plan.strides[k][a], plan.strides[k][b]);
}

void coalesce(Plan& plan) {
  int to = 0;
  for (int d = 1; d < plan.dims; ++d) {
    bool joins = true;
    for (int k = 0; k < plan.count && joins; ++k)
      joins = plan.strides[k][to] == plan.strides[k][d] * plan.sizes[d];
    if (joins) {
      plan.sizes[to] *= plan.sizes[d];
    } else {
      plan.sizes[++to] = plan.sizes[d];
    }
    for (int k = 0; k < plan.count; ++k) plan.strides[k][to] = plan.strides[k][d];
  }
  plan.dims = to + 1;
}

// Operands that vary, without dimensions of size 1, outermost output dimension first, neighbours
// that every operand walks as one joined.
void make_plan(Plan& plan, const Program& program, const Iteration& it) {
  plan.program = &program;
  for (int d = 0; d < it.ndim; ++d)
    if (it.sizes[d] != 1) plan.sizes[plan.dims++] = it.sizes[d];
  const int inputs = int(program.inputs.size());
  for (int i = 0; i < inputs; ++i) {
    const Source& source = it.inputs[i];
    const InputSpec& spec = program.inputs[size_t(i)];
    const bool varies = !spec.uniform && (program.used_inputs >> i & 1) != 0;
    plan.uniform[i] = varies ? nullptr : source.data;
    if (varies) add_operand(plan, it, i, source.data, source.strides, size_of(spec.dtype), false);
  }
  for (int i = 0; i < int(program.outputs.size()); ++i) {
    const Target& target = it.outputs[i];
    plan.uniform[inputs + i] = nullptr;
    add_operand(plan, it, inputs + i, target.data, target.strides,
                size_of(program.outputs[size_t(i)]), true);
  }
  for (int i = 1; i < plan.dims; ++i)
    for (int j = i; j > 0 && !is_outer(plan, j - 1, j); --j) swap_dims(plan, j - 1, j);
  coalesce(plan);
}

// Counts through the outer dimensions [0, dims), with the byte offset of every operand.
class Odometer {
 public:
  Odometer(const Plan& plan, int dims, int64_t position) : plan_(plan), dims_(dims) {
    for (int k = 0; k < plan.count; ++k) offset_[k] = 0;
    for (int d = dims - 1; d >= 0; --d) {
      index_[d] = position % plan.sizes[d];
      position /= plan.sizes[d];
      for (int k = 0; k < plan.count; ++k) offset_[k] += index_[d] * plan.strides[k][d];
    }
  }
  int64_t offset(int k) const { return offset_[k]; }
  // Steps left in the last dimension, this one included.
  int64_t left() const { return dims_ == 0 ? 1 : plan_.sizes[dims_ - 1] - index_[dims_ - 1]; }
  // By at most left().
  void advance(int64_t by) {
    if (dims_ == 0) return;
    move(dims_ - 1, by);
    for (int d = dims_ - 1; d > 0 && index_[d] == plan_.sizes[d]; --d) {
      move(d, -plan_.sizes[d]);
      move(d - 1, 1);
    }
  }

 private:
  void move(int d, int64_t by) {
    index_[d] += by;
    for (int k = 0; k < plan_.count; ++k) offset_[k] += by * plan_.strides[k][d];
  }

  const Plan& plan_;
  const int dims_;
  int64_t index_[kMaxDims];
  int64_t offset_[kMaxOperands];
};

// How an operand reaches a chunk.
enum class Path : uint8_t {
  kDirect,    // its memory is used as it lies
  kFilled,    // one value for the whole row: a buffer that is refilled when the value moves
  kRepeated,  // the same row or rows for every chunk: a buffer filled once
  kCopied,    // copied into a buffer (inputs) or out of it (outputs)
  kTile,      // transposed into a buffer, many rows at a time
};

class Walk {
 public:
  Walk(const Plan& plan, const Path* paths, const int64_t* buffer_elements, int64_t chunk)
      : plan_(plan), machine_(*plan.program, chunk, buffer_bytes(plan, paths, buffer_elements)) {
    char* next = machine_.extra();
    for (int k = 0; k < plan.count; ++k) {
      path_[k] = paths[k];
      buffer_[k] = next;
      filled_from_[k] = nullptr;
      if (paths[k] != Path::kDirect) next += padded(plan, k, buffer_elements[k]);
      machine_.operand(plan.operand[k]) = buffer_[k];
    }
    const int operands = int(plan.program->inputs.size());
    for (int i = 0; i < operands; ++i)
      if (plan.uniform[i] != nullptr) machine_.operand(i) = plan.uniform[i];
    machine_.start();
  }

  // One piece of a row: m elements, `column` elements into the rows that the odometer is at.
  void run_piece(const Odometer& at, int64_t column, int64_t m) {
    for (int k = 0; k < plan_.count; ++k) {
      char* data = plan_.data[k] + at.offset(k) + column * plan_.inner_stride(k);
      bring(k, data, m);
    }
    machine_.execute(m);
    for (int k = 0; k < plan_.count; ++k) {
      if (!plan_.is_output[k] || path_[k] != Path::kCopied) continue;
      char* data = plan_.data[k] + at.offset(k) + column * plan_.inner_stride(k);
      copy_2d(data, 0, plan_.inner_stride(k), buffer_[k], 0, plan_.size[k], 1, m, k);
    }
  }

  // `rows` whole rows of `inner` elements as one chunk, from row number `first` on.
  void run_rows(Odometer& at, int64_t first, int64_t rows) {
    const int64_t inner = plan_.inner();
    for (int64_t done = 0; done < rows;) {
      const int64_t run = std::min(rows - done, at.left());
      for (int k = 0; k < plan_.count; ++k)
        if (!plan_.is_output[k]) gather(k, at, done, run);
      at.advance(run);
      done += run;
    }
    for (int k = 0; k < plan_.count; ++k)
      if (path_[k] == Path::kDirect)
        machine_.operand(plan_.operand[k]) = plan_.data[k] + first * inner * plan_.size[k];
    machine_.execute(rows * inner);
    if (any_copied_output()) scatter(first, rows);
  }

  // A tile: `rows` steps along dimension d, `cols` along the last one.
  void run_tile(const Odometer& at, int d, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    for (int k = 0; k < plan_.count; ++k) {
      if (path_[k] != Path::kTile) continue;
      const char* data =
          plan_.data[k] + at.offset(k) + row * plan_.strides[k][d] + col * plan_.inner_stride(k);
      copy_2d(buffer_[k], cols * plan_.size[k], plan_.size[k], data, plan_.strides[k][d],
              plan_.inner_stride(k), rows, cols, k);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int k = 0; k < plan_.count; ++k) {
        if (path_[k] == Path::kTile) {
          machine_.operand(plan_.operand[k]) = buffer_[k] + r * cols * plan_.size[k];
        } else {
          bring(k, tile_row(at, k, d, row + r, col), cols);
        }
      }
      machine_.execute(cols);
      for (int k = 0; k < plan_.count; ++k)
        if (plan_.is_output[k] && path_[k] == Path::kCopied)
          copy_2d(tile_row(at, k, d, row + r, col), 0, plan_.inner_stride(k), buffer_[k], 0,
                  plan_.size[k], 1, cols, k);
    }
  }

 private:
  static int64_t padded(const Plan& plan, int k, int64_t elements) {
    return (elements * plan.size[k] + 63) / 64 * 64 + 64;
  }
  static size_t buffer_bytes(const Plan& plan, const Path* paths, const int64_t* elements) {
    int64_t bytes = 0;
    for (int k = 0; k < plan.count; ++k)
      if (paths[k] != Path::kDirect) bytes += padded(plan, k, elements[k]);
    return size_t(bytes);
  }

  void copy_2d(void* d, int64_t d_row, int64_t d_col, const void* a, int64_t a_row, int64_t a_col,
               int64_t rows, int64_t cols, int k) {
    loops_.copy_2d(d, d_row, d_col, a, a_row, a_col, rows, cols, int(plan_.size[k]));
  }

  char* tile_row(const Odometer& at, int k, int d, int64_t row, int64_t col) const {
    return plan_.data[k] + at.offset(k) + row * plan_.strides[k][d] + col * plan_.inner_stride(k);
  }

  void bring(int k, char* data, int64_t m) {
    switch (path_[k]) {
      case Path::kDirect: machine_.operand(plan_.operand[k]) = data; return;
      case Path::kFilled:
        if (filled_from_[k] == data && filled_[k] >= m) return;
        filled_from_[k] = data;
        filled_[k] = m;
        loops_.fill(buffer_[k], data, m, int(plan_.size[k]));
        return;
      default:
        if (!plan_.is_output[k])
          copy_2d(buffer_[k], 0, plan_.size[k], data, 0, plan_.inner_stride(k), 1, m, k);
    }
  }

  // Rows [done, done + run) of a chunk, which lie `outer` bytes apart.
  void gather(int k, const Odometer& at, int64_t done, int64_t run) {
    if (path_[k] == Path::kDirect) return;
    const int64_t row_bytes = plan_.inner() * plan_.size[k];
    const char* data = plan_.data[k] + at.offset(k);
    if (path_[k] == Path::kRepeated) {
      if (filled_[k] >= done + run && filled_from_[k] != nullptr) return;
      filled_from_[k] = data;
      filled_[k] = done + run;
    }
    copy_2d(buffer_[k] + done * row_bytes, row_bytes, plan_.size[k], data, outer_stride(k),
            plan_.inner_stride(k), run, plan_.inner(), k);
  }

  void scatter(int64_t first, int64_t rows) {
    Odometer at(plan_, plan_.dims - 1, first);
    for (int64_t done = 0; done < rows;) {
      const int64_t run = std::min(rows - done, at.left());
      for (int k = 0; k < plan_.count; ++k) {
        if (!plan_.is_output[k] || path_[k] == Path::kDirect) continue;
        const int64_t row_bytes = plan_.inner() * plan_.size[k];
        copy_2d(plan_.data[k] + at.offset(k), outer_stride(k), plan_.inner_stride(k),
                buffer_[k] + done * row_bytes, row_bytes, plan_.size[k], run, plan_.inner(), k);
      }
      at.advance(run);
      done += run;
    }
  }

  int64_t outer_stride(int k) const {
    return plan_.dims < 2 ? 0 : plan_.strides[k][plan_.dims - 2];
  }
  bool any_copied_output() const {
    for (int k = 0; k < plan_.count; ++k)
      if (plan_.is_output[k] && path_[k] != Path::kDirect) return true;
    return false;
  }

  const Plan& plan_;
  const DirectLoops& loops_ = direct_loops();
  Machine machine_;
  Path path_[kMaxOperands];
  char* buffer_[kMaxOperands];
  const char* filled_from_[kMaxOperands];
  int64_t filled_[kMaxOperands];
};

// ---- Three ways through a plan

int64_t elements_of(const Plan& plan) {
  int64_t n = 1;
  for (int d = 0; d < plan.dims; ++d) n *= plan.sizes[d];
  return n;
}

int64_t grain_units(const Plan& plan, int64_t unit_elements) {
  return std::max<int64_t>(1, grain_of(*plan.program) / std::max<int64_t>(unit_elements, 1));
}

Path row_path(const Plan& plan, int k) {
  const int64_t stride = plan.inner_stride(k);
  if (stride == plan.size[k]) return Path::kDirect;
  return stride == 0 && !plan.is_output[k] ? Path::kFilled : Path::kCopied;
}

// Long rows, each in pieces.
void walk_rows(const Plan& plan) {
  const int64_t inner = plan.inner(), rows = elements_of(plan) / inner;
  const Program& program = *plan.program;
  Path paths[kMaxOperands];
  int64_t elements[kMaxOperands];
  bool direct = program.code.size() == 1 && program.slots == 0;
  for (int k = 0; k < plan.count; ++k) {
    paths[k] = row_path(plan, k);
    direct &= paths[k] == Path::kDirect;
  }
  const int64_t piece = std::min(inner, direct ? 32 * kChunk : kChunk);
  for (int k = 0; k < plan.count; ++k) elements[k] = piece;
  const int64_t pieces = (inner + piece - 1) / piece;
  parallel_for(0, rows * pieces, grain_units(plan, piece), [&](int64_t from, int64_t to) {
    Walk walk(plan, paths, elements, std::min(piece, kChunk));
    Odometer at(plan, plan.dims - 1, from / pieces);
    int64_t p = from % pieces;
    for (int64_t u = from; u < to; ++u) {
      walk.run_piece(at, p * piece, std::min(piece, inner - p * piece));
      if (++p < pieces) continue;
      p = 0;
      if (u + 1 < to) at.advance(1);
    }
  });
}

// Short rows, many to a chunk.
void walk_groups(const Plan& plan) {
  const int64_t inner = plan.inner(), rows = elements_of(plan) / inner;
  const int64_t group = std::min(rows, std::max<int64_t>(1, kChunk / inner));
  Path paths[kMaxOperands];
  int64_t elements[kMaxOperands];
  for (int k = 0; k < plan.count; ++k) {
    elements[k] = group * inner;
    paths[k] = plan.linear(k)                          ? Path::kDirect
               : plan.repeats(k) && !plan.is_output[k] ? Path::kRepeated
                                                       : Path::kCopied;
  }
  const int64_t groups = (rows + group - 1) / group;
  parallel_for(0, groups, grain_units(plan, group * inner), [&](int64_t from, int64_t to) {
    Walk walk(plan, paths, elements, group * inner);
    Odometer at(plan, plan.dims - 1, from * group);
    for (int64_t u = from; u < to; ++u)
      walk.run_rows(at, u * group, std::min(group, rows - u * group));
  });
}

// The dimension along which a transposed input is contiguous, or -1.
int tile_dim(const Plan& plan) {
  const int last = plan.dims - 1;
  for (int k = 0; k < plan.count; ++k) {
    if (plan.is_output[k] || plan.strides[k][last] == plan.size[k] || plan.strides[k][last] == 0)
      continue;
    for (int d = 0; d < last; ++d)
      if (plan.strides[k][d] == plan.size[k] && plan.sizes[d] >= 8 && plan.sizes[last] >= 8)
        return d;
  }
  return -1;
}

// Moves dimension d in front of the last one.
void move_dim_inward(Plan& plan, int d) {
  for (; d + 1 < plan.dims - 1; ++d) swap_dims(plan, d, d + 1);
}

// Transposed inputs: blocks of rows and columns, so that whole cache lines are read once.
void walk_tiles(Plan& plan, int dim) {
  move_dim_inward(plan, dim);
  const int d = plan.dims - 2;
  const int64_t height = plan.sizes[d], width = plan.inner();
  Path paths[kMaxOperands];
  int64_t elements[kMaxOperands];
  int64_t narrowest = 16;
  for (int k = 0; k < plan.count; ++k) {
    const bool tile = !plan.is_output[k] && plan.strides[k][d] == plan.size[k] &&
                      row_path(plan, k) == Path::kCopied;
    paths[k] = tile ? Path::kTile : row_path(plan, k);
    if (tile) narrowest = std::min(narrowest, plan.size[k]);
  }
  const int64_t rows = std::min<int64_t>(height, std::max<int64_t>(8, kTileBytes / narrowest));
  const int64_t cols = std::min<int64_t>(width, kTileColumns);
  for (int k = 0; k < plan.count; ++k) elements[k] = paths[k] == Path::kTile ? rows * cols : cols;
  const int64_t down = (height + rows - 1) / rows, across = (width + cols - 1) / cols;
  const int64_t tiles = elements_of(plan) / (height * width) * down * across;
  parallel_for(0, tiles, grain_units(plan, rows * cols), [&](int64_t from, int64_t to) {
    Walk walk(plan, paths, elements, cols);
    for (int64_t u = from; u < to; ++u) {
      // Downwards first: the next lines of the same pages.
      const int64_t row = u % down * rows, col = u / down % across * cols;
      const Odometer at(plan, d, u / down / across);
      walk.run_tile(at, d, row, std::min(rows, height - row), col, std::min(cols, width - col));
    }
  });
}

void run_strided(const Program& program, const Iteration& it) {
  FX_CHECK(it.ndim <= kMaxDims, kUnsupported, "at most ", kMaxDims, " dimensions, got ", it.ndim);
  Plan plan;
  make_plan(plan, program, it);
  bool linear = true;
  for (int k = 0; k < plan.count; ++k) linear &= plan.linear(k);
  if (linear) return run_long(program, it, elements_of(plan));
  if (plan.dims >= 2) {
    const int dim = tile_dim(plan);
    if (dim >= 0) return walk_tiles(plan, dim);
  }
  if (plan.dims == 1 || plan.inner() >= kLongRow) return walk_rows(plan);
  walk_groups(plan);
}

}  // namespace

void run_contiguous(const Program& program, const void* const* inputs, void* const* outputs,
                    int64_t n) {
  if (n > kChunk) return run_linear({program, inputs, outputs, n});
  if (n <= 0) return;
  run_once(
      program, n, [=](int i) { return inputs[i]; }, [=](int i) { return outputs[i]; });
}

void run(const Program& program, const Iteration& it) {
  int64_t n = 1;
  for (int d = 0; d < it.ndim; ++d) n *= it.sizes[d];
  if (n == 0) return;
  if (n != 1 && !all_contiguous(program, it)) return run_strided(program, it);
  if (n > kChunk) return run_long(program, it, n);
  run_once(
      program, n, [&](int i) { return it.inputs[i].data; },
      [&](int i) { return it.outputs[i].data; });
}

}  // namespace fornax::expr
