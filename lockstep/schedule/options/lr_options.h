// The options of the learning rate and its schedule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::schedule {

// The unit that a schedule counts in.
enum class ScheduleUnit { kSteps, kEpochs };
constexpr auto words(ScheduleUnit) {
  return std::to_array<config::Word<ScheduleUnit>>(
      {{ScheduleUnit::kSteps, "steps"}, {ScheduleUnit::kEpochs, "epochs"}});
}

// How a plateau's threshold is meant: as a share of the best value so far, or as a difference to it.
enum class ThresholdMode { kRel, kAbs };
constexpr auto words(ThresholdMode) {
  return std::to_array<config::Word<ThresholdMode>>({{ThresholdMode::kRel, "rel"}, {ThresholdMode::kAbs, "abs"}});
}

// The rule that scales the learning rate with the global batch: by the ratio of the batch to a base, or by the square
// root of that ratio.
enum class LrRule { kLinear, kSqrt };
constexpr auto words(LrRule) {
  return std::to_array<config::Word<LrRule>>({{LrRule::kLinear, "linear"}, {LrRule::kSqrt, "sqrt"}});
}

// How a cycle goes from one rate to the next.
enum class AnnealStrategy { kCos, kLinear };
constexpr auto words(AnnealStrategy) {
  return std::to_array<config::Word<AnnealStrategy>>(
      {{AnnealStrategy::kCos, "cos"}, {AnnealStrategy::kLinear, "linear"}});
}

struct LrScale {
  LrRule rule = LrRule::kLinear;
  std::optional<int> base;  // samples that the unscaled rate is for; unset: the recipe's batch size
  bool operator==(const LrScale&) const = default;
};

// A stretch of a run: "500", which --schedule-unit counts, or "500steps", or "5epochs".
struct Length {
  int64_t count = 0;
  std::optional<ScheduleUnit> unit = {};  // unset: the schedule's

  Length() = default;
  Length(int64_t units) : count(units) {}
  Length(int64_t of, ScheduleUnit in) : count(of), unit(in) {}
  bool operator==(const Length&) const = default;
};

struct LrOptions {
  std::optional<double> lr;  // unset: the recipe's
  double lr_min = 0;
  std::optional<LrScale> scale_lr;
  std::optional<std::string> schedule;       // one of schedule_names() (schedules.h); unset: the recipe's
  ScheduleUnit unit = ScheduleUnit::kSteps;  // that it counts in
  std::optional<int64_t> schedule_steps;     // the schedule's horizon, steps; unset: the epochs'
  std::optional<Length> warmup;
  // The options below belong to some schedules only (declare() says which). They have PyTorch's names.
  std::optional<Length> step_size;
  std::vector<Length> milestones;  // from the run's start, ascending; empty: unset
  std::optional<double> gamma;     // the factor of a drop
  std::optional<Length> restart_every;
  std::optional<int64_t> restart_mult;
  std::optional<double> max_lr;
  std::optional<double> pct_start;
  std::optional<double> div_factor;
  std::optional<double> final_div_factor;
  std::optional<AnnealStrategy> anneal_strategy;
  std::optional<bool> three_phase;
  std::optional<bool> cycle_momentum;
  std::optional<double> base_momentum;
  std::optional<double> max_momentum;
  std::optional<double> power;
  std::string plateau_metric;  // empty: the loss
  std::optional<double> plateau_factor;
  std::optional<int64_t> patience;  // evaluations
  std::optional<double> threshold;
  std::optional<ThresholdMode> threshold_mode;
  std::optional<int64_t> cooldown;  // evaluations

  void declare(config::OptionSet& options);
  // Throws ConfigError for an option that the schedule named `of` does not have, and for a missing one that it needs.
  void check(const std::string& of) const;
};

// Reads "linear" or "sqrt=256". Throws ConfigError for anything else.
LrScale read_lr_scale(const std::string& name, const std::string& text);
std::string write_lr_scale(const LrScale& scale);

// Reads a length of at least `least`. Throws ConfigError for anything else.
Length read_length(const std::string& name, const std::string& text, int64_t least = 0);
std::string write_length(const Length& length);

// Reads "10,25,50" or "30epochs,60epochs": lengths above 0, in ascending order as far as their units tell. Throws
// ConfigError for anything else.
std::vector<Length> read_milestones(const std::string& name, const std::string& text);
std::string write_milestones(const std::vector<Length>& milestones);

}  // namespace lockstep::schedule
