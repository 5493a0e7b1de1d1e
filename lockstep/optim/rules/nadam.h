// NAdam (Dozat, 2016), as torch.optim.NAdam.
#pragma once

#include <utility>

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  static constexpr const char* kName = "nadam";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {{"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("momentum_decay", self.momentum_decay);
    visit("decoupled_weight_decay", self.decoupled_weight_decay);
    visit("maximize", self.maximize);
  }
};

// State, from a parameter's first step on: step, mu_product (a number), exp_avg, exp_avg_sq.
class NAdam final : public OptimizerOf<NAdam, NAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<NAdam, NAdamOptions>;

// The numbers of one step, and its arithmetic on the CPU and on other devices (see kernels/step.h).
struct NadamRule {
  double multiplier;    // of the gradient; negative to maximize
  double weight_decay;  // added to the gradient
  double shrink;        // multiplies the weight before the step
  double new_share;     // 1 - beta1
  double beta2;
  double square_correction;  // 1 - beta2^step
  double gradient_step;      // multiplies the gradient
  double average_step;       // multiplies exp_avg
  double eps;
  bool operator==(const NadamRule&) const = default;
};
void step_elements(const NadamRule& rule, const AnyElements& elements, const Extras& extras = {});
void step_tensors(const NadamRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s);

}  // namespace lockstep::optim
