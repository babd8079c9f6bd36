#include "fornax/backends/cpu/conv.h"

#include <atomic>
#include <cstring>

#include "fornax/backends/cpu/conv_engines.h"
#include "fornax/backends/cpu/kernels/gemm_kernels.h"
#include "fornax/backends/cpu/onednn.h"
#include "fornax/backends/cpu/scratch.h"
#include "fornax/base/error.h"
#include "fornax/base/isa.h"
#include "fornax/base/threads.h"

namespace fornax::cpu {
namespace {

constinit std::atomic<ConvEngine> engine{ConvEngine::kAuto};

int64_t product(const int64_t* sizes, int n) {
  int64_t all = 1;
  for (int i = 0; i < n; i++) all *= sizes[i];
  return all;
}
int64_t in_elements(const Conv& c) {
  return c.batch * c.in_channels * product(c.in_size, c.spatial);
}
int64_t out_elements(const Conv& c) {
  return c.batch * c.out_channels * product(c.out_size, c.spatial);
}
int64_t weight_elements(const Conv& c) {
  return c.out_channels * (c.in_channels / c.groups) * product(c.kernel, c.spatial);
}

void check(const Conv& c) {
  FX_CHECK(c.spatial >= 1 && c.spatial <= 3, kShape, "convolution in ", c.spatial,
           " spatial dimensions, expected 1 to 3");
  FX_CHECK(c.groups >= 1 && c.in_channels % c.groups == 0 && c.out_channels % c.groups == 0, kShape,
           "convolution channels ", c.in_channels, " and ", c.out_channels,
           " must be divisible by groups ", c.groups);
  FX_CHECK(c.batch >= 0 && c.in_channels >= 0 && c.out_channels >= 0, kShape,
           "convolution with a negative size");
  for (int i = 0; i < c.spatial; i++) {
    FX_CHECK(c.kernel[i] >= 1 && c.stride[i] >= 1 && c.dilation[i] >= 1 && c.pad[i] >= 0, kShape,
             "convolution dimension ", i, ": kernel ", c.kernel[i], ", stride ", c.stride[i],
             " and dilation ", c.dilation[i], " must be positive, padding ", c.pad[i],
             " not negative");
    const int64_t room =
        c.in_size[i] + c.pad[i] + c.pad_right[i] - c.dilation[i] * (c.kernel[i] - 1) - 1;
    FX_CHECK(room >= 0 && c.out_size[i] == room / c.stride[i] + 1, kShape, "convolution dimension ",
             i, ": input ", c.in_size[i], ", kernel ", c.kernel[i], ", stride ", c.stride[i],
             ", padding ", c.pad[i], " + ", c.pad_right[i], ", dilation ", c.dilation[i],
             " do not give output ", c.out_size[i]);
  }
}

const GemmKernels& kernels() {
  return active_isa() == Isa::kV4 ? isa_v4::gemm_kernels : isa_v3::gemm_kernels;
}

using ConvertFunction = void (*)(const void*, void*, int64_t);

void convert(ConvertFunction function, const void* from, int64_t from_size, void* to,
             int64_t to_size, int64_t n) {
  parallel_for(0, n, 1 << 16, [&](int64_t begin, int64_t end) {
    function(static_cast<const char*>(from) + begin * from_size,
             static_cast<char*>(to) + begin * to_size, end - begin);
  });
}

bool is_pointwise(const Conv& c) {
  for (int i = 0; i < c.spatial; i++) {
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0 || c.pad_right[i] != 0) return false;
  }
  return true;
}

// Where matrix products beat oneDNN in f32: 1x1 kernels on NCHW (no reordering of the activations:
// half the time) and the gradient to an image of few channels (a third of the time).
bool own_is_faster(const Conv& c, ConvPass pass) {
  if (c.dtype != Dtype::kF32 || c.groups != 1) return false;
  if (engine.load(std::memory_order_relaxed) == ConvEngine::kLibrary) return false;
  if (pass == ConvPass::kBackwardData && c.in_channels <= 4) return true;
  return is_pointwise(c) && c.in_layout == ConvLayout::kContiguous &&
         c.out_layout == ConvLayout::kContiguous;
}

// bf16 and f16 through f32, for CPUs that don't compute them (or slower than f32).
void run_in_f32(const Conv& c, ConvPass pass, const ConvArgs& args);

bool library_has(const Conv& c) {
  const ConvEngine wanted = engine.load(std::memory_order_relaxed);
  if (wanted == ConvEngine::kOwn) return false;
  const OnednnSupport& has = onednn_support();
  switch (c.dtype) {
    case Dtype::kF32: return true;
    // Without tile instructions f32 is at least as fast.
    case Dtype::kBF16: return wanted == ConvEngine::kLibrary ? has.bf16 : has.amx_bf16;
    case Dtype::kF16: return wanted == ConvEngine::kLibrary ? has.f16 : has.amx_f16;
    default: return false;
  }
}

void run(const Conv& c, ConvPass pass, const ConvArgs& args) {
  // oneDNN's data gradient takes no bias.
  ConvArgs plain = args;
  if (pass == ConvPass::kBackwardData) plain.bias = nullptr;
  if (library_has(c) && !own_is_faster(c, pass) &&
      (plain.bias == args.bias || !is_reduced_float(c.dtype)) && conv_onednn(c, pass, plain)) {
    if (plain.bias != args.bias)
      add_channel_bias(c.dtype, c.in_layout, c.batch, c.in_channels, product(c.in_size, c.spatial),
                       args.bias, args.in);
    return;
  }
  if (is_reduced_float(c.dtype)) return run_in_f32(c, pass, args);
  conv_own(c, pass, args);
}

void run_in_f32(const Conv& c, ConvPass pass, const ConvArgs& args) {
  FX_CHECK(c.dtype != Dtype::kC32, kType, "convolutions are not defined for ", name_of(c.dtype));
  Conv wide = c;
  wide.dtype = Dtype::kF32;
  const int64_t bias_length = pass == ConvPass::kBackwardData ? c.in_channels : c.out_channels;
  const int64_t counts[] = {in_elements(c), weight_elements(c), out_elements(c),
                            args.bias == nullptr ? 0 : bias_length};
  void* const narrow[] = {args.in, args.weight, args.out, args.bias};
  const bool forward = pass == ConvPass::kForward, weights = pass == ConvPass::kBackwardWeights;
  const bool written[] = {pass == ConvPass::kBackwardData, weights, forward, weights};
  Scratch spaces[] = {Scratch(counts[0] * 4), Scratch(counts[1] * 4), Scratch(counts[2] * 4),
                      Scratch(counts[3] * 4)};
  for (int i = 0; i < 4; i++) {
    if (!written[i])
      convert(kernels().widen[int(c.dtype)], narrow[i], 2, spaces[i].data(), 4, counts[i]);
  }
  run(wide, pass, {spaces[0].data(), spaces[1].data(), spaces[2].data(), spaces[3].data()});
  for (int i = 0; i < 4; i++) {
    if (written[i])
      convert(kernels().narrow[int(c.dtype)], spaces[i].data(), 4, narrow[i], 2, counts[i]);
  }
}

void* writable(const void* p) { return const_cast<void*>(p); }

// An empty tensor's pointer may be null, which memset doesn't take.
void zero(void* p, int64_t bytes) {
  if (bytes > 0) memset(p, 0, size_t(bytes));
}

// Nothing to sum: the bias alone, or zero.
void fill_result(Dtype dtype, ConvLayout layout, int64_t batch, int64_t channels, int64_t positions,
                 const void* bias, void* tensor) {
  const int64_t size = size_of(dtype);
  zero(tensor, batch * channels * positions * size);
  for (int64_t i = 0; bias != nullptr && i < batch * channels * positions; i++) {
    const int64_t channel =
        layout == ConvLayout::kChannelsLast ? i % channels : i / positions % channels;
    memcpy(static_cast<char*>(tensor) + i * size, static_cast<const char*>(bias) + channel * size,
           size_t(size));
  }
}

}  // namespace

