#include "lockstep/schedule/options/schedules.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

struct Warmup {
  int64_t length = 0;
  std::optional<double> start = {};
};

// The run as a schedule sees it, in the schedule's units.
struct Span {
  double lr = 0;         // scaled
  double lr_factor = 1;  // by --scale-lr
  int64_t epoch = 1;
  int64_t warmup = 0;
  int64_t length = 0;  // of what the warm-up leaves
  Momentum momentum = Momentum::kNone;
};

// A length in the schedule's units, of which an epoch has so many: 1 where it counts epochs.
int64_t units_of(const Length& length, const LrOptions& o, int64_t epoch, const char* option) {
  if (!length.unit || *length.unit == o.unit) return length.count;
  if (*length.unit == ScheduleUnit::kEpochs) return length.count * epoch;
  throw ConfigError("--", option, ' ', write_length(length),
                    ": the schedule counts epochs; give epochs, or leave "
                    "--schedule-unit epochs out");
}

// The milestones that people give count from the run's start.
std::vector<int64_t> milestones_after_warmup(const LrOptions& o, const Span& span) {
  std::vector<int64_t> milestones;
  for (const Length& each : o.milestones) {
    const int64_t milestone = units_of(each, o, span.epoch, "milestones") - span.warmup;
    if (milestone <= 0) {
      throw ConfigError("--milestones ", write_length(each), ": not after the warm-up of ", span.warmup,
                        "; shorten --warmup");
    }
    if (!milestones.empty() && milestone <= milestones.back()) {
      throw ConfigError("--milestones ", write_milestones(o.milestones), ": ", write_length(each),
                        " is not after the one before it");
    }
    milestones.push_back(milestone);
  }
  return milestones;
}

// The length of a schedule that ends with the run.
int64_t length_of(const LrOptions& o, const Span& span) {
  if (span.length > 0) return span.length;
  throw ConfigError("--warmup: ", span.warmup, o.unit == ScheduleUnit::kEpochs ? " epochs" : " steps",
                    " leave nothing to the schedule, which has ", span.warmup + span.length,
                    " in all; shorten --warmup, or give more --epochs");
}

constexpr double kGamma = 0.1;  // of a drop

Shape make_constant(const LrOptions&, const Span&) { return ConstantLr{}; }

Shape make_step(const LrOptions& o, const Span& span) {
  const int64_t size = units_of(o.step_size.value_or(span.epoch), o, span.epoch, "step-size");
  return StepLr{.step_size = size, .gamma = o.gamma.value_or(kGamma)};
}

Shape make_multi_step(const LrOptions& o, const Span& span) {
  return MultiStepLr{.milestones = milestones_after_warmup(o, span), .gamma = o.gamma.value_or(kGamma)};
}

Shape make_exponential(const LrOptions& o, const Span&) { return ExponentialLr{.gamma = o.gamma.value_or(kGamma)}; }

Shape make_cosine(const LrOptions& o, const Span& span) { return CosineLr{.t_max = length_of(o, span)}; }

Shape make_cosine_restarts(const LrOptions& o, const Span& span) {
  const int64_t first =
      o.restart_every ? units_of(*o.restart_every, o, span.epoch, "restart-every") : length_of(o, span);
  return CosineRestartsLr{.t_0 = first, .t_mult = o.restart_mult.value_or(1)};
}

Shape make_one_cycle(const LrOptions& o, const Span& span) {
  OneCycleLr cycle{.max_lr = o.max_lr ? *o.max_lr * span.lr_factor : span.lr, .total_steps = length_of(o, span)};
  cycle.pct_start = o.pct_start.value_or(cycle.pct_start);
  cycle.div_factor = o.div_factor.value_or(cycle.div_factor);
  cycle.final_div_factor = o.final_div_factor.value_or(cycle.final_div_factor);
  if (o.anneal_strategy == AnnealStrategy::kLinear) cycle.anneal = Anneal::kLinear;
  cycle.three_phase = o.three_phase.value_or(false);
  if (!o.cycle_momentum.value_or(false)) return cycle;
  if (span.momentum == Momentum::kNone) {
    throw ConfigError("--cycle-momentum on: the optimizer has neither momentum nor betas; use another --optimizer");
  }
  MomentumCycle& momentum = cycle.momentum.emplace();
  momentum.base = o.base_momentum.value_or(momentum.base);
  momentum.most = o.max_momentum.value_or(momentum.most);
  momentum.beta1 = span.momentum == Momentum::kBeta1;
  return cycle;
}

