#include "lockstep/data/loader.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/data/byte_tables.h"

namespace lockstep::data {
namespace {

void check_bytes(const BatchTransform& transform, const Dataset& dataset) {
  if (has_encoded(dataset.fields())) {
    throw ConfigError(transform.text(), ": mixes pictures, and these are decoded after it, on the device; have them ",
                      "decoded as they are read");
  }
  if (transform.takes_bytes() || !has_tables(dataset.fields())) return;
  throw ConfigError(transform.text(), ": computes with normalised images, and these are bytes that are normalised ",
                    "after it, on the device; have them normalised as they are read");
}

void check(const LoaderOptions& options, const Dataset& dataset, const LaneSampler& sampler) {
  if (options.prefetch < 1 || options.prefetch > kMostPrefetch) {
    throw ConfigError("prefetch: ", options.prefetch, " steps are out of range; 1 to ", kMostPrefetch, " are possible");
  }
  if (options.prefetch_bytes < 1) throw ConfigError("prefetch_bytes: ", options.prefetch_bytes, " is not above 0");
  if (options.first_lane < 0 || options.first_lane >= options.last_lane ||
      options.last_lane > sampler.options().lanes) {
    throw BugError("a loader of lanes [", options.first_lane, ", ", options.last_lane, ") of ",
                   sampler.options().lanes);
  }
  if (dataset.size() != sampler.options().dataset_size) {
    throw BugError("a sampler of ", sampler.options().dataset_size, " samples for a data set of ", dataset.size());
  }
  if (options.transform == nullptr) return;
  check_bytes(*options.transform, dataset);
  options.transform->check(dataset);
}

// The samples of the largest batch.
int64_t most_rows(const LaneSampler& sampler) {
  return lane_range(sampler.global_batch_samples(0), sampler.options().lanes, 0).count;
}

// The most units that are read ahead: of the steps asked for, and two samples for every worker, but no more than their
// memory allows, and one step.
size_t units_ahead(const LoaderOptions& options, const Dataset& dataset, int64_t rows) {
  const int64_t lanes = options.last_lane - options.first_lane;
  const int64_t bytes = std::max<int64_t>(1, bytes_of(dataset.fields(), rows));
  const int64_t busy = (2 * options.workers - 1) / std::max<int64_t>(1, rows) + 1;
  const int64_t wanted = std::max(options.prefetch * lanes, busy);
  return static_cast<size_t>(std::max(lanes, std::min(wanted, options.prefetch_bytes / bytes)));
}

// While it lives, the step waits for its samples.
class Waiting {
 public:
  Waiting(LoaderWatch* watch, StepBatch& step) : watch_(watch), step_(step) {
    if (watch_ != nullptr) watch_->wait_begins();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    step_.wait_ns = monotonic_ns() - begin_;
    if (watch_ != nullptr) watch_->wait_ends(step_.wait_ns, step_.stats);
  }

