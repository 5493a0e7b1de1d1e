#include "lockstep/optim/option_checks.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TEST(OptionChecks, ARangeHasItsLowerEndAlone) {
  EXPECT_NO_THROW(check_range("sgd", "x", 0.5, 0.5, 1));
  for (const double bad : {0.4, 1.0, kNan}) EXPECT_THROW(check_range("sgd", "x", bad, 0.5, 1), ConfigError);
}

TEST(OptionChecks, NegativeOrNotFiniteIsRefused) {
  EXPECT_NO_THROW(check_not_negative("sgd", "lr", 0));
  for (const double bad : {-1e-300, kInfinity, kNan}) EXPECT_THROW(check_not_negative("sgd", "lr", bad), ConfigError);
}

}  // namespace
}  // namespace lockstep::optim
