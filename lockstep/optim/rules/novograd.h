// NovoGrad (Ginsburg et al., "Stochastic gradient methods with layer-wise adaptive moments for training of deep
// networks", 2019), in the form of Apex's FusedNovoGrad: Adam whose second moment is one number for each parameter, the
// average of its gradient's norm.
#pragma once

#include <cstdint>
#include <utility>

#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

// The names are those of Apex's FusedNovoGrad.
struct NovoGradOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool bias_correction = true;
  bool reg_inside_moment = false;  // the norm and the weight decay act before exp_avg; without: on the update
  bool grad_averaging = true;      // the gradient's share of exp_avg is 1 - betas[0]; without: 1
  int64_t norm_type = 2;           // of each parameter's gradient: 2, or 0 for the largest element
  bool init_zero = false;          // the norm's average begins at 0; without: at the first norm
  bool maximize = false;

  static constexpr const char* kName = "novograd";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("betas", self.betas);
    visit("eps", self.eps);
    visit("weight_decay", self.weight_decay);
    visit("bias_correction", self.bias_correction);
    visit("reg_inside_moment", self.reg_inside_moment);
    visit("grad_averaging", self.grad_averaging);
    visit("norm_type", self.norm_type);
    visit("init_zero", self.init_zero);
    visit("maximize", self.maximize);
  }
};

// State, from a parameter's first step on: step, exp_avg, exp_avg_norm (one number). An update is one pass, and one
// more over the gradient for its norm.
class NovoGrad final : public OptimizerOf<NovoGrad, NovoGradOptions> {
 public:
  using OptimizerOf::OptimizerOf;

  bool elementwise() const override { return false; }

 protected:
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<NovoGrad, NovoGradOptions>;

}  // namespace lockstep::optim
