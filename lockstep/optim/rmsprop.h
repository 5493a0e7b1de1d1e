// RMSprop (Tieleman and Hinton, 2012; centered: Graves, 2013), as torch.optim.RMSprop.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, square_avg and, with momentum, momentum_buffer, and, if centered,
// grad_avg.
class RMSprop final : public FusedOptimizer {
 public:
  explicit RMSprop(const std::vector<torch::optim::OptimizerParamGroup>& groups, RmspropOptions options = {});
  explicit RMSprop(std::vector<at::Tensor> parameters, RmspropOptions options = {});

  std::string_view name() const override { return RmspropOptions::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
