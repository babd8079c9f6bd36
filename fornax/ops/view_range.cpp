// Views of parts: slices, splits, diagonals, sliding windows.
#include "fornax/ops/factory.h"
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// Cuts dimension d of a view to `length` elements from `start`.
void cut(Meta& m, size_t d, int64_t start, int64_t length) {
  m.offset += start * m.strides[d];
  m.sizes[d] = length;
}

void check_has_dims(const Meta& m, std::string_view call) {
  FX_CHECK(!m.sizes.empty(), kIndex, call, ": a 0-dim tensor has no dimension to cut");
}

void slice_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  check_has_dims(m, "slice");
  size_t d = size_t(wrap_dim(f.args.integer(1, 0), int64_t(m.sizes.size()), "slice"));
  int64_t n = m.sizes[d], step = f.args.integer(4, 1);
  FX_CHECK(step > 0, kValue, "slice: step must be positive, got ", step);
  auto clamp = [n](int64_t i) { return i < 0 ? (i + n < 0 ? 0 : i + n) : i < n ? i : n; };
  int64_t start = clamp(f.args.integer(2, 0)), end = clamp(f.args.integer(3, INT64_MAX));
  cut(m, d, start, end <= start ? 0 : (end - start - 1) / step + 1);
  m.strides[d] = int64_t(uint64_t(m.strides[d]) * uint64_t(step));
}

void narrow_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  check_has_dims(m, "narrow");
  size_t d = size_t(wrap_dim(f.args.integer(1), int64_t(m.sizes.size()), "narrow"));
  int64_t n = m.sizes[d], start = f.args.integer(2), length = f.args.integer(3);
  FX_CHECK(length >= 0, kValue, "narrow: length ", length, " is negative");
  FX_CHECK(start >= -n && start <= n, kIndex, "narrow: start ", start,
           " is out of range for dimension ", d, " of size ", n);
  if (start < 0) start += n;
  FX_CHECK(length <= n - start, kIndex, "narrow: start ", start, " and length ", length,
           " exceed dimension ", d, " of size ", n);
  cut(m, d, start, length);
}

// Pads the gradient of a cut with zeros, along dimension `d`.
void range_vjp(Vjp& v, int64_t dim, int64_t start, int64_t step) {
  const GradMeta& in = v.meta(0);
  int64_t n = in.sizes[size_t(wrap_dim(dim, int64_t(in.sizes.size())))];
  if (start < 0) start = start + n < 0 ? 0 : start + n;
  if (start > n) start = n;
  const Tensor& g = v.grad();
  if (g.sizes() == IntArrayRef(in.sizes)) return v.set(0, g);
  int64_t end = g.size(dim) ? start + (g.size(dim) - 1) * step + 1 : start;
  Tensor zero = zeros(in.sizes, TensorOptions(g.dtype()).device(g.device()));
  if (thread_state.grad_mode || thread_state.top)
    return v.set(0, slice_scatter(zero, g, dim, start, end, step));
  zero.slice(dim, start, end, step).copy_(g);
  v.set(0, zero);
}

// ---- several pieces
Dims piece_sizes(Args args, int64_t n, size_t d) {
  if (args[1].tag == Tag::kInts) {
    IntArrayRef sizes = args.ints(1);
    int64_t sum = 0;
    bool overflow = false;
    for (int64_t s : sizes) {
      FX_CHECK(s >= 0, kValue, "split: size ", s, " is negative");
      overflow = __builtin_add_overflow(sum, s, &sum) || overflow;
    }
    FX_CHECK(!overflow && sum == n, kShape, "split: sizes ", sizes, " don't sum to dimension ", d,
             " of size ", n);
    return Dims(sizes.begin(), sizes.end());
  }
  int64_t size = args.integer(1);
  FX_CHECK(size >= 0, kValue, "split: size ", size, " is negative");
  FX_CHECK(size > 0 || n == 0, kValue, "split: size 0 can't cover dimension ", d, " of size ", n);
  Dims sizes;
  for (int64_t at = 0; at < n; at += size) {
    sizes.push_back(size < n - at ? size : n - at);
    if (size >= n - at) break;
  }
  if (n == 0) sizes.push_back(0);
  return sizes;
}

