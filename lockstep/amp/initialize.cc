#include "lockstep/amp/initialize.h"

#include <ATen/ops/clamp.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/amp/cast_model.h"
#include "lockstep/amp/multi_tensor.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/clip.h"
#include "lockstep/optim/fused_optimizer.h"

namespace lockstep::amp {
namespace {

bool scale_in_place(const std::vector<at::Tensor>& gradients, double factor) {
  return multi_tensor_scale(gradients, gradients, factor);
}

const Options& checked(const Options& options) {
  if (options.num_losses < 1) throw ConfigError("amp: num_losses ", options.num_losses, ": expected 1 or more");
  return options;
}

}  // namespace

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
         const Options& options)
    : options_(checked(options)),
      policy_(make_policy(options)),
      device_(check_models(models)),
      initialized_(models),
      scalers_(static_cast<size_t>(options.num_losses), LossScaler(scaler_options(options))) {
  check_device(device_, policy_);
  check_optimizers(optimizers, models, policy_);
  if (policy_.cast_model) {
    for (auto* model : models) cast_model(*model, policy_.dtype, policy_.keep_batchnorm_fp32);
  }
  for (auto* optimizer : optimizers) {
    OfOptimizer& of = optimizers_.emplace_back();
    of.optimizer = optimizer;
    of.fused = dynamic_cast<optim::FusedOptimizer*>(optimizer);
    if (!policy_.master_weights) continue;
    if (of.fused != nullptr) {
      of.fused->keep_masters();
    } else {
      of.masters.emplace(*optimizer);
    }
  }
}

at::Tensor Amp::cast_outputs(const at::Tensor& output) const {
  if (!output.is_floating_point()) return output;
  if (options_.cast_model_outputs) return output.to(*options_.cast_model_outputs);
  return policy_.casts() ? output.to(at::kFloat) : output;
}

at::Tensor Amp::cast_inputs(const at::Tensor& input) const {
  return policy_.cast_model && input.is_floating_point() ? input.to(policy_.dtype) : input;
}

const Amp::OfOptimizer& Amp::find(const torch::optim::Optimizer& optimizer) const {
  const auto found = std::find_if(optimizers_.begin(), optimizers_.end(),
                                  [&](const OfOptimizer& of) { return of.optimizer == &optimizer; });
  if (found == optimizers_.end()) throw ConfigError("amp: an optimizer that was not given to initialize");
  return *found;
}

Amp::OfOptimizer& Amp::find(const torch::optim::Optimizer& optimizer) {
  return const_cast<OfOptimizer&>(std::as_const(*this).find(optimizer));
}

size_t Amp::index_of(int loss_id) const {
  if (loss_id < 0 || loss_id >= options_.num_losses) {
    throw ConfigError("amp: loss_id ", loss_id, ": initialize was told num_losses ", options_.num_losses);
  }
  return static_cast<size_t>(loss_id);
}

// 16-bit gradients are divided by the scale within the optimizer's pass, in fp32: small ones would be lost before.
bool Amp::keeps_scaled(const OfOptimizer& of) const { return of.fused != nullptr && policy_.cast_model; }

