// RMSprop (Tieleman and Hinton, 2012; centered: Graves, 2013), as torch.optim.RMSprop.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, square_avg and, with momentum, momentum_buffer, and, if centered,
// grad_avg.
class RMSprop final : public OptimizerOf<RMSprop, RmspropOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
