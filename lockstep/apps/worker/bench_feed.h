// The images of `bench step --data`: a rank's lane of every step, loaded as in training. A GPU gets bytes, or
// JPEGs, which it decodes, and normalises them.
#pragma once

#include <optional>

#include "bench_networks.h"
#include "lockstep/data/byte_tables.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/device_input.h"
#include "lockstep/world/world.h"

namespace lockstep::worker {

// One thread.
class BenchFeed {
 public:
  // A lane a rank. Throws ConfigError where the samples are not of the network's shape or classes, or fewer than a
  // step takes.
  BenchFeed(const apps::BenchOptions& options, const World& world, const BenchNetwork& network, c10::Device device);

  // Replaces the network's images and labels by the next batch's, on the device.
  void fill(BenchNetwork& network);
  // When a step is queued: takes the batch after it, with --prefetch.
  void take_ahead() {
    if (ahead_) wait_ns_ += ahead_->take_ahead();
  }

  double waited_seconds() const { return static_cast<double>(wait_ns_) * 1e-9; }  // for all batches so far

 private:
  data::StepBatch next();

  c10::Device device_;
  std::optional<data::Loader> loader_;
  std::optional<train::DeviceInput> ahead_;  // with --prefetch on
  data::ByteTables tables_;                  // without
  int64_t wait_ns_ = 0;
};

}  // namespace lockstep::worker
