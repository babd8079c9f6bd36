// Kernels of sorting and searching. Values become unsigned keys in the same order (NaN last, -0
// equal to 0), which are sorted by digits together with where they came from: stable, without
// comparisons, and the same for every dtype.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fornax/backends/cpu/register.h"
#include "fornax/base/threads.h"
#include "fornax/core/copy.h"
#include "fornax/ops/records.h"

namespace fornax::cpu {
namespace {

// ---- keys
template <class T>
struct KeyOf {
  using Bits = std::make_unsigned_t<T>;
  static Bits key(T v) {
    constexpr Bits kTop = Bits(Bits(1) << (sizeof(T) * 8 - 1));
    return std::is_signed_v<T> ? Bits(Bits(v) ^ kTop) : Bits(v);
  }
};
template <>
struct KeyOf<bool> {
  using Bits = uint8_t;
  static Bits key(bool v) { return v; }
};
// Sign and magnitude to an order; the infinity's bits tell NaN.
template <class U>
U float_key(U bits, U infinity) {
  constexpr U kTop = U(U(1) << (sizeof(U) * 8 - 1));
  if ((bits & U(~kTop)) > infinity) return U(~U(0));
  if (bits == kTop) bits = 0;
  return bits & kTop ? U(~bits) : U(bits | kTop);
}
template <class T, class U>
U bits_of(T v) {
  U bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
template <>
struct KeyOf<float> {
  using Bits = uint32_t;
  static Bits key(float v) { return float_key<Bits>(bits_of<float, Bits>(v), 0x7f800000u); }
};
template <>
struct KeyOf<double> {
  using Bits = uint64_t;
  static Bits key(double v) {
    return float_key<Bits>(bits_of<double, Bits>(v), 0x7ff0000000000000u);
  }
};
template <>
struct KeyOf<Half> {
  using Bits = uint16_t;
  static Bits key(Half v) { return float_key<Bits>(bits_of<Half, Bits>(v), 0x7c00); }
};
template <>
struct KeyOf<BFloat16> {
  using Bits = uint16_t;
  static Bits key(BFloat16 v) { return float_key<Bits>(bits_of<BFloat16, Bits>(v), 0x7f80); }
};

template <class K>
struct Entry {
  K key;
  int64_t from;
};
template <class K>
bool before(const Entry<K>& a, const Entry<K>& b) {
  return a.key != b.key ? a.key < b.key : a.from < b.from;
}

// ---- sorting entries
// By digits of 8 bits from the lowest up; digits that all entries share are skipped. `other` has
// room for n.
template <class K>
void sort_by_digits(Entry<K>* entries, Entry<K>* other, int64_t n) {
  constexpr int kDigits = sizeof(K);
  std::vector<int64_t> counts(size_t(kDigits) * 256, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d)
      ++counts[size_t(d * 256 + int(entries[i].key >> (8 * d) & 255))];
  Entry<K>* from = entries;
  Entry<K>* to = other;
  for (int d = 0; d < kDigits; ++d) {
    int64_t* c = counts.data() + d * 256;
    if (c[int(from[0].key >> (8 * d) & 255)] == n) continue;
    int64_t at = 0;
    for (int b = 0; b < 256; ++b) {
      int64_t here = c[b];
      c[b] = at;
      at += here;
    }
    for (int64_t i = 0; i < n; ++i) to[c[int(from[i].key >> (8 * d) & 255)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::memcpy(entries, from, size_t(n) * sizeof(Entry<K>));
}

constexpr int64_t kDigitsFrom = 512;  // below, comparisons are cheaper than counting

template <class K>
void sort_entries(Entry<K>* entries, Entry<K>* other, int64_t n) {
  if (n < 2) return;
  if (n < kDigitsFrom)
    std::sort(entries, entries + n, before<K>);
  else
    sort_by_digits(entries, other, n);
}

// Merges two sorted runs on all threads: each range of the result finds its parts by bisection.
template <class K>
void merge_runs(const Entry<K>* a, int64_t na, const Entry<K>* b, int64_t nb, Entry<K>* out) {
  // How many of the first k merged entries come from a.
  auto from_a = [&](int64_t k) {
    int64_t low = std::max<int64_t>(0, k - nb), high = std::min(k, na);
    while (low < high) {
      int64_t mid = (low + high) / 2;
      if (before(b[k - mid - 1], a[mid]))
        high = mid;
      else
        low = mid + 1;
    }
    return low;
  };
  parallel_for(0, na + nb, 64 * 1024, [&](int64_t first, int64_t last) {
    int64_t i = from_a(first), j = first - i, i_end = from_a(last), j_end = last - i_end;
    std::merge(a + i, a + i_end, b + j, b + j_end, out + first, before<K>);
  });
}

// One long row on all threads: parts are sorted apart, then merged in pairs.
template <class K>
void sort_parallel(std::vector<Entry<K>>& entries) {
  int64_t n = int64_t(entries.size()), parts = 1;
  while (parts < get_num_threads() && n / (parts * 2) >= 32 * 1024) parts *= 2;
  std::vector<Entry<K>> other(entries.size());
  auto bound = [&](int64_t k) { return n * k / parts; };
  parallel_for(0, parts, 1, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k)
      sort_entries(entries.data() + bound(k), other.data() + bound(k), bound(k + 1) - bound(k));
  });
  for (int64_t width = 1; width < parts; width *= 2) {
    for (int64_t k = 0; k < parts; k += 2 * width) {
      int64_t a = bound(k), b = bound(k + width), end = bound(k + 2 * width);
      merge_runs(entries.data() + a, b - a, entries.data() + b, end - b, other.data() + a);
    }
    entries.swap(other);
  }
}

// ---- rows
// A contiguous tensor as `outer` x `n` x `inner`; a row runs over the middle.
struct Rows {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  // First element of row r in a tensor whose rows have `length` elements.
  int64_t start(int64_t r, int64_t length) const { return r / inner * length * inner + r % inner; }
};

Rows rows_of(const Tensor& x, int64_t dim) {
  Rows rows;
  if (x.dim() == 0) return rows;
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t size = x.sizes()[size_t(d)];
    (d < dim ? rows.outer : d == dim ? rows.n : rows.inner) *= size;
  }
  return rows;
}

template <class T>
using Bits = typename KeyOf<T>::Bits;

template <class T>
void load_row(const T* x, const Rows& rows, int64_t r, bool descending, Entry<Bits<T>>* entries) {
  const T* p = x + rows.start(r, rows.n);
  Bits<T> flip = descending ? Bits<T>(~Bits<T>(0)) : Bits<T>(0);
  for (int64_t i = 0; i < rows.n; ++i)
    entries[i] = {Bits<T>(KeyOf<T>::key(p[i * rows.inner]) ^ flip), i};
}

// The first k entries to values and indices.
template <class T>
void store_row(const T* x, const Rows& rows, int64_t r, int64_t k, const Entry<Bits<T>>* entries,
               T* values, int64_t* indices) {
  const T* p = x + rows.start(r, rows.n);
  int64_t at = rows.start(r, k);
  for (int64_t i = 0; i < k; ++i, at += rows.inner) {
    values[at] = p[entries[i].from * rows.inner];
    indices[at] = entries[i].from;
  }
}

// Calls row(r, entries, room) for every row, on all threads.
template <class T, class F>
void for_rows(const Rows& rows, F row) {
  int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, rows.n));
  parallel_for(0, rows.count(), grain, [&](int64_t first, int64_t last) {
    std::vector<Entry<Bits<T>>> entries(static_cast<size_t>(rows.n)), room(entries.size());
    for (int64_t r = first; r < last; ++r) row(r, entries.data(), room.data());
  });
}

struct Targets {
  void* values;
  int64_t* indices;
};

template <class T>
void sort_rows(const void* data, const Rows& rows, bool descending, const Targets& out) {
  const T* x = static_cast<const T*>(data);
  T* values = static_cast<T*>(out.values);
  if (rows.count() == 1 && rows.n >= 128 * 1024) {
    std::vector<Entry<Bits<T>>> entries(static_cast<size_t>(rows.n));
    load_row(x, rows, 0, descending, entries.data());
    sort_parallel(entries);
    return store_row(x, rows, 0, rows.n, entries.data(), values, out.indices);
  }
  for_rows<T>(rows, [&](int64_t r, Entry<Bits<T>>* entries, Entry<Bits<T>>* room) {
    load_row(x, rows, r, descending, entries);
    sort_entries(entries, room, rows.n);
    store_row(x, rows, r, rows.n, entries, values, out.indices);
  });
}

template <class K>
bool key_before(const Entry<K>& a, const Entry<K>& b) {
  return a.key < b.key;
}

// The k first entries in order, in entries[0, k). Which of equal keys are taken follows PyTorch's
// choice of algorithms, so that indices agree.
template <class K>
void select_first(Entry<K>* entries, int64_t n, int64_t k) {
  if (k == 0) return;
  if (k * 64 <= n) {
    std::partial_sort(entries, entries + k, entries + n, key_before<K>);
    return;
  }
  std::nth_element(entries, entries + k - 1, entries + n, key_before<K>);
  std::sort(entries, entries + k - 1, key_before<K>);
}

// Puts the entry of rank k (from 0) at entries[k]: quickselect with the median of three. Among
// equal keys it ends at the one that PyTorch's does.
template <class K>
void select_rank(Entry<K>* entries, int64_t n, int64_t k) {
  auto behind = [&](int64_t a, int64_t b) { return entries[b].key < entries[a].key; };
  int64_t left = 0, right = n - 1;
  for (int rounds = 0; right > left; ++rounds) {
    if (rounds > 128)
      return std::nth_element(entries + left, entries + k, entries + right + 1, key_before<K>);
    if (right == left + 1) {
      if (behind(left, right)) std::swap(entries[left], entries[right]);
      return;
    }
    std::swap(entries[left + (right - left) / 2], entries[left + 1]);
    if (behind(left + 1, right)) std::swap(entries[left + 1], entries[right]);
    if (behind(left, right)) std::swap(entries[left], entries[right]);
    if (behind(left + 1, left)) std::swap(entries[left + 1], entries[left]);
    int64_t i = left + 1, j = right;
    for (;;) {
      do ++i;
      while (behind(left, i));
      do --j;
      while (behind(j, left));
      if (j < i) break;
      std::swap(entries[i], entries[j]);
    }
    std::swap(entries[left], entries[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
}

template <class T>
void topk_rows(const void* data, const Rows& rows, int64_t k, bool largest, const Targets& out) {
  const T* x = static_cast<const T*>(data);
  for_rows<T>(rows, [&](int64_t r, Entry<Bits<T>>* entries, Entry<Bits<T>>*) {
    load_row(x, rows, r, largest, entries);
    select_first(entries, rows.n, k);
    store_row(x, rows, r, k, entries, static_cast<T*>(out.values), out.indices);
  });
}

template <class T>
void kth_rows(const void* data, const Rows& rows, int64_t k, const Targets& out) {
  const T* x = static_cast<const T*>(data);
  for_rows<T>(rows, [&](int64_t r, Entry<Bits<T>>* entries, Entry<Bits<T>>*) {
    load_row(x, rows, r, false, entries);
    select_rank(entries, rows.n, k - 1);
    store_row(x, rows, r, 1, entries + k - 1, static_cast<T*>(out.values), out.indices);
  });
}

// Calls f(T()) with the element type of an ordered dtype.
template <class F>
void with_type(Dtype d, F f) {
  switch (d) {
    case Dtype::kBool: return f(bool());
    case Dtype::kU8: return f(uint8_t());
    case Dtype::kI8: return f(int8_t());
    case Dtype::kI16: return f(int16_t());
    case Dtype::kI32: return f(int32_t());
    case Dtype::kI64: return f(int64_t());
    case Dtype::kF16: return f(Half());
    case Dtype::kBF16: return f(BFloat16());
    case Dtype::kF32: return f(float());
    case Dtype::kF64: return f(double());
    default: fail(ErrorKind::kUnsupported, "sorting ", d, " is not defined");
  }
}

Targets targets_of(ArrayRef<Tensor> outs) {
  return {outs[0].impl()->data(), static_cast<int64_t*>(outs[1].impl()->data())};
}

// (self, stable, dim, descending)
void sort_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  if (x.numel() == 0) return;
  Rows rows = rows_of(x, wrap_dim(args.integer(2, -1), x.dim(), "sort"));
  with_type(x.dtype(), [&](auto t) {
    sort_rows<decltype(t)>(x.impl()->data(), rows, args.flag(3), targets_of(outs));
  });
}

// (self, k, dim, largest, sorted)
void topk_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  if (outs[0].numel() == 0) return;
  Rows rows = rows_of(x, wrap_dim(args.integer(2, -1), x.dim(), "topk"));
  with_type(x.dtype(), [&](auto t) {
    topk_rows<decltype(t)>(x.impl()->data(), rows, args.integer(1), args.flag(3, true),
                           targets_of(outs));
  });
}

// (self, k, dim, keepdim)
void kthvalue_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  const Tensor& x = args.tensor(0);
  if (x.numel() == 0) return;
  Rows rows = rows_of(x, wrap_dim(args.integer(2, -1), x.dim(), "kthvalue"));
  with_type(x.dtype(), [&](auto t) {
    kth_rows<decltype(t)>(x.impl()->data(), rows, args.integer(1), targets_of(outs));
  });
}

// ---- searching
struct Search {
  int64_t n;            // elements of a sequence
  int64_t values_each;  // values per sequence; all belong to one if there is one
  bool shared;
  bool right;
  const int64_t* sorter;  // null: the sequence lies in order
};

template <class T, class V>
int64_t place_of(const T* sequence, const int64_t* sorter, int64_t n, V value, bool right) {
  auto key = [](auto v) { return KeyOf<decltype(v)>::key(v); };
  auto wanted = key(value);
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t mid = (low + high) / 2;
    auto here = key(V(sequence[sorter ? sorter[mid] : mid]));
    if (right ? here <= wanted : here < wanted)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

template <class T, class Out>
void search_all(const T* sequences, const T* values, int64_t count, const Search& s, Out* out) {
  parallel_for(0, count, 1024, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t row = s.shared ? 0 : i / s.values_each * s.n;
      out[i] = Out(place_of<T, T>(sequences + row, s.sorter ? s.sorter + row : nullptr, s.n,
                                  values[i], s.right));
    }
  });
}

