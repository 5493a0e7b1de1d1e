#include "lockstep/train/plan.h"

#include <algorithm>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/data/sampler.h"
#include "lockstep/schedule/lr_scale.h"
#include "lockstep/schedule/options/schedules.h"

namespace lockstep::train {
namespace {

int batch_size_of(const TrainOptions& options, const Defaults& defaults, int lanes) {
  if (!options.global_batch_size) return options.batch_size.value_or(defaults.batch_size);
  if (*options.global_batch_size % lanes != 0) {
    throw ConfigError("--global-batch-size ", *options.global_batch_size, ": ", lanes,
                      " lanes can't share it evenly; use a multiple of ", lanes);
  }
  return *options.global_batch_size / lanes;
}

// The functions below take options whose defaults are filled in.

std::optional<LrScaling> lr_scaling(const schedule::LrOptions& rate, int64_t global_batch) {
  if (!rate.scale_lr) return std::nullopt;
  const int64_t base = *rate.scale_lr->base;
  const bool linear = rate.scale_lr->rule == schedule::LrRule::kLinear;
  return LrScaling{
      .rule = config::word_of(rate.scale_lr->rule),
      .unscaled_lr = *rate.lr,
      .factor = linear ? schedule::linear_lr_factor(global_batch, base) : schedule::sqrt_lr_factor(global_batch, base),
      .base_batch = base};
}

optim::NamedOptions optimizer_options(const optim::OptimizerOptions& options, double lr) {
  options.check(*options.name);
  optim::NamedOptions named = {{"lr", lr}};
  if (options.momentum) named.push_back({"momentum", *options.momentum});
  if (options.nesterov) named.push_back({"nesterov", true});
  if (options.weight_decay) named.push_back({"weight_decay", *options.weight_decay});
  return named;
}

// What --cycle-momentum drives.
schedule::Momentum momentum_of(const std::string& optimizer) {
  for (const optim::OptimizerTraits& each : optim::kOptimizers) {
    if (each.name != optimizer) continue;
    if (each.betas) return schedule::Momentum::kBeta1;
    if (each.momentum) return schedule::Momentum::kMomentum;
  }
  return schedule::Momentum::kNone;
}

// A setting of a parameter group, in the type that the optimizer's option has.
optim::OptionValue value_of(const std::string& where, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    return config::read_whole(where, text, 0, std::numeric_limits<int64_t>::max());
  }
  return config::read_number(where, text, std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max());
}

// `lr` is the run's unscaled rate: a group's own keeps its ratio to it under --scale-lr and the schedule.
optim::GroupingOptions grouping_of(const optim::OptimizerOptions& options, double lr) {
  optim::GroupingOptions grouping{.rules = {}, .decay_all = options.decay_all};
  for (const config::Rule& rule : options.param_groups) {
    optim::GroupRule& group = grouping.rules.emplace_back(optim::GroupRule{.match = rule.match, .options = {}});
    for (const auto& [name, text] : rule.settings) {
      const std::string where = cat("param-groups: ", rule.match, ": ", name);
      if (name == "lr") {
        if (lr == 0) throw ConfigError("--", where, ": has no ratio to --lr 0; give lr_scale");
        group.options.push_back({"lr_scale", config::read_number(where, text, 0, 1000) / lr});
      } else {
        group.options.push_back({name, value_of(where, text)});
      }
    }
  }
  return grouping;
}

int64_t steps_of(const std::optional<Interval>& interval, int64_t steps_per_epoch) {
  if (!interval) return steps_per_epoch;
  if (interval->unit == Interval::Unit::kSteps || interval->count == 0) return interval->count;
  if (interval->unit == Interval::Unit::kPerEpoch) return std::max<int64_t>(1, steps_per_epoch / interval->count);
  return interval->count * steps_per_epoch;
}

}  // namespace

bool takes_channels_last(ChannelsLast asked, const Defaults& defaults) {
  return asked == ChannelsLast::kAuto ? defaults.channels_last : asked == ChannelsLast::kOn;
}

