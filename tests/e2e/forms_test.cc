// Runs in each form of parallel training: the weights are data parallelism's, bit for bit, so that a run may go on in
// another form; and mistakes. Faults: soak/form_faults_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Form {
  const char* name;
  Words words;
};
const Form kForms[] = {{"dp", {"--parallel", "dp", "--replicas", "2"}},
                       {"pipeline", {"--parallel", "pipeline", "--nproc", "2"}},
                       {"gpipe", {"--parallel", "pipeline", "--nproc", "3", "--schedule-pp", "gpipe"}},
                       {"two_pipelines", {"--parallel", "pipeline", "--stages", "2", "--nproc", "4"}},
                       {"server", {"--parallel", "ps", "--nproc", "2"}},
                       {"two_servers", {"--parallel", "ps", "--servers", "2", "--nproc", "4"}}};

class Forms : public ::testing::Test {
 protected:
  // The run's outcome without what tells how many ranks there were.
  nlohmann::json outcome(const std::string& name, const Words& words) const {
    const Result result = lockstep(words + Words{"--out", dir_ / name});
    EXPECT_EQ(result.exit_code, 0) << name << result.err;
    return outcome_of(dir_ / name);
  }
  void expect_the_bits_of_ddp(const Words& words) const {
    const nlohmann::json ddp = outcome("ddp", words + Words{"--nproc", "2"});
    EXPECT_FALSE(ddp.is_null());
    for (const Form& form : kForms) EXPECT_EQ(outcome(form.name, words + form.words), ddp) << form.name;
  }

  const TempDir dir_;
};

// The last step of each epoch is smaller.
TEST_F(Forms, EndWithTheSameBits) {
  expect_the_bits_of_ddp(train_words({"--steps", "10", "--optimizer", "adamw", "--lr", "0.001", "--ema", "0.9",
                                      "--clip", "1", "--snapshot-every", "0"}));
}

TEST_F(Forms, EndWithTheSameBitsIn16Bits) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_the_bits_of_ddp(train_words({"--steps", "6", "--amp", "O2", "--dtype", "bf16"}));
}

// More than two of them add up: each sum is rounded to 16 bits.
TEST_F(Forms, ManyReplicasEndWithTheSameBitsIn16Bits) {
  const Words words = train_words({"--steps", "6", "--amp", "O2", "--dtype", "bf16"});
  EXPECT_EQ(outcome("dp", words + Words{"--parallel", "dp", "--replicas", "4"}), outcome("ddp", words));
}

// Several pipelines of a network with BatchNorm: their ranks pack other buffers, and write one file.
TEST_F(Forms, SeveralPipelinesSaveTheFileOfOne) {
  const Words words = {"train",    "unet", "--size",           "32", "--width",        "4", "--batch-size", "1",
                       "--lanes",  "4",    "--threads",        "1",  "--steps",        "6", "--save-every", "3",
                       "--ema",    "0.9",  "--snapshot-every", "2",  "--max-restarts", "0", "--parallel",   "pipeline",
                       "--stages", "2"};
  std::vector<std::string> files;
  for (const char* ranks : {"2", "4"}) {
    outcome(ranks, words + Words{"--nproc", ranks});
    files.push_back(read_file(dir_ / (std::string(ranks) + "/checkpoints/step-000003.pt")));
  }
  EXPECT_FALSE(files[0].empty());
  EXPECT_TRUE(files[0] == files[1]);
}

// All steps overflow, and are skipped.
TEST_F(Forms, SkipTheSameSteps) {
  expect_the_bits_of_ddp(
      train_words({"--steps", "4", "--amp", "O1", "--dtype", "fp16", "--loss-scale", "1e12", "--ema", "0.9"}));
}

// Lanes that replicas can't have by ones or twos, and last steps with fewer of them.
TEST_F(Forms, AnyNumberOfReplicasAndLanesHasTheBitsThatItsHeaderSays) {
  LOCKSTEP_LONG_TEST_IF(true);
  const auto words = [&](int lanes) {
    return Words{"train", "mnist",   "--data", digits_folder(), "--lanes", std::to_string(lanes), "--batch-size",
                 "2",     "--steps", "18",     "--nproc",       "1"};
  };
  for (const auto& [lanes, replicas] : {std::pair{3, 2}, {5, 3}, {6, 4}, {7, 5}, {8, 5}}) {
    const std::string name = std::to_string(lanes) + "_over_" + std::to_string(replicas);
    const nlohmann::json ddp = outcome("ddp" + name, words(lanes));
    EXPECT_EQ(outcome(name, words(lanes) + Words{"--parallel", "dp", "--replicas", std::to_string(replicas)}), ddp)
        << name;
  }
}

// Its outputs go past stages, and are scaled back.
TEST_F(Forms, EndWithTheSameBitsOfAUNet) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_the_bits_of_ddp(
      {"train", "unet", "--steps", "3", "--lanes", "4", "--batch-size", "2", "--width", "4", "--half-size"});
}

// BatchNorm's statistics, and dropout.
TEST_F(Forms, EndWithTheSameBitsOfAMobileNet) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_the_bits_of_ddp({"train", "imagenet", "--arch", "mobilenet_v2", "--size", "32", "--steps", "3", "--lanes", "4",
                          "--batch-size", "4"});
}

