// The images of `bench step --data`: a rank's lane of every step, loaded as in training.
#pragma once

#include <optional>

#include "bench_networks.h"
#include "lockstep/data/loader.h"
#include "lockstep/world/world.h"

namespace lockstep::worker {

// One thread.
class BenchFeed {
 public:
  // A lane a rank. Throws ConfigError where the samples are not of the network's shape or classes, or fewer than a
  // step takes.
  BenchFeed(const apps::BenchOptions& options, const World& world, const BenchNetwork& network);

  // Replaces the network's images and labels by the next batch's.
  void fill(BenchNetwork& network);

  double waited_seconds() const { return static_cast<double>(wait_ns_) * 1e-9; }  // for all batches so far

 private:
  std::optional<data::Loader> loader_;
  int64_t wait_ns_ = 0;
};

}  // namespace lockstep::worker
