#include "lockstep/compat/apex/amp.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/parallel/wrapped_networks.h"

namespace lockstep::apex::amp {

using lockstep::amp::MixedOptimizer;
using lockstep::amp::multi_tensor_l2norm;
using lockstep::amp::multi_tensor_scale;
using optim::gradients_of;
using optim::parameters_of;

ScaledLoss::ScaledLoss(Amp& amp, at::Tensor loss, std::vector<OptimizerRef> optimizers, ScaleLossOptions options)
    : amp_(amp), loss_(std::move(loss)), optimizers_(std::move(optimizers)), options_(options) {
  amp_.enter(optimizers_, options_);
  const double scale = amp_.loss_scale(options_.loss_id);
  if (scale != 1) loss_ = loss_.to(at::kFloat) * scale;
}

ScaledLoss::~ScaledLoss() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) amp_.leave(optimizers_, options_);
}

Amp::Amp(const std::vector<torch::nn::Module*>& models, const std::vector<OptimizerRef>& optimizers,
         const InitializeOptions& options)
    : MixedPrecision(models, optimizers, resolve(options)), accumulations_(optimizers.size()) {
  if (policy().cast_ops) lockstep::amp::use_apex_lists();
}

namespace {

constexpr const char* kNotFinite = "is not finite; amp's step(), in place of the optimizer's own, skips this step";

// The mark of an optimizer without gradients for its masters is none.
at::Tensor take_gradient(const at::Tensor& parameter) {
  at::Tensor gradient = std::exchange(parameter.mutable_grad(), at::Tensor());
  if (!gradient.defined()) return gradient;
  const auto* held = optim::hold_of(gradient);
  if (held != nullptr && !held->readable && held->loss_scale == 1) return {};
  optim::release(gradient);
  return gradient;
}

// The scale in gradients that are left, whoever has left them.
double scale_in(const OptimizerRef& optimizer) {
  for (const auto& parameter : parameters_of(optimizer)) {
    if (parameter.grad().defined()) return optim::loss_scale_of(parameter.grad());
  }
  return 1;
}

template <typename Visit>
void for_each_gradient(const OptimizerRef& optimizer, const Visit& visit) {
  for (const auto& parameter : parameters_of(optimizer)) {
    if (parameter.grad().defined()) visit(parameter.grad());
  }
}

}  // namespace

// 16-bit gradients are divided by the scale within the optimizer's pass, in fp32: small ones would be lost before.
bool Amp::keeps_scaled(const MixedOptimizer& optimizer) const { return optimizer.is_fused() && policy().cast_model; }

// Before backward adds to gradients, rescales them to the new loss's scale or puts them aside. Gradients that are not
// folded yet stay: the pass folds them with its own.
void Amp::enter(const std::vector<OptimizerRef>& optimizers, const ScaleLossOptions& options) {
  const double scale = loss_scale(options.loss_id);
  const optim::UseHeldGradients use;
  for (const auto& optimizer : optimizers) {
    Accumulation& of = accumulation(optimizer);
    if (!find(optimizer).copies_gradients()) of.scaled_by = scale_in(optimizer);
    if (of.delayed && policy().cast_model && of.scaled_by != scale) {
      throw ConfigError(
          "amp: scale_loss after one with delay_unscale of another loss scale; accumulate one loss_id at a "
          "time");
    }
    if (of.delayed || parallel::are_unfolded(find(optimizer).weights())) {
      for_each_gradient(optimizer, optim::release);
      const auto gradients = gradients_of(optimizer);
      if (of.scaled_by != scale) multi_tensor_scale(gradients, gradients, scale / of.scaled_by);
    } else if (!keeps_scaled(find(optimizer)) || of.scaled_by != scale) {
      of.stashed.clear();
      of.stashed_by = of.scaled_by;
      for (const auto& parameter : parameters_of(optimizer)) of.stashed.push_back(take_gradient(parameter));
    } else {
      for_each_gradient(optimizer, optim::release);
    }
    of.scaled_by = scale;
  }
}

