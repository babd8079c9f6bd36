// Pooling. With channels last the vectors run along the channels; otherwise along the output
// columns, one kernel element after the other, sums and maxima of a row waiting in L1.
#include "fornax/backends/cpu/kernels/pool_kernels.h"

#include "fornax/backends/cpu/kernels/vec.h"

namespace fornax::FX_ISA_NS {
namespace {

using cpu::kPoolChannels;
using cpu::PoolAxis;
using cpu::PoolTask;

// What a storage type is compared and summed in.
template <class S>
struct WorkOf {
  using type = S;
};
template <>
struct WorkOf<Bf16> {
  using type = float;
};
template <>
struct WorkOf<F16> {
  using type = float;
};
template <class S>
using Work = typename WorkOf<S>::type;

template <class T>
inline constexpr bool kIsFloating = __is_same(T, float) || __is_same(T, double);

template <class T>
FX_INLINE T lowest() {
  if constexpr (kIsFloating<T>)
    return -T(__builtin_inf());
  else if constexpr (T(-1) > T(0))
    return 0;
  else
    return T(T(1) << (8 * sizeof(T) - 1));
}

constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

// n contiguous elements in the work type: the memory itself, or a converted copy.
template <class S>
FX_INLINE const Work<S>* as_work(const S* p, int64_t n, Work<S>* copy) {
  if constexpr (__is_same(S, Work<S>)) {
    return p;
  } else {
    convert_row(copy, p, n);
    return copy;
  }
}
template <class S>
FX_INLINE void store_work(S* p, const Work<S>* values, int64_t n) {
  if constexpr (__is_same(S, Work<S>)) {
    for (int64_t i = 0; i < n; i++) p[i] = values[i];
  } else {
    narrow_row(p, values, n);
  }
}

constexpr int64_t kChunk = 512;

// Running maxima of a row (or of channels) and where they were found.
template <class T>
struct Maxima {
  alignas(64) T value[kChunk];
  alignas(64) int32_t index[kChunk];
};

// Compares n values, element i of them at p[i * Stride] (stride where Stride is 0) with index
// first + i * index_step.
template <int Stride, class T>
FX_INLINE void take_larger(const T* __restrict p, int64_t stride, int32_t first, int32_t index_step,
                           int64_t n, T* __restrict value, int32_t* __restrict index) {
  const int64_t step = Stride == 0 ? stride : Stride;
  for (int64_t i = 0; i < n; i++) {
    const T v = p[i * step], old = value[i];
    const bool larger = v > old || v != v;
    value[i] = larger ? v : old;
    index[i] = larger ? first + int32_t(i) * index_step : index[i];
  }
}

template <class T>
FX_INLINE void take_larger_strided(const T* p, int64_t stride, int32_t first, int64_t n, T* value,
                                   int32_t* index) {
  if (stride == 1)
    take_larger<1>(p, 1, first, 1, n, value, index);
  else if (stride == 2)
    take_larger<2>(p, 2, first, 2, n, value, index);
  else
    take_larger<0>(p, stride, first, int32_t(stride), n, value, index);
}

// The outputs of a row whose kernel element k lies inside the input: [low, high).
struct Run {
  int64_t low, high;
};
FX_INLINE Run compute_run(const PoolAxis& x, int64_t k) {
  const int64_t shift = k * x.step - x.pad;
  const int64_t low = shift >= 0 ? 0 : (-shift + x.stride - 1) / x.stride;
  const int64_t room = x.in - 1 - shift;
  return {low, room < 0 ? low : min_of(room / x.stride + 1, x.out)};
}

// The runs of the first kernel elements, computed once a call: divisions would cost more than the
// work on a short row.
struct Runs {
  static constexpr int64_t kKept = 16;
  const PoolAxis& axis;
  Run kept[kKept];

