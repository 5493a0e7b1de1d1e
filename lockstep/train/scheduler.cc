#include "lockstep/train/scheduler.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using checkpoint::Dict;
using checkpoint::List;
using checkpoint::Value;
using checkpoint::ValueView;
using schedule::Rates;

// The keys that each of PyTorch's classes holds besides the keys of all of them.

Dict own_keys(const schedule::ConstantLr&, const Rates&, int64_t) { return {{"factor", 1.0}, {"total_iters", 0}}; }

Dict own_keys(const schedule::StepLr& shape, const Rates&, int64_t) {
  return {{"step_size", shape.step_size}, {"gamma", shape.gamma}};
}

Dict own_keys(const schedule::MultiStepLr& shape, const Rates&, int64_t) {
  Dict counts;
  for (const int64_t milestone : shape.milestones) {
    counts.set(milestone, std::count(shape.milestones.begin(), shape.milestones.end(), milestone));
  }
  return {{"milestones", counts}, {"gamma", shape.gamma}};
}

Dict own_keys(const schedule::ExponentialLr& shape, const Rates&, int64_t) { return {{"gamma", shape.gamma}}; }

Dict own_keys(const schedule::CosineLr& shape, const Rates& rates, int64_t) {
  return {{"T_max", shape.t_max}, {"eta_min", rates.least}};
}

Dict own_keys(const schedule::CosineRestartsLr& shape, const Rates& rates, int64_t t) {
  const auto [t_cur, t_i] = shape.cycle(std::max<int64_t>(t, 0));
  return {{"T_0", shape.t_0}, {"T_i", t_i}, {"T_mult", shape.t_mult}, {"eta_min", rates.least}, {"T_cur", t_cur}};
}