void Amp::leave(const std::vector<OptimizerRef>& optimizers, const ScaleLossOptions& options) {
  const optim::UseHeldGradients use;
  bool finite = true;
  for (const auto& optimizer : optimizers) {
    Accumulation& of = accumulation(optimizer);
    of.delayed = options.delay_unscale;
    if (!of.delayed && parallel::are_unfolded(find(optimizer).weights())) {
      throw ConfigError(
          "amp: scale_loss under no_sync() would unscale gradients that are not folded yet; set delay_unscale for all "
          "backward passes of an accumulation but the last");
    }
    if (!of.delayed) finite = unscale(find(optimizer), of) && finite;
  }
  const bool skips = !options.delay_unscale && scaler(options.loss_id).update(!finite);
  for (const auto& optimizer : optimizers) {
    accumulation(optimizer).skip |= skips;
    hold_back(find(optimizer), accumulation(optimizer));
  }
}

// Until step(), or the next loss.
void Amp::hold_back(const MixedOptimizer& optimizer, const Accumulation& of) const {
  if (of.skip) {
    // 16-bit gradients are of no use any more, and the scaler of another loss would meet them again.
    const c10::AutoGradMode no_grad(false);
    if (keeps_scaled(optimizer)) {
      for (const auto& gradient : gradients_of(optimizer.optimizer())) gradient.zero_();
    }
    for_each_gradient(optimizer.optimizer(),
                      [](const at::Tensor& gradient) { optim::hold(gradient, {.why = kNotFinite, .readable = true}); });
  } else if (of.scaled_by != 1 && !optimizer.copies_gradients()) {
    for_each_gradient(optimizer.optimizer(),
                      [&](const at::Tensor& gradient) { optim::hold_scaled(gradient, of.scaled_by); });
  }
}

// Returns whether the gradients were finite.
bool Amp::unscale(MixedOptimizer& optimizer, Accumulation& of) const {
  bool finite = true;
  const bool looks = scaler().enabled();
  if (keeps_scaled(optimizer)) {
    if (looks) finite = std::isfinite(multi_tensor_l2norm(gradients_of(optimizer.optimizer())).total);
  } else {
    const double factor = 1 / std::exchange(of.scaled_by, 1);
    if (looks || optimizer.copies_gradients()) finite = optimizer.take_gradients(factor);
    optimizer.drop_copied_gradients();
  }
  of.add_stashed(optimizer.optimizer());
  return finite;
}

// In the smaller of the two scales, in which neither overflows.
void Amp::Accumulation::add_stashed(const OptimizerRef& optimizer) {
  if (stashed.empty()) return;
  const double scale = std::min(scaled_by, stashed_by), factor = scale / scaled_by;
  const c10::AutoGradMode no_grad(false);
  auto parameters = parameters_of(optimizer);
  for (size_t i = 0; i < stashed.size(); ++i) {
    at::Tensor& gradient = parameters[i].mutable_grad();
    if (gradient.defined() && factor != 1) gradient.mul_(factor);
    at::Tensor& earlier = stashed[i];
    if (!earlier.defined()) continue;
    if (scale != stashed_by) earlier.mul_(scale / stashed_by);
    gradient = gradient.defined() ? gradient.add_(earlier) : earlier;
  }
  stashed.clear();
  scaled_by = scale;
}

StepReport Amp::step(const OptimizerRef& optimizer, const StepOptions& options) {
  Accumulation& of = accumulation(optimizer);
  if (of.delayed) {
    throw ConfigError("amp: step after a scale_loss with delay_unscale; leave it out in the last one before a step");
  }
  const optim::UseHeldGradients use;
  const double scale = of.scaled_by;
  StepReport report;
  report.skipped = std::exchange(of.skip, false);
  report.finite = !report.skipped;
  if (report.skipped) return report;
  double factor = 1;
  if (options.max_norm > 0) {
    report.gradient_norm = multi_tensor_l2norm(gradients_of(optimizer)).total / scale;
    report.finite = std::isfinite(report.gradient_norm);
    factor = optim::clip_factor(report.gradient_norm, options.max_norm);
  }
  find(optimizer).update({.grad_multiplier = factor / scale, .clip_value = options.max_value, .loss_scale = scale});
  return report;
}

void Amp::zero_grad(const OptimizerRef& optimizer) {
  MixedPrecision::zero_grad(optimizer);
  accumulation(optimizer) = {};
}

}  // namespace lockstep::apex::amp
