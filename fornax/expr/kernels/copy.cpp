// Copies by element size: contiguous, filled, strided, transposed in blocks.
#include <immintrin.h>
#include <string.h>

#include "fornax/expr/kernels/table.h"

namespace fornax::FX_ISA_NS {
namespace {

struct Bytes16 {
  uint64_t low, high;
};

template <class T>
inline T* step(T* p, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(p) + bytes);
}

// ---- Square blocks: d[i][j] = a[j][i], rows `d_row` and `a_row` bytes apart.

template <class T>
struct Block {
  static constexpr int kSize = 8;
  static inline void transpose(T* d, int64_t d_row, const T* a, int64_t a_row) {
    for (int j = 0; j < kSize; ++j) {
      const T* column = step(a, j * a_row);
      for (int i = 0; i < kSize; ++i) step(d, i * d_row)[j] = column[i];
    }
  }
};

template <>
struct Block<uint16_t> {
  static constexpr int kSize = 8;
  static inline void transpose(uint16_t* d, int64_t d_row, const uint16_t* a, int64_t a_row) {
    __m128i r[8], s[8];
    for (int j = 0; j < 8; ++j)
      r[j] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(step(a, j * a_row)));
    for (int j = 0; j < 4; ++j) {
      s[2 * j] = _mm_unpacklo_epi16(r[2 * j], r[2 * j + 1]);
      s[2 * j + 1] = _mm_unpackhi_epi16(r[2 * j], r[2 * j + 1]);
    }
    for (int h = 0; h < 2; ++h) {
      r[4 * h] = _mm_unpacklo_epi32(s[4 * h], s[4 * h + 2]);
      r[4 * h + 1] = _mm_unpackhi_epi32(s[4 * h], s[4 * h + 2]);
      r[4 * h + 2] = _mm_unpacklo_epi32(s[4 * h + 1], s[4 * h + 3]);
      r[4 * h + 3] = _mm_unpackhi_epi32(s[4 * h + 1], s[4 * h + 3]);
    }
    for (int i = 0; i < 4; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(step(d, 2 * i * d_row)),
                       _mm_unpacklo_epi64(r[i], r[i + 4]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(step(d, (2 * i + 1) * d_row)),
                       _mm_unpackhi_epi64(r[i], r[i + 4]));
    }
  }
};

