// Adagrad (Duchi et al., 2011), as torch.optim.Adagrad.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State: step and sum (of the squared gradients), from the start on.
class Adagrad final : public FusedOptimizer {
 public:
  explicit Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdagradOptions options = {});
  explicit Adagrad(std::vector<at::Tensor> parameters, AdagradOptions options = {});

  std::string_view name() const override { return AdagradOptions::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
