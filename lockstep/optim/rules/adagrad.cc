#include "lockstep/optim/rules/adagrad.h"

#include <ATen/ATen.h>

#include <utility>

#include "lockstep/optim/kernels/kernels.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kSum };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter}, {.name = "sum"}};

}  // namespace

Adagrad::Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& groups, AdagradOptions options)
    : OptimizerOf(groups, options) {
  prepare_all();
}

Adagrad::Adagrad(std::vector<at::Tensor> parameters, AdagradOptions options)
    : Adagrad({torch::optim::OptimizerParamGroup(std::move(parameters))}, options) {}

std::span<const SlotSpec> Adagrad::slots(const GroupOptions&) const { return kSlots; }

void Adagrad::prepare(const GroupOptions& options, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kSum].defined()) return;
  slots[kStep] = new_number();
  slots[kSum] = at::full_like(parameter, values_of(options).initial_accumulator_value);
}

void Adagrad::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const AdagradOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const AdagradRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                         .lr = o.lr / (1 + (count - 1) * o.lr_decay),
                         .weight_decay = o.weight_decay,
                         .eps = o.eps};
  step_parameter(rule, step.operands({&slots[kSum]}), step.extras);
}

}  // namespace lockstep::optim
