#include "lockstep/data/distributed_sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randperm.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

DistributedSampler::DistributedSampler(int64_t size, int ranks, int rank, DistributedSamplerOptions options)
    : size_(size), ranks_(ranks), rank_(rank), options_(options) {
  if (size < 0) throw ConfigError("DistributedSampler: ", size, " samples");
  if (rank < 0 || rank >= ranks) throw ConfigError("DistributedSampler: rank ", rank, " of ", ranks);
}

int64_t DistributedSampler::total() const {
  const int64_t rounds = options_.drop_last ? size_ / ranks_ : (size_ + ranks_ - 1) / ranks_;
  return options_.drop_last || options_.pad ? rounds * ranks_ : size_;
}

int64_t DistributedSampler::size() const { return (total() - rank_ + ranks_ - 1) / ranks_; }

std::vector<int64_t> DistributedSampler::indices() const {
  at::Tensor order = at::arange(size_);
  if (options_.shuffle) {
    order =
        at::randperm(size_, at::make_generator<at::CPUGeneratorImpl>(options_.seed + epoch_), at::kLong, {}, {}, {});
  }
  const auto* samples = order.const_data_ptr<int64_t>();
  std::vector<int64_t> own;
  if (size_ == 0) return own;
  for (int64_t place = rank_; place < total(); place += ranks_) own.push_back(samples[place % size_]);
  return own;
}

}  // namespace lockstep::data
