// Reduce on plateau: a rate that falls where a metric has stopped getting better, PyTorch's ReduceLROnPlateau.
//
// Its state is a pure function of the metrics so far, so a run that knows them, or the state, goes on as if it had
// never stopped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/schedule/lr_shapes.h"

namespace lockstep::schedule {

enum class PlateauMode { kMin, kMax };       // which metric is better: the lower, the higher
enum class PlateauThreshold { kRel, kAbs };  // a share of the best so far, or a difference to it

// A shape like those of lr_shapes.h: between two metrics it is constant.
struct PlateauLr {
  PlateauMode mode = PlateauMode::kMin;
  double factor = 0.1;
  int64_t patience = 10;  // metrics in a row that may be no better before the rate falls
  double threshold = 1e-4;
  PlateauThreshold threshold_mode = PlateauThreshold::kRel;
  int64_t cooldown = 0;  // metrics after a fall that are not counted as no better
  double eps = 1e-8;     // a fall by less is not made

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// What the metrics have come to; {} before the first.
struct PlateauState {
  int64_t metrics = 0;
  std::optional<double> best;
  int64_t bad = 0;  // in a row, no better
  int64_t cooldown_left = 0;
  std::optional<double> lr;  // after the first metric
  bool operator==(const PlateauState&) const = default;
};

// The state after one more metric. One that is not a number counts as no better.
PlateauState next(const PlateauLr& options, const Rates& rates, PlateauState state, double metric);

// The value that any metric is better than: ∞ or -∞.
double worst(PlateauMode mode);

}  // namespace lockstep::schedule
