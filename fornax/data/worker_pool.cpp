#include "fornax/data/worker_pool.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "fornax/base/threads.h"

namespace fornax::data {

struct WorkerPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Function<void()>> jobs;
  std::vector<std::thread> threads;
  bool stop = false;

  void work() {
    ThreadLimit one(
        1);  // a worker's operators run on it alone: the pool belongs to the training thread
    for (;;) {
      Function<void()> job;
      {
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return stop || !jobs.empty(); });
        if (stop) return;
        job = std::move(jobs.front());
        jobs.pop_front();
      }
      job();
    }
  }
};

WorkerPool::WorkerPool(size_t threads) : state_(new State) {
  for (size_t i = 0; i < threads; ++i)
    state_->threads.emplace_back([state = state_] { state->work(); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& t : state_->threads) t.join();
  delete state_;
}

size_t WorkerPool::threads() const { return state_->threads.size(); }

void WorkerPool::submit(Function<void()> job) {
  if (state_->threads.empty()) return job();
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->wake.notify_one();
}

struct Gate::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
};

Gate::Gate() : state_(new State) {}
Gate::~Gate() { delete state_; }

void Gate::open() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->open = true;
  state_->changed.notify_all();
}

void Gate::wait() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->open; });
}

}  // namespace fornax::data
