// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020), in the form
// of Apex's FusedLAMB: the update is Adam's, scaled by the norm of the parameter over that of its update.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, exp_avg, exp_avg_sq. An update is two passes, and one more over the
// gradients for their norm, unless Update tells it or max_grad_norm is 0.
class Lamb final : public FusedOptimizer {
 public:
  explicit Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, LambOptions options = {});
  explicit Lamb(std::vector<at::Tensor> parameters, LambOptions options = {});

  std::string_view name() const override { return LambOptions::kName; }
  bool elementwise() const override { return false; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  double gradient_factor(const Update& update) const override;
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