// What backward is about to add to is of the same scale, or put aside.
void Amp::enter(const std::vector<torch::optim::Optimizer*>& optimizers, const ScaleLossOptions& options) {
  const double scale = loss_scale(options.loss_id);
  for (auto* optimizer : optimizers) {
    OfOptimizer& of = find(*optimizer);
    if (of.delayed && policy_.cast_model && of.scaled_by != scale) {
      throw ConfigError(
          "amp: scale_loss after one with delay_unscale of another loss scale; accumulate one loss_id at a "
          "time");
    }
    if (of.delayed) {
      if (of.scaled_by != scale) scale_in_place(gradients_of(*optimizer), scale / of.scaled_by);
    } else if (!keeps_scaled(of) || of.scaled_by != scale) {
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
    OfOptimizer& of = find(*optimizer);
    of.delayed = options.delay_unscale;
    if (!of.delayed) finite = unscale(of) && finite;
  }
  if (options.delay_unscale) return;
  if (!scalers_[index_of(options.loss_id)].update(!finite)) return;
  for (auto* optimizer : optimizers) {
    OfOptimizer& of = find(*optimizer);
    of.skip = true;
    if (!keeps_scaled(of)) continue;
    // They are of no use any more, and the scaler of another loss would meet them again.
    const c10::AutoGradMode no_grad(false);
    for (const auto& gradient : gradients_of(*optimizer)) gradient.zero_();
  }
}

// Whether the gradients were finite.
bool Amp::unscale(OfOptimizer& of) const {
  bool finite = true;
  if (keeps_scaled(of)) {
    if (scalers_[0].enabled()) finite = std::isfinite(multi_tensor_l2norm(gradients_of(*of.optimizer)).total);
  } else {
    const double factor = 1 / std::exchange(of.scaled_by, 1);
    if (of.masters) {
      finite = of.masters->take_gradients(factor);
      of.masters->drop_model_gradients();
    } else if (scalers_[0].enabled()) {
      finite = scale_in_place(gradients_of(*of.optimizer), factor);
    }
  }
  add_stashed(of);
  return finite;
}

// In the smaller of the two scales, in which neither overflows.
void Amp::add_stashed(OfOptimizer& of) const {
  if (of.stashed.empty()) return;
  const double scale = std::min(of.scaled_by, of.stashed_by), factor = scale / of.scaled_by;
  const c10::AutoGradMode no_grad(false);
  auto parameters = parameters_of(*of.optimizer);
  for (size_t i = 0; i < of.stashed.size(); ++i) {
    at::Tensor& gradient = parameters[i].mutable_grad();
    if (gradient.defined() && factor != 1) gradient.mul_(factor);
    at::Tensor& stashed = of.stashed[i];
    if (!stashed.defined()) continue;
    if (scale != of.stashed_by) stashed.mul_(scale / of.stashed_by);
    gradient = gradient.defined() ? gradient.add_(stashed) : stashed;
  }
  of.stashed.clear();
  of.scaled_by = scale;
}

// DistributedDataParallel broadcasts rank 0's weights, and a loop may load others, after initialize. A master that a
// weight is the rounded copy of stays: it may have been loaded as well.
void Amp::settle_masters(OfOptimizer& of) const {
  if (std::exchange(of.settled, true) || !policy_.master_weights) return;
  if (of.masters) return of.masters->read_weights();
  auto masters = of.fused->masters();
  const auto weights = parameters_of(*of.optimizer);
  for (size_t i = 0; i < masters.size(); ++i) {
    if (!masters[i].defined()) continue;
    const at::Tensor weight = weights[i].detach();
    masters[i] = at::where(masters[i].to(weight.scalar_type()) == weight, masters[i], weight.to(at::kFloat));
  }
  of.fused->load_masters(masters);
}

// Steps by gradients that are to be multiplied and clipped; libtorch's optimizers get them so.
void Amp::apply(OfOptimizer& of, const optim::Update& update) const {
  if (of.fused != nullptr) return of.fused->update(update);
  const auto gradients = gradients_of(*of.optimizer);
  if (update.grad_multiplier != 1) scale_in_place(gradients, update.grad_multiplier);
  if (std::isfinite(update.clip_value)) {
    const c10::AutoGradMode no_grad(false);
    for (const auto& gradient : gradients) {
      at::clamp_(const_cast<at::Tensor&>(gradient), -update.clip_value, update.clip_value);
    }
  }
  of.optimizer->step();
  if (of.masters) of.masters->write_weights();
}

StepReport Amp::step(torch::optim::Optimizer& optimizer, const StepOptions& options) {
  OfOptimizer& of = find(optimizer);
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
  settle_masters(of);
  apply(of, {.grad_multiplier = factor / scale, .clip_value = options.max_value});
  return report;
}

StepReport Amp::step(const std::vector<torch::optim::Optimizer*>& optimizers, double square_sum,
                     const StepOptions& options, int loss_id) {
  const Verdict verdict = judge(scalers_[index_of(loss_id)], square_sum, options);
  if (verdict.report.skipped) return verdict.report;
  for (auto* optimizer : optimizers) {
    OfOptimizer& of = find(*optimizer);
    settle_masters(of);
    optim::Update update = verdict.update;
    // Of several optimizers' gradients together.
    if (optimizers.size() > 1) update.grad_norm = std::numeric_limits<double>::quiet_NaN();
    if (of.masters) of.masters->take_gradients(std::exchange(update.grad_multiplier, 1));
    apply(of, update);
  }
  return verdict.report;
}

void Amp::zero_grad(torch::optim::Optimizer& optimizer) {
  OfOptimizer& of = find(optimizer);
  optimizer.zero_grad();
  if (of.masters) of.masters->drop_model_gradients();
  of.stashed.clear();
  of.delayed = of.skip = false;
  of.scaled_by = 1;
}

std::vector<at::Tensor> Amp::master_params(const torch::optim::Optimizer& optimizer) const {
  const OfOptimizer& of = find(optimizer);
  auto parameters = parameters_of(optimizer);
  if (of.fused == nullptr) return parameters;
  const auto masters = of.fused->masters();
  for (size_t i = 0; i < masters.size(); ++i) {
    if (masters[i].defined()) parameters[i] = masters[i];
  }
  return parameters;
}

void Amp::load_masters(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& masters) {
  OfOptimizer& of = find(optimizer);
  const auto steps = master_params(optimizer);
  if (masters.size() != steps.size()) {
    throw ConfigError("amp: ", masters.size(), " masters given, the optimizer steps ", steps.size(), " tensors");
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (masters[i].sizes() == steps[i].sizes()) continue;
    throw ConfigError("amp: master ", i, " is ", masters[i].sizes(), ", and was to be ", steps[i].sizes());
  }
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].copy_(masters[i]);
  if (of.masters) of.masters->write_weights();
  if (of.fused != nullptr && policy_.master_weights) of.fused->load_masters(of.fused->masters());
  of.settled = true;
}

