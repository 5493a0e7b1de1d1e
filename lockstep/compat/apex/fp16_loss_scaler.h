// The loss scalers of apex.fp16_utils, over amp::LossScaler.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/amp/loss_scaler.h"

namespace lockstep::apex::fp16_utils {

// A loss scale that stays. One thread.
class LossScaler {
 public:
  explicit LossScaler(double scale = 1);  // throws ConfigError unless it is above 0

  double loss_scale() const { return scaler_.scale(); }
  // Returns whether an element of these parameters' gradients is not finite.
  bool has_overflow(const std::vector<at::Tensor>& parameters) const;
  // Sets the next scale after a step. Returns whether the step is to be left out.
  bool update_scale(bool overflow) { return scaler_.update(overflow); }
  // Runs backward of the loss times the scale, in fp32.
  void backward(const at::Tensor& loss) const;

  const lockstep::amp::LossScaler& scaler() const { return scaler_; }
  lockstep::amp::LossScaler& scaler() { return scaler_; }

 protected:
  explicit LossScaler(const lockstep::amp::ScalerOptions& options) : scaler_(options) {}

 private:
  lockstep::amp::LossScaler scaler_;
};

struct DynamicLossScalerOptions {
  double init_scale = 4294967296;  // 2^32
  double scale_factor = 2;         // an overflow divides by it, down to 1; good steps multiply by it
  int scale_window = 1000;         // good steps in a row before the scale grows
};

// A loss scale that follows overflows.
class DynamicLossScaler : public LossScaler {
 public:
  explicit DynamicLossScaler(const DynamicLossScalerOptions& options = {});  // throws ConfigError
};

}  // namespace lockstep::apex::fp16_utils
