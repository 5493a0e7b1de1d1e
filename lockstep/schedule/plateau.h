// Reduces the rate where a metric has stopped improving, as PyTorch's ReduceLROnPlateau does.
//
// The state is a pure function of the metrics so far: a run that knows them, or the state, continues as if it had never
// stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/schedule/lr_shapes.h"

namespace lockstep::schedule {

enum class PlateauMode { kMin, kMax };       // whether lower or higher metrics are better
enum class PlateauThreshold { kRel, kAbs };  // as a share of the best so far, or as a difference

// A shape like those of lr_shapes.h. Between two metrics the rate is constant.
struct PlateauLr {
  PlateauMode mode = PlateauMode::kMin;
  double factor = 0.1;
  int64_t patience = 10;  // metrics in a row that may fail to improve before the rate is reduced
  double threshold = 1e-4;
  PlateauThreshold threshold_mode = PlateauThreshold::kRel;
  int64_t cooldown = 0;  // metrics after a reduction that are not counted as failures
  double eps = 1e-8;     // a smaller reduction is not made

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// The state after some metrics; {} before the first.
struct PlateauState {
  int64_t metrics = 0;  // seen so far
  std::optional<double> best;
  int64_t bad = 0;  // metrics in a row that did not improve
  int64_t cooldown_left = 0;
  std::optional<double> lr;  // nothing before the first metric
  bool operator==(const PlateauState&) const = default;
};

// The state after one more metric. A metric that is not a number counts as no improvement.
PlateauState next(const PlateauLr& options, const Rates& rates, PlateauState state, double metric);

// The value that any metric is better than: ∞ or -∞.
double worst(PlateauMode mode);

}  // namespace lockstep::schedule
