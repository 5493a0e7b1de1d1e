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
  struct Begun {
    int after = 0;
    int local_size = 0;  // 0: all ranks on one node
    std::string shape = "\"samples\":10,\"lanes\":2";
  };
  void begin(int rank, int attempt, int ranks) { begin(rank, attempt, ranks, Begun()); }
  void begin(int rank, int attempt, int ranks, const Begun& begun) {
    const int local_size = begun.local_size == 0 ? ranks : begun.local_size;
    write(rank, cat("{\"attempt\":", attempt, ",\"rank\":", rank, ",\"ranks\":", ranks,
                    ",\"local_rank\":", rank % local_size, ",\"local_size\":", local_size, ",\"after\":", begun.after,
                    ",", begun.shape, ",\"batch_size\":2,\"drop_last\":false}\n"));
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
  note(0, 0, 1, 0, 0, 2);
  EXPECT_THAT(found(), HasSubstr("1 step")) << "rank 1 is starting yet";
  begin(1, 0, 2);
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);
  write(0, "{\"attempt\":0,");
  EXPECT_THAT(found(), HasSubstr("2 steps"));
}

TEST_F(LedgerCheckTest, OtherNodesMayHaveTheirsElsewhere) {
  begin(1, 0, 2, {.local_size = 1});
  note(1, 0, 1, 1, 2, 2);
  note(1, 0, 2, 1, 6, 2);
  EXPECT_EQ(
      found(),
      "2 steps of 1 attempt, in 1 epoch of 10 samples, each used at most once here; of 2 steps other nodes have lanes");
  note(1, 0, 2, 0, 5, 2);
  EXPECT_EQ(fault(), "step 2: sample 6 of the epoch is used twice");
}

TEST_F(LedgerCheckTest, OtherNodesMayHaveGoneOnAlone) {
  begin(1, 0, 2, {.local_size = 1});
  note(1, 0, 1, 1, 2, 2);
  begin(1, 2, 2, {.after = 2, .local_size = 1});  // attempt 1 was of rank 0 alone
  note(1, 2, 3, 1, 9, 1);
  EXPECT_THAT(found(), HasSubstr("of 3 steps other nodes have lanes"));
}

TEST_F(LedgerCheckTest, ANodeHasTheFilesOfAllItsRanks) {
  begin(0, 0, 2);
  note(0, 0, 1, 0, 0, 2);
  note(0, 0, 2, 0, 4, 2);
  EXPECT_EQ(fault(), "attempt 0: of 2 ranks 1 have lines here, and others of the same node none: a file is missing");
}

TEST_F(LedgerCheckTest, OfTwoNodesBothHaveAll) {
  for (const int rank : {0, 1, 2}) begin(rank, 0, 4, {.local_size = 2});
  step(0, 0, 1);
  note(0, 0, 2, 0, 4, 2);
  EXPECT_THAT(fault(), HasSubstr("of 4 ranks 3 have lines here"));
  begin(3, 0, 4, {.local_size = 2});
  EXPECT_THAT(found(), HasSubstr("2 steps of 1 attempt"));
}

// It was stopped before the steps that an earlier one had computed after the checkpoint.
TEST_F(LedgerCheckTest, TheRunIsWhereItsLastAttemptIs) {
  begin(0, 0, 2), begin(1, 0, 2);
  for (int s = 1; s <= 4; ++s) step(0, 0, s);
  note(0, 0, 5, 0, 4, 2);
  begin(0, 1, 1, {.after = 1});
  EXPECT_EQ(found(), "1 step of 2 attempts, in 1 epoch of 10 samples, each used once");
  step(0, 1, 2);
  note(0, 1, 3, 0, 8, 1);
  EXPECT_THAT(found(), HasSubstr("3 steps of 2 attempts"));
  note(0, 1, 3, 1, 9, 1, "other");
  EXPECT_EQ(fault(), "step 3, lane 1: attempt 0 had other samples than attempt 1");
}

TEST_F(LedgerCheckTest, ALaneIsNotedOnce) {
  begin(0, 0, 2), begin(1, 0, 2);
  step(0, 0, 1);
  note(1, 0, 1, 0, 0, 2);
  EXPECT_THAT(found(), HasSubstr("1 step")) << "or by several ranks alike";
  note(1, 0, 1, 0, 0, 2, "other");
  EXPECT_EQ(fault(), "step 1, lane 0: attempt 0 has noted it twice, with other samples");
}

TEST_F(LedgerCheckTest, AStepOfAnEarlierAttemptIsNotUnderWay) {
  begin(0, 0, 1);
  note(0, 0, 1, 0, 0, 2);
  begin(0, 1, 1, {.after = 1});
  EXPECT_EQ(fault(), "step 1: sample 2 of the epoch is not used");
}

TEST_F(LedgerCheckTest, SamplesOfTheNextStepAreNamed) {
  begin(0, 0, 1);
  note(0, 0, 1, 0, 0, 2);
  note(0, 0, 1, 1, 2, 3);
  EXPECT_EQ(fault(), "step 1: sample 4 of the epoch is another step's");
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
  begin(0, 1, 1, {.shape = "\"samples\":12,\"lanes\":2"});
  EXPECT_THAT(fault(), HasSubstr("of runs with other data, lanes or batches"));
}

}  // namespace
}  // namespace lockstep::train
