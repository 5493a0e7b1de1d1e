#include "lockstep/optim/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Options, DefaultsPass) {
  EXPECT_NO_THROW(SgdOptions{}.check());
  EXPECT_NO_THROW(AdagradOptions{}.check());
  EXPECT_NO_THROW(AdamOptions{}.check());
  EXPECT_NO_THROW(AdamWOptions{}.check());
  EXPECT_NO_THROW(NAdamOptions{}.check());
  EXPECT_NO_THROW(RmspropOptions{}.check());
  EXPECT_NO_THROW(LambOptions{}.check());
  EXPECT_NO_THROW(LarsOptions{}.check());
  EXPECT_EQ(AdamOptions{}.weight_decay, 0);
  EXPECT_EQ(AdamWOptions{}.weight_decay, 0.01);
}

TEST(Options, OutOfRangeIsAConfigError) {
  for (const SgdOptions& bad : {SgdOptions{.lr = -1}, SgdOptions{.lr = kNan}, SgdOptions{.momentum = -0.1},
                                SgdOptions{.dampening = kNan}, SgdOptions{.weight_decay = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
  for (const AdagradOptions& bad :
       {AdagradOptions{.lr = -1}, AdagradOptions{.lr_decay = -1}, AdagradOptions{.weight_decay = kNan},
        AdagradOptions{.initial_accumulator_value = -1}, AdagradOptions{.eps = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
  for (const AdamOptions& bad : {AdamOptions{.lr = -1}, AdamOptions{.betas = {1.0, 0.9}},
                                 AdamOptions{.betas = {0.9, -0.1}}, AdamOptions{.eps = kNan}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(Options, OutOfRangeIsAConfigErrorOfTheOthersToo) {
  for (const NAdamOptions& bad :
       {NAdamOptions{.lr = -1}, NAdamOptions{.betas = {0.9, 1.0}}, NAdamOptions{.momentum_decay = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
  for (const RmspropOptions& bad : {RmspropOptions{.lr = kNan}, RmspropOptions{.alpha = -1}, RmspropOptions{.eps = -1},
                                    RmspropOptions{.momentum = -1}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
  for (const LambOptions& bad :
       {LambOptions{.lr = -1}, LambOptions{.betas = {1.0, 0.9}}, LambOptions{.max_grad_norm = kNan}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
  for (const LarsOptions& bad :
       {LarsOptions{.lr = -1}, LarsOptions{.trust_coefficient = -1}, LarsOptions{.momentum = 0, .nesterov = true}}) {
    EXPECT_THROW(bad.check(), ConfigError);
  }
}

TEST(Options, NesterovNeedsUndampedMomentum) {
  EXPECT_THROW((SgdOptions{.nesterov = true}.check()), ConfigError);
  EXPECT_THROW((SgdOptions{.momentum = 0.9, .dampening = 0.1, .nesterov = true}.check()), ConfigError);
  EXPECT_NO_THROW((SgdOptions{.momentum = 0.9, .nesterov = true}.check()));
}

}  // namespace
}  // namespace lockstep::optim
