// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020), in the form
// of Apex's FusedLAMB: the update is Adam's, scaled by the norm of the parameter over that of its update.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, exp_avg, exp_avg_sq. An update is two passes, and one more over the
// gradients for their norm, unless Update tells it or max_grad_norm is 0.
class Lamb final : public OptimizerOf<Lamb, LambOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  double gradient_factor(const Update& update) const override;
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
