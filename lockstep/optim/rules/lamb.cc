#include "lockstep/optim/rules/lamb.h"

#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "lockstep/optim/kernels/layer_kernels.h"
#include "lockstep/optim/memory_order.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kAverageSquare };
constexpr SlotSpec kSlots[] = {
    {.name = "step", .kind = SlotKind::kCounter}, {.name = "exp_avg"}, {.name = "exp_avg_sq"}};

}  // namespace

std::span<const SlotSpec> Lamb::slots(const GroupOptions&) const { return kSlots; }

void Lamb::prepare(const GroupOptions&, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kStep].defined()) return;
  slots[kStep] = new_number();
  slots[kAverage] = at::zeros_like(parameter);
  slots[kAverageSquare] = at::zeros_like(parameter);
}

double Lamb::gradient_factor(const Update& update) const {
  const double most = values_of(param_groups_.front().options()).max_grad_norm;
  if (most == 0) return 1;
  double norm = update.grad_norm;
  if (std::isnan(norm) || std::isfinite(update.clip_value)) {
    double square_sum = 0;
    for (const auto& group : param_groups_) {
      for (const at::Tensor& parameter : group.params()) {
        if (!parameter.grad().defined()) continue;
        square_sum +=
            gradient_square_sum(gradient_for(name(), parameter), update.grad_multiplier, {.clip = update.clip_value});
      }
    }
    norm = std::sqrt(square_sum);
  }
  return norm > most ? most / norm : 1;
}

void Lamb::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const LambOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const auto correction = [&](double beta) { return o.bias_correction ? 1 - std::pow(beta, count) : 1; };
  const LambRule rule{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                      .weight_decay = o.adam_w_mode ? 0 : o.weight_decay,
                      .decoupled_decay = o.adam_w_mode ? o.weight_decay : 0,
                      .beta1 = o.betas.first,
                      .new_share = o.grad_averaging ? 1 - o.betas.first : 1,
                      .beta2 = o.betas.second,
                      .correction = correction(o.betas.first),
                      .root_correction = std::sqrt(correction(o.betas.second)),
                      .eps = o.eps};
  const Operands operands = step.operands({&slots[kAverage], &slots[kAverageSquare]});
  const SquareSums sums = step_lamb_moments(rule, operands, step.extras);
  const bool scaled = (o.weight_decay != 0 || o.use_nvlamb) && sums.weight != 0 && sums.other != 0;
  step_lamb(rule, scaled ? o.lr * std::sqrt(sums.weight / sums.other) : o.lr, operands, step.extras);
}

}  // namespace lockstep::optim
