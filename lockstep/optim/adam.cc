#include "lockstep/optim/adam.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "lockstep/optim/kernels.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kAverageSquare, kMaxAverageSquare };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_sq"},
                               {.name = "max_exp_avg_sq", .needed = false}};
constexpr SlotSpec kAmsgradSlots[] = {kSlots[0], kSlots[1], kSlots[2], {.name = "max_exp_avg_sq"}};

template <bool Decoupled>
const AdamOptionsOf<Decoupled>& values_of(const GroupOptions& options) {
  return static_cast<const Group<AdamOptionsOf<Decoupled>>&>(options).values;
}

}  // namespace

template <bool Decoupled>
AdamOf<Decoupled>::AdamOf(const std::vector<torch::optim::OptimizerParamGroup>& groups, Options options)
    : FusedOptimizer(groups, std::make_unique<Group<Options>>(options)) {}

template <bool Decoupled>
AdamOf<Decoupled>::AdamOf(std::vector<at::Tensor> parameters, Options options)
    : AdamOf({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

template <bool Decoupled>
std::unique_ptr<FusedOptimizer> AdamOf<Decoupled>::over(const std::vector<std::vector<at::Tensor>>& parameters) const {
  return std::make_unique<AdamOf>(groups_over(parameters),
                                  values_of<Decoupled>(static_cast<const GroupOptions&>(*defaults_)));
}

template <bool Decoupled>
std::span<const SlotSpec> AdamOf<Decoupled>::slots(const GroupOptions& options) const {
  return values_of<Decoupled>(options).amsgrad ? kAmsgradSlots : kSlots;
}

template <bool Decoupled>
void AdamOf<Decoupled>::prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const {
  if (!slots[kStep].defined()) {
    slots[kStep] = new_number();
    slots[kAverage] = at::zeros_like(parameter);
    slots[kAverageSquare] = at::zeros_like(parameter);
  }
  if (values_of<Decoupled>(options).amsgrad && !slots[kMaxAverageSquare].defined()) {
    slots[kMaxAverageSquare] = at::zeros_like(parameter);
  }
}

template <bool Decoupled>
void AdamOf<Decoupled>::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const Options& o = values_of<Decoupled>(options);
  const double count = count_step(slots[kStep]);
  const AdamRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                      .weight_decay = Decoupled ? 0 : o.weight_decay,
                      .shrink = Decoupled ? 1 - o.lr * o.weight_decay : 1,
                      .new_share = 1 - o.betas.first,
                      .beta2 = o.betas.second,
                      .step_size = o.lr / (1 - std::pow(o.betas.first, count)),
                      .root_correction = std::sqrt(1 - std::pow(o.betas.second, count)),
                      .eps = o.eps};
  const at::Tensor* largest = o.amsgrad ? &slots[kMaxAverageSquare] : nullptr;
  step_parameter(rule, step.operands({&slots[kAverage], &slots[kAverageSquare], largest}), step.extras);
}

template class AdamOf<false>;
template class AdamOf<true>;

}  // namespace lockstep::optim