TEST_F(Forms, ServersTakeSyncBatchNorm) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words words = {"train",        "imagenet", "--arch",  "resnet18", "--size",    "32", "--lanes",  "4",
                       "--batch-size", "2",        "--steps", "2",        "--threads", "1",  "--sync-bn"};
  const nlohmann::json ddp = outcome("ddp", words + Words{"--nproc", "2"});
  EXPECT_FALSE(ddp.is_null());
  EXPECT_EQ(outcome("ps", words + kForms[5].words), ddp);
}

TEST_F(Forms, WhatIsRefusedLosesNothing) {
  ASSERT_EQ(lockstep(train_words({"--steps", "2", "--out", dir_ / "run"})).exit_code, 0);
  const std::string final = read_file(dir_ / "run/final.json");
  for (const Words& words : {Words{"--parallel", "dp", "--replicas", "9"},
                             Words{"--parallel", "pipeline", "--nproc", "2", "--skip-bad", "1"}}) {
    EXPECT_EQ(lockstep(train_words({"--steps", "4", "--overwrite", "--out", dir_ / "run"}) + words).exit_code, 2);
  }
  EXPECT_EQ(read_file(dir_ / "run/final.json"), final);
}

TEST_F(Forms, TheLedgerOfAPipelineIsWhole) {
  ASSERT_EQ(lockstep(train_words({"--steps", "4", "--ledger", "--out", dir_ / "run"}) + kForms[3].words).exit_code, 0);
  const Result verified = lockstep({"verify", dir_ / "run"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("in 1 epoch of 100 samples, each used once"));
}

TEST_F(Forms, ARunGoesOnInAnother) {
  const Words words = train_words({"--optimizer", "adamw", "--lr", "0.001"});
  const nlohmann::json whole = outcome("whole", words + Words{"--steps", "12", "--nproc", "2"});
  const std::string run = dir_ / "run";
  const Words steps[] = {{"--steps", "4", "--parallel", "pipeline", "--nproc", "2"},
                         {"--steps", "8", "--parallel", "dp", "--nproc", "1"},
                         {"--steps", "9", "--parallel", "pipeline", "--stages", "2", "--nproc", "4"},
                         {"--steps", "11", "--parallel", "ps", "--servers", "3", "--nproc", "4"},
                         {"--steps", "12", "--parallel", "ddp"}};
  Words begin = words + Words{"--out", run};
  for (const Words& each : steps) {
    const Result result = lockstep(begin + each);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    begin = {"train", "--resume", run};
  }
  EXPECT_EQ(outcome_of(run), whole);
}

TEST_F(Forms, TheHeaderSaysHow) {
  const Result pipeline = lockstep(train_words({"--steps", "1", "--out", dir_ / "a"}) + kForms[1].words);
  EXPECT_THAT(pipeline.out,
              AllOf(HasSubstr("\n  parallel    a pipeline of 2 stages (layers 1, 2-3), 1f1b over 4 lanes\n"),
                    HasSubstr("\n  bits        the same at any number of ranks")));
  const Result ps = lockstep(train_words({"--steps", "1", "--out", dir_ / "c"}) + kForms[5].words);
  EXPECT_THAT(ps.out, AllOf(HasSubstr("\n  parallel    2 parameter servers (ranks 0, 2), to which 4 ranks push "
                                      "synchronously\n"),
                            HasSubstr("\n  bits        the same at any number of ranks")));
  const Result dp =
      lockstep(train_words({"--steps", "1", "--out", dir_ / "b"}) + Words{"--parallel", "dp", "--replicas", "1"});
  EXPECT_THAT(dp.out, AllOf(HasSubstr("\n  parallel    1 replica in one process, over 4 lanes\n"),
                            HasSubstr("\n  bits        this world size only\n")));
}

TEST_F(Forms, WhatCanNotBeIsRefused) {
  const auto refused = [&](const Words& words) {
    const Result result = lockstep(train_words(words + Words{"--out", dir_ / "none"}));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_THAT(refused({"--stages", "2"}), StartsWith("error: --stages: goes with --parallel pipeline, and this is"));
  EXPECT_THAT(refused({"--parallel", "dp", "--nproc", "2"}), HasSubstr("one process computes all replicas"));
  EXPECT_THAT(refused({"--parallel", "dp", "--replicas", "5"}), HasSubstr("give --lanes 5 or more"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--nproc", "1"}), HasSubstr("2 processes or more"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--stages", "2", "--nproc", "3"}), HasSubstr("divides the 3"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--nproc", "4"}),
              HasSubstr("4 stages, and the network has 3 layers, of which each stage gets one at least"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--nproc", "2", "--skip-bad", "1"}), HasSubstr("use --parallel ddp"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--nproc", "2", "--sync-bn"}), HasSubstr("use --parallel ddp or dp"));
  EXPECT_THAT(refused({"--parallel", "pipeline", "--nproc", "2", "--optimizer", "lamb"}),
              HasSubstr("--parallel pipeline: --optimizer lamb needs the norms of whole layers"));
  EXPECT_THAT(refused({"--servers", "2"}), StartsWith("error: --servers: goes with --parallel ps, and this is"));
  EXPECT_THAT(refused({"--parallel", "ps", "--servers", "3", "--nproc", "2"}), HasSubstr("give --servers 2 or less"));
  EXPECT_THAT(refused({"--parallel", "ps", "--nproc", "2", "--optimizer", "lars"}),
              HasSubstr("--parallel ps: --optimizer lars needs the norms of whole layers"));
  EXPECT_THAT(refused({"--parallel", "ps", "--nproc", "2", "--shard-optimizer", "off"}), HasSubstr("leave it out"));
}

}  // namespace
}  // namespace lockstep::e2e
