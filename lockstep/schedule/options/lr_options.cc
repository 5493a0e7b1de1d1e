#include "lockstep/schedule/options/lr_options.h"

#include <algorithm>

#include "lockstep/schedule/options/schedules.h"

namespace lockstep::schedule {
namespace {

using enum config::Effect;
using config::Option;
using config::OptionSet;
using Names = std::vector<std::string_view>;

constexpr int64_t kMost = 1'000'000'000'000;
constexpr int kMostSamples = 1 << 24;

// An option of some schedules only; one of `needed` can't do without it.
struct Use {
  const Option& option;
  Names of;
  Names needed;
  std::string example;
};

// A switch that may be unset.
Option& declare_switch(OptionSet& options, const std::string& name, std::string help, std::optional<bool>* field) {
  const auto write = [](bool held) { return std::string(held ? "on" : "off"); };
  return options.form(name, "on|off", std::move(help), field, config::read_switch, write, kTrajectory);
}

Option& declare_length(OptionSet& options, const std::string& name, std::string help, std::optional<Length>* field,
                       int64_t least) {
  const auto read = [least](const std::string& option, const std::string& text) {
    return read_length(option, text, least);
  };
  Option& row = options.form(name, "N[epochs]", std::move(help), field, read, write_length, kTrajectory);
  row.is_text = false;  // a number, or what TOML quotes anyway
  return row;
}

std::vector<Use> declare_shape_options(LrOptions& o, OptionSet& options) {
  std::vector<Use> uses;
  const auto use = [&uses](Option& option, const Names& of, const Names& needed = {}, const char* example = "") {
    option.help = cat(config::either(of), ": ", option.help);
    uses.push_back({option, of, needed, example});
  };
  use(declare_length(options, "step-size", "how long a rate lasts (default: an epoch)", &o.step_size, 1), {"step"});
  Option& milestones = options.form("milestones", "N[epochs][,…]", "when the rate drops", &o.milestones,
                                    read_milestones, write_milestones, kTrajectory);
  milestones.get = [&o]() -> std::optional<std::string> {
    if (o.milestones.empty()) return std::nullopt;
    return write_milestones(o.milestones);
  };
  milestones.default_value = milestones.get();
  milestones.of_list();
  use(milestones, {"multistep"}, {"multistep"}, "10,25,50");
  use(options.number("gamma", "X", "the factor of a drop", &o.gamma, 1e-6, 1, kTrajectory),
      {"step", "multistep", "exponential"}, {"exponential"}, "0.95");
  use(declare_length(options, "restart-every", "length of the first cosine (T_0)", &o.restart_every, 1),
      {"cosine-restarts"}, {"cosine-restarts"}, "10");
  use(options.number("restart-mult", "N", "how many times as long each is as the one before (T_mult)", &o.restart_mult,
                     1, 1000, kTrajectory),
      {"cosine-restarts"});
  use(options.number("max-lr", "X", "the highest rate (default: --lr)", &o.max_lr, 1e-12, 1000, kTrajectory),
      {"onecycle"});
  use(options.number("pct-start", "X", "share of the run in which the rate rises", &o.pct_start, 0, 0.999, kTrajectory),
      {"onecycle"});
  use(options.number("div-factor", "X", "highest rate over the first", &o.div_factor, 1, 1e12, kTrajectory),
      {"onecycle"});
  use(options.number("final-div-factor", "X", "first rate over the last", &o.final_div_factor, 1, 1e12, kTrajectory),
      {"onecycle"});
  use(options.word("anneal-strategy", "the way from one rate to the next", &o.anneal_strategy, kTrajectory),
      {"onecycle"});
  use(declare_switch(options, "three-phase", "falls as it rose, and then goes on to the last rate", &o.three_phase),
      {"onecycle"});
  use(declare_switch(options, "cycle-momentum", "lower the momentum, or Adam's beta1, where the rate is high",
                     &o.cycle_momentum),
      {"onecycle"});
  use(options.number("base-momentum", "X", "the least momentum of a cycle (default: 0.85)", &o.base_momentum, 0,
                     0.999999, kTrajectory),
      {"onecycle"});
  use(options.number("max-momentum", "X", "the largest momentum of a cycle (default: 0.95)", &o.max_momentum, 0,
                     0.999999, kTrajectory),
      {"onecycle"});
  use(options.number("power", "X", "the exponent (default: 1, a straight line)", &o.power, 1e-3, 100, kTrajectory),
      {"polynomial"});
  use(options.text("plateau-metric", "NAME", "what must get better: loss, or the recipe's metric", &o.plateau_metric,
                   kTrajectory),
      {"plateau"});
  use(options.number("plateau-factor", "X", "the factor of a drop", &o.plateau_factor, 1e-6, 0.999999, kTrajectory),
      {"plateau"});
  use(options.number("patience", "N", "evaluations that may be no better (default: 10)", &o.patience, 0, kMost,
                     kTrajectory),
      {"plateau"});
  use(options.number("threshold", "X", "by how much better is better", &o.threshold, 0, 1e12, kTrajectory),
      {"plateau"});
  use(options.word("threshold-mode", "a share of the best, or a difference to it", &o.threshold_mode, kTrajectory),
      {"plateau"});
  use(options.number("cooldown", "N", "evaluations after a drop that don't count", &o.cooldown, 0, kMost, kTrajectory),
      {"plateau"});
  return uses;
}

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void LrOptions::declare(OptionSet& options) {
  options.section("Learning rate");
  options.number("lr", "X", "learning rate", &lr, 0, 1000, kTrajectory);
  options.number("lr-min", "X", "least rate, where the cosine schedules end", &lr_min, 0, 1000, kTrajectory);
  options.form("scale-lr", "linear|sqrt[=BASE]",
               "scale the rate by global batch / BASE (default: the recipe's batch size)", &scale_lr, read_lr_scale,
               write_lr_scale, kTrajectory);
  options.choice("schedule", "of the learning rate", &schedule, schedule_names(), kTrajectory);
  options.word("schedule-unit", "what it counts, N below", &unit, kTrajectory);
  options.number("schedule-steps", "N", "its horizon, where not --epochs", &schedule_steps, 1, kMost, kTrajectory);
  declare_length(options, "warmup", "linear warm-up before it", &warmup, 0);
  declare_shape_options(*this, options);
}

void LrOptions::check(const std::string& of) const {
  LrOptions copy = *this;
  OptionSet rows;
  for (const Use& use : declare_shape_options(copy, rows)) {
    const bool given = use.option.get().has_value();
    const std::string& name = use.option.name;
    if (given && !has(use.of, of)) {
      throw ConfigError("--", name, ": goes with --schedule ", config::either(use.of), " only, this run's is ", of,
                        "; leave --", name, " out, or change --schedule");
    }
    if (!given && has(use.needed, of)) {
      throw ConfigError("--schedule ", of, ": needs --", name, ", as in --", name, ' ', use.example);
    }
  }
  if ((base_momentum || max_momentum) && !cycle_momentum.value_or(false)) {
    throw ConfigError("--", base_momentum ? "base" : "max", "-momentum: goes with --cycle-momentum on only");
  }
  if (schedule_steps && unit == ScheduleUnit::kEpochs) {
    throw ConfigError("--schedule-steps: goes with --schedule-unit steps only; use --epochs");
  }
  const bool counts_steps = warmup && warmup->unit.value_or(unit) == ScheduleUnit::kSteps;
  if (counts_steps && schedule_steps && warmup->count > *schedule_steps) {
    throw ConfigError("--warmup ", write_length(*warmup), ": longer than --schedule-steps ", *schedule_steps,
                      "; shorten it");
  }
}

LrScale read_lr_scale(const std::string& name, const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  LrScale scale{.rule = config::read_enum<LrRule>(name, text.substr(0, equals)), .base = {}};
  if (equals < text.size()) {
    scale.base = static_cast<int>(config::read_whole(name, text.substr(equals + 1), 1, kMostSamples));
  }
  return scale;
}

std::string write_lr_scale(const LrScale& scale) {
  return cat(config::word_of(scale.rule), scale.base ? cat('=', *scale.base) : "");
}

Length read_length(const std::string& name, const std::string& text, int64_t least) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == text.size()) return config::read_whole(name, text, least, kMost);
  const std::string unit = text.substr(digits);
  if (digits == 0 || (unit != "steps" && unit != "epochs")) {
    throw ConfigError("--", name, ' ', text, ": expected a whole number, as 500, or with its unit, as 500steps or ",
                      "5epochs");
  }
  return {config::read_whole(name, text.substr(0, digits), least, kMost),
          unit == "epochs" ? ScheduleUnit::kEpochs : ScheduleUnit::kSteps};
}

std::string write_length(const Length& length) {
  return cat(length.count, length.unit ? config::word_of(*length.unit) : "");
}

std::vector<Length> read_milestones(const std::string& name, const std::string& text) {
  std::vector<Length> milestones;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const Length next = read_length(name, text.substr(at, comma - at), 1);
    if (!milestones.empty() && milestones.back().unit == next.unit && milestones.back().count >= next.count) {
      throw ConfigError("--", name, ' ', text, ": expected whole numbers in ascending order, as 10,25,50");
    }
    milestones.push_back(next);
    at = comma + 1;
  }
  return milestones;
}

std::string write_milestones(const std::vector<Length>& milestones) {
  std::string text;
  for (const Length& milestone : milestones) text += cat(text.empty() ? "" : ",", write_length(milestone));
  return text;
}

}  // namespace lockstep::schedule