template <class T>
void search_typed(const Tensor& sequence, const Tensor& values, const Search& s,
                  const Tensor& out) {
  const T* from = static_cast<const T*>(sequence.impl()->data());
  const T* wanted = static_cast<const T*>(values.impl()->data());
  if (out.dtype() == Dtype::kI32)
    search_all(from, wanted, values.numel(), s, static_cast<int32_t*>(out.impl()->data()));
  else
    search_all(from, wanted, values.numel(), s, static_cast<int64_t*>(out.impl()->data()));
}

// (sorted_sequence, self, out_int32, right, side, sorter)
void searchsorted_kernel(const KernelContext&, Args args, ArrayRef<Tensor> outs) {
  Tensor sequence = args.tensor(0), values;
  if (args[1].is_tensor()) {
    values = args.tensor(1);
  } else {  // a number: compared as a real unless both are integers
    bool real = args.number(1).is_floating_point() || is_float(sequence.dtype());
    Dtype d = real ? Dtype::kF64 : Dtype::kI64;
    values = make_tensor(Meta(d, {}));
    if (real)
      *static_cast<double*>(values.impl()->data()) = args.real(1);
    else
      *static_cast<int64_t*>(values.impl()->data()) = args.integer(1);
    Tensor wide = make_tensor(Meta(d, sequence.sizes()));
    copy_elements(wide, sequence);
    sequence = wide;
  }
  if (outs[0].numel() == 0) return;
  Search s{sequence.sizes().back(), values.dim() ? values.sizes().back() : 1, sequence.dim() == 1,
           args.flag(3) || (args.has(4) && args.text(4) == "right"), nullptr};
  if (args.has(5)) s.sorter = static_cast<const int64_t*>(args.tensor(5).impl()->data());
  with_type(sequence.dtype(),
            [&](auto t) { search_typed<decltype(t)>(sequence, values, s, outs[0]); });
}

}  // namespace

void register_sort(const KernelTable& table) {
  table.set(sort_op, sort_kernel);
  table.set(topk_op, topk_kernel);
  table.set(kthvalue_op, kthvalue_kernel);
  table.set(searchsorted_op, searchsorted_kernel);
}

}  // namespace fornax::cpu