void split_infer(Infer& f) {
  Meta whole = view_meta_of(f.args.tensor(0));
  check_has_dims(whole, "split");
  size_t d = size_t(wrap_dim(f.args.integer(2, 0), int64_t(whole.sizes.size()), "split"));
  int64_t at = 0;
  for (int64_t size : piece_sizes(f.args, whole.sizes[d], d)) {
    cut(f.outs.emplace_back(whole), d, at, size);
    at += size;
  }
}

// The gradients of all results, zeros where one is undefined.
Tensors defined_gradients(Vjp& v) {
  Tensors all;
  const GradMeta& in = v.meta(0);
  for (size_t i = 0; i < v.grads.size(); ++i)
    all.push_back(v.grads[i].defined()
                      ? v.grads[i]
                      : zeros(v.out_meta(int(i)).sizes, TensorOptions(in.dtype).device(in.device)));
  return all;
}

void unbind_infer(Infer& f) {
  Meta whole = view_meta_of(f.args.tensor(0));
  check_has_dims(whole, "unbind");
  size_t d = size_t(wrap_dim(f.args.integer(1, 0), int64_t(whole.sizes.size()), "unbind"));
  int64_t n = whole.sizes[d], step = whole.strides[d];
  whole.sizes.erase(whole.sizes.begin() + d);
  whole.strides.erase(whole.strides.begin() + d);
  f.outs.reserve(size_t(n));
  for (int64_t i = 0; i < n; ++i) {
    f.outs.push_back(whole);
    whole.offset += step;
  }
}

void unbind_vjp(Vjp& v) {
  if (v.grads.empty()) return;
  v.set(0, stack(defined_gradients(v), v.args().integer(1)));
}

void pieces_to(Call& c, const std::vector<Tensor>& pieces) {
  c.outs.clear();
  for (const Tensor& t : pieces) c.outs.push_back(t);
}

void chunk_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  int64_t chunks = c.args.integer(1), dim = c.args.integer(2, 0);
  FX_CHECK(x.dim() > 0, kIndex, "chunk: a 0-dim tensor has no dimension to cut");
  FX_CHECK(chunks > 0, kValue, "chunk: expected 1 or more chunks, got ", chunks);
  int64_t n = x.size(dim);
  if (n == 0) return pieces_to(c, x.split(Dims(size_t(chunks), 0), dim));
  pieces_to(c, x.split((n - 1) / chunks + 1, dim));
}

// Slices of x at `ends` (each the end of one piece and the start of the next).
void cut_at(Call& c, const Tensor& x, IntArrayRef ends, int64_t dim) {
  c.outs.clear();
  int64_t start = 0;
  for (int64_t end : ends) {
    c.outs.push_back(x.slice(dim, start, end));
    start = end;
  }
  c.outs.push_back(x.slice(dim, start));
}

Dims read_ints(const Tensor& t) {
  FX_CHECK(t.dtype() == Dtype::kI64 && t.dim() <= 1, kType,
           "tensor_split: expected a 0-D or 1-D int64 tensor, got ", t);
  Dims values;
  Tensor flat = t.reshape({-1});
  for (int64_t i = 0; i < flat.numel(); ++i)
    values.push_back(read_item(flat.select(0, i)).to_int());
  return values;
}

// More pieces than this can only be a mistake, and would exhaust memory.
constexpr int64_t kMaxPieces = int64_t(1) << 24;

void split_sections(Call& c, const Tensor& x, int64_t sections, int64_t dim) {
  FX_CHECK(sections > 0, kValue, c.op.name(), ": expected 1 or more sections, got ", sections);
  FX_CHECK(sections <= kMaxPieces, kValue, c.op.name(), ": ", sections, " sections are too many");
  int64_t n = x.size(dim), small = n / sections, larger = n % sections, at = 0;
  c.outs.clear();
  for (int64_t i = 0; i < sections; ++i) {
    int64_t size = small + (i < larger);
    c.outs.push_back(x.slice(dim, at, at + size));
    at += size;
  }
}

