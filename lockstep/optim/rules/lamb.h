// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020), in the form
// of Apex's FusedLAMB: the update is Adam's, scaled by the norm of the parameter over that of its update.
#pragma once

#include <utility>

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/square_sums.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// The names are those of Apex's FusedLAMB.
struct LambOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 1e-2;
  bool bias_correction = true;
  bool grad_averaging = true;  // the gradient's share of exp_avg: 1 - betas[0] if true, else 1
  bool adam_w_mode = true;     // weight decay is added to the update if true, else to the gradient
  double max_grad_norm = 1;    // bounds the norm of all gradients; the first group's counts; 0: no bound
  bool use_nvlamb = false;     // norms scale the step even without weight decay
  bool maximize = false;

  static constexpr const char* kName = "lamb";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("bias_correction", self.bias_correction);
    visit("grad_averaging", self.grad_averaging);
    visit("adam_w_mode", self.adam_w_mode);
    visit("max_grad_norm", self.max_grad_norm);
    visit("use_nvlamb", self.use_nvlamb);
    visit("maximize", self.maximize);
  }
};

// State, from a parameter's first step on: step, exp_avg, exp_avg_sq. An update is two passes, and one more over the
// gradients for their norm, unless Update tells it or max_grad_norm is 0.
class Lamb final : public OptimizerOf<Lamb, LambOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  double gradient_factor(const Update& update) const override;
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<Lamb, LambOptions>;

// The numbers of one step. Its update is exp_avg / correction, over √exp_avg_sq / root_correction + eps, plus
// decoupled_decay · weight.
struct LambRule {
  double multiplier;       // of the gradient; negative to maximize
  double weight_decay;     // added to the gradient
  double decoupled_decay;  // added to the update
  double beta1;
  double new_share;  // of the gradient in exp_avg
  double beta2;
  double correction;       // 1 - beta1^step
  double root_correction;  // √(1 - beta2^step)
  double eps;
  bool operator==(const LambRule&) const = default;
};

// The first pass on the CPU: moves the state, exp_avg and exp_avg_sq, and returns the Σ² of the parameter and of its
// update.
SquareSums step_lamb_moments(const LambRule& rule, const Operands& operands, const Extras& extras = {});

// The second pass on the CPU: parameter -= rate · update. The update is computed again, which moves fewer bytes than
// keeping it.
void step_lamb(const LambRule& rule, double rate, const Operands& operands, const Extras& extras = {});

// Both passes on other devices than the CPU (device_step.h). The rate is lr, times the norm of the parameter over that
// of its update if `scaled`; the norms stay on the device.
struct LambStep : LambRule {
  double lr;
  bool scaled;
  bool operator==(const LambStep&) const = default;
};
void step_tensors(const LambStep& step, device::Tensors& p, const device::Tensors& g, device::States& s);

}  // namespace lockstep::optim