  [[gnu::always_inline]] explicit Runs(const PoolAxis& x) : axis(x) {
    for (int64_t k = 0; k < min_of(x.kernel, kKept); k++) kept[k] = compute_run(x, k);
  }
  [[gnu::always_inline]] Run operator[](int64_t k) const {
    return k < kKept ? kept[k] : compute_run(axis, k);
  }
};

// Output row `row` of [batch * channels (or batch), out0, out1].
struct Place {
  int64_t outer, z, y;
};
FX_INLINE Place place_of(const PoolTask& t, int64_t row) {
  const int64_t y = row % t.axis[1].out, rest = row / t.axis[1].out;
  return {rest / t.axis[0].out, rest % t.axis[0].out, y};
}

// Calls body(first element of the input row, its index in the plane) for the input rows that an
// output row sees.
template <class Body>
FX_INLINE void each_input_row(const PoolTask& t, const Place& at, Body body) {
  const PoolAxis &a = t.axis[0], &b = t.axis[1];
  for (int64_t i = 0; i < a.count[at.z]; i++)
    for (int64_t j = 0; j < b.count[at.y]; j++)
      body(((a.start[at.z] + i * a.step) * b.in + b.start[at.y] + j * b.step) * t.axis[2].in);
}

FX_INLINE int32_t first_index(const PoolTask& t, const Place& at, int64_t x) {
  const int64_t row = t.axis[0].start[at.z] * t.axis[1].in + t.axis[1].start[at.y];
  return int32_t(row * t.axis[2].in + t.axis[2].start[x]);
}

// One chunk of an output row, regular windows.
template <class S>
FX_INLINE void max_chunk(const PoolTask& t, const Runs& runs, const S* plane, const Place& at,
                         int64_t x0, int64_t n, Maxima<Work<S>>& best, Work<S>* copy) {
  using T = Work<S>;
  const PoolAxis& x = t.axis[2];
  for (int64_t i = 0; i < n; i++) {
    best.value[i] = lowest<T>();
    best.index[i] = first_index(t, at, x0 + i);
  }
  each_input_row(
      t, at, [&](int64_t row) __attribute__((always_inline)) {
        const T* in = as_work(plane + row, x.in, copy);
        for (int64_t k = 0; k < x.kernel; k++) {
          const Run run = runs[k];
          const int64_t low = max_of(run.low, x0), high = min_of(run.high, x0 + n);
          if (low >= high) continue;
          const int64_t column = low * x.stride + k * x.step - x.pad;
          take_larger_strided(in + column, x.stride, int32_t(row + column), high - low,
                              best.value + (low - x0), best.index + (low - x0));
        }
      });
}

// The same for windows given by the tables.
template <class S>
FX_INLINE void max_chunk_tables(const PoolTask& t, const S* plane, const Place& at, int64_t x0,
                                int64_t n, Maxima<Work<S>>& best, Work<S>* copy) {
  using T = Work<S>;
  const PoolAxis& x = t.axis[2];
  for (int64_t i = 0; i < n; i++) {
    best.value[i] = lowest<T>();
    best.index[i] = first_index(t, at, x0 + i);
  }
  each_input_row(
      t, at, [&](int64_t row) __attribute__((always_inline)) {
        const T* in = as_work(plane + row, x.in, copy);
        for (int64_t i = 0; i < n; i++) {
          for (int64_t k = 0; k < x.count[x0 + i]; k++) {
            const int64_t column = x.start[x0 + i] + k;
            const T v = in[column];
            if (v > best.value[i] || v != v) {
              best.value[i] = v;
              best.index[i] = int32_t(row + column);
            }
          }
        }
      });
}

// Calls body(input position) for every position that output x of a row sees.
template <class Body>
FX_INLINE void each_position(const PoolTask& t, const Place& at, int64_t x, Body body) {
  const PoolAxis& axis = t.axis[2];
  each_input_row(
      t, at, [&](int64_t row) __attribute__((always_inline)) {
        for (int64_t k = 0; k < axis.count[x]; k++) body(row + axis.start[x] + k * axis.step);
      });
}

template <class S>
FX_INLINE void max_forward_rows(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  const int64_t width = t.axis[2].out;
  const Runs runs(t.axis[2]);
  Maxima<Work<S>> best;
  for (int64_t row = first; row < last; row++) {
    const Place at = place_of(t, row);
    const S* plane = static_cast<const S*>(t.source) + at.outer * t.in_plane();
    for (int64_t x = 0; x < width; x += kChunk) {
      const int64_t n = min_of(kChunk, width - x);
      if (t.regular)
        max_chunk(t, runs, plane, at, x, n, best, static_cast<Work<S>*>(scratch));
      else
        max_chunk_tables(t, plane, at, x, n, best, static_cast<Work<S>*>(scratch));
      store_work(static_cast<S*>(t.target) + row * width + x, best.value, n);
      if (t.indices == nullptr) continue;
      int64_t* indices = t.indices + row * width + x;
      for (int64_t i = 0; i < n; i++) indices[i] = best.index[i];
    }
  }
}

// One vector of interleaved planes (two where vectors are shorter).
using Floats [[gnu::vector_size(64), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(64), gnu::may_alias]] = int32_t;
static_assert(cpu::kPoolPlanes * sizeof(float) == sizeof(Floats));

// Maxima of kPoolPlanes whole planes at once: interleaved, so that vectors run across the planes
// and short rows cost nothing.
template <class S>
FX_INLINE void max_forward_interleaved(const PoolTask& t, int64_t plane, void* scratch) {
  constexpr int64_t kPlanes = cpu::kPoolPlanes;
  const int64_t in = t.in_plane(), out = t.out_plane(), width = t.axis[2].out;
  float* image = static_cast<float*>(scratch);
  float* values = image + in * kPlanes;
  int32_t* indices = reinterpret_cast<int32_t*>(values + out * kPlanes);
  pack(image, kPlanes, static_cast<const S*>(t.source) + plane * in, in, kPlanes, 1, in);
  for (int64_t row = 0; row < out / width; row++) {
    const Place at = place_of(t, row);
    for (int64_t x = 0; x < width; x++) {
      Floats best = Floats{} + lowest<float>();
      Ints index = Ints{} + first_index(t, at, x);
      each_position(
          t, at, x, [&](int64_t p) __attribute__((always_inline)) {
            const Floats v = *reinterpret_cast<const Floats*>(image + p * kPlanes);
            const Ints larger = (v > best) | (v != v);
            best = larger ? v : best;
            index = larger ? Ints{} + int32_t(p) : index;
          });
      const int64_t to = (row * width + x) * kPlanes;
      *reinterpret_cast<Floats*>(values + to) = best;
      *reinterpret_cast<Ints*>(indices + to) = index;
    }
  }
  S* target = static_cast<S*>(t.target) + plane * out;
  if constexpr (__is_same(S, float)) {
    pack(target, out, values, kPlanes, out, 1, kPlanes);
  } else {
    pack(image, out, values, kPlanes, out, 1, kPlanes);
    narrow_row(target, image, kPlanes * out);
  }
  for (int64_t i = 0; t.indices != nullptr && i < kPlanes; i++)
    for (int64_t p = 0; p < out; p++) t.indices[(plane + i) * out + p] = indices[p * kPlanes + i];
}

template <class S>
void max_forward_planes(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  if constexpr (__is_same(Work<S>, float)) {
    const int64_t rows = t.axis[0].out * t.axis[1].out, group = cpu::kPoolPlanes * rows;
    const int64_t from = (first + rows - 1) / rows * rows;
    if (planes_fit(t) && t.in_plane() >= t.out_plane() && from + group <= last) {
      max_forward_rows<S>(t, first, from, scratch);
      for (first = from; first + group <= last; first += group)
        max_forward_interleaved<S>(t, first / rows, scratch);
    }
  }
  max_forward_rows<S>(t, first, last, scratch);
}

template <class S>
void max_forward_last(const PoolTask& t, int64_t first, int64_t last, void*) {
  using T = Work<S>;
  const int64_t channels = t.channels, width = t.axis[2].out;
  Maxima<T> best;
  alignas(64) T copy[kChunk];
  for (int64_t row = first; row < last; row++) {
    const Place at = place_of(t, row);
    const S* image = static_cast<const S*>(t.source) + at.outer * t.in_plane() * channels;
    for (int64_t x = 0; x < width; x++) {
      for (int64_t c = 0; c < channels; c += kChunk) {
        const int64_t n = min_of(kChunk, channels - c);
        const int32_t start = first_index(t, at, x);
        for (int64_t i = 0; i < n; i++) {
          best.value[i] = lowest<T>();
          best.index[i] = start;
        }
        each_position(
            t, at, x, [&](int64_t p) __attribute__((always_inline)) {
              take_larger<1>(as_work(image + p * channels + c, n, copy), 1, int32_t(p), 0, n,
                             best.value, best.index);
            });
        const int64_t to = (row * width + x) * channels + c;
        store_work(static_cast<S*>(t.target) + to, best.value, n);
        for (int64_t i = 0; t.indices != nullptr && i < n; i++) t.indices[to + i] = best.index[i];
      }
    }
  }
}

// What the sum of output x of a row is divided by.
FX_INLINE int64_t divisor_of(const PoolTask& t, const Place& at, int64_t x) {
  if (t.divisor != 0) return t.divisor;
  const PoolAxis* a = t.axis;
  if (t.include_pad) return int64_t(a[0].full[at.z]) * a[1].full[at.y] * a[2].full[x];
  const int64_t size = int64_t(a[0].count[at.z]) * a[1].count[at.y] * a[2].count[x];
  return size == 0 ? 1 : size;
}

// to[i] = sum[i] / divisor of output x0 + i.
template <class T>
FX_INLINE void divide_row(const PoolTask& t, const Place& at, int64_t x0, int64_t n, const T* sum,
                          T* to) {
  if (t.divisor != 0) {
    for (int64_t i = 0; i < n; i++) to[i] = sum[i] / T(t.divisor);
    return;
  }
  const PoolAxis* a = t.axis;
  const int32_t* size = (t.include_pad ? a[2].full : a[2].count) + x0;
  const T area = t.include_pad ? T(a[0].full[at.z]) * T(a[1].full[at.y])
                               : T(a[0].count[at.z]) * T(a[1].count[at.y]);
  for (int64_t i = 0; i < n; i++) {
    const T divisor = area * T(size[i]);
    to[i] = sum[i] / (divisor == 0 ? T(1) : divisor);
  }
}

template <int Stride, class T>
FX_INLINE void add_run(const T* __restrict p, int64_t stride, int64_t n, T* __restrict sum) {
  const int64_t step = Stride == 0 ? stride : Stride;
  for (int64_t i = 0; i < n; i++) sum[i] += p[i * step];
}

template <class T>
FX_INLINE T sum_of(const T* p, int64_t n) {
  T sum = 0;
  int64_t i = 0;
  if constexpr (kIsFloating<T>) {
    using X = Vec<T>;
    auto v = X::zero();
    for (; i + X::kLanes <= n; i += X::kLanes) v = X::add(v, X::load(p + i));
    if (i != 0) sum = X::sum(v);
  }
  for (; i < n; i++) sum += p[i];
  return sum;
}

template <class S>
FX_INLINE void avg_chunk(const PoolTask& t, const Runs& runs, const S* plane, const Place& at,
                         int64_t x0, int64_t n, Work<S>* sum, Work<S>* copy) {
  using T = Work<S>;
  const PoolAxis& x = t.axis[2];
  for (int64_t i = 0; i < n; i++) sum[i] = 0;
  each_input_row(
      t, at, [&](int64_t row) __attribute__((always_inline)) {
        const T* in = as_work(plane + row, x.in, copy);
        if (!t.regular) {
          for (int64_t i = 0; i < n; i++) sum[i] += sum_of(in + x.start[x0 + i], x.count[x0 + i]);
          return;
        }
        for (int64_t k = 0; k < x.kernel; k++) {
          const Run run = runs[k];
          const int64_t low = max_of(run.low, x0), high = min_of(run.high, x0 + n);
          if (low >= high) continue;
          const T* p = in + low * x.stride + k - x.pad;
          if (x.stride == 1)
            add_run<1>(p, 1, high - low, sum + (low - x0));
          else if (x.stride == 2)
            add_run<2>(p, 2, high - low, sum + (low - x0));
          else
            add_run<0>(p, x.stride, high - low, sum + (low - x0));
        }
      });
  divide_row(t, at, x0, n, sum, sum);
}

template <class S>
void avg_forward_planes(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  const int64_t width = t.axis[2].out;
  const Runs runs(t.axis[2]);
  alignas(64) Work<S> sum[kChunk];
  for (int64_t row = first; row < last; row++) {
    const Place at = place_of(t, row);
    const S* plane = static_cast<const S*>(t.source) + at.outer * t.in_plane();
    for (int64_t x = 0; x < width; x += kChunk) {
      const int64_t n = min_of(kChunk, width - x);
      avg_chunk(t, runs, plane, at, x, n, sum, static_cast<Work<S>*>(scratch));
      store_work(static_cast<S*>(t.target) + row * width + x, sum, n);
    }
  }
}

template <class S>
void avg_forward_last(const PoolTask& t, int64_t first, int64_t last, void*) {
  using T = Work<S>;
  const int64_t channels = t.channels, width = t.axis[2].out;
  alignas(64) T sum[kChunk];
  alignas(64) T copy[kChunk];
  for (int64_t row = first; row < last; row++) {
    const Place at = place_of(t, row);
    const S* image = static_cast<const S*>(t.source) + at.outer * t.in_plane() * channels;
    for (int64_t x = 0; x < width; x++) {
      const T divisor = T(divisor_of(t, at, x));
      for (int64_t c = 0; c < channels; c += kChunk) {
        const int64_t n = min_of(kChunk, channels - c);
        for (int64_t i = 0; i < n; i++) sum[i] = 0;
        each_position(
            t, at, x, [&](int64_t p) __attribute__((always_inline)) {
              add_run<1>(as_work(image + p * channels + c, n, copy), 1, n, sum);
            });
        for (int64_t i = 0; i < n; i++) sum[i] /= divisor;
        store_work(static_cast<S*>(t.target) + (row * width + x) * channels + c, sum, n);
      }
    }
  }
}

// Where a plane's gradient is summed: the plane itself, or work-type scratch.
template <class S>
FX_INLINE Work<S>* gradient_of(S* plane, int64_t n, void* scratch) {
  Work<S>* g;
  if constexpr (__is_same(S, Work<S>))
    g = plane;
  else
    g = static_cast<Work<S>*>(scratch);
  for (int64_t i = 0; i < n; i++) g[i] = 0;
  return g;
}

// After a plane's gradient of n elements there is room for a row of outputs.
template <class S>
FX_INLINE Work<S>* row_space(const PoolTask& t, void* scratch) {
  if constexpr (__is_same(S, Work<S>)) return static_cast<Work<S>*>(scratch);
  return static_cast<Work<S>*>(scratch) + t.in_plane();
}

template <class S>
void max_backward_planes(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  for (int64_t plane = first; plane < last; plane++) {
    S* target = static_cast<S*>(t.target) + plane * t.in_plane();
    const S* source = static_cast<const S*>(t.source) + plane * t.out_plane();
    const int64_t* indices = t.indices + plane * t.out_plane();
    Work<S>* g = gradient_of(target, t.in_plane(), scratch);
    for (int64_t i = 0; i < t.out_plane(); i++) {
      if constexpr (__is_same(S, Work<S>))
        g[indices[i]] = Work<S>(g[indices[i]] + source[i]);
      else
        g[indices[i]] += widen(source[i]);
    }
    if constexpr (!__is_same(S, Work<S>)) narrow_row(target, g, t.in_plane());
  }
}

// One image's block of channels: rows of `channels` elements, n of which are the block.
template <class S>
struct Block {
  S* target;
  const S* source;
  int64_t channel, n;
};
template <class S>
FX_INLINE Block<S> block_of(const PoolTask& t, int64_t unit) {
  const int64_t image = unit / cpu::channel_blocks(t);
  const int64_t channel = unit % cpu::channel_blocks(t) * kPoolChannels;
  return {static_cast<S*>(t.target) + image * t.in_plane() * t.channels + channel,
          static_cast<const S*>(t.source) + image * t.out_plane() * t.channels + channel, channel,
          min_of(kPoolChannels, t.channels - channel)};
}

// Adds into the block's gradient with add(g, row distance of g), zeroing before, storing after.
template <class S, class Add>
FX_INLINE void with_block_gradient(const PoolTask& t, const Block<S>& b, void* scratch, Add add) {
  using T = Work<S>;
  constexpr bool direct = __is_same(S, T);
  T* g;
  if constexpr (direct)
    g = b.target;
  else
    g = static_cast<T*>(scratch);
  const int64_t distance = direct ? t.channels : kPoolChannels;
  for (int64_t p = 0; p < t.in_plane(); p++)
    for (int64_t i = 0; i < b.n; i++) g[p * distance + i] = 0;
  add(g, distance);
  if constexpr (!direct) {
    for (int64_t p = 0; p < t.in_plane(); p++)
      narrow_row(b.target + p * t.channels, g + p * distance, b.n);
  }
}

template <class S>
void max_backward_last(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  using T = Work<S>;
  alignas(64) T copy[kPoolChannels];
  for (int64_t unit = first; unit < last; unit++) {
    const Block<S> b = block_of<S>(t, unit);
    const int64_t image = unit / cpu::channel_blocks(t);
    const int64_t* indices = t.indices + image * t.out_plane() * t.channels + b.channel;
    with_block_gradient<S>(t, b, scratch, [&](T* g, int64_t distance) {
      for (int64_t p = 0; p < t.out_plane(); p++) {
        const T* from = as_work(b.source + p * t.channels, b.n, copy);
        const int64_t* index = indices + p * t.channels;
        for (int64_t i = 0; i < b.n; i++) {
          T& to = g[index[i] * distance + i];
          to = T(to + from[i]);
        }
      }
    });
  }
}

template <class T>
FX_INLINE void spread_run(const T* __restrict v, int64_t n, int64_t stride, T* __restrict g) {
  if (stride == 1)
    for (int64_t i = 0; i < n; i++) g[i] += v[i];
  else
    for (int64_t i = 0; i < n; i++) g[i * stride] += v[i];
}

// Adds one output row's gradients, already divided, to the plane.
template <class T>
FX_INLINE void spread_row(const PoolTask& t, const Runs& runs, const Place& at, const T* v, T* g) {
  const PoolAxis& x = t.axis[2];
  each_input_row(
      t, at, [&](int64_t row) __attribute__((always_inline)) {
        if (!t.regular) {
          for (int64_t i = 0; i < x.out; i++)
            for (int64_t k = 0; k < x.count[i]; k++) g[row + x.start[i] + k] += v[i];
          return;
        }
        for (int64_t k = 0; k < x.kernel; k++) {
          const Run run = runs[k];
          if (run.low < run.high)
            spread_run(v + run.low, run.high - run.low, x.stride,
                       g + row + run.low * x.stride + k - x.pad);
        }
      });
}

template <class S>
void avg_backward_planes(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  using T = Work<S>;
  const Runs runs(t.axis[2]);
  const int64_t width = t.axis[2].out, rows = t.axis[0].out * t.axis[1].out;
  for (int64_t plane = first; plane < last; plane++) {
    S* target = static_cast<S*>(t.target) + plane * t.in_plane();
    T* g = gradient_of(target, t.in_plane(), scratch);
    T* v = row_space<S>(t, scratch);
    for (int64_t row = 0; row < rows; row++) {
      const Place at = place_of(t, row);
      const S* source = static_cast<const S*>(t.source) + plane * t.out_plane() + row * width;
      const T* from = as_work(source, width, v);
      divide_row(t, at, 0, width, from, v);
      spread_row(t, runs, at, v, g);
    }
    if constexpr (!__is_same(S, T)) narrow_row(target, g, t.in_plane());
  }
}

template <class S>
void avg_backward_last(const PoolTask& t, int64_t first, int64_t last, void* scratch) {
  using T = Work<S>;
  alignas(64) T v[kPoolChannels];
  const int64_t width = t.axis[2].out, rows = t.axis[0].out * t.axis[1].out;
  for (int64_t unit = first; unit < last; unit++) {
    const Block<S> b = block_of<S>(t, unit);
    with_block_gradient<S>(t, b, scratch, [&](T* g, int64_t distance) {
      for (int64_t row = 0; row < rows; row++) {
        const Place at = place_of(t, row);
        for (int64_t x = 0; x < width; x++) {
          const T* from = as_work(b.source + (row * width + x) * t.channels, b.n, v);
          const T divisor = T(divisor_of(t, at, x));
          for (int64_t i = 0; i < b.n; i++) v[i] = from[i] / divisor;
          each_position(
              t, at, x, [&](int64_t p) __attribute__((always_inline)) {
                add_run<1>(v, 1, b.n, g + p * distance);
              });
        }
      }
    });
  }
}

}  // namespace

#define FX_FLOATS(f) f<F16>, f<Bf16>, f<float>, f<double>, nullptr, nullptr, nullptr
#define FX_ALL(f) \
  { nullptr, f<uint8_t>, f<int8_t>, f<int16_t>, f<int32_t>, f<int64_t>, FX_FLOATS(f) }
#define FX_AVERAGED(f) \
  { nullptr, nullptr, nullptr, nullptr, nullptr, f<int64_t>, FX_FLOATS(f) }

extern constinit const cpu::PoolKernels pool_kernels = {
    .max_forward = {FX_ALL(max_forward_planes), FX_ALL(max_forward_last)},
    .avg_forward = {FX_AVERAGED(avg_forward_planes), FX_AVERAGED(avg_forward_last)},
    .max_backward = {FX_ALL(max_backward_planes), FX_ALL(max_backward_last)},
    .avg_backward = {FX_AVERAGED(avg_backward_planes), FX_AVERAGED(avg_backward_last)},
};

}  // namespace fornax::FX_ISA_NS
