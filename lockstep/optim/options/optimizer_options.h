// The options of the optimizer.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/config/option_set.h"

namespace lockstep::optim {

struct OptimizerTraits {
  std::string_view name;
  bool momentum = false;  // it has --momentum
  bool nesterov = false;  // and Nesterov's
  bool betas = false;     // it has Adam's betas
};

// The names of optimizer_names() (optim/rules/make_optimizer.h); a test compares the two.
constexpr auto kOptimizers = std::to_array<OptimizerTraits>({
    {"sgd", true, true},
    {"adagrad"},
    {.name = "adam", .betas = true},
    {.name = "adamw", .betas = true},
    {.name = "nadam", .betas = true},
    {"rmsprop", true},
    {.name = "lamb", .betas = true},
    {"lars", true, true},
    {.name = "novograd", .betas = true},
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
  // Settings of parameters by their names: lr or lr_scale, weight_decay and the optimizer's other numbers.
  std::vector<config::Rule> param_groups = {};
  bool decay_all = true;  // false: no weight decay and no trust ratio for biases and normalisation parameters

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that the optimizer named `of` does not have.
  void check(std::string_view of) const;
};

}  // namespace lockstep::optim