TrainOptions fill_defaults(const TrainOptions& options, const Defaults& defaults, int lanes) {
  TrainOptions filled = options;
  filled.parallel.lanes = lanes;
  filled.batch_size = batch_size_of(options, defaults, lanes);
  filled.global_batch_size.reset();
  if (!filled.epochs) filled.epochs = defaults.epochs;
  if (!filled.rate.lr) filled.rate.lr = defaults.lr;
  if (filled.rate.scale_lr && !filled.rate.scale_lr->base) filled.rate.scale_lr->base = defaults.batch_size;
  if (!filled.rate.schedule) filled.rate.schedule = defaults.schedule;
  optim::OptimizerOptions& optimizer = filled.optimizer;
  if (!optimizer.name) optimizer.name = defaults.optimizer;
  // The recipe's momentum and weight decay go with the recipe's optimizer.
  if (*optimizer.name == defaults.optimizer) {
    if (!optimizer.momentum && defaults.momentum > 0) optimizer.momentum = defaults.momentum;
    if (!optimizer.weight_decay) optimizer.weight_decay = defaults.weight_decay;
  }
  filled.channels_last = takes_channels_last(filled.channels_last, defaults) ? ChannelsLast::kOn : ChannelsLast::kOff;
  return filled;
}

TrainOptions resolve_options(const TrainOptions& options, const Defaults& defaults, const Plan& plan) {
  TrainOptions resolved = fill_defaults(options, defaults, plan.lanes);
  resolved.epochs = static_cast<int>(plan.epochs);
  // The warm-up of a rate that was scaled up begins at a rate of its own, which --warmup can't say.
  if (!resolved.rate.warmup && !plan.schedule.warmup_start) resolved.rate.warmup = plan.schedule.warmup;
  constexpr Interval kEveryEpoch{.count = 1, .unit = Interval::Unit::kEpochs};
  if (!resolved.eval_every) resolved.eval_every = kEveryEpoch;
  if (!resolved.save_every) resolved.save_every = kEveryEpoch;
  return resolved;
}

Plan make_plan(const TrainOptions& options, const Defaults& defaults, int lanes, int64_t train_samples) {
  const TrainOptions filled = fill_defaults(options, defaults, lanes);
  Plan plan;
  plan.lanes = lanes;
  plan.batch_size = *filled.batch_size;
  plan.steps_per_epoch = data::steps_of_epoch(train_samples, plan.global_batch(), options.data.drop_last);
  if (options.data.drop_last && plan.steps_per_epoch == 0) {
    throw ConfigError("--drop-last: the ", train_samples, " samples are fewer than a global batch of ",
                      plan.global_batch(), ", so no step is left; lower --batch-size");
  }
  plan.epochs = *filled.epochs;
  plan.first_epoch = filled.first_epoch - 1;
  plan.total_steps = plan.epochs * plan.steps_per_epoch;
  if (options.steps) {
    // Without --epochs, --steps may ask for more than the recipe's epochs, or the resumed run's.
    if (!options.epochs || options.epochs_recalled)
      plan.epochs = std::max(plan.epochs, (*options.steps - 1) / plan.steps_per_epoch + 1);
    plan.total_steps = std::min(*options.steps, plan.epochs * plan.steps_per_epoch);
  }
  plan.lr_scaling = lr_scaling(filled.rate, plan.global_batch());
  const double factor = plan.lr_scaling ? plan.lr_scaling->factor : 1;
  const double lr = *filled.rate.lr * factor;
  plan.optimizer = *filled.optimizer.name;
  plan.optimizer_options = optimizer_options(filled.optimizer, lr);
  plan.grouping = grouping_of(filled.optimizer, *filled.rate.lr);
  check_evaluations(filled, *filled.rate.schedule);
  plan.schedule = schedule::make_schedule(filled.rate, {.lr = lr,
                                                        .lr_factor = factor,
                                                        .default_warmup = defaults.warmup,
                                                        .epochs = plan.epochs,
                                                        .steps_per_epoch = plan.steps_per_epoch,
                                                        .momentum = momentum_of(plan.optimizer)});
  plan.steps_per_unit = schedule::steps_per_unit(filled.rate, plan.steps_per_epoch);
  if (!filled.rate.plateau_metric.empty()) plan.plateau_metric = filled.rate.plateau_metric;
  plan.channels_last = takes_channels_last(filled.channels_last, defaults);
  plan.eval_batch = defaults.eval_batch;
  plan.eval_every = steps_of(filled.eval_every, plan.steps_per_epoch);
  plan.save_seconds = filled.save_every ? seconds_of(*filled.save_every) : 0;
  if (plan.save_seconds == 0) plan.save_every = steps_of(filled.save_every, plan.steps_per_epoch);
  return plan;
}

}  // namespace lockstep::train