std::map<std::string, ScalerDict> Amp::state_dict() const {
  std::map<std::string, ScalerDict> state;
  for (size_t i = 0; i < scalers_.size(); ++i) {
    state[cat("loss_scaler", i)] = full_state(scalers_[i]);
  }
  state["loss_scaler0"]["opt_level"] = static_cast<double>(policy_.level);
  state["loss_scaler0"]["half"] = policy_.dtype == at::kHalf ? 1 : 0;
  return state;
}

void Amp::load_state_dict(const std::map<std::string, ScalerDict>& state) {
  const auto first = state.find("loss_scaler0");
  const auto saved = [&](const char* key, double usual) {
    return first != state.end() && first->second.contains(key) ? first->second.at(key) : usual;
  };
  const double level = saved("opt_level", static_cast<double>(policy_.level));
  if (level != static_cast<double>(policy_.level)) {
    throw ConfigError("amp: a state of level O", level, ", this is ", name_of(policy_.level),
                      "; initialize at that level, or load the model's state alone");
  }
  const bool half = policy_.dtype == at::kHalf, saved_half = saved("half", half) != 0;
  if (policy_.casts() && saved_half != half) {
    throw ConfigError("amp: a state of ", saved_half ? "fp16" : "bf16",
                      ", this is the other; initialize with that dtype, or load the model's state alone");
  }
  const auto scalers = std::count_if(state.begin(), state.end(),
                                     [](const auto& entry) { return entry.first.starts_with("loss_scaler"); });
  if (scalers != options_.num_losses) {
    throw ConfigError("amp: a state of ", scalers, " losses, this has num_losses ", options_.num_losses);
  }
  auto loaded = scalers_;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const auto found = state.find(cat("loss_scaler", i));
    if (found == state.end()) throw ConfigError("amp: a state without loss_scaler", i);
    load_state(loaded[i], found->second);
  }
  scalers_ = std::move(loaded);
}

}  // namespace lockstep::amp
