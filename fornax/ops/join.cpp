// Joining, repeating and reordering whole tensors.
#include "fornax/ops/functions.h"
#include "fornax/ops/records.h"
#include "fornax/ops/view.h"

namespace fornax {
namespace {

// PyTorch's legacy: a 1-D tensor of no elements joins with anything.
bool is_skipped(IntArrayRef sizes) { return sizes.size() == 1 && sizes[0] == 0; }

// The tensor whose sizes the others must match.
const Tensor& cat_model(TensorList tensors) {
  for (const Tensor& t : tensors)
    if (!is_skipped(t.sizes())) return t;
  return tensors[0];
}

void check_cat_sizes(const Tensor& model, const Tensor& t, size_t at, int64_t dim) {
  IntArrayRef want = model.sizes(), have = t.sizes();
  FX_CHECK(have.size() == want.size(), kShape, "cat: tensor ", at, " has ", have.size(),
           " dimensions, others ", want.size());
  for (size_t d = 0; d < want.size(); ++d)
    FX_CHECK(int64_t(d) == dim || have[d] == want[d], kShape, "cat: tensor ", at, " has sizes ",
             have, ", expected ", want, " except in dimension ", dim);
}

// The format all tensors share, else contiguous.
MemoryFormat cat_format(TensorList tensors) {
  MemoryFormat format = tensors[0].suggest_memory_format();
  for (const Tensor& t : tensors)
    if (t.suggest_memory_format() != format) return MemoryFormat::Contiguous;
  return format;
}

void cat_infer(Infer& f) {
  TensorList tensors = f.args.list(0);
  FX_CHECK(!tensors.empty(), kValue, "cat: expected one or more tensors");
  Dtype dtype = tensors[0].dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    FX_CHECK(tensors[i].dim() > 0, kShape, "cat: tensor ", i, " is 0-dim; use stack()");
    dtype = promote_types(dtype, tensors[i].dtype());
    FX_CHECK(tensors[i].device().type() == tensors[0].device().type(), kDevice, "cat: tensor ", i,
             " is on ", tensors[i].device(), ", tensor 0 on ", tensors[0].device());
  }
  const Tensor& model = cat_model(tensors);
  int64_t dim = wrap_dim(f.args.integer(1, 0), model.dim(), "cat");
  Meta m(dtype, model.sizes(), model.device());
  int64_t& total = m.sizes[size_t(dim)];
  total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (is_skipped(tensors[i].sizes())) continue;
    check_cat_sizes(model, tensors[i], i, dim);
    total += tensors[i].sizes()[size_t(dim)];
  }
  MemoryFormat format = cat_format(tensors);
  if (format != MemoryFormat::Contiguous) m.strides = strides_of(format, m.sizes);
  f.outs.push_back(std::move(m));
}

void cat_vjp(Vjp& v) {
  int64_t rank = int64_t(v.out_meta(0).sizes.size()), start = 0;
  int64_t dim = wrap_dim(v.args().integer(1, 0), rank, "cat");
  for (int k = 0; k < v.list_size(0); ++k) {
    const Dims& sizes = v.meta(0, k).sizes;
    if (int64_t(sizes.size()) != rank || (rank > 1 && is_skipped(sizes))) continue;
    int64_t n = sizes[size_t(dim)];
    if (v.need(0, k)) v.set(0, v.grad().narrow(dim, start, n), k);
    start += n;
  }
}

void cat_vmap(Vmapped& v) {
  TensorList tensors = v.args().list(0);
  int64_t rank = 0;
  Tensors kept;
  for (const Tensor& t : tensors) {
    if (t.dim() == 2 && t.size(1) == 0) continue;  // skipped: a batch of empty 1-D tensors
    rank = t.dim() - 1;
    kept.push_back(t);
  }
  if (kept.empty()) {
    kept.push_back(tensors[0]);
    rank = 1;
  }
  v.run({kept, wrap_dim(v.args().integer(1, 0), rank, "cat") + 1});
}

