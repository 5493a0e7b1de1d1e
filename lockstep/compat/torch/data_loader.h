// torch.utils.data's DataLoader and random_split, over lockstep/data. Its other classes are there as they are:
// TensorDataset (data/tensor_dataset.h), Subset (data/subset.h), DistributedSampler (data/distributed_sampler.h).
//
//   pytorch::DistributedSampler sampler(train->size(), get_world_size(), get_rank());
//   pytorch::DataLoader loader(train, {.batch_size = 64, .sampler = &sampler, .num_workers = 2});
//   for (uint32_t epoch = 0; epoch < 10; ++epoch) {
//     sampler.set_epoch(epoch);
//     for (const data::Batch& batch : loader) …
//   }
//
// A new program takes loop::make_loader, whose batches do not depend on the number of ranks and which is resumed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/order.h"
#include "lockstep/data/pass.h"
#include "lockstep/data/sample_rows.h"

namespace lockstep::pytorch {

using data::DistributedSampler;

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;  // each epoch in an order of its own, by the seed
  // In the place of `shuffle`: the sampler's samples, in its order as it is when an epoch begins; it outlives the
  // loader. Or an order of data/order.h: weighted() and with_replacement() are WeightedRandomSampler and RandomSampler.
  const DistributedSampler* sampler = nullptr;
  std::shared_ptr<const data::Order> order = nullptr;
  int num_workers = 0;  // threads, at most data::kMostWorkers
  bool drop_last = false;
  // That a batch waits for one sample; 0: no limit. The end of a pass waits for none longer than five minutes.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
  uint64_t seed = 0;              // what PyTorch's `generator` is for; of augmentation, too
  int prefetch_factor = 2;        // batches that are read ahead for each worker, at most data::kMostPrefetch in all
  data::BatchMemory memory = {};  // of large tensors: pinned, as `pin_memory`
};

// Each pass is an epoch. One thread.
class DataLoader {
 public:
  // Throws ConfigError for options out of range, and for more than one of shuffle, sampler and order.
  explicit DataLoader(std::shared_ptr<const data::Dataset> dataset, DataLoaderOptions options = {});

  const data::Dataset& dataset() const { return *dataset_; }
  // The number of batches of the next epoch; 0 where drop_last leaves none.
  int64_t size() const;

  // Begins an epoch. Throws, as the pass does, what data::Loader throws.
  data::Pass<data::Batch> pass();
  data::Pass<data::Batch>::Iterator begin() { return pass().begin(); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<const data::Order> next_order() const;

  std::shared_ptr<const data::Dataset> dataset_;
  DataLoaderOptions options_;
  uint32_t epoch_ = 0;
};

// Parts a data set at random, by the seed alone. `lengths` are numbers of samples that add up to all, or fractions that
// add up to 1, where what is left over by rounding down goes to the parts one by one. Another order than PyTorch's.
// Throws ConfigError for others.
std::vector<std::shared_ptr<const data::Dataset>> random_split(const std::shared_ptr<const data::Dataset>& dataset,
                                                               const std::vector<double>& lengths, uint64_t seed = 0);

}  // namespace lockstep::pytorch
