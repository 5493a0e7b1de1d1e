#include "lockstep/config/schedule_options.h"

#include <algorithm>
#include <initializer_list>

namespace lockstep::config {
namespace {

using O = TrainOptions;
using Kind = ScheduleKind;
using Spec = OptionSpec<O>;

constexpr int64_t kMost = 1'000'000'000'000;

// An option of some schedules only; one of `needed` can't do without it.
struct Row {
  Spec spec;
  std::vector<Kind> of;
  std::vector<Kind> needed = {};
  std::string example = {};
};

Spec milestones_option() {
  Spec spec{{.name = "milestones", .value = "N[,N]", .help = "when the rate drops", .is_text = true}, {}, {}};
  spec.set = [](O& options, const std::string& given) { options.milestones = read_milestones("milestones", given); };
  spec.get = [](const O& options) -> std::optional<std::string> {
    if (options.milestones.empty()) return std::nullopt;
    return write_milestones(options.milestones);
  };
  return spec;
}

std::vector<Row> rows() {
  return {
      {number("step-size", "N", "how long a rate lasts (default: an epoch)", &O::step_size, 1, kMost), {Kind::kStep}},
      {milestones_option(), {Kind::kMultiStep}, {Kind::kMultiStep}, "10,25,50"},
      {number("gamma", "X", "the factor of a drop", &O::gamma, 1e-6, 1),
       {Kind::kStep, Kind::kMultiStep, Kind::kExponential},
       {Kind::kExponential},
       "0.95"},
      {number("restart-every", "N", "length of the first cosine (T_0)", &O::restart_every, 1, kMost),
       {Kind::kCosineRestarts},
       {Kind::kCosineRestarts},
       "10"},
      {number("restart-mult", "N", "how many times as long each is as the one before (T_mult)", &O::restart_mult, 1,
              1000),
       {Kind::kCosineRestarts}},
      {number("max-lr", "X", "the highest rate (default: --lr)", &O::max_lr, 1e-12, 1000), {Kind::kOneCycle}},
      {number("pct-start", "X", "share of the run in which the rate rises", &O::pct_start, 0, 0.999),
       {Kind::kOneCycle}},
      {number("div-factor", "X", "highest rate over the first", &O::div_factor, 1, 1e12), {Kind::kOneCycle}},
      {number("final-div-factor", "X", "first rate over the last", &O::final_div_factor, 1, 1e12), {Kind::kOneCycle}},
      {number("power", "X", "the exponent (default: 1, a straight line)", &O::power, 1e-3, 100), {Kind::kPolynomial}},
      {text("plateau-metric", "NAME", "what must get better: loss, or the recipe's metric", &O::plateau_metric),
       {Kind::kPlateau}},
      {number("plateau-factor", "X", "the factor of a drop", &O::plateau_factor, 1e-6, 0.999999), {Kind::kPlateau}},
      {number("patience", "N", "evaluations that may be no better (default: 10)", &O::patience, 0, kMost),
       {Kind::kPlateau}},
      {number("threshold", "X", "by how much better is better", &O::threshold, 0, 1e12), {Kind::kPlateau}},
      {word("threshold-mode", "a share of the best, or a difference to it", &O::threshold_mode), {Kind::kPlateau}},
      {number("cooldown", "N", "evaluations after a drop that don't count", &O::cooldown, 0, kMost), {Kind::kPlateau}}};
}

std::string names(const std::vector<Kind>& kinds) {
  std::vector<std::string_view> list;
  for (const Kind kind : kinds) list.push_back(to_string(kind));
  return either(list);
}

bool has(const std::vector<Kind>& kinds, Kind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

OptionTable<TrainOptions> schedule_rows() {
  OptionTable<O> table = {
      word("schedule", "of the learning rate", &O::schedule),
      word("schedule-unit", "what it counts, N below", &O::schedule_unit),
      number("schedule-steps", "N", "its horizon, where not --epochs", &O::schedule_steps, 1, kMost),
      number("warmup", "N", "linear warm-up before it", &O::warmup, 0, kMost)};
  for (Row& row : rows()) {
    row.spec.help = cat(names(row.of), ": ", row.spec.help);
    table.push_back(std::move(row.spec));
  }
  return table;
}

void check_schedule(const TrainOptions& o, ScheduleKind kind) {
  for (const Row& row : rows()) {
    const bool given = row.spec.get(o).has_value();
    if (given && !has(row.of, kind)) {
      throw ConfigError("--", row.spec.name, ": goes with --schedule ", names(row.of), " only, this run's is ",
                        to_string(kind), "; leave --", row.spec.name, " out, or change --schedule");
    }
    if (!given && has(row.needed, kind)) {
      throw ConfigError("--schedule ", to_string(kind), ": needs --", row.spec.name, ", as in --", row.spec.name, ' ',
                        row.example);
    }
  }
  if (o.schedule_steps && o.schedule_unit == ScheduleUnit::kEpochs) {
    throw ConfigError("--schedule-steps: goes with --schedule-unit steps only; use --epochs");
  }
  if (o.warmup && o.schedule_steps && *o.warmup > *o.schedule_steps) {
    throw ConfigError("--warmup ", *o.warmup, ": longer than --schedule-steps ", *o.schedule_steps, "; shorten it");
  }
  if (kind == Kind::kPlateau && o.eval_every && o.eval_every->count == 0) {
    throw ConfigError("--schedule plateau: goes by evaluations, and --eval-every 0 makes none; leave --eval-every out");
  }
}

std::vector<int64_t> read_milestones(std::string_view name, const std::string& text) {
  std::vector<int64_t> milestones;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    milestones.push_back(read_whole(name, text.substr(at, comma - at), 1, kMost));
    if (milestones.size() > 1 && milestones.back() <= milestones[milestones.size() - 2]) {
      throw ConfigError("--", name, ' ', text, ": expected whole numbers in ascending order, as 10,25,50");
    }
    at = comma + 1;
  }
  return milestones;
}

std::string write_milestones(const std::vector<int64_t>& milestones) {
  std::string text;
  for (const int64_t milestone : milestones) text += cat(text.empty() ? "" : ",", milestone);
  return text;
}

}  // namespace lockstep::config
