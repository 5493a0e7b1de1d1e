#include "lockstep/optim/schedule.h"

#include <array>
#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

double warmup_factor(const ScheduleOptions& o, int64_t step) {
  const auto t = static_cast<double>(step);
  const auto w = static_cast<double>(o.warmup_steps);
  return o.warmup_start ? *o.warmup_start + (1 - *o.warmup_start) * t / w : (t + 1) / w;
}

double cosine(const ScheduleOptions& o, int64_t step) {
  const int64_t length = o.horizon_steps - o.warmup_steps;
  if (step >= length) return o.lr_min;
  const double part = static_cast<double>(step) / static_cast<double>(length);
  return o.lr_min + (o.base_lr - o.lr_min) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace

ScheduleKind parse_schedule(std::string_view name) {
  static const std::array<std::string, 3> kNames = {"constant", "step", "cosine"};
  static constexpr std::array kKinds = {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return kKinds[i];
  }
  const std::string guess = nearest(name, kNames);
  throw ConfigError("no schedule \"", name, "\"; ",
                    guess.empty() ? "there are constant, step and cosine" : cat("did you mean ", guess, "?"));
}

void ScheduleOptions::check() const {
  const auto not_negative = [](const char* name, double value) {
    if (!(value >= 0 && std::isfinite(value))) throw ConfigError("schedule: ", name, " is ", value, ", not 0 or more");
  };
  not_negative("the learning rate", base_lr);
  not_negative("lr_min", lr_min);
  not_negative("gamma", gamma);
  not_negative("warmup_steps", static_cast<double>(warmup_steps));
  if (warmup_start && !(*warmup_start >= 0 && *warmup_start <= 1)) {
    throw ConfigError("schedule: warmup_start is ", *warmup_start, ", not within 0 to 1");
  }
  if (kind == ScheduleKind::kStep && step_size < 1) {
    throw ConfigError("schedule: step_size is ", step_size, "; a rate must last for 1 step or more");
  }
  if (kind == ScheduleKind::kCosine && (horizon_steps < 1 || horizon_steps < warmup_steps)) {
    throw ConfigError("schedule: cosine over ", horizon_steps, " steps with a warm-up of ", warmup_steps,
                      "; the horizon must be 1 step or more and hold the warm-up");
  }
  if (kind == ScheduleKind::kCosine && lr_min > base_lr) {
    throw ConfigError("schedule: lr_min ", lr_min, " is above the learning rate ", base_lr);
  }
}

double lr_at(const ScheduleOptions& options, int64_t step) {
  if (step < options.warmup_steps) return options.base_lr * warmup_factor(options, step);
  const int64_t after = step - options.warmup_steps;
  switch (options.kind) {
    case ScheduleKind::kConstant:
      return options.base_lr;
    case ScheduleKind::kStep:
      return options.base_lr * std::pow(options.gamma, static_cast<double>(after / options.step_size));
    case ScheduleKind::kCosine:
      return cosine(options, after);
  }
  throw BugError("a schedule of kind ", static_cast<int>(options.kind));
}

}  // namespace lockstep::optim