void stack_body(Call& c) {
  TensorList tensors = c.args.list(0);
  FX_CHECK(!tensors.empty(), kValue, "stack: expected one or more tensors");
  int64_t dim = wrap_dim(c.args.integer(1, 0), tensors[0].dim() + 1, "stack");
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    FX_CHECK(tensors[i].sizes() == tensors[0].sizes(), kShape, "stack: tensor ", i, " has sizes ",
             tensors[i].sizes(), ", tensor 0 ", tensors[0].sizes());
    rows.push_back(tensors[i].unsqueeze(dim));
  }
  c.outs = {cat(rows, dim)};
}

void hstack_body(Call& c) {
  std::vector<Tensor> rows = atleast_1d(c.args.list(0));
  FX_CHECK(!rows.empty(), kValue, c.op.name(), ": expected one or more tensors");
  c.outs = {cat(rows, rows[0].dim() == 1 ? 0 : 1)};
}

void vstack_body(Call& c) {
  FX_CHECK(!c.args.list(0).empty(), kValue, c.op.name(), ": expected one or more tensors");
  c.outs = {cat(atleast_2d(c.args.list(0)), 0)};
}

void dstack_body(Call& c) {
  FX_CHECK(!c.args.list(0).empty(), kValue, c.op.name(), ": expected one or more tensors");
  c.outs = {cat(atleast_3d(c.args.list(0)), 2)};
}

void column_stack_body(Call& c) {
  FX_CHECK(!c.args.list(0).empty(), kValue, c.op.name(), ": expected one or more tensors");
  std::vector<Tensor> columns;
  for (const Tensor& t : c.args.list(0))
    columns.push_back(t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t);
  c.outs = {hstack(columns)};
}

// ---- repeating
Tensor repeated(const Tensor& x, IntArrayRef repeats, std::string_view call) {
  FX_CHECK(int64_t(repeats.size()) >= x.dim(), kShape, call, ": ", repeats.size(),
           " repeats are fewer than the dimensions of sizes ", x.sizes());
  size_t lead = repeats.size() - size_t(x.dim());
  Dims split, grown, sizes;
  for (size_t d = 0; d < repeats.size(); ++d) {
    FX_CHECK(repeats[d] >= 0, kValue, call, ": repeat ", repeats[d], " is negative");
    int64_t n = d < lead ? 1 : x.sizes()[d - lead];
    split.push_back(1);
    split.push_back(n);
    grown.push_back(repeats[d]);
    grown.push_back(n);
    sizes.push_back(repeats[d] * n);
  }
  return x.reshape(split).expand(grown).clone(MemoryFormat::Contiguous).view(sizes);
}

void tile_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef given = c.args.ints(1);
  Dims repeats;
  for (int64_t d = int64_t(given.size()); d < x.dim(); ++d) repeats.push_back(1);
  repeats.append(given.begin(), given.end());
  c.outs = {repeated(x, repeats, "tile")};
}

void check_output_size(const Call& c, int64_t n) {
  FX_CHECK(!c.args.has(3) || c.args.integer(3) == n, kValue, "repeat_interleave: output_size is ",
           c.args.integer(3, n), ", the result has ", n);
}

void repeat_interleave_body(Call& c) {
  const Tensor& given = c.args.tensor(0);
  Tensor x = c.args.has(2) ? given : given.flatten();
  int64_t dim = wrap_dim(c.args.integer(2, 0), x.dim(), "repeat_interleave");
  if (c.args[1].is_number()) {
    int64_t n = c.args.integer(1);
    FX_CHECK(n >= 0, kValue, "repeat_interleave: repeats ", n, " is negative");
    if (x.dim() == 0) x = x.reshape({1});
    Tensor wide = x.unsqueeze(dim + 1);
    Dims sizes(wide.sizes().begin(), wide.sizes().end());
    sizes[size_t(dim + 1)] = n;
    check_output_size(c, n * x.size(dim));
    c.outs = {wide.expand(sizes).clone(MemoryFormat::Contiguous).flatten(dim, dim + 1)};
    return;
  }
  Tensor repeats = c.args.tensor(1);
  if (x.dim() == 0) x = x.reshape({1});
  FX_CHECK(repeats.dim() <= 1, kShape, "repeat_interleave: repeats has ", repeats.dim(),
           " dimensions, expected at most 1");
  if (repeats.numel() == 1 && repeats.dim() <= 1)
    repeats = repeats.reshape({1}).expand({x.size(dim)});
  FX_CHECK(repeats.size(0) == x.size(dim), kShape, "repeat_interleave: ", repeats.size(0),
           " repeats for dimension ", dim, " of size ", x.size(dim));
  Tensor index = repeat_interleave(repeats);
  check_output_size(c, index.numel());
  c.outs = {x.index_select(dim, index)};
}

