#include "lockstep/optim/rules/nadam.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "lockstep/optim/kernels/kernels.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kProduct, kAverage, kAverageSquare };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "mu_product", .kind = SlotKind::kNumber},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_sq"}};

// The momentum of step number `step`.
double momentum(const NAdamOptions& o, double step) {
  return o.betas.first * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay));
}

}  // namespace

std::span<const SlotSpec> NAdam::slots(const GroupOptions&) const { return kSlots; }

void NAdam::prepare(const GroupOptions&, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kStep].defined()) return;
  slots[kStep] = new_number();
  slots[kProduct] = new_number(1);
  slots[kAverage] = at::zeros_like(parameter);
  slots[kAverageSquare] = at::zeros_like(parameter);
}

void NAdam::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const NAdamOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const double mu = momentum(o, count), next = momentum(o, count + 1);
  const double product = *slots[kProduct].mutable_data_ptr<float>() *= static_cast<float>(mu);
  const bool decoupled = o.decoupled_weight_decay;
  const NadamRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                       .weight_decay = decoupled ? 0 : o.weight_decay,
                       .shrink = decoupled ? 1 - o.lr * o.weight_decay : 1,
                       .new_share = 1 - o.betas.first,
                       .beta2 = o.betas.second,
                       .square_correction = 1 - std::pow(o.betas.second, count),
                       .gradient_step = o.lr * (1 - mu) / (1 - product),
                       .average_step = o.lr * next / (1 - product * next),
                       .eps = o.eps};
  step_parameter(rule, step.operands({&slots[kAverage], &slots[kAverageSquare]}), step.extras);
}

}  // namespace lockstep::optim
