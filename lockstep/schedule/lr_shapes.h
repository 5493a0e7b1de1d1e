// The shapes of learning-rate schedules, each PyTorch's class in closed form: a pure function of t, counted from 0.
//
// t counts what the run counts in, steps or epochs. Where PyTorch multiplies on from the rate before, rounding differs
// in the last digits. Adding one: docs/reading-guide.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::schedule {

// Where a schedule begins, and the least that it may come to.
struct Rates {
  double base = 0;
  double least = 0;
};

// For people: what t counts, and which of them t = 0 is.
struct Counted {
  std::string_view unit = "step";
  int64_t first = 0;
};

// Each shape has: at(rates, t), the rate, of t >= 0 and options that passed check(); check(rates), which throws
// ConfigError; text(rates, counted), for a run's header.

struct ConstantLr {
  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// base · gamma^⌊t / step_size⌋
struct StepLr {
  int64_t step_size = 1;
  double gamma = 0.1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// base · gamma^n, n of the milestones being at most t.
struct MultiStepLr {
  std::vector<int64_t> milestones;  // ascending
  double gamma = 0.1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// base · gamma^t
struct ExponentialLr {
  double gamma = 1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// CosineAnnealingLR(eta_min=least): least + (base - least) · (1 + cos(π · t / t_max)) / 2, and least from t_max on,
// where PyTorch's would rise again.
struct CosineLr {
  int64_t t_max = 1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// CosineAnnealingWarmRestarts(eta_min=least), SGDR (Loshchilov and Hutter, 2017): a cosine of t_0, and again from base
// one of t_mult times the length of the one before.
struct CosineRestartsLr {
  int64_t t_0 = 1;
  int64_t t_mult = 1;

  struct Place {
    int64_t t_cur, t_i;  // how far into which length, as PyTorch calls them
  };
  Place place(int64_t t) const;
  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// OneCycleLR (Smith and Topin, 2018): by cosines from max_lr / div_factor up to max_lr at pct_start · total_steps - 1,
// then down to the first rate / final_div_factor at total_steps - 1, and there it stays. The base is not used.
// PyTorch's cycle_momentum, anneal_strategy="linear" and three_phase are not done.
struct OneCycleLr {
  double max_lr = 0.1;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;

  double initial_lr() const { return max_lr / div_factor; }
  double last_lr() const { return initial_lr() / final_div_factor; }
  double peak() const { return pct_start * static_cast<double>(total_steps) - 1; }  // its t
  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// base · (1 - t / total_iters)^power, and 0 from total_iters on.
struct PolynomialLr {
  int64_t total_iters = 1;
  double power = 1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

}  // namespace lockstep::schedule
