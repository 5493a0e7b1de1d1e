// Stochastic gradient descent with momentum, Nesterov's too, as torch.optim.SGD.
#pragma once

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  static constexpr const char* kName = "sgd";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("dampening", self.dampening);
    visit("weight_decay", self.weight_decay);
    visit("nesterov", self.nesterov);
    visit("maximize", self.maximize);
  }
};

// State: momentum_buffer, from the first step with a momentum on. PyTorch starts it with the gradient, undamped. Takes
// sparse gradients without weight_decay; with a momentum the step is dense, as every row has moved.
class SGD final : public OptimizerOf<SGD, SgdOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  bool has_guarded_step() const override { return true; }
  SparseStep sparse_step(const GroupOptions& options) const override;
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<SGD, SgdOptions>;

// The numbers of one step, and its arithmetic on the CPU and on other devices (see kernels/step.h).
struct SgdRule {
  double multiplier;  // of the gradient; negative to maximize
  double lr;
  double weight_decay;
  double momentum;
  double undamped;  // 1 - dampening
  bool nesterov;
  bool first;         // the momentum buffer holds nothing yet
  double shrink = 1;  // multiplies the weight before the step
  bool operator==(const SgdRule&) const = default;
};
void step_elements(const SgdRule& rule, const AnyElements& elements, const Extras& extras = {});
void step_tensors(const SgdRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s);
void step_guarded(const SgdRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s,
                  const at::Tensor& overflow);
template <>
inline constexpr bool device::kHasGuardedForm<SgdRule> = true;

}  // namespace lockstep::optim
