// Samplers and the loader: order, workers, errors, and going on in the middle of an epoch.
#include "fornax/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "fornax/data/transforms.h"
#include "fornax/fornax.h"

namespace fornax::data {
namespace {

// Example i holds the number i; index `broken` throws.
class Numbers : public datasets::Dataset<Numbers> {
 public:
  explicit Numbers(size_t n, size_t broken = SIZE_MAX) : n_(n), broken_(broken) {}
  Example<> get(size_t index) override {
    if (index == broken_) throw std::runtime_error("broken example");
    return {full({2}, double(index)), full({}, Scalar(int64_t(index)))};
  }
  std::optional<size_t> size() const override { return n_; }

 private:
  size_t n_, broken_;
};

template <class Loader>
std::vector<int64_t> targets_of_epoch(Loader& loader) {
  std::vector<int64_t> seen;
  for (auto& batch : *loader)
    for (int64_t i = 0; i < batch.target.numel(); ++i)
      seen.push_back(batch.target[i].template item<int64_t>());
  return seen;
}

auto make(size_t n, size_t batch, size_t workers, bool drop_last = false) {
  return make_data_loader(
      Numbers(n).map(transforms::Stack<>()),
      DataLoaderOptions().batch_size(batch).workers(workers).drop_last(drop_last));
}

TEST(Loader, GivesEveryExampleOnceAnEpoch) {
  for (size_t workers : {0, 1, 3}) {
    auto loader = make(103, 10, workers);
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int64_t> seen = targets_of_epoch(loader);
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(seen.size(), 103u);
      for (int64_t i = 0; i < 103; ++i) EXPECT_EQ(seen[size_t(i)], i);
    }
  }
}

TEST(Loader, OrderDependsOnTheSeedAlone) {
  std::vector<int64_t> orders[3];
  for (size_t workers : {0, 1, 2}) {
    manual_seed(7);
    auto loader = make(50, 7, workers);
    orders[workers] = targets_of_epoch(loader);
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
  manual_seed(8);
  auto other = make(50, 7, 0);
  EXPECT_NE(orders[0], targets_of_epoch(other));
}

TEST(Loader, BatchesAreStacked) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Numbers(5).map(transforms::Stack<>()),
                                                              DataLoaderOptions(2));
  std::vector<int64_t> sizes;
  for (auto& batch : *loader) {
    sizes.push_back(batch.data.size(0));
    EXPECT_EQ(batch.data.size(1), 2);
    EXPECT_EQ(batch.data[0][1].item<int64_t>(), batch.target[0].item<int64_t>());
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 2, 1}));
  auto dropping = make(5, 2, 1, true);
  EXPECT_EQ(targets_of_epoch(dropping).size(), 4u);
}

TEST(Loader, GoesOnWhereItStood) {
  for (size_t workers : {0, 2}) {
    manual_seed(3);
    auto whole = make(40, 6, workers);
    std::vector<int64_t> expected = targets_of_epoch(whole);

    manual_seed(3);
    auto first = make(40, 6, workers);
    std::vector<int64_t> seen;
    SamplerState state;
    for (auto& batch : *first) {
      for (int64_t i = 0; i < batch.target.numel(); ++i)
        seen.push_back(batch.target[i].item<int64_t>());
      if (seen.size() == 18) {
        state = first->state();
        break;
      }
    }
    EXPECT_EQ(state.position, 18u);
    auto second = make(40, 6, workers);
    second->load_state(state);
    for (int64_t v : targets_of_epoch(second)) seen.push_back(v);
    EXPECT_EQ(seen, expected);
  }
}

TEST(Loader, AFinishedEpochIsFollowedByANewOne) {
  manual_seed(5);
  auto first = make(12, 5, 1);
  targets_of_epoch(first);
  SamplerState end = first->state();
  EXPECT_EQ(end.position, 12u);
  auto second = make(12, 5, 1);
  second->load_state(end);
  EXPECT_EQ(targets_of_epoch(second).size(), 12u);
}

TEST(Loader, ErrorsReachTheLoop) {
  for (size_t workers : {0, 2}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Numbers(9, 5).map(transforms::Stack<>()),
        DataLoaderOptions().batch_size(2).workers(workers));
    int batches = 0;
    EXPECT_THROW(
        {
          for (auto& batch : *loader) {
            (void)batch;
            ++batches;
          }
        },
        std::runtime_error);
    EXPECT_EQ(batches, 2);
  }
}

TEST(Loader, RefusesStatesThatDoNotFit) {
  auto loader = make(4, 2, 0);
  EXPECT_THROW(loader->load_state({arange(5), 0}), Error);
  EXPECT_THROW(loader->load_state({tensor({0, 1, 1, 3}, TensorOptions(kLong)), 0}), Error);
  EXPECT_THROW(loader->load_state({arange(4), 5}), Error);
  EXPECT_THROW(make(4, 0, 0), Error);
}

TEST(Transforms, NormalizeByChannel) {
  transforms::Normalize<> by_channel({1.0, 2.0}, {0.5, 4.0});
  Tensor x = ones({2, 1, 2}) * 3;
  Tensor y = by_channel(x);
  EXPECT_DOUBLE_EQ(y[0][0][0].item<double>(), 4.0);
  EXPECT_DOUBLE_EQ(y[1][0][1].item<double>(), 0.25);
  EXPECT_DOUBLE_EQ(x[0][0][0].item<double>(), 3.0);
}

}  // namespace
}  // namespace fornax::data
