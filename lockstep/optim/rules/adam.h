// Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019), as torch.optim.Adam and AdamW.
#pragma once

#include <utility>

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// Adam adds weight decay to the gradient. AdamW subtracts it from the weight, apart from the gradient.
template <bool Decoupled>
struct AdamOptionsOf {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = Decoupled ? 1e-2 : 0;
  bool amsgrad = false;
  bool maximize = false;

  static constexpr const char* kName = Decoupled ? "adamw" : "adam";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {{"decoupled_weight_decay", Decoupled}, {"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("amsgrad", self.amsgrad);
    visit("maximize", self.maximize);
  }
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;

// State: step, exp_avg, exp_avg_sq and, with amsgrad, max_exp_avg_sq, from a parameter's first step on.
template <bool Decoupled>
class AdamOf final : public OptimizerOf<AdamOf<Decoupled>, AdamOptionsOf<Decoupled>> {
 public:
  using Base = OptimizerOf<AdamOf<Decoupled>, AdamOptionsOf<Decoupled>>;
  using Base::Base;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  bool has_guarded_step() const override { return true; }
  void step_one(const GroupOptions& options, const FusedOptimizer::Step& step, Slots& slots) const override;
};
using Adam = AdamOf<false>;
using AdamW = AdamOf<true>;
extern template class OptimizerOf<Adam, AdamOptions>;
extern template class OptimizerOf<AdamW, AdamWOptions>;
extern template class AdamOf<false>;
extern template class AdamOf<true>;

// The numbers of one step, and its arithmetic on the CPU and on other devices (see kernels/step.h).
struct AdamRule {
  double multiplier;    // of the gradient; negative to maximize
  double weight_decay;  // added to the gradient
  double shrink;        // multiplies the weight before the step
  double new_share;     // 1 - beta1
  double beta2;
  double step_size;        // lr / (1 - beta1^step)
  double root_correction;  // √(1 - beta2^step)
  double eps;
  // What the guarded form computes the others from.
  double lr = 0;
  double beta1 = 0;
  double decoupled_decay = 0;
  double count = 0;  // of the step, from 1
  bool operator==(const AdamRule&) const = default;
};
void step_elements(const AdamRule& rule, const AnyElements& elements, const Extras& extras = {});
void step_tensors(const AdamRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s);
void step_guarded(const AdamRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s,
                  const at::Tensor& overflow);
template <>
inline constexpr bool device::kHasGuardedForm<AdamRule> = true;

}  // namespace lockstep::optim
