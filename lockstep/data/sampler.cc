#include "lockstep/data/sampler.h"

#include <algorithm>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"

namespace lockstep::data {
namespace {

constexpr int64_t kMostPerLane = 1 << 30;  // so that no product of options overflows
constexpr int kMostLanes = 1 << 20;

}  // namespace

Range lane_range(int64_t samples, int lanes, int lane) {
  const int64_t share = samples / lanes;
  const int64_t longer = samples % lanes;  // so many lanes have one more
  return {.first = lane * share + std::min<int64_t>(lane, longer), .count = share + (lane < longer ? 1 : 0)};
}

int64_t steps_of_epoch(int64_t samples, int64_t global_batch, bool drop_last) {
  return drop_last ? samples / global_batch : (samples + global_batch - 1) / global_batch;
}

LaneSampler::LaneSampler(SamplerOptions options) : options_(options) {
  if (options.lanes < 1 || options.lanes > kMostLanes) {
    throw ConfigError("lanes: ", options.lanes, " is out of range; 1 to ", kMostLanes, " are possible");
  }
  if (options.batch_size < 1 || options.batch_size > kMostPerLane) {
    throw ConfigError("batch size: ", options.batch_size, " samples a lane are out of range; 1 to ", kMostPerLane,
                      " are possible");
  }
  if (options.dataset_size < 1) throw DataError("the data set to train on holds no samples");
  global_batch_ = options.lanes * options.batch_size;
  if (options_.order == nullptr) {
    options_.order = options.shuffle ? shuffled(options.dataset_size, options.seed) : in_order(options.dataset_size);
  }
  const int64_t positions = options_.order->size();
  steps_per_epoch_ = steps_of_epoch(positions, global_batch_, options.drop_last);
  if (steps_per_epoch_ == 0) {
    throw ConfigError("drop_last: the ", positions, " samples are fewer than a global batch of ", options.lanes, " × ",
                      options.batch_size, ", so no step is left; use smaller batches");
  }
  identity_ = identify();
}

uint64_t LaneSampler::identify() const {
  const int64_t last = options_.order->size() - 1;
  std::string text = cat(options_.dataset_size, ' ', options_.lanes, ' ', options_.batch_size, ' ', options_.drop_last,
                         ' ', options_.order->text());
  for (const int64_t position : {int64_t{0}, last / 2, last}) text += cat(' ', options_.order->at(0, position).index);
  return xxh3(text);
}

uint64_t LaneSampler::fingerprint(uint32_t epoch, int64_t step_in_epoch) const {
  return xxh3(cat(identity_, ' ', epoch, ' ', step_in_epoch));
}

int64_t LaneSampler::global_batch_samples(int64_t step_in_epoch) const {
  check_step(step_in_epoch);
  return std::min(global_batch_, options_.order->size() - step_in_epoch * global_batch_);
}

std::vector<Pick> LaneSampler::picks(uint32_t epoch, int64_t step_in_epoch, int lane) const {
  if (lane < 0 || lane >= options_.lanes) throw BugError("lane ", lane, " of ", options_.lanes, " was asked for");
  const Range range = lane_range(global_batch_samples(step_in_epoch), options_.lanes, lane);
  const int64_t first = step_in_epoch * global_batch_ + range.first;
  std::vector<Pick> picks;
  picks.reserve(static_cast<size_t>(range.count));
  for (int64_t i = 0; i < range.count; ++i) picks.push_back(options_.order->at(epoch, first + i));
  return picks;
}

std::vector<int64_t> LaneSampler::lane(uint32_t epoch, int64_t step_in_epoch, int lane) const {
  std::vector<int64_t> samples;
  for (const Pick& pick : picks(epoch, step_in_epoch, lane)) samples.push_back(pick.index);
  return samples;
}

void LaneSampler::check_step(int64_t step_in_epoch) const {
  if (step_in_epoch < 0 || step_in_epoch >= steps_per_epoch_) {
    throw BugError("step ", step_in_epoch, " of an epoch of ", steps_per_epoch_, " steps was asked for");
  }
}

}  // namespace lockstep::data
