// Scans along a dimension: [outer, n, inner] with rows or columns as the unit of work.
#include "fornax/backends/cpu/kernels/scan_kernels.h"
#include "fornax/backends/cpu/operands.h"
#include "fornax/backends/cpu/register.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"
#include "fornax/ops/records.h"

namespace fornax {

namespace isa_v3 {
void set_scans(cpu::ScanTable& table);
}
namespace isa_v4 {
void set_scans(cpu::ScanTable& table);
}

namespace cpu {
namespace {

const ScanTable& scan_table() {
  static const ScanTable table = [] {
    ScanTable t = {};
    active_isa() == Isa::kV4 ? isa_v4::set_scans(t) : isa_v3::set_scans(t);
    return t;
  }();
  return table;
}

// The dtype a scan runs in: results of other dtypes are cast.
Dtype scan_dtype(ScanKind kind, Dtype d) {
  if (scan_table().rows[int(kind)][int(d)]) return d;
  return is_integral(d) ? Dtype::kI64 : is_complex(d) ? Dtype::kC64 : Dtype::kF32;
}

struct ScanCall {
  ScanKind kind;
  Tensor y, places, x, a;
  int64_t dim;
};

void run_scan(const ScanCall& s) {
  int64_t n = 1, inner = 1, total = s.x.numel();
  if (total == 0) return;
  if (s.x.dim() > 0) {
    n = s.x.sizes()[size_t(s.dim)];
    for (int64_t d = s.dim + 1; d < s.x.dim(); ++d) inner *= s.x.sizes()[size_t(d)];
  }
  int64_t outer = total / n / inner;
  const ScanTable& table = scan_table();
  int kind = int(s.kind), dtype = int(s.x.dtype());
  auto places = [&](int64_t at) {
    return s.places.defined() ? static_cast<int64_t*>(s.places.impl()->data()) + at : nullptr;
  };
  constexpr int64_t kGrain = int64_t(1) << 15;
  int64_t grain = std::max<int64_t>(8, kGrain / n);
  if (inner == 1) {
    ScanFn rows = table.rows[kind][dtype];
    return parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
      rows(s.y.impl()->data(), places(0), s.x.impl()->data(), element_at(s.a, 0), n, 1, begin, end);
    });
  }
  ScanFn columns = table.columns[kind][dtype];
  parallel_for(0, outer * inner, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t block = begin / inner, from = begin % inner;
      int64_t cols = std::min(inner - from, end - begin), at = block * n * inner;
      columns(element_at(s.y, at), places(at), element_at(s.x, at), element_at(s.a, at), n, inner,
              from, from + cols);
      begin += cols;
    }
  });
}

// Runs in the scan's own dtype and casts the result if the output has another.
void scan_into(ScanCall s, const Tensor& out) {
  Dtype d = scan_dtype(s.kind, out.dtype());
  s.x = cast_to(s.x, d);
  if (s.a.defined()) s.a = cast_to(s.a, d);
  s.y = out.dtype() == d ? out : make_tensor(Meta(d, out.sizes(), out.device()));
  run_scan(s);
  if (!s.y.is_same(out)) copy_elements(out, s.y);
}

int64_t scan_dim(Args args, size_t at) { return wrap_dim(args.integer(at), args.tensor(0).dim()); }

template <ScanKind kind>
void scan_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  // Cast first: integers and bools are summed as the result's dtype.
  scan_into({kind, {}, {}, cast_to(args.tensor(0), outs[0].dtype()), {}, scan_dim(args, 1)},
            outs[0]);
}

template <ScanKind kind>
void scan_places_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  scan_into({kind, {}, outs[1], args.tensor(0), {}, scan_dim(args, 1)}, outs[0]);
}

void recurrence_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  scan_into({ScanKind::kRecurrence, {}, {}, args.tensor(1), args.tensor(0), scan_dim(args, 2)},
            outs[0]);
}

}  // namespace

void register_scan(const KernelTable& table) {
  table.set(cumsum_op, scan_kernel<ScanKind::kSum>, kAliasSafe);
  table.set(cumprod_op, scan_kernel<ScanKind::kProd>, kAliasSafe);
  table.set(logcumsumexp_op, scan_kernel<ScanKind::kLogSumExp>, kAliasSafe);
  table.set(cummax_op, scan_places_kernel<ScanKind::kMax>);
  table.set(cummin_op, scan_places_kernel<ScanKind::kMin>);
  table.set(linear_recurrence_op, recurrence_kernel);
}

}  // namespace cpu
}  // namespace fornax
