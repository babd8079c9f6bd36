// What the sources that call oneDNN share: one engine, one stream per thread, its thread count, and
// a cache of primitives. Keeps oneDNN's headers out of ours.
#pragma once

#include <cstdint>

struct dnnl_engine;
struct dnnl_stream;

namespace fornax::cpu {

dnnl_engine* onednn_engine();
dnnl_stream* onednn_stream();  // of the calling thread

// What this CPU computes natively, as far as ONEDNN_MAX_CPU_ISA allows.
struct OnednnSupport {
  bool bf16, f16;          // supported at all
  bool amx_bf16, amx_f16;  // by tile instructions
};
const OnednnSupport& onednn_support();

// Makes OpenMP regions started by the calling thread use get_num_threads() threads, and one inside
// our own parallel regions; returns that number. A primitive's blocking and scratch space are fixed
// for the number of threads it was made under: call this first, make the number part of the cache
// key, and execute under the same number. Costs a few ns.
int onednn_use_threads();

}  // namespace fornax::cpu
