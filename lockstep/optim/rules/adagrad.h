// Adagrad (Duchi et al., 2011), as torch.optim.Adagrad.
#pragma once

#include "lockstep/optim/kernels/device_step.h"
#include "lockstep/optim/kernels/elements.h"
#include "lockstep/optim/optimizer_of.h"

namespace lockstep::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  static constexpr const char* kName = "adagrad";
  void check() const;  // throws ConfigError
  static NamedOptions fixed() { return {}; }
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit visit) {
    visit("lr", self.lr);
    visit("lr_decay", self.lr_decay);
    visit("weight_decay", self.weight_decay);
    visit("initial_accumulator_value", self.initial_accumulator_value);
    visit("eps", self.eps);
    visit("maximize", self.maximize);
  }
};

// State: step and sum (of the squared gradients), from the start on. Takes sparse gradients without weight_decay: only
// their rows change.
class Adagrad final : public OptimizerOf<Adagrad, AdagradOptions> {
 public:
  Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdagradOptions options);
  explicit Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups);
  explicit Adagrad(std::vector<at::Tensor> parameters, AdagradOptions options = {});

 protected:
  SparseStep sparse_step(const GroupOptions& options) const override;
  std::span<const SlotSpec> slots(const GroupOptions& options) const override;
  void prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const override;
  void step_one(const GroupOptions& options, const Step& step, Slots& slots) const override;
};
extern template class OptimizerOf<Adagrad, AdagradOptions>;

// The numbers of one step, and its arithmetic on the CPU and on other devices (see kernels/step.h).
struct AdagradRule {
  double multiplier;  // of the gradient; negative to maximize
  double lr;
  double weight_decay;
  double eps;
  bool operator==(const AdagradRule&) const = default;
};
void step_elements(const AdagradRule& rule, const AnyElements& elements, const Extras& extras = {});
void step_tensors(const AdagradRule& rule, device::Tensors& p, const device::Tensors& g, device::States& s);

}  // namespace lockstep::optim
