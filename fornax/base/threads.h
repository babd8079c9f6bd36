// The process's one thread pool, and how many threads a call may use.
//
// Workers start at the first region that needs them, spin briefly between regions and then sleep.
// A region never nests, and never waits for another one: inside a region, and while another thread
// of the program has the pool, parallel_for runs on the calling thread alone. So several user
// threads that run models neither oversubscribe the machine nor block each other.
#pragma once

#include <cstdint>

#include "fornax/base/function_ref.h"

namespace fornax {

// Threads that a parallel_for started here may use: what set_num_threads set, at most this thread's
// ThreadLimit. At first FORNAX_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs this process is
// allowed to run on.
int get_num_threads();
// Process wide. Error(kValue) unless 1 <= threads <= kMaxThreads.
void set_num_threads(int threads);
inline constexpr int kMaxThreads = 1024;

// Called with the number of threads that calls from the calling thread may use from now on: by
// set_num_threads, when a ThreadLimit begins or ends, and on each new worker (with 1). Lets a
// library that has a runtime of its own follow. Null removes it.
using ThreadsHook = void (*)(int threads);
void set_threads_hook(ThreadsHook hook);

// Limits the calling thread (and nobody else) to at most `threads` while alive; limits nest and
// only ever lower. For programs that run one model per thread.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int outer_;
};

// True on a thread that is running a range of a region on the pool.
bool in_parallel_region();
// 0 on the thread that called parallel_for, 1 ... get_num_threads() - 1 on its workers: for scratch
// space per thread.
int thread_index();

namespace detail {
void parallel_for_pool(int64_t begin, int64_t end, int64_t grain,
                       FunctionRef<void(int64_t, int64_t)> body);
}

// How many ranges parallel_for cuts n elements into, called from this thread.
int64_t parallel_range_count(int64_t n, int64_t grain);

// Calls body(first, last) on disjoint ranges that cover [begin, end), each of at least `grain`
// elements where more than one is made, and returns when all are done. The ranges depend on begin,
// end, grain and get_num_threads() alone, never on load, nesting or timing; the order in which they
// run is unspecified. Nothing is called when end <= begin. The first exception of a body is
// rethrown here after the running ranges have ended; ranges not yet begun are dropped.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain,
                         FunctionRef<void(int64_t, int64_t)> body) {
  if (end <= begin) return;
  if (end - begin <= grain || end - begin == 1) return body(begin, end);
  detail::parallel_for_pool(begin, end, grain, body);
}

}  // namespace fornax
