// Convolution as matrix products over copied patches (im2col): every dtype, layout and geometry.
#include <algorithm>

#include "fornax/backends/cpu/conv_engines.h"
#include "fornax/backends/cpu/gemm.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/error.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

// Bytes that the patch matrix of one step may take.
constexpr int64_t kPatchBytes = int64_t(2) << 20;

int64_t product(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// A tensor [batch, channels, s0, s1, s2] in elements.
struct Strides {
  int64_t batch, channel, space[3];

  Strides(ConvLayout layout, int64_t channels, const int64_t* size) {
    const bool last = layout == ConvLayout::kChannelsLast;
    batch = channels * product(size);
    channel = last ? 1 : product(size);
    space[2] = last ? channels : 1;
    space[1] = space[2] * size[2];
    space[0] = space[1] * size[1];
  }
  // Distance between neighbouring positions when all spatial dimensions are seen as one.
  int64_t position() const { return space[2]; }
};

// The convolution in three dimensions (leading ones of size 1).
struct Geometry {
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  explicit Geometry(const Conv& c) {
    for (int i = 0; i < c.spatial; i++) {
      const int to = i + 3 - c.spatial;
      in[to] = c.in_size[i];
      kernel[to] = c.kernel[i];
      out[to] = c.out_size[i];
      stride[to] = c.stride[i];
      pad[to] = c.pad[i];
      dilation[to] = c.dilation[i];
    }
  }
};

// Calls body(out_x, in_x, n) style pieces for one kernel element: for each output row in
// [first_row, last_row) the run of output columns whose input column exists.
template <class Body>
void for_rows(const Geometry& g, const int64_t* k, int64_t first_row, int64_t last_row, Body body) {
  const int64_t shift = k[2] * g.dilation[2] - g.pad[2];
  // Columns x with 0 <= x * stride + shift < in.
  const int64_t low = shift >= 0 ? 0 : std::min(g.out[2], (-shift + g.stride[2] - 1) / g.stride[2]);
  const int64_t room = g.in[2] - 1 - shift;
  const int64_t high = room < 0 ? low : std::clamp(room / g.stride[2] + 1, low, g.out[2]);
  for (int64_t row = first_row; row < last_row; row++) {
    const int64_t z = row / g.out[1] * g.stride[0] + k[0] * g.dilation[0] - g.pad[0];
    const int64_t y = row % g.out[1] * g.stride[1] + k[1] * g.dilation[1] - g.pad[1];
    const bool inside = z >= 0 && z < g.in[0] && y >= 0 && y < g.in[1];
    body(row - first_row, z, y, low * g.stride[2] + shift, low, inside ? high : low);
  }
}

// patches[c, kernel element][position] for rows of output positions: zero where padding is.
template <class T>
void gather_patches(const Geometry& g, const T* in, const Strides& s, int64_t channels,
                    int64_t first_row, int64_t last_row, T* patches) {
  const int64_t width = g.out[2], positions = (last_row - first_row) * width;
  int64_t k[3];
  for (int64_t c = 0; c < channels; c++)
    for (k[0] = 0; k[0] < g.kernel[0]; k[0]++)
      for (k[1] = 0; k[1] < g.kernel[1]; k[1]++)
        for (k[2] = 0; k[2] < g.kernel[2]; k[2]++, patches += positions)
          for_rows(g, k, first_row, last_row,
                   [&](int64_t row, int64_t z, int64_t y, int64_t x, int64_t low, int64_t high) {
                     T* to = patches + row * width;
                     const T* from = in + c * s.channel + z * s.space[0] + y * s.space[1];
                     const int64_t step = g.stride[2] * s.space[2];
                     std::fill(to, to + low, T());
                     for (int64_t i = low; i < high; i++)
                       to[i] = from[x * s.space[2] + (i - low) * step];
                     std::fill(to + high, to + width, T());
                   });
}

// The reverse: adds every patch element to the input element it came from.
template <class T>
void scatter_patches(const Geometry& g, const T* patches, const Strides& s, int64_t channels,
                     int64_t first_row, int64_t last_row, T* in) {
  const int64_t width = g.out[2], positions = (last_row - first_row) * width;
  int64_t k[3];
  for (int64_t c = 0; c < channels; c++)
    for (k[0] = 0; k[0] < g.kernel[0]; k[0]++)
      for (k[1] = 0; k[1] < g.kernel[1]; k[1]++)
        for (k[2] = 0; k[2] < g.kernel[2]; k[2]++, patches += positions)
          for_rows(g, k, first_row, last_row,
                   [&](int64_t row, int64_t z, int64_t y, int64_t x, int64_t low, int64_t high) {
                     const T* from = patches + row * width;
                     T* to = in + c * s.channel + z * s.space[0] + y * s.space[1];
                     const int64_t step = g.stride[2] * s.space[2];
                     for (int64_t i = low; i < high; i++) {
                       T& element = to[x * s.space[2] + (i - low) * step];
                       element = T(element + from[i]);
                     }
                   });
}

template <class T>
class OwnConv {
 public:
  OwnConv(const Conv& c, const ConvArgs& args)
      : c_(c),
        g_(c),
        in_(c.in_layout, c.in_channels, g_.in),
        out_(c.out_layout, c.out_channels, g_.out),
        in_group_(c.in_channels / c.groups),
        out_group_(c.out_channels / c.groups),
        depth_(in_group_ * product(g_.kernel)),
        args_(args) {
    const int64_t row_bytes = depth_ * g_.out[2] * int64_t(sizeof(T));
    rows_ = g_.out[0] * g_.out[1];
    step_ = std::clamp(kPatchBytes / std::max<int64_t>(row_bytes, 1), int64_t(1),
                       std::max<int64_t>(rows_, 1));
    if (is_pointwise()) step_ = std::max<int64_t>(rows_, 1);
    load_weight();
  }

  void forward() {
    parallel_for(0, c_.batch * c_.groups, 1, [&](int64_t begin, int64_t end) {
      Scratch space(patch_bytes());
      T* patches = space.as<T>();
      for (int64_t i = begin; i < end; i++) {
        for (int64_t row = 0; row < rows_; row += step_) {
          const int64_t last = std::min(rows_, row + step_);
          gather(i, row, last, patches);
          gemm(product_of(i, row, last, Pass::kForward, patches));
        }
      }
    });
    if (args_.bias != nullptr)
      add_channel_bias(c_.dtype, c_.out_layout, c_.batch, c_.out_channels, product(g_.out),
                       args_.bias, args_.out);
  }

  void backward_data() {
    std::fill(static_cast<T*>(args_.in), static_cast<T*>(args_.in) + c_.batch * in_.batch, T());
    parallel_for(0, c_.batch * c_.groups, 1, [&](int64_t begin, int64_t end) {
      Scratch space(patch_bytes());
      T* patches = space.as<T>();
      for (int64_t i = begin; i < end; i++) {
        for (int64_t row = 0; row < rows_; row += step_) {
          const int64_t last = std::min(rows_, row + step_);
          gemm(product_of(i, row, last, Pass::kBackwardData, patches));
          if (!is_pointwise()) scatter_patches(g_, patches, in_, in_group_, row, last, in_at(i));
        }
      }
    });
    if (args_.bias != nullptr)
      add_channel_bias(c_.dtype, c_.in_layout, c_.batch, c_.in_channels, product(g_.in), args_.bias,
                       args_.in);
  }

  // Sums over the batch in order, so the result doesn't depend on the threads.
  void backward_weights() {
    Scratch space(patch_bytes());
    T* patches = space.as<T>();
    std::fill(weight_, weight_ + c_.out_channels * depth_, T());
    for (int64_t i = 0; i < c_.batch * c_.groups; i++) {
      for (int64_t row = 0; row < rows_; row += step_) {
        const int64_t last = std::min(rows_, row + step_);
        gather(i, row, last, patches);
        gemm(product_of(i, row, last, Pass::kBackwardWeights, patches));
      }
    }
    store_weight();
    if (args_.bias != nullptr)
      sum_per_channel(c_.dtype, c_.out_layout, c_.batch, c_.out_channels, product(g_.out),
                      args_.out, args_.bias);
  }

 private:
  using Pass = ConvPass;

  // A 1x1 kernel's patch matrix is the input itself.
  bool is_pointwise() const {
    for (int i = 0; i < 3; i++) {
      if (g_.kernel[i] != 1 || g_.stride[i] != 1 || g_.pad[i] != 0 || g_.in[i] != g_.out[i])
        return false;
    }
    return true;
  }
  int64_t patch_bytes() const {
    return is_pointwise() ? 0 : depth_ * step_ * g_.out[2] * int64_t(sizeof(T));
  }
  void gather(int64_t i, int64_t row, int64_t last, T* patches) const {
    if (!is_pointwise()) gather_patches(g_, in_at(i), in_, in_group_, row, last, patches);
  }

  // The weight with the kernel innermost: [out_channels][depth], the rows of the patch matrix.
  bool weight_is_plain() const {
    return c_.weight_layout == ConvLayout::kContiguous || in_group_ == 1 || product(g_.kernel) == 1;
  }
  void load_weight() {
    weight_ = static_cast<T*>(args_.weight);
    if (weight_is_plain()) return;
    weight_ = weight_copy_.as<T>();
    const T* from = static_cast<const T*>(args_.weight);
    each_weight([&](int64_t plain, int64_t stored) { weight_[plain] = from[stored]; });
  }
  void store_weight() {
    if (weight_is_plain()) return;
    T* to = static_cast<T*>(args_.weight);
    each_weight([&](int64_t plain, int64_t stored) { to[stored] = weight_[plain]; });
  }
  template <class Body>
  void each_weight(Body body) const {
    const int64_t taps = product(g_.kernel);
    for (int64_t o = 0; o < c_.out_channels; o++)
      for (int64_t i = 0; i < in_group_; i++)
        for (int64_t k = 0; k < taps; k++)
          body((o * in_group_ + i) * taps + k, (o * taps + k) * in_group_ + i);
  }

  // i counts image by image, group by group.
  T* in_at(int64_t i) const {
    return static_cast<T*>(args_.in) + i / c_.groups * in_.batch +
           i % c_.groups * in_group_ * in_.channel;
  }
  T* out_at(int64_t i) const {
    return static_cast<T*>(args_.out) + i / c_.groups * out_.batch +
           i % c_.groups * out_group_ * out_.channel;
  }

  // The product of one step. W [out_group, depth], P [depth, positions], Y [out_group, positions].
  Gemm product_of(int64_t i, int64_t row, int64_t last, Pass pass, T* patches) const {
    const int64_t positions = (last - row) * g_.out[2];
    T* w = weight_ + i % c_.groups * out_group_ * depth_;
    T* y = out_at(i) + row * g_.out[2] * out_.position();
    T* matrix = is_pointwise() ? in_at(i) : patches;
    const int64_t matrix_row = is_pointwise() ? in_.channel : positions;
    const int64_t matrix_col = is_pointwise() ? in_.position() : 1;
    Gemm p;
    p.dtype = c_.dtype;
    switch (pass) {
      case Pass::kForward:  // Y = W P
        p.m = out_group_, p.n = positions, p.k = depth_;
        p.a = w, p.a_row = depth_;
        p.b = matrix, p.b_row = matrix_row, p.b_col = matrix_col;
        p.c = y, p.c_row = out_.channel, p.c_col = out_.position();
        break;
      case Pass::kBackwardData:  // P = W^T Y
        p.m = depth_, p.n = positions, p.k = out_group_;
        p.a = w, p.a_row = 1, p.a_col = depth_;
        p.b = y, p.b_row = out_.channel, p.b_col = out_.position();
        p.c = matrix, p.c_row = matrix_row, p.c_col = matrix_col;
        break;
      case Pass::kBackwardWeights:  // W += Y P^T
        p.m = out_group_, p.n = depth_, p.k = positions;
        p.a = y, p.a_row = out_.channel, p.a_col = out_.position();
        p.b = matrix, p.b_row = matrix_col, p.b_col = matrix_row;
        p.c = w, p.c_row = depth_;
        p.beta = 1;
        break;
    }
    return p;
  }

  const Conv& c_;
  Geometry g_;
  Strides in_, out_;
  int64_t in_group_, out_group_, depth_;
  ConvArgs args_;
  int64_t rows_, step_;
  Scratch weight_copy_{weight_is_plain() ? 0 : c_.out_channels * depth_ * int64_t(sizeof(T))};
  T* weight_;
};

template <class T>
void run(const Conv& c, ConvPass pass, const ConvArgs& args) {
  OwnConv<T> conv(c, args);
  switch (pass) {
    case ConvPass::kForward: return conv.forward();
    case ConvPass::kBackwardData: return conv.backward_data();
    case ConvPass::kBackwardWeights: return conv.backward_weights();
  }
}

// Calls body with a value of the C++ type. Integers are taken as unsigned of their size: the same
// bits, and no overflow.
template <class Body>
void with_type(Dtype dtype, Body body) {
  switch (dtype) {
    case Dtype::kU8:
    case Dtype::kI8: return body(uint8_t());
    case Dtype::kI16: return body(uint16_t());
    case Dtype::kI32: return body(uint32_t());
    case Dtype::kI64: return body(uint64_t());
    case Dtype::kF32: return body(float());
    case Dtype::kF64: return body(double());
    case Dtype::kC64: return body(Complex<float>());
    case Dtype::kC128: return body(Complex<double>());
    default: fail(ErrorKind::kType, "convolutions are not defined for ", name_of(dtype));
  }
}

}  // namespace

