#include "lockstep/train/inspection/ledger_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

// A run of 10 samples in 2 lanes of 2: epochs of 3 steps, the last of 2 samples.
class LedgerCheckTest : public testing::Test {
 protected:
  void begin(int rank, int attempt, int ranks, const std::string& shape = "\"samples\":10,\"lanes\":2") {
    write(rank, cat("{\"attempt\":", attempt, ",\"rank\":", rank, ",\"ranks\":", ranks, ",\"after\":0,", shape,
                    ",\"batch_size\":2,\"drop_last\":false}\n"));
  }
  void note(int rank, int attempt, int step, int lane, int first, int count, const std::string& hash = "a") {
    write(rank, cat("{\"attempt\":", attempt, ",\"step\":", step, ",\"lane\":", lane, ",\"first\":", first,
                    ",\"count\":", count, ",\"xxh3\":\"", hash, "\"}\n"));
  }
  // Both lanes of a step, by one rank.
  void step(int rank, int attempt, int step) {
    const int begin = (step - 1) % 3 * 4, count = step % 3 == 0 ? 1 : 2;
    note(rank, attempt, step, 0, begin, count);
    note(rank, attempt, step, 1, begin + count, count);
  }
  void write(int rank, const std::string& text) {
    std::ofstream(dir_ / cat("rank", rank, ".jsonl"), std::ios::app) << text;
  }
  std::string found() { return check_ledger(dir_.path()); }
  std::string fault() {
    return testing_support::refusal<DataError>([&] { found(); });
  }

  testing_support::TempDir dir_;
};

TEST_F(LedgerCheckTest, OfAWholeRun) {
  begin(0, 0, 1);
  for (int s = 1; s <= 6; ++s) step(0, 0, s);
  EXPECT_EQ(found(), "6 steps of 1 attempt, in 2 epochs of 10 samples, each used once");
}

TEST_F(LedgerCheckTest, TheLastAttemptOfAStepCounts) {
  begin(0, 0, 2), begin(1, 0, 2);
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);  // rank 1 was killed before it noted the step
  write(0, "{\"attempt\":0,\"st");
  write(0, "\n"), begin(0, 1, 1);
  for (int s = 2; s <= 3; ++s) step(0, 1, s);
  EXPECT_EQ(found(), "3 steps of 2 attempts, in 1 epoch of 10 samples, each used once");
}

TEST_F(LedgerCheckTest, TheLastStepMayBeUnderWay) {
  begin(0, 0, 2);
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);
  write(0, "{\"attempt\":0,");
  EXPECT_THAT(found(), HasSubstr("2 steps"));
}

TEST_F(LedgerCheckTest, OtherNodesMayHaveTheirsElsewhere) {
  begin(1, 0, 2);
  note(1, 0, 1, 1, 2, 2);
  note(1, 0, 2, 1, 6, 2);
  EXPECT_EQ(
      found(),
      "2 steps of 1 attempt, in 1 epoch of 10 samples, each used at most once here; of 2 steps other nodes have lanes");
  note(1, 0, 2, 0, 5, 2);
  EXPECT_EQ(fault(), "step 2: sample 6 of the epoch is used twice");
}

TEST_F(LedgerCheckTest, AForkBeginsInTheMiddle) {
  begin(0, 0, 1);
  for (int s = 3; s <= 5; ++s) step(0, 0, s);
  EXPECT_THAT(found(), HasSubstr("3 steps of 1 attempt, in 2 epochs"));
}

TEST_F(LedgerCheckTest, WhatWasNotUsedIsNamed) {
  begin(0, 0, 1);
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);
  step(0, 0, 3);
  EXPECT_EQ(fault(), "step 2: sample 6 of the epoch is not used");
}

TEST_F(LedgerCheckTest, WhatWasUsedTwiceIsNamed) {
  begin(0, 0, 1);
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);
  note(0, 0, 2, 1, 5, 3);
  EXPECT_EQ(fault(), "step 2: sample 5 of the epoch is used twice");
}

TEST_F(LedgerCheckTest, ASampleOfAnotherStepIsNamed) {
  begin(0, 0, 1);
  step(0, 0, 1);
  note(0, 0, 2, 0, 2, 2);
  EXPECT_EQ(fault(), "step 2: sample 2 of the epoch is used twice");
}

TEST_F(LedgerCheckTest, AMissingStepIsNamed) {
  begin(0, 0, 1);
  step(0, 0, 1), step(0, 0, 3);
  EXPECT_EQ(fault(), "step 2 is missing");
}

TEST_F(LedgerCheckTest, OtherSamplesInAnotherAttemptAreNamed) {
  begin(0, 0, 1);
  note(0, 0, 1, 0, 0, 2, "other");
  begin(0, 1, 1);
  step(0, 1, 1);
  EXPECT_EQ(fault(), "step 1, lane 0: attempt 0 had other samples than attempt 1");
}

TEST_F(LedgerCheckTest, WhatIsNoLedgerIsNamed) {
  EXPECT_EQ(fault(), "no line says what run it is of");
  begin(0, 0, 1);
  write(0, "half\n");
  step(0, 0, 1);
  EXPECT_EQ(fault(), "rank0.jsonl, line 2 is no line of a ledger");
}

TEST_F(LedgerCheckTest, LinesOfAnotherRunAreAFault) {
  begin(0, 0, 1);
  begin(0, 1, 1, "\"samples\":12,\"lanes\":2");
  EXPECT_THAT(fault(), HasSubstr("of runs with other data, lanes or batches"));
}

}  // namespace
}  // namespace lockstep::train
