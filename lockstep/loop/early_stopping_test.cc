#include "lockstep/loop/early_stopping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::loop {
namespace {

using ::lockstep::testing_support::refusal;
using ::testing::HasSubstr;

TEST(EarlyStopping, EndsAfterSoManyMetricsThatDoNotImprove) {
  EarlyStopping stopping({.patience = 2, .min_delta = 0.1});
  EXPECT_TRUE(stopping.observe(0.5));
  EXPECT_FALSE(stopping.observe(0.6));  // by no more than the delta
  EXPECT_FALSE(stopping.ended());
  EXPECT_TRUE(stopping.observe(0.7));
  EXPECT_FALSE(stopping.observe(NAN));
  EXPECT_FALSE(stopping.observe(0.2));
  EXPECT_TRUE(stopping.ended());
  EXPECT_EQ(stopping.best(), 0.7);
}

TEST(EarlyStopping, LowerMayBeBetterAndPatienceEndless) {
  EarlyStopping stopping({.patience = 0, .lower_is_better = true});
  EXPECT_TRUE(stopping.observe(2));
  EXPECT_TRUE(stopping.observe(1));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(stopping.observe(1));
  EXPECT_FALSE(stopping.ended());
}

TEST(EarlyStopping, ContinuesFromItsState) {
  EarlyStopping stopping({.patience = 2}), resumed({.patience = 2});
  stopping.observe(0.5);
  stopping.observe(0.4);
  const checkpoint::Value saved = stopping.state_dict();
  resumed.load_state_dict(checkpoint::ValueView(saved, "run.pt"));
  EXPECT_FALSE(resumed.ended());
  resumed.observe(0.5);
  EXPECT_TRUE(resumed.ended());
  EXPECT_EQ(resumed.best(), 0.5);
}

TEST(EarlyStopping, AnotherDirectionIsRefused) {
  const checkpoint::Value saved = EarlyStopping({.lower_is_better = true}).state_dict();
  EarlyStopping resumed;
  EXPECT_THAT(refusal([&] { resumed.load_state_dict(checkpoint::ValueView(saved, "run.pt")); }),
              HasSubstr("lower_is_better on, this loop's has it off"));
}

TEST(EarlyStopping, RefusesOptionsBelowZero) {
  EXPECT_THAT(refusal([] { EarlyStopping({.patience = -1}); }), HasSubstr("a patience of -1"));
  EXPECT_THAT(refusal([] { EarlyStopping({.min_delta = -1}); }), HasSubstr("a min_delta of -1"));
}

}  // namespace
}  // namespace lockstep::loop
