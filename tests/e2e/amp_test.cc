// Opt levels as a user trains with them: same bits at any number of ranks, masters that survive a resume, overflows
// that are explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using testing::HasSubstr;

struct Level {
  const char *amp, *dtype;
  Words more = {};
};

class AmpLevels : public testing::TestWithParam<Level> {};

TEST_P(AmpLevels, SameBitsOnAnyRanksAndOverAResume) {
  LOCKSTEP_LONG_TEST_IF(GetParam().amp == std::string("O3"));
  const auto& [amp, dtype, more] = GetParam();
  const Words words = Words{"--amp", amp, "--dtype", dtype} + more;
  const TempDir dir;
  const auto run = [&](const char* nproc, int steps, const Words& place) {
    const auto result =
        lockstep(train_words(words + Words{"--nproc", nproc, "--steps", std::to_string(steps)} + place));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  run("1", kSteps, {"--out", dir / "one"});
  run("2", kSteps, {"--out", dir / "two"});
  run("4", 5, {"--out", dir / "four"});
  const auto early = outcome_of(dir / "four");
  run("2", kSteps, {"--resume", dir / "four"});
  EXPECT_EQ(outcome_of(dir / "two"), outcome_of(dir / "one"));
  EXPECT_EQ(outcome_of(dir / "four"), outcome_of(dir / "one"));
  EXPECT_NE(early, outcome_of(dir / "one"));
}

INSTANTIATE_TEST_SUITE_P(All, AmpLevels,
                         testing::Values(Level{"O1", "fp16"}, Level{"O2", "bf16"}, Level{"O2", "fp16", kAveraged},
                                         Level{"O3", "bf16"}, Level{"O3", "fp16", {"--loss-scale", "128"}}),
                         [](const auto& of) {
                           return std::string(of.param.amp) + of.param.dtype + std::to_string(of.index);
                         });

TEST(AmpOverflow, NamesTheParameter) {
  const TempDir dir;
  const auto result = lockstep(train_words({"--amp", "O1", "--dtype", "fp16", "--loss-scale", "1e12", "--steps", "2",
                                            "--nproc", "2", "--out", dir / "run"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto records = records_of(dir / "run", "train");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_TRUE(records[0].at("skipped").get<bool>()) << records[0];
  EXPECT_THAT(records[0].at("overflow").get<std::string>(), HasSubstr("fc"));  // the first in backward's order
  EXPECT_EQ(result.err.find("in a row"), std::string::npos) << "two are no reason to warn";
}

TEST(AmpOverflow, ManyInARowGiveOneWarning) {
  const TempDir dir;
  const auto result = lockstep(train_words({"--amp", "O1", "--dtype", "fp16", "--loss-scale", "1e12", "--steps", "24",
                                            "--epochs", "6", "--nproc", "2", "--out", dir / "run"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const size_t first = result.err.find("17 steps in a row were skipped");
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_THAT(result.err.substr(first), HasSubstr("is not finite at a loss scale of 1e+12"));
  EXPECT_THAT(result.err.substr(first), HasSubstr("; lower --loss-scale, or leave it dynamic"));
  EXPECT_EQ(result.err.find("in a row", first + 30), std::string::npos) << result.err;
}

TEST(AmpCheckpoints, MastersAreFp32AndLoadAnywhere) {
  const TempDir dir;
  auto result = lockstep(train_words({"--amp", "O2", "--out", dir / "two"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string last = dir / "two/checkpoints/last.pt";
  result = lockstep({"inspect", last});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("bfloat16 ["), std::string::npos) << result.out;
  for (const char* amp : {"O0", "O3"}) {
    result = lockstep({"eval", "mnist", "--load", last, "--amp", amp, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  result = lockstep(train_words({"--amp", "O1", "--resume", dir / "two"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("it was trained with --amp O2, this run has --amp O1"));
}

TEST(AmpCheckpoints, AreEvaluatedInThePrecisionOfTheirRun) {
  const TempDir dir;
  auto result = lockstep(train_words({"--amp", "O1", "--dtype", "fp16", "--out", dir / "one"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto loss_at = [&](const Words& more) {
    const auto eval = lockstep(Words{"eval", dir / "one", "--json"} + more);
    EXPECT_EQ(eval.exit_code, 0) << eval.err;
    return nlohmann::json::parse(eval.out, nullptr, /*allow_exceptions=*/false).value("loss", 0.0);
  };
  const double trained = final_of(dir / "one").at("loss");
  EXPECT_EQ(loss_at({}), trained);
  EXPECT_EQ(loss_at({"--nproc", "2"}), trained);
  EXPECT_NE(loss_at({"--amp", "O0"}), trained);
  EXPECT_NE(loss_at({"--dtype", "bf16"}), trained);
  EXPECT_EQ(loss_at({"--amp", "O1", "--dtype", "fp16"}), trained);
  EXPECT_THAT(lockstep({"eval", dir / "one"}).out, HasSubstr(", at O1 float16 (as in the run)\n"));
}

TEST(AmpCheckpoints, OfSixteenBitsLoadWhereAllIsFp32) {
  const TempDir dir;
  auto result = lockstep(train_words({"--amp", "O3", "--dtype", "fp16", "--steps", "4", "--out", dir / "three"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = lockstep(train_words({"--load", dir / "three/checkpoints/last.pt", "--steps", "1", "--out", dir / "zero"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace lockstep::e2e
