// LARS (You et al., "Large batch training of convolutional networks", 2017), as SGD under Apex's LARC with clip=False:
// trust_coefficient · ‖parameter‖ / (‖gradient‖ + weight_decay · ‖parameter‖ + eps) scales the decayed gradient; where
// a norm is 0, the gradient stays as it is.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State: momentum_buffer, from a parameter's first step on.
class Lars final : public OptimizerOf<Lars, LarsOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
