// DataLoader: batches of a dataset in a sampler's order, prepared ahead by worker threads.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "fornax/core/tensor.h"
#include "fornax/data/dataset.h"
#include "fornax/data/samplers.h"
#include "fornax/data/worker_pool.h"

namespace fornax::data {

// Chainable, as libtorch's: DataLoaderOptions().batch_size(64).workers(2).
class DataLoaderOptions {
 public:
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  DataLoaderOptions& batch_size(size_t n) { return batch_size_ = n, *this; }
  DataLoaderOptions& workers(size_t n) { return workers_ = n, *this; }
  // Batches prepared ahead; default 2 per worker.
  DataLoaderOptions& max_jobs(size_t n) { return max_jobs_ = n, *this; }
  DataLoaderOptions& drop_last(bool on) { return drop_last_ = on, *this; }
  DataLoaderOptions& enforce_ordering(bool) {
    return *this;
  }  // batches always come in the sampler's order
  size_t batch_size() const { return batch_size_; }
  size_t workers() const { return workers_; }
  size_t max_jobs() const { return max_jobs_.value_or(2 * workers_); }
  bool drop_last() const { return drop_last_; }

 private:
  size_t batch_size_ = 1, workers_ = 0;
  std::optional<size_t> max_jobs_;
  bool drop_last_ = false;
};

// A loop `for (auto& batch : *loader)` is one epoch. An exception in the dataset reaches the loop
// at the batch it belongs to. One loop at a time; the dataset is shared with the workers.
template <class D>
class DataLoader {
 public:
  using Batch = typename D::BatchType;

  DataLoader(D dataset, std::unique_ptr<samplers::Sampler> sampler, DataLoaderOptions options)
      : dataset_(std::move(dataset)),
        sampler_(std::move(sampler)),
        options_(options),
        pool_(options.workers()) {
    FX_CHECK(options.batch_size() > 0, kValue, "DataLoader: batch_size must be positive");
  }
  ~DataLoader() { pending_.clear(); }

  class Iterator {
   public:
    Batch& operator*() { return *batch_; }
    Batch* operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    bool operator!=(const Iterator& other) const {
      return batch_.has_value() != other.batch_.has_value();
    }
    bool operator==(const Iterator& other) const { return !(*this != other); }

   private:
    friend class DataLoader;
    DataLoader* loader_ = nullptr;
    std::optional<Batch> batch_;
  };

  // Starts an epoch; after load_state() it continues the one that was saved.
  Iterator begin() {
    if (!resumed_) {
      discard();
      sampler_->reset();
      delivered_ = 0;
      start_ = sampler_->state();
    }
    resumed_ = false;
    fill();
    Iterator it;
    it.loader_ = this;
    it.batch_ = next();
    return it;
  }
  Iterator end() { return {}; }

  // Where the loop stands: what was handed out, not what was prepared ahead.
  SamplerState state() const {
    SamplerState s = start_;
    s.position += delivered_;
    return s;
  }
  // The next begin() goes on there.
  void load_state(const SamplerState& state) {
    discard();
    sampler_->set_state(state);
    start_ = sampler_->state();
    delivered_ = 0;
    // A finished epoch is followed by a new one.
    auto size = dataset_.size();
    resumed_ = !size || state.position < *size;
  }
  const DataLoaderOptions& options() const { return options_; }
  const D& dataset() const { return dataset_; }

 private:
  struct Job : RefCounted {
    Gate gate;
    std::vector<size_t> indices;
    std::optional<Batch> batch;
    std::exception_ptr error;
  };

  void fill() {
    size_t ahead = options_.workers() ? (options_.max_jobs() ? options_.max_jobs() : 1) : 1;
    while (pending_.size() < ahead) {
      auto indices = sampler_->next(options_.batch_size());
      if (!indices || (options_.drop_last() && indices->size() < options_.batch_size())) return;
      auto job = make_ref<Job>();
      job->indices = std::move(*indices);
      pending_.push_back(job);
      if (options_.workers()) pool_.submit([this, job] { prepare(*job); });
    }
  }
  void prepare(Job& job) {
    try {
      job.batch.emplace(dataset_.get_batch(job.indices));
    } catch (...) {
      job.error = std::current_exception();
    }
    job.gate.open();
  }
  std::optional<Batch> next() {
    if (pending_.empty()) return std::nullopt;
    Ref<Job> job = pending_.front();
    pending_.pop_front();
    if (!options_.workers()) prepare(*job);
    job->gate.wait();
    delivered_ += job->indices.size();
    if (job->error) {
      discard();
      std::rethrow_exception(job->error);
    }
    fill();
    return std::move(job->batch);
  }
  void discard() {
    for (auto& job : pending_)
      if (options_.workers()) job->gate.wait();
    pending_.clear();
  }

  D dataset_;
  std::unique_ptr<samplers::Sampler> sampler_;
  DataLoaderOptions options_;
  std::deque<Ref<Job>> pending_;
  SamplerState start_;
  size_t delivered_ = 0;
  bool resumed_ = false;
  WorkerPool pool_;  // last: its destructor stops the threads before the rest goes
};

// make_data_loader<samplers::RandomSampler>(std::move(dataset), 64)
template <class Sampler = samplers::RandomSampler, class D>
std::unique_ptr<DataLoader<D>> make_data_loader(D dataset, DataLoaderOptions options = {}) {
  auto size = dataset.size();
  FX_CHECK(size, kValue,
           "make_data_loader: the dataset has no size; construct a sampler and pass it");
  return std::make_unique<DataLoader<D>>(std::move(dataset), std::make_unique<Sampler>(*size),
                                         options);
}
template <class D>
std::unique_ptr<DataLoader<D>> make_data_loader(D dataset,
                                                std::unique_ptr<samplers::Sampler> sampler,
                                                DataLoaderOptions options = {}) {
  return std::make_unique<DataLoader<D>>(std::move(dataset), std::move(sampler), options);
}

}  // namespace fornax::data
