// Checks of the options of optimizers. All throw ConfigError that begins with the optimizer's name.
#pragma once

namespace lockstep::optim {

// least <= value < below. NaN is refused.
void check_range(const char* optimizer, const char* option, double value, double least, double below);

// 0 <= value < ∞. NaN is refused.
void check_not_negative(const char* optimizer, const char* option, double value);

// The options that Adam and its kin share.
template <typename Options>
void check_moments(const Options& o) {
  check_not_negative(Options::kName, "lr", o.lr);
  check_not_negative(Options::kName, "eps", o.eps);
  check_not_negative(Options::kName, "weight_decay", o.weight_decay);
  check_range(Options::kName, "betas[0]", o.betas.first, 0, 1);
  check_range(Options::kName, "betas[1]", o.betas.second, 0, 1);
}

}  // namespace lockstep::optim
