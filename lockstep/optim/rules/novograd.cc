#include "lockstep/optim/rules/novograd.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/optim/kernels/square_sums.h"
#include "lockstep/optim/kernels/step.h"
#include "lockstep/optim/option_checks.h"
#include "lockstep/optim/rules/sgd.h"

namespace lockstep::optim {
namespace {

enum Slot : size_t { kStep, kAverage, kNorm };
constexpr SlotSpec kSlots[] = {{.name = "step", .kind = SlotKind::kCounter},
                               {.name = "exp_avg"},
                               {.name = "exp_avg_norm", .kind = SlotKind::kNumber}};

// Of the multiplied, clipped gradient.
double norm_of(const NovoGradOptions& o, const at::Tensor& gradient, double multiplier, const Extras& extras) {
  if (o.norm_type == 2) return std::sqrt(gradient_square_sum(gradient, multiplier, extras));
  if (gradient.numel() == 0) return 0;
  const double largest = at::linalg_vector_norm(gradient, std::numeric_limits<double>::infinity()).item<double>();
  return std::min(largest * multiplier, extras.clip);
}

// Squares are averaged of the 2-norm, largest elements as they are.
double averaged(const NovoGradOptions& o, double average, double norm) {
  const double beta = o.betas.second;
  if (o.norm_type == 2) return std::sqrt(beta * average * average + (1 - beta) * norm * norm);
  return beta * average + (1 - beta) * norm;
}

// The step on other devices than the CPU (device_step.h). The states are the norms' averages and, with momentum,
// exp_avg. The norms stay on the device.
struct NovoGradStep {
  double multiplier;
  int64_t norm_type;
  double beta2;
  bool first;  // the averages are the norms
  double root_correction;
  double eps;
  bool inside;          // the gradients are divided, and decayed, before they are averaged
  double weight_decay;  // added to those gradients
  double momentum, undamped, shrink, lr;
  bool operator==(const NovoGradStep&) const = default;
};

at::Tensor averaged(const NovoGradStep& step, const at::Tensor& average, const at::Tensor& norm) {
  if (step.first) return norm;
  if (step.norm_type != 2) return average * step.beta2 + norm * (1 - step.beta2);
  return (average.square() * step.beta2 + norm.square() * (1 - step.beta2)).sqrt();
}

void step_tensors(const NovoGradStep& step, device::Tensors& p, const device::Tensors& gradients, device::States& s) {
  const double order = step.norm_type == 2 ? 2 : std::numeric_limits<double>::infinity();
  const at::Tensor average = averaged(step, at::stack(s[0]), device::norms(gradients, order)).to(at::kFloat);
  at::_foreach_copy_(s[0], average.unbind());
  const at::Tensor factor = (average.to(at::kDouble) / step.root_correction + step.eps).reciprocal();
  device::Tensors g = gradients;
  if (step.inside) g = device::decayed(p, device::scaled(g, factor), step.weight_decay);
  if (step.momentum != 0) {
    at::_foreach_mul_(s[1], step.momentum);
    at::_foreach_add_(s[1], g, step.undamped);
    g = s[1];
  }
  if (!step.inside) g = device::scaled(g, factor);
  if (step.shrink != 1) at::_foreach_mul_(p, step.shrink);
  at::_foreach_sub_(p, g, step.lr);
}

}  // namespace

void NovoGradOptions::check() const {
  check_moments(*this);
  if (norm_type != 2 && norm_type != 0) {
    throw ConfigError(kName, ": norm_type is ", norm_type, "; it is 2, or 0 for the largest element");
  }
}

std::span<const SlotSpec> NovoGrad::slots(const GroupOptions&) const { return kSlots; }

void NovoGrad::prepare(const GroupOptions&, const at::Tensor& parameter, Slots& slots) const {
  if (slots[kStep].defined()) return;
  slots[kStep] = new_number();
  slots[kAverage] = at::zeros_like(parameter);
  slots[kNorm] = new_number();
}

// Given the norm a step is SGD's with momentum, whose buffer is exp_avg. The average of the norms is on the parameter's
// device.
void NovoGrad::step_one(const GroupOptions& options, const Step& step, Slots& slots) const {
  const NovoGradOptions& o = values_of(options);
  const double count = count_step(slots[kStep]);
  const auto correction = [&](double beta) { return o.bias_correction ? 1 - std::pow(beta, count) : 1; };
  const bool first = count == 1 && !o.init_zero;
  slots[kNorm] = slots[kNorm].to(step.parameter.device());
  if (const Operands operands = step.operands({&slots[kNorm], o.betas.first != 0 ? &slots[kAverage] : nullptr});
      operands.queue != nullptr) {
    const NovoGradStep together{.multiplier = o.maximize ? -step.multiplier : step.multiplier,
                                .norm_type = o.norm_type,
                                .beta2 = o.betas.second,
                                .first = first,
                                .root_correction = std::sqrt(correction(o.betas.second)),
                                .eps = o.eps,
                                .inside = o.reg_inside_moment,
                                .weight_decay = o.weight_decay,
                                .momentum = o.betas.first,
                                .undamped = o.grad_averaging ? 1 - o.betas.first : 1,
                                .shrink = o.reg_inside_moment ? 1 : 1 - o.lr * o.weight_decay,
                                .lr = o.lr / correction(o.betas.first)};
    return operands.queue->add(together, operands, step.extras);
  }
  const double norm = norm_of(o, step.gradient, step.multiplier, step.extras);
  float& average = *slots[kNorm].mutable_data_ptr<float>();
  average = static_cast<float>(first ? norm : averaged(o, average, norm));
  const double divisor = average / std::sqrt(correction(o.betas.second)) + o.eps;
  const double inside = o.reg_inside_moment ? 1 / divisor : 1;
  const double lr = o.lr / correction(o.betas.first);
  const SgdRule rule{.multiplier = inside * (o.maximize ? -step.multiplier : step.multiplier),
                     .lr = o.reg_inside_moment ? lr : lr / divisor,
                     .weight_decay = o.reg_inside_moment ? o.weight_decay : 0,
                     .momentum = o.betas.first,
                     .undamped = o.grad_averaging ? 1 - o.betas.first : 1,
                     .nesterov = false,
                     .first = false,
                     .shrink = o.reg_inside_moment ? 1 : 1 - o.lr * o.weight_decay};
  const bool used = rule.momentum != 0;
  step_parameter(rule, step.operands({used ? &slots[kAverage] : nullptr}),
                 {.clip = inside * step.extras.clip, .average_share = step.extras.average_share});
}

template class OptimizerOf<NovoGrad, NovoGradOptions>;

}  // namespace lockstep::optim
