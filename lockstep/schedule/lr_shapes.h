// The shapes of learning-rate schedules: each is a class of PyTorch's in closed form, a pure function of t, counted
// from 0.
//
// t counts steps or epochs, as the run does. Where PyTorch multiplies the previous rate, rounding differs in the last
// digits. How to add one: docs/reading-guide.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::schedule {

// The rate that a schedule starts from, and the lowest that it may reach.
struct Rates {
  double base = 0;
  double least = 0;
};

// The words of a schedule's text: the unit that t counts, and the number of the unit at t = 0.
struct Counted {
  std::string_view unit = "step";
  int64_t first = 0;
};

// Each shape has at(rates, t), the rate at t >= 0, for options that passed check(); check(rates), which throws
// ConfigError; and text(rates, counted), for a run's header.

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

// base · gamma^n, where n milestones are at most t.
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

// CosineAnnealingLR(eta_min=least): least + (base - least) · (1 + cos(π · t / t_max)) / 2. From t_max on the rate stays
// at least, where PyTorch's would rise again.
struct CosineLr {
  int64_t t_max = 1;

  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// CosineAnnealingWarmRestarts(eta_min=least), SGDR (Loshchilov and Hutter, 2017): a cosine of length t_0, then from
// base again cosines each t_mult times as long as the one before.
struct CosineRestartsLr {
  int64_t t_0 = 1;
  int64_t t_mult = 1;

  struct Cycle {
    int64_t t_cur;  // steps since the last restart
    int64_t t_i;    // the cycle's length
  };
  // The cycle that t lies in, in PyTorch's names.
  Cycle cycle(int64_t t) const;
  double at(const Rates& rates, int64_t t) const;
  void check(const Rates& rates) const;
  std::string text(const Rates& rates, const Counted& counted) const;
};

// How a cycle goes from one rate to the next.
enum class Anneal { kCos, kLinear };

// The momentum in a cycle: the most at its ends, the base where the rate is highest.
struct MomentumCycle {
  double base = 0.85;
  double most = 0.95;
  bool beta1 = false;  // it is Adam's beta1
};

// OneCycleLR (Smith and Topin, 2018). The rate rises from max_lr / div_factor to max_lr at pct_start · total_steps - 1,
// falls to the first rate / final_div_factor at total_steps - 1, and stays there. With three phases it falls as it
// rose, to the first rate at 2 · pct_start · total_steps - 2, and goes on to the last from there. The base is not used.
struct OneCycleLr {
  double max_lr = 0.1;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
  Anneal anneal = Anneal::kCos;
  bool three_phase = false;
  std::optional<MomentumCycle> momentum = {};  // unset: the momentum is left alone

  double initial_lr() const { return max_lr / div_factor; }
  double last_lr() const { return initial_lr() / final_div_factor; }
  double peak() const { return pct_start * static_cast<double>(total_steps) - 1; }      // the t of max_lr
  double down() const { return 2 * pct_start * static_cast<double>(total_steps) - 2; }  // the end of a second phase
  double momentum_at(int64_t t) const;                                                  // where there is one
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
