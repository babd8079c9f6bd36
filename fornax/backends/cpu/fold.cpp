#include "fornax/backends/cpu/fold.h"

#include <algorithm>

#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/core/op.h"

namespace fornax {

namespace isa_v3 {
void set_value_folds(cpu::FoldTable& table);
void set_moment_folds(cpu::FoldTable& table);
void set_index_folds(cpu::FoldTable& table);
}  // namespace isa_v3
namespace isa_v4 {
void set_value_folds(cpu::FoldTable& table);
void set_moment_folds(cpu::FoldTable& table);
void set_index_folds(cpu::FoldTable& table);
}  // namespace isa_v4

namespace cpu {
namespace {

FoldTable make_table() {
  FoldTable table;
  if (active_isa() == Isa::kV4) {
    isa_v4::set_value_folds(table);
    isa_v4::set_moment_folds(table);
    isa_v4::set_index_folds(table);
  } else {
    isa_v3::set_value_folds(table);
    isa_v3::set_moment_folds(table);
    isa_v3::set_index_folds(table);
  }
  return table;
}

const FoldLoops& loops_of(FoldKind kind, Dtype dtype) {
  static const FoldTable table = make_table();
  return table.loops[int(kind)][int(dtype)];
}

// Elements of one piece of a long reduction, and of one task of a thread.
constexpr int64_t kPiece = int64_t(1) << 17;
constexpr int64_t kGrain = int64_t(1) << 15;
// Reductions are cut only where there are fewer results than this.
constexpr int64_t kFewResults = 2048;
// Rows that one call folds column-wise: longer runs are halved, so sums are pairwise.
constexpr int64_t kRowBlock = 512;
// Columns narrower than this are folded several rows abreast where rows lie back to back.
constexpr int64_t kNarrow = 64;

struct FoldDim {
  int64_t size;
  int64_t stride;   // of the input, in elements
  int64_t results;  // of the accumulator, in entries; 0: reduced
  int64_t place;    // of a kept dimension among the kept ones of the result
};

using FoldDims = SmallVec<FoldDim, 8>;

struct Plan {
  const FoldLoops* loops;
  const char* data;
  int64_t element;     // bytes
  FoldDims kept;       // outermost first, in the accumulator's order
  FoldDims reduced;    // outermost first
  bool by_columns;     // the innermost kept dimension has unit stride
  int64_t count = 1;   // results
  int64_t length = 1;  // elements a result
  int64_t pieces = 1;  // of dimension 0 of `reduced`
  int64_t piece = 0;   // its length
};

void sort_by_stride(FoldDims& dims) {
  // Insertion sort, larger strides first; repeated elements (stride 0) are outermost.
  auto before = [](const FoldDim& a, const FoldDim& b) {
    if (a.stride == 0 || b.stride == 0) return a.stride == 0 && b.stride != 0;
    return a.stride > b.stride;
  };
  for (size_t i = 1; i < dims.size(); ++i)
    for (size_t j = i; j > 0 && before(dims[j], dims[j - 1]); --j) std::swap(dims[j], dims[j - 1]);
}

void coalesce(FoldDims& dims) {
  FoldDims joined;
  for (const FoldDim& d : dims) {
    if (!joined.empty()) {
      FoldDim& outer = joined.back();
      bool adjacent = outer.stride == d.stride * d.size && outer.results == d.results * d.size;
      if (adjacent && d.stride != 0) {
        outer.size *= d.size;
        outer.stride = d.stride;
        outer.results = d.results;
        continue;
      }
    }
    joined.push_back(d);
  }
  dims = std::move(joined);
}

// Geometry of the accumulator: kept dimensions in order of memory of the input. Gives the strides
// of the results in it; true if that is their own row-major order.
bool lay_out(Plan& plan, Dims& strides) {
  sort_by_stride(plan.kept);
  bool ordered = true;
  int64_t step = 1;
  for (size_t i = plan.kept.size(); i-- > 0;) {
    FoldDim& d = plan.kept[i];
    d.results = step;
    strides[size_t(d.place)] = step;
    step *= d.size;
    if (i > 0 && plan.kept[i - 1].place > d.place) ordered = false;
  }
  plan.count = step;
  coalesce(plan.kept);
  return ordered;
}

void cut(Plan& plan) {
  sort_by_stride(plan.reduced);
  coalesce(plan.reduced);
  for (const FoldDim& d : plan.reduced) plan.length *= d.size;
  plan.by_columns = !plan.kept.empty() && plan.kept.back().stride == 1;
  if (plan.reduced.empty()) plan.reduced.push_back({1, 0, 0, 0});
  FoldDim& outer = plan.reduced[0];
  plan.piece = outer.size;
  if (plan.count >= kFewResults || plan.count * plan.length < 2 * kPiece) return;
  int64_t below = plan.length / outer.size * plan.count;
  int64_t piece = std::max<int64_t>(1, kPiece / std::max<int64_t>(below, 1));
  if (plan.reduced.size() == 1) piece = (piece + kRowBlock - 1) / kRowBlock * kRowBlock;
  plan.piece = std::min(piece, outer.size);
  plan.pieces = (outer.size + plan.piece - 1) / plan.piece;
}

// Calls each(offset of the input) for all positions of dims[0 .. n).
template <class F>
void for_positions(const FoldDim* dims, size_t n, int64_t offset, F each) {
  if (n == 0) return each(offset);
  for (int64_t i = 0; i < dims[0].size; ++i)
    for_positions(dims + 1, n - 1, offset + i * dims[0].stride, each);
}

class Worker {
 public:
  Worker(const Plan& plan, char* acc, int64_t plane) : plan_(plan), acc_(acc), plane_(plane) {}