// ---- reordering
Tensor roll_one(const Tensor& x, int64_t shift, int64_t dim) {
  int64_t n = x.size(dim);
  if (n == 0) return x.clone();
  int64_t start = (n - shift % n) % n;
  if (start < 0) start += n;
  if (start == 0) return x.clone();
  return cat({x.narrow(dim, start, n - start), x.narrow(dim, 0, start)}, dim);
}

void roll_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef shifts = c.args.ints(1), dims = c.args.ints(2);
  FX_CHECK(!shifts.empty(), kValue, "roll: shifts must not be empty");
  if (dims.empty()) {
    FX_CHECK(shifts.size() == 1, kValue, "roll: ", shifts.size(), " shifts but no dims");
    c.outs = {roll_one(x.reshape({-1}), shifts[0], 0).view(x.sizes())};
    return;
  }
  FX_CHECK(shifts.size() == dims.size(), kValue, "roll: ", shifts.size(), " shifts but ",
           dims.size(), " dims");
  Tensor y = x;
  for (size_t i = 0; i < dims.size(); ++i) {
    FX_CHECK(x.dim() > 0, kIndex, "roll: a 0-dim tensor has no dimension ", dims[i]);
    y = roll_one(y, shifts[i], dims[i]);
  }
  c.outs = {y};
}

void flip_infer(Infer& f) {
  const Tensor& x = f.args.tensor(0);
  uint64_t seen = 0;
  for (int64_t d : f.args.ints(1)) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, x.dim(), "flip");
    FX_CHECK(!(seen & bit), kValue, "flip: dimension ", d, " is repeated in ", f.args.ints(1));
    seen |= bit;
  }
  Meta m(x.dtype(), x.sizes(), x.device());
  MemoryFormat format = x.suggest_memory_format();
  if (format != MemoryFormat::Contiguous) m.strides = strides_of(format, m.sizes);
  f.outs.push_back(std::move(m));
}

void flip_vmap(Vmapped& v) {
  Dims dims;
  for (int64_t d : v.args().ints(1)) {
    int64_t at = wrap_dim(d, v.dim(0), "flip");
    if (v.dim(0) > 0) dims.push_back(at + 1);
  }
  v.run({v.args()[0], dims});
}

void rot90_body(Call& c) {
  const Tensor& x = c.args.tensor(0);
  IntArrayRef dims = c.args.ints(2);
  FX_CHECK(dims.size() == 2, kValue, "rot90: expected 2 dims, got ", dims.size());
  FX_CHECK(x.dim() >= 2, kShape, "rot90: expected 2 or more dimensions, got ", x.dim());
  int64_t a = wrap_dim(dims[0], x.dim(), "rot90"), b = wrap_dim(dims[1], x.dim(), "rot90");
  FX_CHECK(a != b, kValue, "rot90: both dims are ", a);
  switch ((c.args.integer(1, 1) % 4 + 4) % 4) {
    case 1: c.outs = {x.flip({b}).transpose(a, b)}; break;
    case 2: c.outs = {x.flip({a, b})}; break;
    case 3: c.outs = {x.flip({a}).transpose(a, b)}; break;
    default: c.outs = {x.clone(MemoryFormat::Contiguous)}; break;
  }
}

void meshgrid_body(Call& c) {
  TensorList tensors = c.args.list(0);
  std::string_view indexing = c.args.has(1) ? c.args.text(1) : "ij";
  FX_CHECK(!tensors.empty(), kValue, "meshgrid: expected one or more tensors");
  FX_CHECK(indexing == "ij" || indexing == "xy", kValue,
           "meshgrid: indexing is \"ij\" or \"xy\", got \"", indexing, "\"");
  bool swap = indexing == "xy" && tensors.size() >= 2;
  auto place = [&](size_t i) { return swap && i < 2 ? 1 - i : i; };
  Dims grid(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    FX_CHECK(t.dim() <= 1, kShape, "meshgrid: tensor ", i, " has ", t.dim(),
             " dimensions, expected 0 or 1");
    FX_CHECK(t.dtype() == tensors[0].dtype(), kType, "meshgrid: tensor ", i, " is of ", t.dtype(),
             ", tensor 0 of ", tensors[0].dtype());
    grid[place(i)] = t.numel();
  }
  c.outs.clear();
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims sizes(tensors.size(), 1);
    sizes[place(i)] = tensors[i].numel();
    c.outs.push_back(tensors[i].reshape(sizes).expand(grid));
  }
}

