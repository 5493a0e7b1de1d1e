#include "lockstep/schedule/lr_shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

double real(int64_t number) { return static_cast<double>(number); }

// The value on half a cosine from `from` to `to` after a share `part` in [0, 1] of the way.
double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

void check_gamma(double gamma) {
  if (!(gamma >= 0 && std::isfinite(gamma))) throw ConfigError("schedule: gamma is ", gamma, ", not 0 or more");
}

// "100 steps", "1 epoch".
std::string so_many(int64_t count, std::string_view unit) { return cat(count, ' ', unit, count == 1 ? "" : "s"); }

}  // namespace

double ConstantLr::at(const Rates& rates, int64_t) const { return rates.base; }
void ConstantLr::check(const Rates&) const {}
std::string ConstantLr::text(const Rates&, const Counted&) const { return "constant"; }

double StepLr::at(const Rates& rates, int64_t t) const { return rates.base * std::pow(gamma, real(t / step_size)); }
void StepLr::check(const Rates&) const {
  check_gamma(gamma);
  if (step_size < 1) throw ConfigError("schedule: step_size is ", step_size, "; a rate must last for 1 step or more");
}
std::string StepLr::text(const Rates&, const Counted& counted) const {
  return cat("step, × ", gamma, " every ", so_many(step_size, counted.unit));
}

double MultiStepLr::at(const Rates& rates, int64_t t) const {
  const auto passed = std::upper_bound(milestones.begin(), milestones.end(), t) - milestones.begin();
  return rates.base * std::pow(gamma, real(passed));
}
void MultiStepLr::check(const Rates&) const {
  check_gamma(gamma);
  if (milestones.empty() || milestones[0] < 0 || !std::is_sorted(milestones.begin(), milestones.end())) {
    throw ConfigError("schedule: multistep needs milestones, 0 or more and in ascending order");
  }
}
std::string MultiStepLr::text(const Rates&, const Counted& counted) const {
  std::string at;
  for (const int64_t milestone : milestones) at += cat(at.empty() ? "" : ", ", milestone + counted.first);
  return cat("multistep, × ", gamma, " at ", counted.unit, ' ', at);
}

double ExponentialLr::at(const Rates& rates, int64_t t) const { return rates.base * std::pow(gamma, real(t)); }
void ExponentialLr::check(const Rates&) const { check_gamma(gamma); }
std::string ExponentialLr::text(const Rates&, const Counted& counted) const {
  return cat("exponential, × ", gamma, " every ", counted.unit);
}

double CosineLr::at(const Rates& rates, int64_t t) const {
  return t >= t_max ? rates.least : half_cosine(rates.base, rates.least, real(t) / real(t_max));
}
void CosineLr::check(const Rates&) const {
  if (t_max < 0) throw ConfigError("schedule: cosine over ", t_max, " steps; the horizon must hold the warm-up");
}
std::string CosineLr::text(const Rates& rates, const Counted& counted) const {
  return cat("cosine to ", rates.least, " at ", counted.unit, ' ', counted.first + t_max);
}

CosineRestartsLr::Cycle CosineRestartsLr::cycle(int64_t t) const {
  if (t_mult == 1) return {t % t_0, t_0};
  int64_t length = t_0;
  while (t >= length) {
    t -= length;
    if (length > std::numeric_limits<int64_t>::max() / t_mult) break;
    length *= t_mult;
  }
  return {t, length};
}
double CosineRestartsLr::at(const Rates& rates, int64_t t) const {
  const auto [t_cur, t_i] = cycle(t);
  return half_cosine(rates.base, rates.least, real(t_cur) / real(t_i));
}
void CosineRestartsLr::check(const Rates&) const {
  if (t_0 < 1 || t_mult < 1) {
    throw ConfigError("schedule: restarts after ", t_0, ", each ", t_mult, " times as long; both must be 1 or more");
  }
}
std::string CosineRestartsLr::text(const Rates& rates, const Counted& counted) const {
  return cat("cosine-restarts to ", rates.least, " in ", so_many(t_0, counted.unit),
             t_mult > 1 ? cat(", each × ", t_mult, " as long") : "");
}

