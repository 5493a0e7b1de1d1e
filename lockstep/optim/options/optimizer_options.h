// The options of the optimizer.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/config/option_set.h"

namespace lockstep::optim {

struct OptimizerTraits {
  std::string_view name;
  bool momentum = false;  // it has --momentum
  bool nesterov = false;  // and Nesterov's
};

// The names of optimizer_names() (optim/rules/make_optimizer.h); a test compares the two.
constexpr auto kOptimizers = std::to_array<OptimizerTraits>({
    {"sgd", true, true},
    {"adagrad"},
    {"adam"},
    {"adamw"},
    {"nadam"},
    {"rmsprop", true},
    {"lamb"},
    {"lars", true, true},
    {"novograd"},
});

struct OptimizerOptions {
  // Unset: the recipe's. With another optimizer than the recipe's, momentum and weight decay default to the
  // optimizer's.
  std::optional<std::string> name;
  std::optional<double> momentum;
  bool nesterov = false;
  std::optional<double> weight_decay;
  double clip = 0;        // largest norm of the gradient; 0: none
  double clip_value = 0;  // largest size of an element of it, after clip; 0: none
  double ema = 0;         // decay of the weights' average; 0: none is kept

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that the optimizer named `of` does not have.
  void check(std::string_view of) const;
};

}  // namespace lockstep::optim
