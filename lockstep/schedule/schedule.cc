#include "lockstep/schedule/schedule.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

double warmup_factor(const ScheduleOptions& o, int64_t time) {
  const auto t = static_cast<double>(time);
  const auto w = static_cast<double>(o.warmup);
  return o.warmup_start ? *o.warmup_start + (1 - *o.warmup_start) * t / w : (t + 1) / w;
}

}  // namespace

double ScheduleOptions::first_lr() const {
  const auto* cycle = std::get_if<OneCycleLr>(&shape);
  return cycle == nullptr ? base_lr : cycle->initial_lr();
}

void ScheduleOptions::check() const {
  const auto not_negative = [](const char* name, double value) {
    if (!(value >= 0 && std::isfinite(value))) throw ConfigError("schedule: ", name, " is ", value, ", not 0 or more");
  };
  not_negative("the learning rate", base_lr);
  not_negative("lr_min", lr_min);
  not_negative("warmup", static_cast<double>(warmup));
  if (warmup_start && !(*warmup_start >= 0 && *warmup_start <= 1)) {
    throw ConfigError("schedule: warmup_start is ", *warmup_start, ", not within 0 to 1");
  }
  std::visit([&](const auto& any) { any.check(rates()); }, shape);
  if (!std::holds_alternative<OneCycleLr>(shape) && lr_min > base_lr) {
    throw ConfigError("schedule: lr_min ", lr_min, " is above the learning rate ", base_lr);
  }
}

double lr_at(const ScheduleOptions& options, int64_t time, const PlateauState& plateau) {
  if (time < options.warmup) return options.first_lr() * warmup_factor(options, time);
  const Rates rates{.base = plateau.lr.value_or(options.base_lr), .least = options.lr_min};
  const double lr = std::visit([&](const auto& any) { return any.at(rates, time - options.warmup); }, options.shape);
  return std::max(lr, options.lr_min);
}

std::optional<double> momentum_at(const ScheduleOptions& options, int64_t time) {
  const auto* cycle = std::get_if<OneCycleLr>(&options.shape);
  if (cycle == nullptr || !cycle->momentum) return std::nullopt;
  return cycle->momentum_at(std::max<int64_t>(time - options.warmup, 0));
}

std::string describe(const ScheduleOptions& options, std::string_view unit) {
  const Counted counted{.unit = unit, .first = options.warmup};
  std::string text = std::visit([&](const auto& any) { return any.text(options.rates(), counted); }, options.shape);
  if (options.warmup == 0) return text;
  text += cat(", warm-up ", options.warmup, ' ', unit, 's');
  return options.warmup_start ? cat(text, " from lr ", options.first_lr() * *options.warmup_start) : text;
}

}  // namespace lockstep::schedule
