// The loss scale: losses are multiplied by it so that small gradients survive fp16 (Micikevicius et al., "Mixed
// precision training", ICLR 2018). Its transition is a pure function of whether a step's folded gradients were finite.
#pragma once

#include <map>
#include <string>

namespace lockstep::amp {

struct ScalerOptions {
  bool enabled = false;  // false: the scale is 1 and no step is skipped
  bool dynamic = true;   // false: the scale stays init_scale
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  // good steps in a row before the scale grows
  int hysteresis = 1;          // overflows before it backs off
  double min_scale = 1;
  double max_scale = 16777216;  // 2^24

  void check() const;  // throws ConfigError
};

struct ScalerState {
  double scale = 1;
  int good_steps = 0;      // in a row
  int overflows_left = 1;  // before the scale backs off
  bool operator==(const ScalerState&) const = default;
};

ScalerState initial(const ScalerOptions& options);

// Returns the state after a step. `hysteresis` overflows since the scale last grew (or began) multiply the scale by
// backoff_factor, not below min_scale, and so does every further overflow. growth_interval good steps in a row multiply
// it by growth_factor, not above max_scale. A pure function.
ScalerState next(const ScalerOptions& options, ScalerState state, bool found_inf);

class LossScaler {
 public:
  LossScaler() = default;
  explicit LossScaler(const ScalerOptions& options);  // throws ConfigError

  bool enabled() const { return options_.enabled; }
  double scale() const { return state_.scale; }
  const ScalerOptions& options() const { return options_; }
  const ScalerState& state() const { return state_; }
  void load(const ScalerState& state) { state_ = state; }

  // Sets the next scale once a step's gradients are known. Returns whether the step is to be skipped.
  bool update(bool found_inf);

  // How many steps have been skipped in a row, up to now.
  int skipped_in_a_row() const { return skipped_in_a_row_; }

 private:
  ScalerOptions options_;
  ScalerState state_;
  int skipped_in_a_row_ = 0;
};

// A scaler's state as a dict of numbers: Apex's {loss_scale, unskipped} of one "loss_scaler0", or torch's
// GradScaler.state_dict(), {scale, growth_factor, backoff_factor, growth_interval, _growth_tracker}.
using ScalerDict = std::map<std::string, double>;
ScalerDict apex_state(const LossScaler& scaler);
ScalerDict torch_state(const LossScaler& scaler);
// Returns the keys of both, and "overflows_left" besides.
ScalerDict full_state(const LossScaler& scaler);
// Loads any of these forms. torch's form sets the factors too. Values that the dict lacks stay as they are. A disabled
// scaler stays disabled. Throws ConfigError for a dict that is neither Apex's nor torch's, or values that no scaler can
// have.
void load_state(LossScaler& scaler, const ScalerDict& state);

}  // namespace lockstep::amp