void tensor_split_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.dim() > 0, kIndex, "tensor_split: a 0-dim tensor has no dimension to cut");
  int64_t dim = wrap_dim(c.args.integer(2, 0), x.dim(), "tensor_split");
  const Arg& how = c.args[1];
  if (how.is_tensor()) {
    Dims values = read_ints(*how.t);
    if (how.t->dim() == 0) return split_sections(c, x, values[0], dim);
    return cut_at(c, x, values, dim);
  }
  if (how.tag == Tag::kInts) return cut_at(c, x, c.args.ints(1), dim);
  split_sections(c, x, c.args.integer(1), dim);
}

void axis_split(Call& c, int64_t least_rank, int64_t dim) {
  const Tensor& x = c.args.tensor(0);
  FX_CHECK(x.dim() >= least_rank, kShape, c.op.name(), ": expected ", least_rank,
           " or more dimensions, got ", x.dim());
  if (c.args[1].tag == Tag::kInts) return cut_at(c, x, c.args.ints(1), dim);
  int64_t sections = c.args.integer(1);
  FX_CHECK(sections > 0 && x.size(dim) % sections == 0, kValue, c.op.name(), ": ", sections,
           " sections don't divide dimension ", dim, " of size ", x.size(dim));
  split_sections(c, x, sections, dim);
}

// ---- diagonals and windows
void diagonal_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  int64_t rank = int64_t(m.sizes.size()), offset = f.args.integer(1, 0);
  size_t a = size_t(wrap_dim(f.args.integer(2, 0), rank, "diagonal"));
  size_t b = size_t(wrap_dim(f.args.integer(3, 1), rank, "diagonal"));
  FX_CHECK(a != b, kValue, "diagonal: dim1 and dim2 are both ", a);
  int64_t rows = offset >= 0 ? m.sizes[a] : m.sizes[a] + offset;
  int64_t cols = offset >= 0 ? m.sizes[b] - offset : m.sizes[b];
  int64_t n = rows < cols ? rows : cols, step = m.strides[a] + m.strides[b];
  if (n < 0) n = 0;
  if (n > 0) m.offset += offset >= 0 ? offset * m.strides[b] : -offset * m.strides[a];
  size_t first = a < b ? a : b, second = a < b ? b : a;
  m.sizes.erase(m.sizes.begin() + second);
  m.strides.erase(m.strides.begin() + second);
  m.sizes.erase(m.sizes.begin() + first);
  m.strides.erase(m.strides.begin() + first);
  m.sizes.push_back(n);
  m.strides.push_back(step);
}

void unfold_infer(Infer& f) {
  Meta& m = f.outs.emplace_back(view_meta_of(f.args.tensor(0)));
  int64_t rank = int64_t(m.sizes.size()), size = f.args.integer(2), step = f.args.integer(3);
  size_t d = size_t(wrap_dim(f.args.integer(1), rank, "unfold"));
  int64_t n = rank ? m.sizes[d] : 1, stride = rank ? m.strides[d] : 1;
  FX_CHECK(size >= 0 && size <= n, kIndex, "unfold: size ", size, " is out of range for dimension ",
           d, " of size ", n);
  FX_CHECK(step > 0, kValue, "unfold: step must be positive, got ", step);
  m.sizes.push_back(size);
  m.strides.push_back(stride);
  if (rank == 0) return;
  m.sizes[d] = (n - size) / step + 1;
  m.strides[d] = int64_t(uint64_t(stride) * uint64_t(step));
}

void unfold_vjp(Vjp& v) {
  const GradMeta& in = v.meta(0);
  const Tensor& g = v.grad();
  if (in.sizes.empty()) return v.set(0, g.squeeze(0));
  int64_t d = wrap_dim(v.args().integer(1), int64_t(in.sizes.size()));
  int64_t size = v.args().integer(2), step = v.args().integer(3);
  std::vector<int64_t> places;
  for (int64_t w = 0; w < g.sizes()[size_t(d)]; ++w)
    for (int64_t i = 0; i < size; ++i) places.push_back(w * step + i);
  Tensor index = tensor(places, TensorOptions(Dtype::kI64).device(in.device));
  Tensor zero = zeros(in.sizes, TensorOptions(g.dtype()).device(in.device));
  v.set(0, index_add(zero, d, index, g.movedim(-1, d + 1).flatten(d, d + 1)));
}

