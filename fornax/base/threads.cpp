#include "fornax/base/threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

#include "fornax/base/cpu_info.h"
#include "fornax/base/env.h"
#include "fornax/base/error.h"

namespace fornax {
namespace {

// Pauses before a thread sleeps: about 0.1 ms, long enough to bridge the gap between two operators
// and short enough not to take a busy machine's CPU time.
constexpr int kSpins = 2500;
// Ranges per thread where the work allows it, so that a thread which lost its CPU delays little.
constexpr int64_t kRangesPerThread = 4;
static_assert(kMaxThreads * kRangesPerThread < 1 << 16, "a ticket counts ranges in 16 bits");
// Ranges of fine-grained work start at multiples of this: whole cache lines and vectors.
constexpr int64_t kAlign = 64;

using Body = FunctionRef<void(int64_t, int64_t)>;

constinit std::atomic<int> num_threads{0};  // 0: not yet asked for
constinit std::atomic<ThreadsHook> threads_hook{nullptr};
constinit thread_local int thread_limit = kMaxThreads;
constinit thread_local bool in_region = false;
constinit thread_local int index_in_region = 0;

void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int default_threads() {
  int64_t n = env_int("FORNAX_NUM_THREADS", 0);
  if (n < 1) n = env_int("OMP_NUM_THREADS", 0);
  if (n < 1) n = cpu_count();
  return int(std::min<int64_t>(n, kMaxThreads));
}

void call_hook(int threads) {
  if (ThreadsHook hook = threads_hook.load(std::memory_order_acquire)) hook(threads);
}

// The cut of [0, n) into `count` ranges of `size` elements, the last one shorter.
struct Partition {
  int64_t count, size;
};

Partition partition(int64_t n, int64_t grain, int threads) {
  grain = std::max<int64_t>(grain, 1);
  if (threads == 1 || n <= grain) return {1, n};
  int64_t most = n / grain;  // ranges of at least `grain` elements
  int64_t count = std::min<int64_t>(most, threads);
  if (most >= 2 * threads) count = threads * std::min(most / threads, kRangesPerThread);
  count = std::max<int64_t>(count, 1);
  int64_t size = n / count + (n % count != 0);
  if (grain >= kAlign) size = (size + kAlign - 1) / kAlign * kAlign;
  return {n / size + (n % size != 0), size};
}

// One region at a time. The owner fills the job and publishes it with `ticket`; whoever wins a
// range by advancing the ticket may trust the job's fields, because they stay until every range of
// that epoch has ended. A late worker may read them while they change, hence atomics; its ticket
// then no longer matches.
struct Pool {
  struct Job {
    std::atomic<const Body*> body{nullptr};
    std::atomic<int64_t> begin{0}, end{0}, size{0};
    std::atomic<int> threads{0};
  };

