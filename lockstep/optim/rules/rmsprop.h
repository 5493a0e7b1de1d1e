// RMSprop (Tieleman and Hinton, 2012; centered: Graves, 2013), as torch.optim.RMSprop.
#pragma once

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  static constexpr const char* kName = "rmsprop";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {{"capturable", false}}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("alpha", self.alpha);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("momentum", self.momentum);
    visit("centered", self.centered);
    visit("maximize", self.maximize);
  }
};

// State, from a parameter's first step on: step, square_avg and, with momentum, momentum_buffer, and, if centered,
// grad_avg.
class RMSprop final : public OptimizerOf<RMSprop, RmspropOptions> {
 public:
  using OptimizerOf::OptimizerOf;

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<RMSprop, RmspropOptions>;

// The numbers of one step, and its arithmetic on the CPU and on other devices (see kernels/step.h).
struct RmspropRule {
  double multiplier;  // of the gradient; negative to maximize
  double lr;
  double weight_decay;
  double alpha;
  double eps;
  double momentum;
  bool centered;
  bool operator==(const RmspropRule&) const = default;
};
void step_elements(const RmspropRule& rule, const AnyElements& elements, const Extras& extras = {});
void step_tensors(const RmspropRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s);

}  // namespace lockstep::optim
