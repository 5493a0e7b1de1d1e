#include "lockstep/amp/loss_scaler.h"

#include <algorithm>

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
  return {.scale = options.enabled ? options.init_scale : 1, .good_steps = 0, .overflows_left = options.hysteresis};
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
  return options_.enabled && found_inf;
}

}  // namespace lockstep::amp
