#include "lockstep/schedule/plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::schedule {
namespace {

bool better(const PlateauLr& o, double metric, double best) {
  const bool relative = o.threshold_mode == PlateauThreshold::kRel;
  if (o.mode == PlateauMode::kMin) return metric < (relative ? best * (1 - o.threshold) : best - o.threshold);
  return metric > (relative ? best * (1 + o.threshold) : best + o.threshold);
}

}  // namespace

double worst(PlateauMode mode) {
  const double infinity = std::numeric_limits<double>::infinity();
  return mode == PlateauMode::kMin ? infinity : -infinity;
}

// The caller passes the rate that next() has computed as the base.
double PlateauLr::at(const Rates& rates, int64_t) const { return rates.base; }

void PlateauLr::check(const Rates&) const {
  if (!(factor > 0 && factor < 1))
    throw ConfigError("schedule: the plateau's factor is ", factor, ", not within 0 to 1");
  if (patience < 0 || cooldown < 0) {
    throw ConfigError("schedule: patience ", patience, ", cooldown ", cooldown, "; both must be 0 or more");
  }
  if (!(threshold >= 0 && eps >= 0 && std::isfinite(threshold) && std::isfinite(eps))) {
    throw ConfigError("schedule: threshold ", threshold, ", eps ", eps, "; both must be 0 or more");
  }
}

std::string PlateauLr::text(const Rates&, const Counted&) const {
  return cat("plateau, × ", factor, " after more than ", patience, " evaluations that are no better");
}

PlateauState next(const PlateauLr& o, const Rates& rates, PlateauState state, double metric) {
  double lr = state.lr.value_or(rates.base);
  ++state.metrics;
  if (better(o, metric, state.best.value_or(worst(o.mode)))) {
    state.best = metric;
    state.bad = 0;
  } else {
    ++state.bad;
  }
  if (state.cooldown_left > 0) {
    --state.cooldown_left;
    state.bad = 0;
  }
  if (state.bad > o.patience) {
    const double lower = std::max(lr * o.factor, rates.least);
    if (lr - lower > o.eps) lr = lower;
    state.cooldown_left = o.cooldown;
    state.bad = 0;
  }
  state.lr = lr;
  return state;
}

}  // namespace lockstep::schedule
