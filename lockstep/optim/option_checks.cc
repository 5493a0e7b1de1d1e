#include "lockstep/optim/option_checks.h"

#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::optim {

void check_range(const char* optimizer, const char* option, double value, double least, double below) {
  if (value >= least && value < below) return;
  throw ConfigError(optimizer, ": ", option, " is ", value, ", not within [", least, ", ", below, ")");
}

void check_not_negative(const char* optimizer, const char* option, double value) {
  check_range(optimizer, option, value, 0, HUGE_VAL);
}

}  // namespace lockstep::optim
