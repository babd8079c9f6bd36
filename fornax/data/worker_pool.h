// Threads that prepare batches ahead of the training loop.
#pragma once

#include <cstddef>

#include "fornax/base/function.h"
#include "fornax/base/ref.h"

namespace fornax::data {

// A fixed number of threads that run jobs in the order given. Jobs must not throw. With 0 threads
// submit() runs the job. The destructor waits for running jobs and drops the rest.
class WorkerPool {
 public:
  explicit WorkerPool(size_t threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  void submit(Function<void()> job);
  size_t threads() const;

 private:
  struct State;
  State* state_;
};

// A value handed from a worker to the loop; wait() blocks until set() was called.
class Gate : public RefCounted {
 public:
  Gate();
  ~Gate();
  void open();
  void wait();

 private:
  struct State;
  State* state_;
};

}  // namespace fornax::data
