#include "lockstep/optim/sgd.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels.h"

namespace lockstep::optim {
namespace {

constexpr SlotSpec kSlots[] = {{.name = "momentum_buffer"}};

}  // namespace

SGD::SGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, SgdOptions options)
    : FusedOptimizer(groups, std::make_unique<Group<SgdOptions>>(options)) {}

SGD::SGD(std::vector<at::Tensor> parameters, SgdOptions options)
    : SGD({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

std::unique_ptr<FusedOptimizer> SGD::over(const std::vector<std::vector<at::Tensor>>& parameters) const {
  return std::make_unique<SGD>(groups_over(parameters), static_cast<const Group<SgdOptions>&>(*defaults_).values);
}

std::span<const SlotSpec> SGD::slots(const GroupOptions&) const { return kSlots; }

void SGD::prepare(const GroupOptions&, const at::Tensor&, Slots&) const {}

void SGD::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const SgdOptions& o = static_cast<const Group<SgdOptions>&>(options).values;
  at::Tensor& buffer = slots[0];
  const bool first = !buffer.defined();
  const bool used = o.momentum != 0;
  if (used && first) buffer = at::empty_like(step.parameter);
  const SgdRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                     .lr = o.lr,
                     .weight_decay = o.weight_decay,
                     .momentum = o.momentum,
                     .undamped = 1 - o.dampening,
                     .nesterov = o.nesterov,
                     .first = first};
  step_parameter(rule, step.operands({used ? &buffer : nullptr}), step.extras);
}

}  // namespace lockstep::optim