namespace {

// The part of a cycle that t lies in, as its number and the share of it that is over. PyTorch's parts meet at their
// ends, which may lie between two steps.
struct CyclePart {
  int number;
  double share;
};

CyclePart part_of(const OneCycleLr& cycle, int64_t t) {
  const double now = real(std::min(t, cycle.total_steps - 1));
  const double up = cycle.peak(), end = real(cycle.total_steps) - 1;
  if (now <= up) return {0, up > 0 ? now / up : 1};
  if (!cycle.three_phase) return {1, (now - up) / (end - up)};
  const double down = cycle.down();
  if (now <= down) return {1, (now - up) / (down - up)};
  return {2, (now - down) / (end - down)};
}

double annealed(Anneal anneal, double from, double to, double share) {
  return anneal == Anneal::kCos ? half_cosine(from, to, share) : (to - from) * share + from;
}

}  // namespace

double OneCycleLr::at(const Rates&, int64_t t) const {
  const auto [number, share] = part_of(*this, t);
  if (number == 0) return annealed(anneal, initial_lr(), max_lr, share);
  if (!three_phase) return annealed(anneal, max_lr, last_lr(), share);
  return number == 1 ? annealed(anneal, max_lr, initial_lr(), share) : annealed(anneal, initial_lr(), last_lr(), share);
}
double OneCycleLr::momentum_at(int64_t t) const {
  const auto [number, share] = part_of(*this, t);
  if (number == 0) return annealed(anneal, momentum->most, momentum->base, share);
  return number == 1 ? annealed(anneal, momentum->base, momentum->most, share) : momentum->most;
}
void OneCycleLr::check(const Rates& rates) const {
  if (!(max_lr > 0 && std::isfinite(max_lr)) || max_lr < rates.least) {
    throw ConfigError("schedule: max_lr is ", max_lr, "; it must be above 0 and not below lr_min ", rates.least);
  }
  if (!(pct_start >= 0 && pct_start < 1)) {
    throw ConfigError("schedule: pct_start is ", pct_start, ", not from 0 to below 1");
  }
  if (!(div_factor >= 1 && final_div_factor >= 1)) {
    throw ConfigError("schedule: div_factor ", div_factor, ", final_div_factor ", final_div_factor,
                      "; both must be 1 or more");
  }
  if (three_phase && !(pct_start <= 0.5)) {
    throw ConfigError("schedule: pct_start is ", pct_start, "; in three phases the rise takes at most half, 0.5");
  }
  if (momentum && !(momentum->base >= 0 && momentum->base <= momentum->most && momentum->most < 1)) {
    throw ConfigError("schedule: base_momentum ", momentum->base, ", max_momentum ", momentum->most,
                      "; they must be 0 <= base <= max < 1");
  }
  if (total_steps < 1) throw ConfigError("schedule: onecycle over ", total_steps, " steps; shorten the warm-up");
}
std::string OneCycleLr::text(const Rates&, const Counted& counted) const {
  return cat("onecycle to ", max_lr, three_phase ? " in three phases" : "", ", done after ",
             so_many(counted.first + total_steps, counted.unit),
             momentum ? cat(", momentum ", momentum->most, " to ", momentum->base, " and back") : "");
}

double PolynomialLr::at(const Rates& rates, int64_t t) const {
  return rates.base * std::pow(1 - real(std::min(t, total_iters)) / real(total_iters), power);
}
void PolynomialLr::check(const Rates&) const {
  if (total_iters < 1) throw ConfigError("schedule: polynomial over ", total_iters, " steps; shorten the warm-up");
  if (!(power > 0 && std::isfinite(power))) throw ConfigError("schedule: power is ", power, ", not above 0");
}
std::string PolynomialLr::text(const Rates& rates, const Counted& counted) const {
  return cat("polynomial of power ", power, " to ", rates.least, " at ", counted.unit, ' ',
             counted.first + total_iters);
}

}  // namespace lockstep::schedule
