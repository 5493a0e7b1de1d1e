#include "lockstep/train/plan.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/schedule/lr_scale.h"
#include "lockstep/train/schedule_plan.h"

namespace lockstep::train {
namespace {

using config::OptimizerKind;
using config::TrainOptions;

int batch_size_of(const TrainOptions& options, const Defaults& defaults, int lanes) {
  if (!options.global_batch_size) return options.batch_size.value_or(defaults.batch_size);
  if (*options.global_batch_size % lanes != 0) {
    throw ConfigError("--global-batch-size ", *options.global_batch_size, ": ", lanes,
                      " lanes can't share it evenly; use a multiple of ", lanes);
  }
  return *options.global_batch_size / lanes;
}

std::optional<LrScaling> lr_scaling(const TrainOptions& options, const Defaults& defaults, int64_t global_batch) {
  if (!options.scale_lr) return std::nullopt;
  const int64_t base = options.scale_lr->base.value_or(defaults.batch_size);
  const bool linear = options.scale_lr->rule == config::LrRule::kLinear;
  return LrScaling{
      .rule = std::string(to_string(options.scale_lr->rule)),
      .unscaled_lr = options.lr.value_or(defaults.lr),
      .factor = linear ? schedule::linear_lr_factor(global_batch, base) : schedule::sqrt_lr_factor(global_batch, base),
      .base_batch = base};
}

double lr_of(const TrainOptions& options, const Defaults& defaults, const Plan& plan) {
  if (!plan.lr_scaling) return options.lr.value_or(defaults.lr);
  return plan.lr_scaling->unscaled_lr * plan.lr_scaling->factor;
}

optim::NamedOptions optimizer_options(const TrainOptions& options, const Defaults& defaults, OptimizerKind kind,
                                      double lr) {
  optim::NamedOptions named = {{"lr", lr}};
  // The recipe's momentum and weight decay go with the recipe's optimizer.
  const bool own = kind == defaults.optimizer;
  if ((options.momentum && !has_momentum(kind)) || (options.nesterov && !has_nesterov(kind))) {
    throw ConfigError("--momentum belongs to --optimizer sgd, lars and rmsprop, --nesterov to sgd and lars");
  }
  if (options.momentum) {
    named.push_back({"momentum", *options.momentum});
  } else if (own && defaults.momentum > 0) {
    named.push_back({"momentum", defaults.momentum});
  }
  if (options.nesterov) named.push_back({"nesterov", true});
  if (options.weight_decay || own)
    named.push_back({"weight_decay", options.weight_decay.value_or(defaults.weight_decay)});
  return named;
}

int64_t steps_of(const std::optional<config::Interval>& interval, int64_t steps_per_epoch) {
  if (!interval) return steps_per_epoch;
  return interval->unit == config::Interval::Unit::kSteps ? interval->count : interval->count * steps_per_epoch;
}

}  // namespace

Plan make_plan(const TrainOptions& options, const Defaults& defaults, int lanes, int64_t train_samples) {
  Plan plan;
  plan.lanes = lanes;
  plan.batch_size = batch_size_of(options, defaults, lanes);
  plan.steps_per_epoch = (train_samples + plan.global_batch() - 1) / plan.global_batch();
  plan.epochs = options.epochs.value_or(defaults.epochs);
  plan.total_steps = plan.epochs * plan.steps_per_epoch;
  if (options.steps) {
    // Without --epochs, --steps may ask for more than the recipe's epochs.
    if (!options.epochs) plan.epochs = std::max(plan.epochs, (*options.steps - 1) / plan.steps_per_epoch + 1);
    plan.total_steps = std::min(*options.steps, plan.epochs * plan.steps_per_epoch);
  }
  const OptimizerKind kind = options.optimizer.value_or(defaults.optimizer);
  plan.optimizer = words(kind)[static_cast<size_t>(kind)];
  plan.lr_scaling = lr_scaling(options, defaults, plan.global_batch());
  plan.optimizer_options = optimizer_options(options, defaults, kind, lr_of(options, defaults, plan));
  plan.schedule = schedule_of(options, defaults,
                              {.lr = lr_of(options, defaults, plan),
                               .lr_factor = plan.lr_scaling ? plan.lr_scaling->factor : 1,
                               .epochs = plan.epochs,
                               .steps_per_epoch = plan.steps_per_epoch});
  plan.steps_per_unit = steps_per_unit(options, plan.steps_per_epoch);
  if (!options.plateau_metric.empty()) plan.plateau_metric = options.plateau_metric;
  plan.channels_last = options.channels_last == config::ChannelsLast::kAuto
                           ? defaults.channels_last
                           : options.channels_last == config::ChannelsLast::kOn;
  plan.eval_batch = defaults.eval_batch;
  plan.eval_every = steps_of(options.eval_every, plan.steps_per_epoch);
  plan.save_every = steps_of(options.save_every, plan.steps_per_epoch);
  return plan;
}

}  // namespace lockstep::train
