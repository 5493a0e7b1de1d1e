// NovoGrad (Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments for training of deep
// networks", 2019), in the form of Apex's FusedNovoGrad: Adam whose second moment is one number for each parameter, the
// average of its gradient's norm.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, exp_avg, exp_avg_norm (one number). An update is one pass, and one
// more over the gradient for its norm.
class NovoGrad final : public OptimizerOf<NovoGrad, NovoGradOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
