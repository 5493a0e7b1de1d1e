#include "lockstep/compat/apex/amp.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"
#include "lockstep/parallel/wrapped_networks.h"

namespace lockstep::apex::amp {

using lockstep::amp::gradients_of;
using lockstep::amp::MixedOptimizer;
using lockstep::amp::multi_tensor_l2norm;
using lockstep::amp::multi_tensor_scale;
using lockstep::amp::parameters_of;

ScaledLoss::ScaledLoss(Amp& amp, at::Tensor loss, std::vector<torch::optim::Optimizer*> optimizers,
                       ScaleLossOptions options)
    : amp_(amp), loss_(std::move(loss)), optimizers_(std::move(optimizers)), options_(options) {
  amp_.enter(optimizers_, options_);
  const double scale = amp_.loss_scale(options_.loss_id);
  if (scale != 1) loss_ = loss_.to(at::kFloat) * scale;
}

ScaledLoss::~ScaledLoss() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_) amp_.leave(optimizers_, options_);
}

Amp::Amp(const std::vector<torch::nn::Module*>& models, const std::vector<torch::optim::Optimizer*>& optimizers,
         const InitializeOptions& options)
    : MixedPrecision(models, optimizers, resolve(options)), accumulations_(optimizers.size()) {}

// 16-bit gradients are divided by the scale within the optimizer's pass, in fp32: small ones would be lost before.
bool Amp::keeps_scaled(const MixedOptimizer& optimizer) const { return optimizer.is_fused() && policy().cast_model; }

// Before backward adds to gradients, rescales them to the new loss's scale or puts them aside. Gradients that are not
// folded yet stay: the pass folds them with its own.
void Amp::enter(const std::vector<torch::optim::Optimizer*>& optimizers, const ScaleLossOptions& options) {
  const double scale = loss_scale(options.loss_id);
  for (auto* optimizer : optimizers) {
    Accumulation& of = accumulation(*optimizer);
    if (of.delayed && policy().cast_model && of.scaled_by != scale) {
      throw ConfigError(
          "amp: scale_loss after one with delay_unscale of another loss scale; accumulate one loss_id at a "
          "time");
    }
    if (of.delayed || parallel::are_unfolded(parameters_of(*optimizer))) {
      const auto gradients = gradients_of(*optimizer);
      if (of.scaled_by != scale) multi_tensor_scale(gradients, gradients, scale / of.scaled_by);
    } else if (!keeps_scaled(find(*optimizer)) || of.scaled_by != scale) {
      of.stashed.clear();
      of.stashed_by = of.scaled_by;
      for (auto& parameter : parameters_of(*optimizer)) {
        of.stashed.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
      }
    }
    of.scaled_by = scale;
  }
}

void Amp::leave(const std::vector<torch::optim::Optimizer*>& optimizers, const ScaleLossOptions& options) {
  bool finite = true;
  for (auto* optimizer : optimizers) {
    Accumulation& of = accumulation(*optimizer);
    of.delayed = options.delay_unscale;
    if (!of.delayed && parallel::are_unfolded(parameters_of(*optimizer))) {
      throw ConfigError(
          "amp: scale_loss under no_sync() would unscale gradients that are not folded yet; set delay_unscale for all "
          "backward passes of an accumulation but the last");
    }
    if (!of.delayed) finite = unscale(find(*optimizer), of) && finite;
  }
  if (options.delay_unscale) return;
  if (!MixedPrecision::scaler(options.loss_id).update(!finite)) return;
  for (auto* optimizer : optimizers) {
    accumulation(*optimizer).skip = true;
    if (!keeps_scaled(find(*optimizer))) continue;
    // They are of no use any more, and the scaler of another loss would meet them again.
    const c10::AutoGradMode no_grad(false);
    for (const auto& gradient : gradients_of(*optimizer)) gradient.zero_();
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
void Amp::Accumulation::add_stashed(const torch::optim::Optimizer& optimizer) {
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

StepReport Amp::step(torch::optim::Optimizer& optimizer, const StepOptions& options) {
  Accumulation& of = accumulation(optimizer);
  if (of.delayed) {
    throw ConfigError("amp: step after a scale_loss with delay_unscale; leave it out in the last one before a step");
  }
  const double scale = std::exchange(of.scaled_by, 1);
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
  find(optimizer).update({.grad_multiplier = factor / scale, .clip_value = options.max_value});
  return report;
}

void Amp::zero_grad(torch::optim::Optimizer& optimizer) {
  MixedPrecision::zero_grad(optimizer);
  accumulation(optimizer) = {};
}

Amp::State Amp::state_dict() const {
  State state;
  for (int i = 0; i < num_losses(); ++i) state[cat("loss_scaler", i)] = lockstep::amp::full_state(scaler(i));
  state["loss_scaler0"]["opt_level"] = static_cast<double>(policy().level);
  state["loss_scaler0"]["half"] = policy().dtype == at::kHalf ? 1 : 0;
  return state;
}

void Amp::load_state_dict(const State& state) {
  const auto first = state.find("loss_scaler0");
  const auto saved = [&](const char* key, double usual) {
    return first != state.end() && first->second.contains(key) ? first->second.at(key) : usual;
  };
  const double level = saved("opt_level", static_cast<double>(policy().level));
  if (level != static_cast<double>(policy().level)) {
    throw ConfigError("amp: a state of level O", level, ", this is ", name_of(policy().level),
                      "; initialize at that level, or load the model's state alone");
  }
  const bool half = policy().dtype == at::kHalf, saved_half = saved("half", half) != 0;
  if (policy().casts() && saved_half != half) {
    throw ConfigError("amp: a state of ", saved_half ? "fp16" : "bf16",
                      ", this is the other; initialize with that dtype, or load the model's state alone");
  }
  const auto scalers = std::count_if(state.begin(), state.end(),
                                     [](const auto& entry) { return entry.first.starts_with("loss_scaler"); });
  if (scalers != num_losses()) {
    throw ConfigError("amp: a state of ", scalers, " losses, this has num_losses ", num_losses());
  }
  std::vector<lockstep::amp::LossScaler> loaded;
  for (int i = 0; i < num_losses(); ++i) {
    const auto found = state.find(cat("loss_scaler", i));
    if (found == state.end()) throw ConfigError("amp: a state without loss_scaler", i);
    load_state(loaded.emplace_back(scaler(i)), found->second);
  }
  for (int i = 0; i < num_losses(); ++i) MixedPrecision::scaler(i) = loaded[static_cast<size_t>(i)];
}

}  // namespace lockstep::apex::amp
