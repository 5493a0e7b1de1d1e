// NAdam (Dozat, 2016), as torch.optim.NAdam.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State, from a parameter's first step on: step, mu_product (a number), exp_avg, exp_avg_sq.
class NAdam final : public FusedOptimizer {
 public:
  explicit NAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, NAdamOptions options = {});
  explicit NAdam(std::vector<at::Tensor> parameters, NAdamOptions options = {});

  std::string_view name() const override { return NAdamOptions::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