void set_conv_engine(ConvEngine e) { engine = e; }

void conv_forward(const Conv& c, const void* in, const void* weight, const void* bias, void* out) {
  check(c);
  if (out_elements(c) == 0) return;
  if (c.in_channels == 0)
    return fill_result(c.dtype, c.out_layout, c.batch, c.out_channels,
                       product(c.out_size, c.spatial), bias, out);
  run(c, ConvPass::kForward, {writable(in), writable(weight), out, writable(bias)});
}

void conv_backward_data(const Conv& c, const void* grad_out, const void* weight, const void* bias,
                        void* grad_in) {
  check(c);
  if (in_elements(c) == 0) return;
  if (c.out_channels == 0)
    return fill_result(c.dtype, c.in_layout, c.batch, c.in_channels, product(c.in_size, c.spatial),
                       bias, grad_in);
  run(c, ConvPass::kBackwardData, {grad_in, writable(weight), writable(grad_out), writable(bias)});
}

void conv_backward_weights(const Conv& c, const void* in, const void* grad_out, void* grad_weight,
                           void* grad_bias) {
  check(c);
  if (c.batch == 0 || weight_elements(c) == 0) {
    zero(grad_weight, weight_elements(c) * size_of(c.dtype));
    if (grad_bias == nullptr) return;
    if (c.batch == 0 || c.out_channels == 0) {
      zero(grad_bias, c.out_channels * size_of(c.dtype));
      return;
    }
  }
  run(c, ConvPass::kBackwardWeights, {writable(in), grad_weight, writable(grad_out), grad_bias});
}

}  // namespace fornax::cpu
