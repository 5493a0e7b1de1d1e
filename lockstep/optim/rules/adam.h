// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019), as torch.optim.Adam and AdamW.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// State: step, exp_avg, exp_avg_sq and, with amsgrad, max_exp_avg_sq, from a parameter's first step on.
template <bool Decoupled>
class AdamOf final : public OptimizerOf<AdamOf<Decoupled>, AdamOptionsOf<Decoupled>> {
 public:
  using Base = OptimizerOf<AdamOf<Decoupled>, AdamOptionsOf<Decoupled>>;
  using Base::Base;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const FusedOptimizer::Step& step, Slots& slots) const override;
};
using Adam = AdamOf<false>;
using AdamW = AdamOf<true>;

}  // namespace lockstep::optim