template <>
struct Block<uint32_t> {
  static constexpr int kSize = 8;
  static inline void transpose(uint32_t* d, int64_t d_row, const uint32_t* a, int64_t a_row) {
    __m256 r[8], s[8];
    for (int j = 0; j < 8; ++j)
      r[j] = _mm256_loadu_ps(reinterpret_cast<const float*>(step(a, j * a_row)));
    for (int j = 0; j < 4; ++j) {
      s[2 * j] = _mm256_unpacklo_ps(r[2 * j], r[2 * j + 1]);
      s[2 * j + 1] = _mm256_unpackhi_ps(r[2 * j], r[2 * j + 1]);
    }
    for (int h = 0; h < 2; ++h) {
      r[4 * h] = _mm256_shuffle_ps(s[4 * h], s[4 * h + 2], 0x44);
      r[4 * h + 1] = _mm256_shuffle_ps(s[4 * h], s[4 * h + 2], 0xee);
      r[4 * h + 2] = _mm256_shuffle_ps(s[4 * h + 1], s[4 * h + 3], 0x44);
      r[4 * h + 3] = _mm256_shuffle_ps(s[4 * h + 1], s[4 * h + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_ps(reinterpret_cast<float*>(step(d, i * d_row)),
                       _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
      _mm256_storeu_ps(reinterpret_cast<float*>(step(d, (i + 4) * d_row)),
                       _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
  }
};

template <>
struct Block<uint64_t> {
  static constexpr int kSize = 4;
  static inline void transpose(uint64_t* d, int64_t d_row, const uint64_t* a, int64_t a_row) {
    __m256d r[4], s[4];
    for (int j = 0; j < 4; ++j)
      r[j] = _mm256_loadu_pd(reinterpret_cast<const double*>(step(a, j * a_row)));
    s[0] = _mm256_unpacklo_pd(r[0], r[1]);
    s[1] = _mm256_unpackhi_pd(r[0], r[1]);
    s[2] = _mm256_unpacklo_pd(r[2], r[3]);
    s[3] = _mm256_unpackhi_pd(r[2], r[3]);
    for (int i = 0; i < 2; ++i) {
      _mm256_storeu_pd(reinterpret_cast<double*>(step(d, i * d_row)),
                       _mm256_permute2f128_pd(s[i], s[i + 2], 0x20));
      _mm256_storeu_pd(reinterpret_cast<double*>(step(d, (i + 2) * d_row)),
                       _mm256_permute2f128_pd(s[i], s[i + 2], 0x31));
    }
  }
};

// ---- Rows and columns

template <class T>
inline void strided(T* d, int64_t d_col, const T* a, int64_t a_col, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  if (d_col == kSize && a_col == kSize) {
    if (cols * kSize >= 256) {
      memcpy(d, a, size_t(cols * kSize));
      return;
    }
#pragma GCC ivdep
    for (int64_t j = 0; j < cols; ++j) d[j] = a[j];
    return;
  }
  if (d_col == kSize && a_col == 0) {
    const T value = *a;
    for (int64_t j = 0; j < cols; ++j) d[j] = value;
    return;
  }
  for (int64_t j = 0; j < cols; ++j) *step(d, j * d_col) = *step(a, j * a_col);
}

// The source's columns and the target's rows are contiguous.
template <class T>
void transposed(T* d, int64_t d_row, const T* a, int64_t a_col, int64_t rows, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kBlock = Block<T>::kSize;
  const int64_t full_rows = rows / kBlock * kBlock, full_cols = cols / kBlock * kBlock;
  constexpr int64_t kAhead = 4 * kBlock;  // columns; the hardware does not see this pattern
  for (int64_t j = 0; j < full_cols; j += kBlock) {
    if (j + kAhead < full_cols)
      for (int64_t c = 0; c < kBlock; ++c)
        for (int64_t i = 0; i < rows * kSize; i += 64)
          __builtin_prefetch(step(a, (j + kAhead + c) * a_col + i));
    for (int64_t i = 0; i < full_rows; i += kBlock)
      Block<T>::transpose(step(d, i * d_row) + j, d_row, step(a, j * a_col) + i, a_col);
  }
  for (int64_t i = 0; i < full_rows; ++i)
    strided(step(d, i * d_row) + full_cols, kSize, step(a, full_cols * a_col) + i, a_col,
            cols - full_cols);
  for (int64_t i = full_rows; i < rows; ++i) strided(step(d, i * d_row), kSize, a + i, a_col, cols);
}

template <class T>
void copy_2d_of(T* d, int64_t d_row, int64_t d_col, const T* a, int64_t a_row, int64_t a_col,
                int64_t rows, int64_t cols) {
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kBlock = Block<T>::kSize;
  const bool large = rows >= kBlock && cols >= kBlock;
  if (large && d_col == kSize && a_row == kSize && a_col != kSize)
    return transposed(d, d_row, a, a_col, rows, cols);
  if (large && a_col == kSize && d_row == kSize && d_col != kSize)
    return transposed(d, d_col, a, a_row, cols, rows);
  for (int64_t i = 0; i < rows; ++i)
    strided(step(d, i * d_row), d_col, step(a, i * a_row), a_col, cols);
}

void copy_2d(void* d, int64_t d_row, int64_t d_col, const void* a, int64_t a_row, int64_t a_col,
             int64_t rows, int64_t cols, int size) {
#define FX_COPY(T)                                                                            \
  return copy_2d_of(static_cast<T*>(d), d_row, d_col, static_cast<const T*>(a), a_row, a_col, \
                    rows, cols)
  switch (size) {
    case 1: FX_COPY(uint8_t);
    case 2: FX_COPY(uint16_t);
    case 4: FX_COPY(uint32_t);
    case 8: FX_COPY(uint64_t);
    default: FX_COPY(Bytes16);
  }
#undef FX_COPY
}

// d is aligned to a cache line.
void stream(void* d_, const void* a_, int64_t bytes) {
  char* d = static_cast<char*>(d_);
  const char* a = static_cast<const char*>(a_);
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(d + i), _mm512_loadu_si512(a + i));
#else
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(d + i + 32), high);
#endif
  }
  memcpy(d + i, a + i, size_t(bytes - i));
}

void stream_end() { _mm_sfence(); }

void copy(void* d, const void* a, int64_t n, int size) {
  const int64_t bytes = n * size;
  if (bytes <= 0 || d == a) return;
  if (bytes < expr::kStreamBytes || reinterpret_cast<uintptr_t>(d) % 64 != 0) {
    memcpy(d, a, size_t(bytes));
    return;
  }
  stream(d, a, bytes);
  stream_end();
}

template <class T>
void fill_of(void* d_, const void* value_, int64_t n) {
  T* d = static_cast<T*>(d_);
  const T value = *static_cast<const T*>(value_);
  for (int64_t i = 0; i < n; ++i) d[i] = value;
}

void fill(void* d, const void* value, int64_t n, int size) {
  switch (size) {
    case 1: return fill_of<uint8_t>(d, value, n);
    case 2: return fill_of<uint16_t>(d, value, n);
    case 4: return fill_of<uint32_t>(d, value, n);
    case 8: return fill_of<uint64_t>(d, value, n);
    default: return fill_of<Bytes16>(d, value, n);
  }
}

}  // namespace

void set_copy_loops(expr::DirectLoops& loops) {
  loops.copy = copy;
  loops.stream = stream;
  loops.stream_end = stream_end;
  loops.fill = fill;
  loops.copy_2d = copy_2d;
}

}  // namespace fornax::FX_ISA_NS
