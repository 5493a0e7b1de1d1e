// Stochastic gradient descent with momentum, Nesterov's too, as torch.optim.SGD.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State: momentum_buffer, from the first step with a momentum on. PyTorch starts it with the gradient, undamped.
class SGD final : public OptimizerOf<SGD, SgdOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
