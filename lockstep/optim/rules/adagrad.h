// Adagrad (Duchi et al., 2011), as torch.optim.Adagrad.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State: step and sum (of the squared gradients), from the start on.
class Adagrad final : public OptimizerOf<Adagrad, AdagradOptions> {
 public:
  explicit Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdagradOptions options = {});
  explicit Adagrad(std::vector<at::Tensor> parameters, AdagradOptions options = {});

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};

}  // namespace lockstep::optim
