#include "fornax/backends/cpu/pool.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "fornax/backends/cpu/kernels/pool_kernels.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/error.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

const PoolKernels& kernels() {
  return active_isa() == Isa::kV4 ? isa_v4::pool_kernels : isa_v3::pool_kernels;
}

// The windows of a pooling, and the task that points to them.
struct Windows {
  std::vector<int32_t> tables;
  PoolTask task{};
};

// Fills one dimension's tables (start, count, full: `out` elements each).
void regular_windows(PoolAxis& x, int32_t* start, int32_t* count, int32_t* full) {
  for (int64_t o = 0; o < x.out; o++) {
    int64_t first = o * x.stride - x.pad;
    const int64_t end = std::min(first + x.kernel, x.in + x.pad);
    full[o] = int32_t(std::max<int64_t>(end - first, 0));
    const int64_t skipped = first < 0 ? (-first + x.step - 1) / x.step : 0;
    first += skipped * x.step;
    const int64_t room = x.in - 1 - first;
    const int64_t taps = room < 0 ? 0 : std::min(x.kernel - skipped, room / x.step + 1);
    count[o] = int32_t(std::max<int64_t>(taps, 0));
    start[o] = int32_t(std::clamp<int64_t>(first, 0, x.in - 1));
  }
}

void adaptive_windows(PoolAxis& x, int32_t* start, int32_t* count, int32_t* full) {
  for (int64_t o = 0; o < x.out; o++) {
    start[o] = int32_t(o * x.in / x.out);
    count[o] = full[o] = int32_t(((o + 1) * x.in + x.out - 1) / x.out - start[o]);
  }
}

void check(const Pool& p) {
  FX_CHECK(p.spatial >= 1 && p.spatial <= 3, kShape, "pooling in ", p.spatial,
           " spatial dimensions, expected 1 to 3");
  FX_CHECK(p.batch >= 0 && p.channels >= 0 && p.divisor >= 0, kShape,
           "pooling with a negative size or divisor");
  int64_t plane = 1;
  for (int i = 0; i < p.spatial; i++) {
    FX_CHECK(p.in_size[i] >= 1 && p.out_size[i] >= 0, kShape, "pooling dimension ", i, " from ",
             p.in_size[i], " to ", p.out_size[i]);
    FX_CHECK(
        p.adaptive || (p.kernel[i] >= 1 && p.stride[i] >= 1 && p.dilation[i] >= 1 && p.pad[i] >= 0),
        kShape, "pooling dimension ", i, ": kernel ", p.kernel[i], ", stride ", p.stride[i],
        " and dilation ", p.dilation[i], " must be positive, padding ", p.pad[i], " not negative");
    plane *= p.in_size[i];
    FX_CHECK(plane < (int64_t(1) << 31), kShape, "pooling a plane of 2^31 elements or more");
  }
}

Windows windows_of(const Pool& p) {
  check(p);
  Windows w;
  PoolTask& t = w.task;
  t.batch = p.batch;
  t.channels = p.channels;
  t.divisor = p.divisor;
  t.include_pad = p.count_include_pad;
  t.regular = !p.adaptive;
  for (int i = 0; i < 3; i++) t.axis[i] = {1, 1, 1, 1, 0, 1, nullptr, nullptr, nullptr};
  int64_t total = 0;
  for (int i = 0; i < p.spatial; i++) {
    PoolAxis& x = t.axis[i + 3 - p.spatial];
    x.in = p.in_size[i];
    x.out = p.out_size[i];
    if (p.adaptive) continue;
    x.step = p.dilation[i];
    x.stride = p.stride[i];
    x.pad = p.pad[i];
    x.kernel = p.kernel[i];
  }
  for (const PoolAxis& x : t.axis) total += 3 * x.out;
  w.tables.resize(size_t(total));
  int32_t* place = w.tables.data();
  for (PoolAxis& x : t.axis) {
    int32_t *start = place, *count = start + x.out, *full = count + x.out;
    place = full + x.out;
    p.adaptive ? adaptive_windows(x, start, count, full) : regular_windows(x, start, count, full);
    x.start = start;
    x.count = count;
    x.full = full;
  }
  return w;
}

bool is_last(const Pool& p) { return p.layout == ConvLayout::kChannelsLast; }

// Elements a thread should have at least.
constexpr int64_t kThreadElements = 1 << 14;

void run(const Pool& p, const PoolTask& t, PoolFunction function, bool backward, const char* what) {
  FX_CHECK(function != nullptr, kType, what, " pooling is not defined for ", name_of(p.dtype));
  const int64_t rows = t.axis[0].out * t.axis[1].out;
  int64_t units = t.batch;
  if (backward)
    units *= is_last(p) ? channel_blocks(t) : t.channels;
  else
    units *= is_last(p) ? rows : t.channels * rows;
  if (units == 0 || t.channels == 0) return;
  const int64_t elements = t.batch * t.channels * std::max(t.in_plane(), t.out_plane());
  const int64_t grain = kThreadElements / std::max<int64_t>(elements / units, 1) + 1;
  parallel_for(0, units, grain, [&](int64_t first, int64_t last) {
    Scratch scratch(pool_scratch(t, is_last(p), backward));
    function(t, first, last, scratch.data());
  });
}

Pool undilated(Pool p) {
  for (int64_t& d : p.dilation) d = 1;
  return p;
}

// An index from outside decides where the backward pass writes.
void check_indices(const PoolTask& t) {
  const int64_t n = t.batch * t.channels * t.out_plane(), plane = t.in_plane();
  std::atomic<bool> bad{false};
  parallel_for(0, n, 1 << 16, [&](int64_t first, int64_t last) {
    bool outside = false;
    for (int64_t i = first; i < last; i++) outside |= uint64_t(t.indices[i]) >= uint64_t(plane);
    if (outside) bad.store(true, std::memory_order_relaxed);
  });
  FX_CHECK(!bad, kIndex, "max pooling gradient: an index lies outside a plane of ", plane,
           " elements");
}

}  // namespace

void max_pool_forward(const Pool& p, const void* in, void* out, int64_t* indices) {
  Windows w = windows_of(p);
  w.task.source = in;
  w.task.target = out;
  w.task.indices = indices;
  run(p, w.task, kernels().max_forward[is_last(p)][int(p.dtype)], false, "max");
}

void max_pool_backward(const Pool& p, const void* grad_out, const int64_t* indices, void* grad_in) {
  Windows w = windows_of(p);
  w.task.source = grad_out;
  w.task.target = grad_in;
  w.task.indices = const_cast<int64_t*>(indices);
  check_indices(w.task);
  run(p, w.task, kernels().max_backward[is_last(p)][int(p.dtype)], true, "max");
}

void avg_pool_forward(const Pool& p, const void* in, void* out) {
  Windows w = windows_of(undilated(p));
  w.task.source = in;
  w.task.target = out;
  run(p, w.task, kernels().avg_forward[is_last(p)][int(p.dtype)], false, "average");
}

void avg_pool_backward(const Pool& p, const void* grad_out, void* grad_in) {
  Windows w = windows_of(undilated(p));
  w.task.source = grad_out;
  w.task.target = grad_in;
  run(p, w.task, kernels().avg_backward[is_last(p)][int(p.dtype)], true, "average");
}

}  // namespace fornax::cpu
