// Stochastic gradient descent with momentum, Nesterov's too, as torch.optim.SGD.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State: momentum_buffer, from the first step with a momentum on. PyTorch starts it with the gradient, undamped.
class SGD final : public FusedOptimizer {
 public:
  explicit SGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, SgdOptions options = {});
  explicit SGD(std::vector<at::Tensor> parameters, SgdOptions options = {});

  std::string_view name() const override { return SgdOptions::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