Shape make_polynomial(const LrOptions& o, const Span& span) {
  return PolynomialLr{.total_iters = length_of(o, span), .power = o.power.value_or(1)};
}

Shape make_plateau(const LrOptions& o, const Span&) {
  PlateauLr plateau;
  const bool by_loss = o.plateau_metric.empty() || o.plateau_metric == "loss";
  plateau.mode = by_loss ? PlateauMode::kMin : PlateauMode::kMax;
  plateau.factor = o.plateau_factor.value_or(plateau.factor);
  plateau.patience = o.patience.value_or(plateau.patience);
  plateau.threshold = o.threshold.value_or(plateau.threshold);
  if (o.threshold_mode == ThresholdMode::kAbs) plateau.threshold_mode = PlateauThreshold::kAbs;
  plateau.cooldown = o.cooldown.value_or(plateau.cooldown);
  return plateau;
}

struct Entry {
  std::string_view name;
  Shape (*make)(const LrOptions& options, const Span& span);
  bool warms_up = false;  // by itself
};

// A new schedule is one more line here.
constexpr Entry kSchedules[] = {{"constant", make_constant},
                                {"step", make_step},
                                {"multistep", make_multi_step},
                                {"exponential", make_exponential},
                                {"cosine", make_cosine},
                                {"cosine-restarts", make_cosine_restarts},
                                {"onecycle", make_one_cycle, true},
                                {"polynomial", make_polynomial},
                                {"plateau", make_plateau}};

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : kSchedules) {
    if (entry.name == name) return entry;
  }
  throw ConfigError("--schedule ", name, ": expected ", config::either(schedule_names()));
}

// In the schedule's units, as `horizon`.
Warmup warmup_of(const LrOptions& o, const RunFacts& facts, const Entry& entry, int64_t horizon) {
  const int64_t unit = steps_per_unit(o, facts.steps_per_epoch), epoch = facts.steps_per_epoch / unit;
  if (o.warmup) return {units_of(*o.warmup, o, epoch, "warmup")};
  if (entry.warms_up) return {};
  // A recipe's warm-up gives way where the run is too short for it. A rate that was scaled up is reached from the
  // unscaled one, in 5 epochs or a tenth of the run, whichever is less (Goyal et al., 2017).
  Warmup warmup{std::min(facts.default_warmup / unit, horizon / 5)};
  if (facts.lr_factor > 1) {
    warmup = {std::max(warmup.length, std::min(5 * facts.steps_per_epoch / unit, horizon / 10)), 1 / facts.lr_factor};
  }
  if (!o.milestones.empty()) {
    warmup.length = std::min(warmup.length, units_of(o.milestones[0], o, epoch, "milestones") - 1);
  }
  return warmup;
}

}  // namespace

bool warms_up(const std::string& name) {
  return std::any_of(std::begin(kSchedules), std::end(kSchedules),
                     [&](const Entry& entry) { return entry.name == name && entry.warms_up; });
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kSchedules) names.push_back(entry.name);
  return names;
}

int64_t steps_per_unit(const LrOptions& options, int64_t steps_per_epoch) {
  return options.unit == ScheduleUnit::kEpochs ? steps_per_epoch : 1;
}

ScheduleOptions make_schedule(const LrOptions& options, const RunFacts& facts) {
  const Entry& entry = entry_of(options.schedule.value_or("constant"));
  options.check(std::string(entry.name));
  const int64_t unit = steps_per_unit(options, facts.steps_per_epoch);
  const int64_t horizon = options.schedule_steps.value_or(facts.epochs * facts.steps_per_epoch / unit);
  const Warmup warmup = warmup_of(options, facts, entry, horizon);
  const Span span{.lr = facts.lr,
                  .lr_factor = facts.lr_factor,
                  .epoch = facts.steps_per_epoch / unit,
                  .warmup = warmup.length,
                  .length = horizon - warmup.length,
                  .momentum = facts.momentum};
  ScheduleOptions schedule{.shape = entry.make(options, span),
                           .base_lr = facts.lr,
                           .lr_min = options.lr_min,
                           .warmup = warmup.length,
                           .warmup_start = warmup.start};
  schedule.check();
  return schedule;
}

}  // namespace lockstep::schedule
