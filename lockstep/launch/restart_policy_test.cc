#include "lockstep/launch/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

using ::testing::HasSubstr;

RankOutcome killed() {
  RankOutcome outcome;
  outcome.status.signal = SIGKILL;
  return outcome;
}
RankOutcome ended(int code, bool trained = true) {
  RankOutcome outcome;
  outcome.status.code = code;
  outcome.error = "because";
  outcome.trained = trained;
  return outcome;
}

TEST(RestartPolicy, GrantsSoManyRestartsAndSaysWhichOne) {
  RestartPolicy policy(/*max_restarts=*/2, /*own_workers=*/true);
  EXPECT_EQ(policy.next(killed(), 10).text, "restart 1 of 2");
  const auto second = policy.next(killed(), 20);
  EXPECT_TRUE(second.again);
  EXPECT_EQ(second.text, "restart 2 of 2");
  const auto third = policy.next(killed(), 30);
  EXPECT_FALSE(third.again);
  EXPECT_EQ(third.text, "all 2 are used up");
  EXPECT_EQ(policy.restarts(), 2);
}

TEST(RestartPolicy, SaysNothingWhereNoneWereToBe) {
  const auto verdict = RestartPolicy(0, true).next(killed(), 10);
  EXPECT_FALSE(verdict.again);
  EXPECT_EQ(verdict.text, "");
}

TEST(RestartPolicy, APortThatIsTakenCountsAsNoRestart) {
  RestartPolicy policy(0, true);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(policy.next_after_taken_port()->again) << i;
  EXPECT_FALSE(policy.next_after_taken_port()) << "somebody takes all ports";
  policy.next(killed(), 1);
  EXPECT_TRUE(policy.next_after_taken_port()) << "the count begins anew";
  EXPECT_EQ(policy.restarts(), 0);
}

TEST(RestartPolicy, EndsAfterThreeRestartsThatGotNoFurther) {
  RestartPolicy policy(100, true);
  EXPECT_TRUE(policy.next(killed(), 7).again);
  EXPECT_TRUE(policy.next(killed(), 7).again);
  EXPECT_TRUE(policy.next(killed(), 5).again);
  const auto last = policy.next(killed(), 7);
  EXPECT_FALSE(last.again);
  EXPECT_THAT(last.text, HasSubstr("3 attempts in a row got no further than step 7"));
}

TEST(RestartPolicy, ProgressBeginsTheCountAnew) {
  RestartPolicy policy(100, true);
  for (const int64_t step : {7, 7, 7, 8, 8, 8}) EXPECT_TRUE(policy.next(killed(), step).again) << step;
  EXPECT_FALSE(policy.next(killed(), 8).again);
}

TEST(RestartPolicy, AttemptsOfWhichNoStepsAreKnownAreOnlyCounted) {
  RestartPolicy policy(10, false);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(policy.next(killed(), -1).again) << i;
  EXPECT_FALSE(policy.next(killed(), -1).again);
}

TEST(RestartPolicy, WhatWouldHappenAgainIsNotTried) {
  for (const int code : {ConfigError::kExitCode, DataError::kExitCode, IoError::kExitCode}) {
    EXPECT_THAT(RestartPolicy(3, true).next(ended(code), 10).text, HasSubstr("would end in the same way")) << code;
    EXPECT_FALSE(RestartPolicy(3, true).next(ended(code), 10).again) << code;
    RankOutcome root = ended(code);
    const bool may_mend = code == IoError::kExitCode;
    EXPECT_EQ(RestartPolicy(3, false).next(root, 10).again, may_mend) << "who tells an error has this project's codes";
    root.error.clear();
    EXPECT_TRUE(RestartPolicy(3, false).next(root, 10).again) << "another program's codes mean other things";
  }
  EXPECT_TRUE(RestartPolicy(3, true).next(ended(CommError::kExitCode), 10).again);
}

TEST(RestartPolicy, AMistakeBeforeTheFirstStepIsNotTriedAgain) {
  const auto verdict = RestartPolicy(3, true).next(ended(ConfigError::kExitCode, /*trained=*/false), 0);
  EXPECT_FALSE(verdict.again);
  EXPECT_EQ(verdict.text, "") << "the error's line says all";
}

}  // namespace
}  // namespace lockstep::launch