Dict own_keys(const schedule::OneCycleLr& shape, const Rates&, int64_t) {
  const auto phase = [](double end, const char* from, const char* to, const char* low, const char* high) {
    return Dict{{"end_step", end}, {"start_lr", from}, {"end_lr", to}, {"start_momentum", low}, {"end_momentum", high}};
  };
  const auto last = static_cast<double>(shape.total_steps - 1);
  List phases{phase(shape.peak(), "initial_lr", "max_lr", "max_momentum", "base_momentum")};
  if (shape.three_phase) {
    phases.push_back(phase(shape.down(), "max_lr", "initial_lr", "base_momentum", "max_momentum"));
    phases.push_back(phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"));
  } else {
    phases.push_back(phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum"));
  }
  Dict keys{{"total_steps", shape.total_steps},
            {"_schedule_phases", std::move(phases)},
            {"_anneal_func_type", shape.anneal == schedule::Anneal::kLinear ? "linear" : "cos"},
            {"cycle_momentum", shape.momentum.has_value()}};
  if (shape.momentum) keys.set("use_beta1", shape.momentum->beta1);
  return keys;
}

Dict own_keys(const schedule::PolynomialLr& shape, const Rates&, int64_t) {
  return {{"total_iters", shape.total_iters}, {"power", shape.power}};
}

// The rates of the groups.
List rates_of(double lr, const std::vector<double>& scales) {
  List rates;
  for (const double scale : scales) rates.push_back(lr * scale);
  return rates;
}

// `t` steps of such a scheduler done; -1: it has not begun.
Dict with_common_keys(Dict dict, const List& base, int64_t t, const List& lr) {
  const Dict common = {{"base_lrs", base},
                       {"last_epoch", t},
                       {"_step_count", t + 1},
                       {"_is_initial", false},
                       {"_get_lr_called_within_step", false},
                       {"_last_lr", lr}};
  for (const auto& [key, value] : common) dict.set(key, value);
  return dict;
}

Dict linear_dict(const schedule::ScheduleOptions& o, int64_t time, const std::vector<double>& scales) {
  const int64_t t = std::min(time, o.warmup - 1);
  const Dict own = {{"start_factor", o.warmup_start.value_or(1 / static_cast<double>(o.warmup))},
                    {"end_factor", 1.0},
                    {"total_iters", o.warmup_start ? o.warmup : o.warmup - 1}};
  return with_common_keys(own, rates_of(o.first_lr(), scales), t, rates_of(schedule::lr_at(o, t), scales));
}

double first_number(const ValueView& list) {
  const auto items = list.items();
  if (items.empty()) throw DataError(list.where(), ": expected a number, found none");
  return items[0].number();
}

Dict plateau_dict(const Scheduler& scheduler, const schedule::PlateauLr& shape, const std::vector<double>& scales) {
  const auto& [metrics, best, bad, cooldown_left, lr] = scheduler.plateau;
  const double least = scheduler.options.lr_min, base = scheduler.options.base_lr;
  Dict dict = {{"factor", shape.factor},
               {"default_min_lr", least},
               {"min_lrs", rates_of(least, scales)},
               {"patience", shape.patience},
               {"cooldown", shape.cooldown},
               {"eps", shape.eps},
               {"last_epoch", metrics},
               {"_last_lr", rates_of(lr.value_or(base), scales)},
               {"mode_worse", schedule::worst(shape.mode)},
               {"mode", shape.mode == schedule::PlateauMode::kMin ? "min" : "max"},
               {"threshold", shape.threshold},
               {"threshold_mode", shape.threshold_mode == schedule::PlateauThreshold::kRel ? "rel" : "abs"},
               {"best", best.value_or(schedule::worst(shape.mode))},
               {"cooldown_counter", cooldown_left},
               {"num_bad_epochs", bad},
               {"base_lrs", rates_of(base, scales)},
               {"metric", scheduler.metric}};
  // The run's rate by itself where no group has it: a division would not give back its bits.
  if (scales.front() != 1) dict.set("lr", lr.value_or(base)), dict.set("base_lr", base);
  return dict;
}

}  // namespace

void Scheduler::observe(int64_t step, double value) {
  if (step / steps_per_unit < options.warmup) return;
  plateau = schedule::next(std::get<schedule::PlateauLr>(options.shape), options.rates(), plateau, value);
}

Dict scheduler_to_dict(const Scheduler& scheduler, int64_t step, const std::vector<double>& scales) {
  const schedule::ScheduleOptions& o = scheduler.options;
  if (const auto* plateau = std::get_if<schedule::PlateauLr>(&o.shape))
    return plateau_dict(scheduler, *plateau, scales);
  const int64_t time = step / scheduler.steps_per_unit;
  const int64_t t = std::max<int64_t>(time - o.warmup, -1);
  const auto keys = [&](const auto& shape) -> Dict {
    if constexpr (std::is_same_v<decltype(shape), const schedule::PlateauLr&>) {
      throw BugError("a plateau is no closed form");
    } else {
      return own_keys(shape, o.rates(), t);
    }
  };
  Dict shape = with_common_keys(std::visit(keys, o.shape), rates_of(o.first_lr(), scales), t,
                                rates_of(schedule::lr_at(o, std::max(time, o.warmup)), scales));
  if (o.warmup == 0) return shape;
  return {{"_milestones", List{o.warmup}},
          {"last_epoch", time},
          {"_last_lr", rates_of(schedule::lr_at(o, time), scales)},
          {"_schedulers", List{linear_dict(o, time, scales), std::move(shape)}}};
}

void add_group_rates(const Scheduler& scheduler, Dict& options) {
  if (scheduler.goes_by_metric()) return;
  const Value* own = options.find("lr_scale");
  const double scale = own == nullptr || own->get_if<double>() == nullptr ? 1 : *own->get_if<double>();
  options.set("initial_lr", scheduler.options.first_lr() * scale);
  const auto* cycle = std::get_if<schedule::OneCycleLr>(&scheduler.options.shape);
  if (cycle == nullptr) return;
  options.set("max_lr", cycle->max_lr * scale);
  options.set("min_lr", cycle->last_lr() * scale);
  if (!cycle->momentum) return;
  options.set("base_momentum", cycle->momentum->base);
  options.set("max_momentum", cycle->momentum->most);
}

schedule::PlateauState plateau_in(const ValueView& saved, const Scheduler& run) {
  if (!run.goes_by_metric() || !saved.find("num_bad_epochs")) return {};
  const bool has_own = saved.find("lr").has_value();
  const double base = has_own ? saved["base_lr"].number() : first_number(saved["base_lrs"]);
  if (base != run.options.base_lr) {
    throw ConfigError(saved.file(), ": its plateau began at lr ", base, ", this run's at ", run.options.base_lr,
                      "; leave --lr out, or start a new run with --load");
  }
  if (saved["metric"].text() != run.metric) {
    throw ConfigError(saved.file(), ": its plateau goes by ", saved["metric"].text(), ", this run's by ", run.metric,
                      "; use the same --plateau-metric, or start a new run with --load");
  }
  const int64_t metrics = saved["last_epoch"].integer();
  if (metrics == 0) return {};
  schedule::PlateauState state{.metrics = metrics,
                               .bad = saved["num_bad_epochs"].integer(),
                               .cooldown_left = saved["cooldown_counter"].integer(),
                               .lr = has_own ? saved["lr"].number() : first_number(saved["_last_lr"])};
  const double best = saved["best"].number();
  if (best != schedule::worst(std::get<schedule::PlateauLr>(run.options.shape).mode)) state.best = best;
  return state;
}

}  // namespace lockstep::train
