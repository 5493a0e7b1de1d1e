// NAdam (Dozat, 2016), as torch.optim.NAdam.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, mu_product (a number), exp_avg, exp_avg_sq.
class NAdam final : public OptimizerOf<NAdam, NAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
