// Learning-rate schedules: pure functions of the time and, on a plateau, of the metrics so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "lockstep/schedule/lr_shapes.h"
#include "lockstep/schedule/plateau.h"

namespace lockstep::schedule {

using Shape = std::variant<ConstantLr, StepLr, MultiStepLr, ExponentialLr, CosineLr, CosineRestartsLr, OneCycleLr,
                           PolynomialLr, PlateauLr>;

// All counts have one unit, steps or epochs, as the caller chooses.
struct ScheduleOptions {
  Shape shape;
  double base_lr = 0.01;
  double lr_min = 0;                   // no rate after the warm-up is below it
  int64_t warmup = 0;                  // its length; the shape's t = 0 follows
  std::optional<double> warmup_start;  // the share of the first rate at time 0; nothing: 1 / warmup

  Rates rates() const { return {.base = base_lr, .least = lr_min}; }
  // The rate that the warm-up leads to: the base, or the start of a cycle.
  double first_lr() const;
  void check() const;  // throws ConfigError
};

// The rate at `time` >= 0. `options` must have passed check(). With w = warmup:
//   time < w   first · (time + 1) / w, so that no step is lost;
//              with a warmup_start s: first · (s + (1 - s) · time / w).
//              PyTorch's LinearLR(1 / w, total_iters=w - 1), and LinearLR(s, total_iters=w)
//   else       the shape's rate at time - w, but at least lr_min
// Together this is PyTorch's SequentialLR of the two.
double lr_at(const ScheduleOptions& options, int64_t time, const PlateauState& plateau = {});

// The momentum at `time`; nothing where the schedule has none of its own. During the warm-up it is that of t = 0.
std::optional<double> momentum_at(const ScheduleOptions& options, int64_t time);

// Describes the schedule: "cosine to 0 at step 500, warm-up 50 steps", for the `unit` "step" or "epoch".
std::string describe(const ScheduleOptions& options, std::string_view unit);

}  // namespace lockstep::schedule