  // Results [begin, end) of piece p.
  void run(int64_t p, int64_t begin, int64_t end) {
    FoldDim outer = plan_.reduced[0];
    first_ = p * plan_.piece;
    outer.size = std::min(plan_.piece, outer.size - first_);
    dims_.assign(plan_.reduced.begin(), plan_.reduced.end());
    dims_[0] = outer;
    start_ = first_ * outer.stride;
    plan_.loops->start(acc_ + begin * 8, plane_, end - begin);
    // Whole and partial runs along the innermost kept dimension.
    int64_t run = plan_.kept.empty() ? 1 : plan_.kept.back().size;
    int64_t step = plan_.kept.empty() ? 0 : plan_.kept.back().stride;
    while (begin < end) {
      int64_t at = begin % run, n = std::min(run - at, end - begin);
      fold_run(begin, offset_of(begin / run) + at * step, n, step);
      begin += n;
    }
  }

 private:
  const void* at(int64_t offset) const { return plan_.data + offset * plan_.element; }
  char* entry(int64_t i) const { return acc_ + i * 8; }

  int64_t offset_of(int64_t outer_index) const {
    int64_t offset = start_;
    for (size_t i = plan_.kept.size(); i-- > 1;) {
      const FoldDim& d = plan_.kept[i - 1];
      offset += outer_index % d.size * d.stride;
      outer_index /= d.size;
    }
    return offset;
  }

  // n results whose elements lie `step` apart.
  void fold_run(int64_t result, int64_t offset, int64_t n, int64_t step) {
    const FoldDim& inner = dims_.back();
    for_positions(dims_.data(), dims_.size() - 1, offset, [&](int64_t o) {
      if (plan_.by_columns)
        columns(entry(result), plane_, o, inner.size, inner.stride, n, first_);
      else
        plan_.loops->rows(entry(result), plane_, at(o), n, step, inner.size, inner.stride, first_);
    });
  }

  void columns(char* acc, int64_t plane, int64_t offset, int64_t rows, int64_t row_stride,
               int64_t cols, int64_t first) {
    const FoldLoops& loops = *plan_.loops;
    bool indexed = loops.planes == 2;
    if (row_stride == cols && cols < kNarrow / 2 && rows > 8 * kNarrow / cols && !indexed)
      return narrow_columns(acc, plane, offset, rows, cols);
    if (rows <= kRowBlock || cols > kMaxHalved)
      return loops.columns(acc, plane, at(offset), rows, row_stride, cols, first);
    int64_t half = (rows / 2 + kRowBlock - 1) / kRowBlock * kRowBlock;
    columns(acc, plane, offset, half, row_stride, cols, first);
    Scratch later(cols * 8 * loops.planes);
    loops.start(later.data(), cols, cols);
    columns(later.as<char>(), cols, offset + half * row_stride, rows - half, row_stride, cols,
            first + half);
    loops.merge(acc, plane, later.data(), cols, cols);
  }
  static constexpr int64_t kMaxHalved = int64_t(1) << 15;

  // m rows at a time as one row of m * cols columns.
  void narrow_columns(char* acc, int64_t plane, int64_t offset, int64_t rows, int64_t cols) {
    const FoldLoops& loops = *plan_.loops;
    int64_t m = kNarrow / cols, wide = m * cols;
    Scratch abreast(wide * 8 * loops.planes);
    loops.start(abreast.data(), wide, wide);
    columns(abreast.as<char>(), wide, offset, rows / m, wide, wide, 0);
    for (int64_t k = 0; k < m; ++k)
      loops.merge(acc, plane, abreast.as<char>() + k * cols * 8, wide, cols);
    int64_t done = rows / m * m;
    if (done < rows)
      loops.columns(acc, plane, at(offset + done * cols), rows - done, cols, cols, done);
  }