constexpr Op composite(std::string_view schema, std::string_view doc, void (*body)(Call&)) {
  return Op{.schema = schema, .doc = doc, .kind = OpKind::kComposite, .body = body};
}

}  // namespace

constexpr Op cat_op{.schema =
                        "cat(Tensor[] tensors, int dim=0) -> Tensor\n"
                        "concat(Tensor[] tensors, int dim=0) -> Tensor\n"
                        "concatenate(Tensor[] tensors, int dim=0) -> Tensor",
                    .doc = "Tensors one after another along a dimension, in their common dtype.",
                    .traits = kLinearOp,
                    .infer = cat_infer,
                    .vjp = cat_vjp,
                    .vmap = cat_vmap};
constexpr Op stack_op = composite("stack(Tensor[] tensors, int dim=0) -> Tensor",
                                  "Tensors of equal sizes along a new dimension.", stack_body);
constexpr Op hstack_op = composite("hstack(Tensor[] tensors) -> Tensor",
                                   "Joined along dimension 1 (0 of 1-D tensors).", hstack_body);
constexpr Op vstack_op = composite(
    "vstack(Tensor[] tensors) -> Tensor\n"
    "row_stack(Tensor[] tensors) -> Tensor",
    "Joined as rows along dimension 0.", vstack_body);
constexpr Op dstack_op =
    composite("dstack(Tensor[] tensors) -> Tensor", "Joined along dimension 2.", dstack_body);
constexpr Op column_stack_op =
    composite("column_stack(Tensor[] tensors) -> Tensor",
              "1-D tensors as columns, others along dimension 1.", column_stack_body);
constexpr Op repeat_op = composite(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor", "Copies side by side in each dimension.",
    [](Call& c) { c.outs = {repeated(c.args.tensor(0), c.args.ints(1), "repeat")}; });
constexpr Op tile_op = composite("tile(Tensor self, SymInt[] dims) -> Tensor",
                                 "repeat; missing leading counts are 1.", tile_body);
constexpr Op repeat_interleave_op = composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
    "SymInt? output_size=None) -> Tensor\n"
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
    "output_size=None) -> Tensor",
    "Every element, or slice along a dimension, so many times in a row.", repeat_interleave_body);
constexpr Op roll_op =
    composite("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
              "Elements moved along dimensions, the last ones to the front.", roll_body);
constexpr Op flip_op{.schema = "flip(Tensor self, int[] dims) -> Tensor",
                     .doc = "Dimensions in reverse order, as a copy.",
                     .traits = kLinearOp,
                     .infer = flip_infer,
                     .vjp = [](Vjp& v) { v.set(0, v.grad().flip(v.args().ints(1))); },
                     .vmap = flip_vmap};
constexpr Op fliplr_op =
    composite("fliplr(Tensor self) -> Tensor", "Dimension 1 reversed.", [](Call& c) {
      const Tensor& x = c.args.tensor(0);
      FX_CHECK(x.dim() >= 2, kShape, "fliplr: expected 2 or more dimensions, got ", x.dim());
      c.outs = {x.flip({1})};
    });
constexpr Op flipud_op =
    composite("flipud(Tensor self) -> Tensor", "Dimension 0 reversed.", [](Call& c) {
      const Tensor& x = c.args.tensor(0);
      FX_CHECK(x.dim() >= 1, kShape, "flipud: expected 1 or more dimensions, got 0");
      c.outs = {x.flip({0})};
    });
constexpr Op rot90_op =
    composite("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
              "Rotated k times by 90 degrees in the plane of two dims.", rot90_body);
constexpr Op meshgrid_op = composite(
    "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]\n"
    "meshgrid(Tensor[] tensors) -> Tensor[]",
    "The grid of all combinations: one tensor per dimension.", meshgrid_body);

}  // namespace fornax
