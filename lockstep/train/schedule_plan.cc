#include "lockstep/train/schedule_plan.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/config/schedule_options.h"

namespace lockstep::train {
namespace {

using config::TrainOptions;
using Kind = config::ScheduleKind;

struct Warmup {
  int64_t length = 0;
  std::optional<double> start = {};
};

// In the schedule's units, as `horizon` and `per_epoch`.
Warmup warmup_of(const TrainOptions& o, const Defaults& defaults, const ScheduleFacts& facts, Kind kind,
                 int64_t horizon) {
  if (o.warmup) return {*o.warmup};
  if (kind == Kind::kOneCycle) return {};  // has its own
  const int64_t unit = steps_per_unit(o, facts.steps_per_epoch);
  // A recipe's warm-up gives way where the run is too short for it. A rate that was scaled up is reached from the
  // unscaled one, in 5 epochs or a tenth of the run, whichever is less (Goyal et al., 2017).
  Warmup warmup{std::min(defaults.warmup / unit, horizon / 5)};
  if (facts.lr_factor > 1) {
    warmup = {std::max(warmup.length, std::min(5 * facts.steps_per_epoch / unit, horizon / 10)), 1 / facts.lr_factor};
  }
  if (!o.milestones.empty()) warmup.length = std::min(warmup.length, o.milestones[0] - 1);
  return warmup;
}

// The milestones that people give count from the run's start.
std::vector<int64_t> after_warmup(std::vector<int64_t> milestones, int64_t warmup) {
  for (int64_t& milestone : milestones) {
    if (milestone <= warmup) {
      throw ConfigError("--milestones ", milestone, ": not after the warm-up of ", warmup, "; shorten --warmup");
    }
    milestone -= warmup;
  }
  return milestones;
}

schedule::PlateauLr plateau_of(const TrainOptions& o) {
  schedule::PlateauLr plateau;
  const bool by_loss = o.plateau_metric.empty() || o.plateau_metric == "loss";
  plateau.mode = by_loss ? schedule::PlateauMode::kMin : schedule::PlateauMode::kMax;
  plateau.factor = o.plateau_factor.value_or(plateau.factor);
  plateau.patience = o.patience.value_or(plateau.patience);
  plateau.threshold = o.threshold.value_or(plateau.threshold);
  if (o.threshold_mode == config::ThresholdMode::kAbs) plateau.threshold_mode = schedule::PlateauThreshold::kAbs;
  plateau.cooldown = o.cooldown.value_or(plateau.cooldown);
  return plateau;
}

schedule::OneCycleLr one_cycle_of(const TrainOptions& o, const ScheduleFacts& facts, int64_t length) {
  schedule::OneCycleLr cycle{.max_lr = o.max_lr ? *o.max_lr * facts.lr_factor : facts.lr, .total_steps = length};
  cycle.pct_start = o.pct_start.value_or(cycle.pct_start);
  cycle.div_factor = o.div_factor.value_or(cycle.div_factor);
  cycle.final_div_factor = o.final_div_factor.value_or(cycle.final_div_factor);
  return cycle;
}

// `length`: of the run after the warm-up, in units.
schedule::Shape shape_of(const TrainOptions& o, const ScheduleFacts& facts, Kind kind, int64_t warmup, int64_t length) {
  const double gamma = o.gamma.value_or(0.1);
  switch (kind) {
    case Kind::kConstant:
      return schedule::ConstantLr{};
    case Kind::kStep: {
      const int64_t epoch = facts.steps_per_epoch / steps_per_unit(o, facts.steps_per_epoch);
      return schedule::StepLr{.step_size = o.step_size.value_or(epoch), .gamma = gamma};
    }
    case Kind::kMultiStep:
      return schedule::MultiStepLr{.milestones = after_warmup(o.milestones, warmup), .gamma = gamma};
    case Kind::kExponential:
      return schedule::ExponentialLr{.gamma = gamma};
    case Kind::kCosine:
      return schedule::CosineLr{.t_max = length};
    case Kind::kCosineRestarts:
      return schedule::CosineRestartsLr{.t_0 = o.restart_every.value_or(length), .t_mult = o.restart_mult.value_or(1)};
    case Kind::kOneCycle:
      return one_cycle_of(o, facts, length);
    case Kind::kPolynomial:
      return schedule::PolynomialLr{.total_iters = length, .power = o.power.value_or(1)};
    case Kind::kPlateau:
      return plateau_of(o);
  }
  throw BugError("a schedule of kind ", static_cast<int>(kind));
}

}  // namespace

int64_t steps_per_unit(const TrainOptions& options, int64_t steps_per_epoch) {
  return options.schedule_unit == config::ScheduleUnit::kEpochs ? steps_per_epoch : 1;
}

schedule::ScheduleOptions schedule_of(const TrainOptions& options, const Defaults& defaults,
                                      const ScheduleFacts& facts) {
  const Kind kind = options.schedule.value_or(defaults.schedule);
  config::check_schedule(options, kind);
  const int64_t all_steps = facts.epochs * facts.steps_per_epoch;
  const int64_t horizon = options.schedule_steps.value_or(all_steps / steps_per_unit(options, facts.steps_per_epoch));
  const Warmup warmup = warmup_of(options, defaults, facts, kind, horizon);
  schedule::ScheduleOptions schedule{.shape = shape_of(options, facts, kind, warmup.length, horizon - warmup.length),
                                     .base_lr = facts.lr,
                                     .lr_min = options.lr_min,
                                     .warmup = warmup.length,
                                     .warmup_start = warmup.start};
  schedule.check();
  return schedule;
}

}  // namespace lockstep::train
