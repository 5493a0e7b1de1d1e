#include "lockstep/optim/options.h"

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

// Written so that NaN is refused too.
void check_range(const char* optimizer, const char* name, double value, double least, double below) {
  if (value >= least && value < below) return;
  throw ConfigError(optimizer, ": ", name, " is ", value, ", not within [", least, ", ", below, ")");
}

void check_not_negative(const char* optimizer, const char* name, double value) {
  check_range(optimizer, name, value, 0, HUGE_VAL);
}

// What Adam and its kin have in common.
template <typename Options>
void check_moments(const Options& o) {
  check_not_negative(Options::kName, "lr", o.lr);
  check_not_negative(Options::kName, "eps", o.eps);
  check_not_negative(Options::kName, "weight_decay", o.weight_decay);
  check_range(Options::kName, "betas[0]", o.betas.first, 0, 1);
  check_range(Options::kName, "betas[1]", o.betas.second, 0, 1);
}

}  // namespace

void SgdOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "momentum", momentum);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_range(kName, "dampening", dampening, -HUGE_VAL, HUGE_VAL);
  if (nesterov && (momentum == 0 || dampening != 0)) {
    throw ConfigError(kName, ": nesterov needs a momentum above 0 and no dampening, not momentum ", momentum,
                      " and dampening ", dampening);
  }
}

void AdagradOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "lr_decay", lr_decay);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "initial_accumulator_value", initial_accumulator_value);
  check_not_negative(kName, "eps", eps);
}

template <bool Decoupled>
void AdamOptionsOf<Decoupled>::check() const {
  check_moments(*this);
}
template struct AdamOptionsOf<false>;
template struct AdamOptionsOf<true>;

void NAdamOptions::check() const {
  check_moments(*this);
  check_not_negative(kName, "momentum_decay", momentum_decay);
}

void RmspropOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "alpha", alpha);
  check_not_negative(kName, "eps", eps);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "momentum", momentum);
}

void LambOptions::check() const {
  check_moments(*this);
  check_not_negative(kName, "max_grad_norm", max_grad_norm);
}

void NovoGradOptions::check() const {
  check_moments(*this);
  if (norm_type != 2 && norm_type != 0) {
    throw ConfigError(kName, ": norm_type is ", norm_type, "; it is 2, or 0 for the largest element");
  }
}

void LarsOptions::check() const {
  check_not_negative(kName, "lr", lr);
  check_not_negative(kName, "momentum", momentum);
  check_not_negative(kName, "weight_decay", weight_decay);
  check_not_negative(kName, "trust_coefficient", trust_coefficient);
  check_not_negative(kName, "eps", eps);
  if (nesterov && momentum == 0) throw ConfigError(kName, ": nesterov needs a momentum above 0");
}

}  // namespace lockstep::optim
