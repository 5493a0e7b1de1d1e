#include "lockstep/track/pace.h"

#include <gtest/gtest.h>

namespace lockstep::track {
namespace {

TEST(Pace, TheFirstStepsDoNotCountOnceThereAreOthers) {
  Pace pace;
  EXPECT_EQ(pace.samples_per_second(), 0);
  for (int i = 0; i < Pace::kFirstSteps; ++i) pace.step(10, 5);
  EXPECT_EQ(pace.samples_per_second(), 2);
  pace.step(10, 0.5);
  EXPECT_EQ(pace.samples_per_second(), 20);
}

TEST(Pace, TheTimeLeftWaitsForASteadySpeed) {
  Pace pace;
  for (int i = 0; i < Pace::kFirstSteps; ++i) pace.step(10, 5);
  for (int i = 0; i < Pace::kLeastSteps - 1; ++i) pace.step(10, 1);
  EXPECT_EQ(pace.seconds_for(100), std::nullopt) << "too few steps";
  pace.step(10, 1);
  EXPECT_EQ(pace.seconds_for(100), 10);
}

TEST(Pace, StepsThatAreShortAreManyBeforeTheyCount) {
  Pace pace;
  for (int i = 0; i < Pace::kFirstSteps + Pace::kEnoughSteps - 1; ++i) pace.step(10, 0.001);
  EXPECT_EQ(pace.seconds_for(100), std::nullopt);
  pace.step(10, 0.001);
  EXPECT_NEAR(*pace.seconds_for(100), 0.01, 1e-9);
}

TEST(Pace, NothingLeftTakesNoTime) { EXPECT_EQ(Pace().seconds_for(0), 0); }

}  // namespace
}  // namespace lockstep::track