void unfold_vmap(Vmapped& v) {
  const Tensor& x = v.args().tensor(0);
  if (v.dim(0) > 0) return shift_dim_rule(v);
  v.call.outs = {x.unsqueeze(1).slice(1, 0, v.args().integer(2))};
  v.out_bdims = {0};
}

}  // namespace

constexpr Op slice_op{
    .schema =
        "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor(a)",
    .doc = "Every step-th element from start to before end along a dimension.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = slice_infer,
    .vjp =
        [](Vjp& v) {
          Args a = v.args();
          range_vjp(v, a.integer(1, 0), a.integer(2, 0), a.integer(4, 1));
        },
    .vmap = shift_dim_rule};
constexpr Op narrow_op{
    .schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    .doc = "`length` elements from `start` along a dimension.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = narrow_infer,
    .vjp = [](Vjp& v) { range_vjp(v, v.args().integer(1), v.args().integer(2), 1); },
    .vmap = shift_dim_rule};
constexpr Op split_op{
    .schema =
        "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]\n"
        "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]\n"
        "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]\n"
        "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]\n"
        "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    .doc =
        "Consecutive pieces along a dimension, of one size (the last may be smaller) or of "
        "given sizes.",
    .kind = OpKind::kView,
    .traits = kLinearOp | kMultiView,
    .infer = split_infer,
    .vjp = [](Vjp& v) { v.set(0, cat(defined_gradients(v), v.args().integer(2, 0))); },
    .vmap = [](Vmapped& v) { shift_dims_rule(v, {2}); }};
constexpr Op unbind_op{.schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                       .doc = "All slices along a dimension, which is dropped.",
                       .kind = OpKind::kView,
                       .traits = kLinearOp | kMultiView,
                       .infer = unbind_infer,
                       .vjp = unbind_vjp,
                       .vmap = shift_dim_rule};
constexpr Op chunk_op{.schema =
                          "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]\n"
                          "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
                      .doc = "At most `chunks` pieces of equal size (the last may be smaller).",
                      .kind = OpKind::kComposite,
                      .body = chunk_body};
constexpr Op tensor_split_op{
    .schema =
        "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]\n"
        "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]\n"
        "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
        "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
    .doc = "Pieces along a dimension: so many of nearly equal size, or cut at given indices.",
    .kind = OpKind::kComposite,
    .body = tensor_split_body};
constexpr Op hsplit_op{
    .schema =
        "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]\n"
        "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
    .doc = "Pieces along dimension 1 (0 of a 1-D tensor).",
    .kind = OpKind::kComposite,
    .body = [](Call& c) { axis_split(c, 1, c.args.tensor(0).dim() == 1 ? 0 : 1); }};
constexpr Op vsplit_op{.schema =
                           "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]\n"
                           "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
                       .doc = "Pieces along dimension 0.",
                       .kind = OpKind::kComposite,
                       .body = [](Call& c) { axis_split(c, 2, 0); }};
constexpr Op dsplit_op{.schema =
                           "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]\n"
                           "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
                       .doc = "Pieces along dimension 2.",
                       .kind = OpKind::kComposite,
                       .body = [](Call& c) { axis_split(c, 3, 2); }};
constexpr Op diagonal_op{
    .schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    .doc = "The diagonal of two dimensions as a new last dimension.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = diagonal_infer,
    .vmap = [](Vmapped& v) {
      shift_dims_rule(v, {2, 3});
    }};
constexpr Op unfold_op{
    .schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    .doc = "Sliding windows of `size` elements, `step` apart, in a new last dimension.",
    .kind = OpKind::kView,
    .traits = kLinearOp,
    .infer = unfold_infer,
    .vjp = unfold_vjp,
    .vmap = unfold_vmap};

}  // namespace fornax
