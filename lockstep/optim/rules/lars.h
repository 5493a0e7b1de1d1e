// LARS (You et al., "Large batch training of convolutional networks", 2017), as SGD under Apex's LARC with clip=False:
// trust_coefficient · ‖parameter‖ / (‖gradient‖ + weight_decay · ‖parameter‖ + eps) scales the decayed gradient; where
// a norm is 0, the gradient stays as it is.
#pragma once

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 1e-3;
  double eps = 1e-8;
  bool nesterov = false;
  bool adapt = true;  // false: plain SGD, as is usual for biases and normalisation layers
  bool maximize = false;

  static constexpr const char* kName = "lars";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("momentum", self.momentum);
    visit("weight_decay", self.weight_decay);
    visit("trust_coefficient", self.trust_coefficient);
    visit("eps", self.eps);
    visit("nesterov", self.nesterov);
    visit("adapt", self.adapt);
    visit("maximize", self.maximize);
  }
};

// State: momentum_buffer, from a parameter's first step on.
class Lars final : public OptimizerOf<Lars, LarsOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<Lars, LarsOptions>;

}  // namespace lockstep::optim
