#include "fornax/backends/cpu/onednn.h"

#include <omp.h>

#include <dnnl.hpp>

#include "fornax/base/threads.h"

namespace fornax::cpu {

dnnl_engine* onednn_engine() {
  // Never destroyed: primitives in thread-local caches may outlive static objects.
  static dnnl::engine* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine->get();
}

dnnl_stream* onednn_stream() {
  thread_local dnnl::stream stream = [] {
    dnnl_stream_t handle = nullptr;
    dnnl_stream_create(&handle, onednn_engine(), dnnl_stream_default_flags);
    return dnnl::stream(handle);
  }();
  return stream.get();
}

const OnednnSupport& onednn_support() {
  static const OnednnSupport support = [] {
    const auto isa = unsigned(dnnl::get_effective_cpu_isa());
    const auto has = [isa](dnnl::cpu_isa wanted) {
      return (isa & unsigned(wanted)) == unsigned(wanted);
    };
    return OnednnSupport{.bf16 = has(dnnl::cpu_isa::avx512_core),
                         .f16 = has(dnnl::cpu_isa::avx512_core_fp16),
                         .amx_bf16 = has(dnnl::cpu_isa::avx512_core_amx),
                         .amx_f16 = has(dnnl::cpu_isa::avx512_core_amx_fp16)};
  }();
  return support;
}

int onednn_use_threads() {
  const int threads = in_parallel_region() ? 1 : get_num_threads();
  thread_local int current = 0;
  if (threads == current) return threads;
  omp_set_num_threads(threads);
  current = threads;
  return threads;
}

}  // namespace fornax::cpu