  const Plan& plan_;
  char* acc_;
  int64_t plane_, first_ = 0, start_ = 0;
  FoldDims dims_;
};

// Pieces 1 ... of every result into piece 0, as a tree.
void merge_pieces(const Plan& plan, char* acc, int64_t plane) {
  for (int64_t step = 1; step < plan.pieces; step *= 2)
    for (int64_t p = 0; p + step < plan.pieces; p += 2 * step)
      plan.loops->merge(acc + p * plan.count * 8, plane, acc + (p + step) * plan.count * 8, plane,
                        plan.count);
}

}  // namespace

bool has_fold(FoldKind kind, Dtype dtype) {
  return loops_of(kind, is_complex(dtype) ? to_real(dtype) : dtype).rows != nullptr;
}

namespace {

// Fills the plan's dimensions and `sizes` of the results; true if nothing is there to fold.
bool read_geometry(Plan& plan, const TensorImpl& t, uint64_t mask, Dims& sizes) {
  int64_t parts = is_complex(t.dtype) ? 2 : 1;
  bool empty = false;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    bool reduced = (mask >> d & 1) != 0;
    empty = empty || (reduced && t.sizes[d] == 0);
    FoldDim dim{t.sizes[d], t.strides[d] * parts, 0, int64_t(sizes.size())};
    if (!reduced) sizes.push_back(dim.size);
    if (dim.size != 1) (reduced ? plan.reduced : plan.kept).push_back(dim);
  }
  if (parts == 2) {
    plan.kept.push_back({2, 1, 0, int64_t(sizes.size())});
    sizes.push_back(2);
  }
  return empty;
}

void run(const Plan& plan, char* acc, int64_t total) {
  int64_t work = std::max<int64_t>(1, plan.length / plan.pieces);
  int64_t grain = plan.pieces > 1 ? plan.count : std::max<int64_t>(1, kGrain / work);
  parallel_for(0, total, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t p = begin / plan.count, from = begin % plan.count;
      int64_t n = std::min(plan.count - from, end - begin);
      Worker(plan, acc + p * plan.count * 8, total).run(p, from, from + n);
      begin += n;
    }
  });
  merge_pieces(plan, acc, total);
}

}  // namespace

Folded fold(FoldKind kind, const Tensor& x, uint64_t mask) {
  const TensorImpl& t = *x.impl();
  Dtype dtype = is_complex(t.dtype) ? to_real(t.dtype) : t.dtype;
  Plan plan;
  plan.loops = &loops_of(kind, dtype);
  FX_ASSERT(plan.loops->rows);
  plan.data = static_cast<const char*>(t.data());
  plan.element = size_of(dtype);
  Dims sizes;
  bool empty = read_geometry(plan, t, mask, sizes);
  Dims strides(sizes.size(), 0);
  bool ordered = lay_out(plan, strides);
  empty = empty || plan.count == 0;
  if (!empty) cut(plan);
  int64_t total = plan.count * plan.pieces;
  Folded folded{Scratch(std::max<int64_t>(total, 1) * 8 * plan.loops->planes),
                total,
                plan.loops->integer,
                ordered,
                std::move(sizes),
                std::move(strides)};
  char* acc = folded.memory.as<char>();
  if (empty)
    plan.loops->start(acc, total, plan.count);
  else
    run(plan, acc, total);
  return folded;
}

namespace {

template <class T, class A>
void convert(const A* values, void* out, int64_t n) {
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>)
      y[i] = T(float(values[i]));
    else
      y[i] = T(values[i]);
  }
}

// False where the dtype has no direct loop.
template <class A>
bool convert_to(Dtype dtype, const A* values, void* out, int64_t n) {
  switch (dtype) {
    case Dtype::kF32: convert<float>(values, out, n); return true;
    case Dtype::kF64: convert<double>(values, out, n); return true;
    case Dtype::kBF16: convert<BFloat16>(values, out, n); return true;
    case Dtype::kF16: convert<Half>(values, out, n); return true;
    case Dtype::kI64: convert<int64_t>(values, out, n); return true;
    case Dtype::kBool: convert<bool>(values, out, n); return true;
    default: return false;
  }
}

Tensor as_pairs(const Tensor& t) {
  Tensor real = t.alias();
  TensorImpl& impl = *real.impl();
  impl.dtype = to_real(impl.dtype);
  impl.offset *= 2;
  for (int64_t& s : impl.strides) s *= 2;
  impl.sizes.push_back(2);
  impl.strides.push_back(1);
  impl.numel *= 2;
  return real;
}

template <class A>
void store(const Folded& folded, const A* values, const Tensor& out_) {
  Tensor out = out_.is_complex() ? as_pairs(out_) : out_;
  int64_t n = out.numel();
  if (n == 0) return;
  if (folded.ordered && out.is_contiguous() &&
      convert_to(out.dtype(), values, out.impl()->data(), n))
    return;
  // Through a tensor in the accumulator's order; keepdim's dimensions of size 1 are skipped.
  Meta meta(std::is_same_v<A, double> ? Dtype::kF64 : Dtype::kI64, out.sizes());
  meta.strides.resize(meta.sizes.size());
  size_t next = 0;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    while (next < folded.sizes.size() && folded.sizes[next] == 1) ++next;
    meta.strides[d] = meta.sizes[d] == 1 ? 1 : folded.strides[next++];
  }
  Tensor wide = make_tensor(meta);
  A* to = static_cast<A*>(wide.impl()->data());
  std::copy(values, values + n, to);
  copy_elements(out, wide);
}

}  // namespace

void store_reals(const Folded& folded, const double* values, const Tensor& out) {
  store(folded, values, out);
}
void store_integers(const Folded& folded, const int64_t* values, const Tensor& out) {
  store(folded, values, out);
}

}  // namespace cpu
}  // namespace fornax