  alignas(64) std::atomic<uint64_t> ticket{0};  // epoch << 32 | ranges << 16 | next range
  alignas(64) std::atomic<uint32_t> wake{0};    // changes with every epoch; workers wait for it
  alignas(64) std::atomic<uint32_t> remaining{0};
  alignas(64) Job job;
  std::atomic<bool> busy{false};
  std::atomic<bool> failed{false};
  std::exception_ptr* error = nullptr;  // the owner's; written by whoever set `failed`
  int workers = 0;                      // guarded by `busy`
};

// Never destroyed: workers outlive static destruction.
Pool& pool() {
  static constinit Pool instance;
  return instance;
}

void run_range(Pool& p, const Body& body, int64_t first, int64_t last) {
  if (p.failed.load(std::memory_order_relaxed)) return;
  try {
    body(first, last);
  } catch (...) {
    if (!p.failed.exchange(true, std::memory_order_relaxed)) *p.error = std::current_exception();
  }
}

// Takes ranges of the current epoch until none is left.
void take_ranges(Pool& p, int index) {
  for (;;) {
    uint64_t ticket = p.ticket.load(std::memory_order_acquire);
    uint32_t range = ticket & 0xffff, count = (ticket >> 16) & 0xffff;
    const Body* body = p.job.body.load(std::memory_order_relaxed);
    int64_t begin = p.job.begin.load(std::memory_order_relaxed);
    int64_t end = p.job.end.load(std::memory_order_relaxed);
    int64_t size = p.job.size.load(std::memory_order_relaxed);
    int threads = p.job.threads.load(std::memory_order_relaxed);
    if (range >= count || index >= threads) return;
    if (!p.ticket.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    int64_t first = begin + int64_t(range) * size;
    run_range(p, *body, first, std::min(end, first + size));
    if (p.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) p.remaining.notify_one();
  }
}

void worker_main(int index) {
  Pool& p = pool();
  in_region = true;
  index_in_region = index;
  call_hook(1);
  uint32_t seen = 0;
  for (;;) {
    int spins = 0;
    while (p.wake.load(std::memory_order_acquire) == seen && ++spins < kSpins) cpu_pause();
    p.wake.wait(seen, std::memory_order_acquire);
    seen = p.wake.load(std::memory_order_acquire);
    take_ranges(p, index);
  }
}

void child_after_fork() {
  Pool& p = pool();
  p.workers = 0;
  p.ticket.store(0, std::memory_order_relaxed);
  p.remaining.store(0, std::memory_order_relaxed);
  p.failed.store(false, std::memory_order_relaxed);
  p.busy.store(false, std::memory_order_relaxed);
}

// Starts workers until there are `wanted`; fewer when the system refuses. Signals go to the
// program's own threads.
void start_workers(Pool& p, int wanted) {
  static const int once = pthread_atfork(nullptr, nullptr, child_after_fork);
  static_cast<void>(once);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (p.workers < wanted) {
      std::thread(worker_main, p.workers + 1).detach();
      ++p.workers;
    }
  } catch (const std::system_error&) {
    // The caller's own thread does what is left.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void publish(Pool& p, const Body& body, int64_t begin, int64_t end, Partition cut, int threads) {
  // No range can be won while the fields change: the last epoch's ticket is used up.
  p.job.body.store(&body, std::memory_order_relaxed);
  p.job.begin.store(begin, std::memory_order_relaxed);
  p.job.end.store(end, std::memory_order_relaxed);
  p.job.size.store(cut.size, std::memory_order_relaxed);
  p.job.threads.store(threads, std::memory_order_relaxed);
  p.remaining.store(uint32_t(cut.count), std::memory_order_relaxed);
  uint64_t epoch = (p.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  p.ticket.store(epoch << 32 | uint64_t(cut.count) << 16, std::memory_order_release);
  p.wake.fetch_add(1, std::memory_order_release);
  int helpers = int(std::min<int64_t>(cut.count, threads)) - 1;
  if (helpers >= p.workers || threads <= p.workers) return p.wake.notify_all();
  for (int i = 0; i < helpers; ++i) p.wake.notify_one();
}

void wait_for_ranges(Pool& p) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (p.remaining.load(std::memory_order_acquire) == 0) return;
    cpu_pause();
  }
  while (uint32_t left = p.remaining.load(std::memory_order_acquire))
    p.remaining.wait(left, std::memory_order_acquire);
}

}  // namespace

int get_num_threads() {
  int n = num_threads.load(std::memory_order_relaxed);
  if (n == 0) [[unlikely]] {
    int fresh = default_threads();
    if (num_threads.compare_exchange_strong(n, fresh)) n = fresh;
  }
  return std::min(n, thread_limit);
}

void set_num_threads(int threads) {
  FX_CHECK(threads >= 1 && threads <= kMaxThreads, kValue, "set_num_threads: expected 1 to ",
           kMaxThreads, " threads, got ", threads);
  num_threads.store(threads, std::memory_order_relaxed);
  call_hook(get_num_threads());
}

void set_threads_hook(ThreadsHook hook) { threads_hook.store(hook, std::memory_order_release); }

ThreadLimit::ThreadLimit(int threads) : outer_(thread_limit) {
  FX_CHECK(threads >= 1, kValue, "ThreadLimit: expected at least 1 thread, got ", threads);
  thread_limit = std::min(outer_, threads);
  call_hook(get_num_threads());
}

ThreadLimit::~ThreadLimit() {
  thread_limit = outer_;
  call_hook(get_num_threads());
}

bool in_parallel_region() { return in_region; }
int thread_index() { return index_in_region; }

int64_t parallel_range_count(int64_t n, int64_t grain) {
  return n <= 0 ? 0 : partition(n, grain, get_num_threads()).count;
}

void detail::parallel_for_pool(int64_t begin, int64_t end, int64_t grain, Body body) {
  int threads = get_num_threads();
  Partition cut = partition(end - begin, grain, threads);
  if (cut.count == 1) return body(begin, end);
  Pool& p = pool();
  if (in_region || p.busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t first = begin; first < end; first += cut.size)
      body(first, std::min(end, first + cut.size));
    return;
  }
  if (p.workers < threads - 1) [[unlikely]]
    start_workers(p, threads - 1);
  std::exception_ptr error;
  p.error = &error;
  in_region = true;
  publish(p, body, begin, end, cut, threads);
  take_ranges(p, 0);
  wait_for_ranges(p);
  in_region = false;
  p.error = nullptr;
  p.failed.store(false, std::memory_order_relaxed);
  p.busy.store(false, std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace fornax
