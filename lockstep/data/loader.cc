#include "lockstep/data/loader.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/read_batch.h"

namespace lockstep::data {
namespace {

constexpr int kMostWorkers = 256;
constexpr int kMostPrefetch = 64;

void check(const LoaderOptions& options, const Dataset& dataset, const LaneSampler& sampler) {
  if (options.workers < 0 || options.workers > kMostWorkers) {
    throw ConfigError("workers: ", options.workers, " is out of range; 0 to ", kMostWorkers, " are possible");
  }
  if (options.prefetch < 1 || options.prefetch > kMostPrefetch) {
    throw ConfigError("prefetch: ", options.prefetch, " steps are out of range; 1 to ", kMostPrefetch, " are possible");
  }
  if (options.first_lane < 0 || options.first_lane >= options.last_lane ||
      options.last_lane > sampler.options().lanes) {
    throw BugError("a loader of lanes [", options.first_lane, ", ", options.last_lane, ") of ",
                   sampler.options().lanes);
  }
  if (dataset.size() != sampler.options().dataset_size) {
    throw BugError("a sampler of ", sampler.options().dataset_size, " samples for a data set of ", dataset.size());
  }
}

// Each worker has room for at least one unit, so that none is idle.
size_t units_ahead(const LoaderOptions& options) {
  return static_cast<size_t>(
      std::max(options.prefetch * (options.last_lane - options.first_lane), options.workers + 1));
}

}  // namespace

Batch Loader::Source::make(uint64_t unit) const {
  const auto number = static_cast<int64_t>(unit / static_cast<uint64_t>(lanes));
  const int lane = first_lane + static_cast<int>(unit % static_cast<uint64_t>(lanes));
  const auto epoch = static_cast<uint32_t>(number / sampler.steps_per_epoch());
  const auto samples = sampler.lane(epoch, number % sampler.steps_per_epoch(), lane);
  return read_batch(*dataset, samples, epoch, sampler.options().seed);
}

uint64_t Loader::Source::first_unit(Position position) const {
  if (position.step < 0 || position.step >= sampler.steps_per_epoch()) {
    throw BugError("loader: step ", position.step, " of an epoch of ", sampler.steps_per_epoch(), " steps");
  }
  const auto steps = static_cast<uint64_t>(sampler.steps_per_epoch());
  return (position.epoch * steps + static_cast<uint64_t>(position.step)) * static_cast<uint64_t>(lanes);
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LaneSampler sampler, LoaderOptions options, Position start)
    : source_((check(options, *dataset, sampler),
               std::make_shared<Source>(Source{.dataset = std::move(dataset),
                                               .sampler = std::move(sampler),
                                               .first_lane = options.first_lane,
                                               .lanes = options.last_lane - options.first_lane}))),
      position_(start),
      prefetcher_([source = source_](uint64_t unit) { return source->make(unit); }, source_->first_unit(start),
                  {.workers = options.workers, .ahead = units_ahead(options), .timeout = options.timeout}) {}

StepBatch Loader::next() {
  StepBatch step{.position = position_, .global_samples = sampler().global_batch_samples(position_.step), .lanes = {}};
  try {
    for (int i = 0; i < source_->lanes; ++i) {
      step.lanes.push_back({prefetcher_.next(), source_->first_lane + i});
    }
  } catch (...) {
    seek(position_);  // lanes of this step may have been taken already
    throw;
  }
  if (++position_.step == sampler().steps_per_epoch()) position_ = {.epoch = position_.epoch + 1, .step = 0};
  return step;
}

void Loader::seek(Position position) {
  prefetcher_.seek(source_->first_unit(position));
  position_ = position;
}

}  // namespace lockstep::data
