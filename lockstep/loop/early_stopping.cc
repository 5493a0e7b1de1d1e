#include "lockstep/loop/early_stopping.h"

#include "lockstep/base/error.h"

namespace lockstep::loop {

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : options_(options),
      best_(options.lower_is_better ? std::numeric_limits<double>::infinity()
                                    : -std::numeric_limits<double>::infinity()) {
  if (options.patience < 0) throw ConfigError("early stopping: a patience of ", options.patience, " is below 0");
  if (!(options.min_delta >= 0)) throw ConfigError("early stopping: a min_delta of ", options.min_delta, " is below 0");
}

bool EarlyStopping::observe(double metric) {
  const double gain = options_.lower_is_better ? best_ - metric : metric - best_;
  if (gain > options_.min_delta) {
    best_ = metric;
    failures_ = 0;
    return true;
  }
  ++failures_;
  return false;
}

checkpoint::Dict EarlyStopping::state_dict() const {
  return {{"best", best_}, {"failures", failures_}, {"lower_is_better", options_.lower_is_better}};
}

void EarlyStopping::check_state_dict(const checkpoint::ValueView& saved) const {
  const auto lower = saved.find("lower_is_better");
  if (lower && lower->boolean() != options_.lower_is_better) {
    throw ConfigError(saved.where(), ": the checkpoint's early stopping has lower_is_better ",
                      lower->boolean() ? "on" : "off", ", this loop's has it ",
                      options_.lower_is_better ? "on" : "off");
  }
}

void EarlyStopping::load_state_dict(const checkpoint::ValueView& saved) {
  check_state_dict(saved);
  best_ = saved["best"].number();
  failures_ = saved["failures"].integer();
}

}  // namespace lockstep::loop