 private:
  LoaderWatch* watch_;
  StepBatch& step_;
  int64_t begin_ = monotonic_ns();
};

std::shared_ptr<const Substitutes> substitutes_of(const LoaderOptions& options, const LaneSampler& sampler) {
  if (options.skipped == nullptr) return nullptr;
  return std::make_shared<Substitutes>(sampler.options().order, options.skipped->most());
}

}  // namespace

int usual_workers(const Dataset& dataset, int cores, int processes) {
  return dataset.decodes() ? std::clamp(cores / std::max(1, processes), 1, kMostWorkers) : 0;
}

LaneDraw Loader::Source::place_of(uint64_t unit) const {
  const auto number = static_cast<int64_t>(unit / static_cast<uint64_t>(lanes));
  return {.seed = sampler.options().seed,
          .epoch = static_cast<uint32_t>(number / sampler.steps_per_epoch()),
          .step = number % sampler.steps_per_epoch(),
          .lane = first_lane + static_cast<int>(unit % static_cast<uint64_t>(lanes))};
}

std::vector<SampleRead> Loader::Source::samples(uint64_t unit) const {
  const LaneDraw place = place_of(unit);
  std::vector<SampleRead> samples;
  for (const Pick& pick : sampler.picks(place.epoch, place.step, place.lane)) {
    samples.push_back({.index = pick.index, .draw = {.seed = place.seed, .epoch = place.epoch, .number = pick.number}});
  }
  return samples;
}

SampleQueueOptions::Complete Loader::completion_of(const std::shared_ptr<const Source>& source,
                                                   const std::shared_ptr<const Dataset>& dataset) {
  if (source->transform == nullptr) return {};
  return [source, dataset](uint64_t unit, Batch& batch) {
    source->transform->apply(batch, *dataset, source->place_of(unit));
  };
}

uint64_t Loader::Source::first_unit(Position position) const {
  if (position.step < 0 || position.step >= sampler.steps_per_epoch()) {
    throw BugError("loader: step ", position.step, " of an epoch of ", sampler.steps_per_epoch(), " steps");
  }
  const auto steps = static_cast<uint64_t>(sampler.steps_per_epoch());
  return (position.epoch * steps + static_cast<uint64_t>(position.step)) * static_cast<uint64_t>(lanes);
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LaneSampler sampler, LoaderOptions options, Position start)
    : dataset_(dataset),
      source_((check(options, *dataset, sampler),
               std::make_shared<Source>(Source{.sampler = std::move(sampler),
                                               .first_lane = options.first_lane,
                                               .lanes = options.last_lane - options.first_lane,
                                               .transform = options.transform}))),
      skipped_(options.skipped),
      watch_(options.watch),
      position_(start),
      queue_(dataset, [source = source_](uint64_t unit) { return source->samples(unit); }, most_rows(source_->sampler),
             source_->first_unit(start),
             {.workers = options.workers,
              .ahead = units_ahead(options, *dataset, most_rows(source_->sampler)),
              .end = options.end ? std::optional(source_->first_unit(*options.end)) : std::nullopt,
              .timeout = options.timeout,
              .complete = completion_of(source_, dataset),
              .substitutes = substitutes_of(options, source_->sampler),
              .memory = options.memory}) {}

void Loader::read_lanes(ReadStep& read) {
  StepBatch& step = read.step;
  const Waiting waiting(watch_.get(), step);
  for (int i = 0; i < source_->lanes; ++i) {
    SampleQueue::Unit unit = queue_.next();
    step.stats += unit.stats;
    read.bad.insert(read.bad.end(), unit.bad.begin(), unit.bad.end());
    read.empty += unit.empty;
    step.lanes.push_back({std::move(unit.batch), source_->first_lane + i});
  }
}

ReadStep Loader::read() {
  ReadStep read{{.position = position_,
                 .order_hash = sampler().fingerprint(position_.epoch, position_.step),
                 .global_samples = sampler().global_batch_samples(position_.step),
                 .lanes = {}}};
  try {
    read_lanes(read);
  } catch (...) {
    read.failed = std::current_exception();  // the others wait for what this rank has met
    seek(position_);                         // lanes of this step may have been taken already
    return read;
  }
  if (++position_.step == sampler().steps_per_epoch()) position_ = {.epoch = position_.epoch + 1, .step = 0};
  return read;
}

StepBatch Loader::settle(ReadStep read) {
  try {
    if (skipped_ != nullptr) read.step.skipped = skipped_->add(read.bad);
    if (read.failed) std::rethrow_exception(read.failed);
    if (read.empty > 0) {
      throw BugError("loader: ", read.empty, " places of a training batch are empty, the first of ",
                     read.bad.front().why);
    }
  } catch (...) {
    seek(read.step.position);
    throw;
  }
  return std::move(read.step);
}

void Loader::seek(Position position) {
  queue_.seek(source_->first_unit(position));
  position_ = position;
}

}  // namespace lockstep::data
