// PyTorch's torch.utils.data.distributed.DistributedSampler, for loops that go through their data by themselves.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::data {

struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;       // the same on all ranks
  bool drop_last = false;  // the samples that don't fill a round of all ranks are left out
  bool pad = true;         // else: the first samples are repeated to fill it; with neither, the last ranks have fewer
};

// Rank r of W gets the places r, r + W, r + 2·W, … of the epoch's order, which is PyTorch's, sample for sample. Unlike
// the lanes of LaneSampler, what a step trains on depends on the number of ranks. One thread.
class DistributedSampler {
 public:
  // Throws ConfigError for a rank that the ranks do not have, and for less than no samples.
  DistributedSampler(int64_t size, int ranks, int rank, DistributedSamplerOptions options = {});

  // Each epoch has an order of its own. Without calls all epochs have that of epoch 0.
  void set_epoch(uint32_t epoch) { epoch_ = epoch; }

  int64_t size() const;  // of this rank's samples
  std::vector<int64_t> indices() const;

 private:
  int64_t total() const;  // over all ranks

  int64_t size_;
  int ranks_, rank_;
  DistributedSamplerOptions options_;
  uint32_t epoch_ = 0;
};

}  // namespace lockstep::data
