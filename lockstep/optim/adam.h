// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019), as torch.optim.Adam and AdamW.
#pragma once

#include <memory>
#include <vector>

#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/options.h"

namespace lockstep::optim {

// State: step, exp_avg, exp_avg_sq and, with amsgrad, max_exp_avg_sq, from a parameter's first step on.
template <bool Decoupled>
class AdamOf final : public FusedOptimizer {
 public:
  using Options = AdamOptionsOf<Decoupled>;
  explicit AdamOf(const std::vector<torch::optim::OptimizerParamGroup>& groups, Options options = {});
  explicit AdamOf(std::vector<at::Tensor> parameters, Options options = {});

  std::string_view name() const override { return Options::kName; }
  std::unique_ptr<FusedOptimizer> over(const std::vector<std::vector<at::Tensor>>& parameters) const override;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
using Adam = AdamOf<false>;
using AdamW = AdamOf<true>;

}  // namespace lockstep::optim
