#include "lockstep/optim/lars.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "lockstep/optim/layer_kernels.h"

namespace lockstep::optim {
namespace {

constexpr SlotSpec kSlots[] = {{.name = "momentum_buffer"}};

const LarsOptions& values_of(const torch::optim::OptimizerOptions& options) {
  return static_cast<const Group<LarsOptions>&>(options).values;
}

}  // namespace

Lars::Lars(const std::vector<torch::optim::OptimizerParamGroup>& groups, LarsOptions options)
    : FusedOptimizer(groups, std::make_unique<Group<LarsOptions>>(options)) {}

Lars::Lars(std::vector<at::Tensor> parameters, LarsOptions options)
    : Lars({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

std::unique_ptr<FusedOptimizer> Lars::over(const std::vector<std::vector<at::Tensor>>& parameters) const {
  return std::make_unique<Lars>(groups_over(parameters), values_of(*defaults_));
}

std::span<const SlotSpec> Lars::slots(const GroupOptions&) const { return kSlots; }

void Lars::prepare(const GroupOptions&, const at::Tensor&, Slots&) const {}

void Lars::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const LarsOptions& o = values_of(options);
  at::Tensor& buffer = slots[0];
  const bool first = !buffer.defined();
  const bool used = o.momentum != 0;
  if (used && first) buffer = at::empty_like(step.parameter);
  const Operands operands = step.operands({used ? &buffer : nullptr});
  double trust = 1, weight_decay = o.weight_decay;
  if (o.adapt) {
    const SquareSums sums = square_sums(operands, step.multiplier, step.extras);
    const double weight = std::sqrt(sums.weight), gradient = std::sqrt(sums.other);
    const bool scaled = weight != 0 && gradient != 0;
    trust = scaled ? o.trust_coefficient * weight / (gradient + o.weight_decay * weight + o.eps) : 1;
    weight_decay = scaled ? o.weight_decay : 0;
  }
  // With the ratio in the gradient's factors a step is SGD's.
  const SgdRule rule{.multiplier = trust * (o.maximize ? -step.multiplier : step.multiplier),
                     .lr = o.lr,
                     .weight_decay = trust * weight_decay,
                     .momentum = o.momentum,
                     .undamped = 1,
                     .nesterov = o.nesterov,
                     .first = first};
  step_parameter(rule, operands, {.clip = trust * step.extras.clip, .average_share = step.extras.average_share});
}

}  // namespace lockstep::optim
