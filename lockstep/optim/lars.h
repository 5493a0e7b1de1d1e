// LARS (You et al., "Large batch training of convolutional networks", 2017), as SGD under Apex's LARC with clip=False:
// trust_coefficient · ‖parameter‖ / (‖gradient‖ + weight_decay · ‖parameter‖ + eps) scales the decayed gradient; where
// a norm is 0, the gradient stays as it is.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State: momentum_buffer, from a parameter's first step on.
class Lars final : public FusedOptimizer {
 public:
  explicit Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, LarsOptions options = {});
  explicit Lars(std::vector<at::Tensor> parameters, LarsOptions options = {});

  std::string_view name() const override { return LarsOptions::kName; }
  bool elementwise() const override { return false; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
