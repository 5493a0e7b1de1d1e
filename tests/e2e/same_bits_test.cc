// A run's numbers are those of (seed, data, config, lanes): never of how many processes compute them.
#include <gtest/gtest.h>
#include <sched.h>

#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/parallel/options/lanes.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

class SameBits : public ::testing::TestWithParam<Words> {};

TEST_P(SameBits, AtOneTwoAndFourRanks) {
  const auto one = outcome_of(finished_run(GetParam()));
  ASSERT_EQ(one.value("weights_sha256", "").size(), 64u) << one;
  EXPECT_EQ(one.at("steps"), kSteps);
  EXPECT_EQ(one.at("epochs"), kSteps / kStepsPerEpoch);  // so ragged batches were among them
  EXPECT_TRUE(one.at("metrics").contains("accuracy")) << one;
  for (const int nproc : {2, 4}) {
    const TempDir dir;
    const auto result = lockstep(train_words({"--steps", std::to_string(kSteps), "--out", dir / "run"}) + GetParam() +
                                 Words{"--nproc", std::to_string(nproc)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(final_of(dir / "run").value("world_size", 0), nproc);
    EXPECT_EQ(final_of(dir / "run").value("lanes", 0), kLanes);
    EXPECT_EQ(outcome_of(dir / "run"), one) << nproc << " ranks";
    EXPECT_EQ(steps_logged(dir / "run"), first_steps(kSteps));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, SameBits, ::testing::Values(Words{}, Words{"--amp", "O1"}, kAveraged));

TEST(SameBits, WithTheOptimizerShardedOrNot) {
  const auto reference = outcome_of(finished_run(kAveraged));
  EXPECT_EQ(reference.value("ema_sha256", "").size(), 64u) << reference;
  EXPECT_NE(reference.at("ema_sha256"), reference.at("weights_sha256"));
  const std::vector<std::pair<std::string, Words>> forms = {
      {", state and weights shared by 2 ranks\n", {}},
      {"", {"--shard-optimizer", "off"}},
      {", state sharded over 2 ranks\n", {"--shard-optimizer", "on", "--backend", "gloo"}}};
  for (const auto& [header, words] : forms) {
    const TempDir dir;
    const auto result = lockstep(
        train_words({"--steps", std::to_string(kSteps), "--nproc", "2", "--out", dir / "run"}) + kAveraged + words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find(header), std::string::npos) << header << result.out;
    EXPECT_EQ(result.out.find(", state") == std::string::npos, header.empty()) << result.out;
    EXPECT_EQ(outcome_of(dir / "run"), reference) << header;
  }
}

TEST(SameBits, OnAnyNumberOfCoresWhereNothingIsSaid) {
  const TempDir dir;
  const Words words = {"train", "mnist", "--data", digits_folder(), "--batch-size", "8", "--steps", "5"};
  const auto one = Program({.command = Words{"/usr/bin/env", "taskset", "-c", std::to_string(sched_getcpu()),
                                             bin_folder() + "/lockstep"} +
                                       words + Words{"--out", dir / "one"}})
                       .wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  const auto all = lockstep(words + Words{"--out", dir / "all"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(final_of(dir / "one").value("world_size", 0), 1);
  EXPECT_EQ(final_of(dir / "all").value("world_size", 0), parallel::fitting_nproc(usable_cores(), kLanes));
  EXPECT_EQ(final_of(dir / "one").value("lanes", 0), kLanes);
  EXPECT_EQ(outcome_of(dir / "all"), outcome_of(dir / "one"));
}

TEST(SameBits, OnPinnedCores) {
  const TempDir dir;
  const auto result =
      lockstep(train_words({"--steps", std::to_string(kSteps), "--nproc", "2", "--pin", "--out", dir / "run"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(outcome_of(dir / "run"), outcome_of(finished_run()));
}

TEST(SameBits, AreNotThoseOfAnotherSeedOrPrecision) {
  const auto weights = [](const Words& more) { return outcome_of(finished_run(more)).value("weights_sha256", ""); };
  EXPECT_NE(weights({"--seed", "2"}), weights({}));
  EXPECT_NE(weights({"--amp", "O1"}), weights({}));
}

}  // namespace
}  // namespace lockstep::e2e