void conv_own(const Conv& c, ConvPass pass, const ConvArgs& args) {
  with_type(c.dtype, [&](auto zero) { run<decltype(zero)>(c, pass, args); });
}

void add_channel_bias(Dtype dtype, ConvLayout layout, int64_t batch, int64_t channels,
                      int64_t positions, const void* bias, void* tensor) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* b = static_cast<const T*>(bias);
    const bool last = layout == ConvLayout::kChannelsLast;
    const int64_t rows = last ? batch * positions : batch * channels;
    const int64_t length = last ? channels : positions;
    parallel_for(0, rows, 1 + 32768 / std::max<int64_t>(length, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; r++) {
                     T* row = static_cast<T*>(tensor) + r * length;
                     if (last)
                       for (int64_t i = 0; i < length; i++) row[i] = T(row[i] + b[i]);
                     else
                       for (int64_t i = 0; i < length; i++) row[i] = T(row[i] + b[r % channels]);
                   }
                 });
  });
}

void sum_per_channel(Dtype dtype, ConvLayout layout, int64_t batch, int64_t channels,
                     int64_t positions, const void* tensor, void* sums) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(tensor);
    T* to = static_cast<T*>(sums);
    std::fill(to, to + channels, T());
    if (layout == ConvLayout::kChannelsLast) {
      for (int64_t r = 0; r < batch * positions; r++)
        for (int64_t i = 0; i < channels; i++) to[i] = T(to[i] + from[r * channels + i]);
      return;
    }
    for (int64_t r = 0; r < batch * channels; r++) {
      T sum = T();
      for (int64_t i = 0; i < positions; i++) sum = T(sum + from[r * positions + i]);
      to[r % channels] = T(to[r % channels] + sum);
    }
  });
}

}  // namespace fornax::cpu
