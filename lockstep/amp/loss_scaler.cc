#include "lockstep/amp/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::amp {

void ScalerOptions::check() const {
  if (!(init_scale > 0 && min_scale > 0 && max_scale >= min_scale && growth_factor > 1 && backoff_factor > 0 &&
        backoff_factor < 1 && growth_interval > 0 && hysteresis > 0)) {
    throw ConfigError("loss scale: init ", init_scale, ", least ", min_scale, ", most ", max_scale, ", growth ",
                      growth_factor, " every ", growth_interval, ", backoff ", backoff_factor, ", hysteresis ",
                      hysteresis, ": scales are above 0, growth above 1, backoff between 0 and 1, counts at least 1");
  }
}

ScalerState initial(const ScalerOptions& options) {
  const double bounded = std::clamp(options.init_scale, options.min_scale, options.max_scale);
  return {.scale = !options.enabled  ? 1
                   : options.dynamic ? bounded
                                     : options.init_scale,
          .good_steps = 0,
          .overflows_left = options.hysteresis};
}

ScalerState next(const ScalerOptions& options, ScalerState state, bool found_inf) {
  if (!options.enabled || !options.dynamic) return state;
  if (found_inf) {
    state.good_steps = 0;
    state.overflows_left = std::max(0, state.overflows_left - 1);
    if (state.overflows_left == 0) state.scale = std::max(options.min_scale, state.scale * options.backoff_factor);
    return state;
  }
  if (++state.good_steps < options.growth_interval) return state;
  state.good_steps = 0;
  state.overflows_left = options.hysteresis;
  state.scale = std::min(options.max_scale, state.scale * options.growth_factor);
  return state;
}

LossScaler::LossScaler(const ScalerOptions& options) : options_(options), state_(initial(options)) { options.check(); }

bool LossScaler::update(bool found_inf) {
  state_ = next(options_, state_, found_inf);
  const bool skip = options_.enabled && found_inf;
  skipped_in_a_row_ = skip ? skipped_in_a_row_ + 1 : 0;
  return skip;
}

ScalerDict apex_state(const LossScaler& scaler) {
  return {{"loss_scale", scaler.scale()}, {"unskipped", scaler.state().good_steps}};
}

ScalerDict torch_state(const LossScaler& scaler) {
  const ScalerOptions& options = scaler.options();
  return {{"scale", scaler.scale()},
          {"growth_factor", options.growth_factor},
          {"backoff_factor", options.backoff_factor},
          {"growth_interval", options.growth_interval},
          {"_growth_tracker", scaler.state().good_steps}};
}

ScalerDict full_state(const LossScaler& scaler) {
  ScalerDict state = torch_state(scaler);
  state.merge(apex_state(scaler));
  state["overflows_left"] = scaler.state().overflows_left;
  return state;
}

void load_state(LossScaler& scaler, const ScalerDict& state) {
  const auto find = [&](const char* name, double otherwise) {
    const auto found = state.find(name);
    return found == state.end() ? otherwise : found->second;
  };
  const bool apex = state.contains("loss_scale"), torch = state.contains("scale");
  if (!apex && !torch) {
    throw ConfigError("loss scaler: a state without \"scale\" (torch's GradScaler) and \"loss_scale\" (Apex)");
  }
  if (!scaler.enabled()) return;
  ScalerOptions options = scaler.options();
  options.growth_factor = find("growth_factor", options.growth_factor);
  options.backoff_factor = find("backoff_factor", options.backoff_factor);
  options.growth_interval = static_cast<int>(find("growth_interval", options.growth_interval));
  options.check();
  const ScalerState loaded{.scale = torch ? find("scale", 0) : find("loss_scale", 0),
                           .good_steps = static_cast<int>(torch ? find("_growth_tracker", 0) : find("unskipped", 0)),
                           .overflows_left = static_cast<int>(find("overflows_left", options.hysteresis))};
  if (!(loaded.scale > 0 && std::isfinite(loaded.scale)) || loaded.good_steps < 0 || loaded.overflows_left < 0) {
    throw ConfigError("loss scaler: a state with scale ", loaded.scale, " after ", loaded.good_steps, " good steps");
  }
  scaler = LossScaler(options);
  scaler.load(loaded);
}

}  // namespace lockstep::amp
