// `lockstep train imagenet --mixup --cutmix` and `--skip-bad`: the same bits at any number of ranks, and after a
// resume.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/long_test.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

Words train_images(const std::string& run, const std::string& data, const Words& more) {
  return Words{"train", "imagenet", "--data", data,     "--size",       "64",        "--lanes", "4",     "--batch-size",
               "2",     "--lr",     "0.02",   "--arch", "mobilenet_v2", "--threads", "1",       "--out", run} +
         more;
}

Result run(const Words& words) { return lockstep(words, ".", std::chrono::seconds(200)); }

nlohmann::json outcome_after(const Words& words, const std::string& folder) {
  const auto result = run(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return outcome_of(folder);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(MixedImages, GiveTheSameBitsAtAnyNumberOfRanksAndAfterAResume) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 10);
  const Words mixed = {"--mixup", "0.4", "--cutmix", "1", "--label-smoothing", "0.1", "--epochs", "2"};
  const auto words = [&](const std::string& run, const Words& more) {
    return train_images(dir / run, dir / "pictures", mixed + more);
  };
  const auto first = run(words("1", {"--steps", "5", "--nproc", "1", "--workers", "0"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE((first.out + first.err).find("mixing      MixUp 0.4 or CutMix 1, by a coin for each lane's batch\n"),
            std::string::npos)
      << first.out << first.err;
  const auto one = outcome_of(dir / "1");
  for (const auto& [nproc, workers] : {std::pair("2", "2"), std::pair("4", "1")}) {
    EXPECT_EQ(outcome_after(words(nproc, {"--steps", "5", "--nproc", nproc, "--workers", workers}), dir / nproc), one);
  }
  outcome_after(words("resumed", {"--steps", "3", "--nproc", "2"}), dir / "resumed");
  EXPECT_EQ(outcome_after({"train", "--resume", dir / "resumed", "--steps", "5", "--nproc", "1"}, dir / "resumed"),
            one);
  const auto other = run({"train", "--resume", dir / "resumed", "--steps", "6", "--mixup", "0.2"});
  EXPECT_EQ(other.exit_code, 2) << "another run";
  EXPECT_NE(other.err.find("--mixup"), std::string::npos) << other.err;
  const auto off = run({"train", "--resume", dir / "resumed", "--steps", "6", "--mixup", "0"});
  EXPECT_EQ(off.exit_code, 2) << "its ranks would mix on";
  EXPECT_NE(off.err.find("--mixup 0.4, this run has no --mixup"), std::string::npos) << off.err;
}

TEST(MixedImages, AreNoneWhereAFileSaysSoAndTheLineZero) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_class_folders(dir / "pictures", 3, 10);
  write_file(dir / "mixed.toml", "mixup = 0.4\ncutmix = 1\n");
  const auto words = [&](const std::string& name, const Words& more) {
    return train_images(dir / name, dir / "pictures", more + Words{"--steps", "2", "--nproc", "2"});
  };
  const auto plain = outcome_after(words("plain", {}), dir / "plain");
  EXPECT_EQ(outcome_after(words("off", {"--config", dir / "mixed.toml", "--mixup", "0", "--cutmix", "0"}), dir / "off"),
            plain);
  EXPECT_NE(outcome_after(words("mixed", {"--config", dir / "mixed.toml"}), dir / "mixed"), plain);
  const auto goes_on = run({"train", "--resume", dir / "plain", "--steps", "3", "--mixup", "0"});
  EXPECT_EQ(goes_on.exit_code, 0) << goes_on.err;
}

// Three of thirty pictures are no pictures.
void write_damaged(const std::string& folder) {
  write_class_folders(folder, 3, 10);
  write_file(folder + "/class_00/4.jpg", "<!DOCTYPE html><html>no such picture</html>");
  write_file(folder + "/class_01/7.jpg", "");
  fs::resize_file(folder + "/class_02/1.jpg", 300);
}
const char* const kDamaged[] = {"class_00/4.jpg", "class_01/7.jpg", "class_02/1.jpg"};

// The damaged ones are in the part that is trained on and, where none is held out, in the evaluation as well.
TEST(SkippedImages, GiveTheSameBitsAtAnyNumberOfRanksAndAfterAResume) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  write_damaged(dir / "pictures");
  const auto words = [&](const std::string& run, const Words& more) {
    return train_images(dir / run, dir / "pictures",
                        Words{"--validation", "0", "--skip-bad", "3", "--epochs", "2"} + more);
  };
  const auto first = run(words("1", {"--steps", "7", "--nproc", "1", "--workers", "0"}));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto one = outcome_of(dir / "1");
  EXPECT_EQ(final_of(dir / "1").at("skipped"), 3);
  const std::string list = text_of(dir / "1/skipped.txt"), said = first.out + first.err;
  for (const char* name : kDamaged) {
    EXPECT_NE(list.find(name), std::string::npos) << list;
    EXPECT_NE(said.find(name), std::string::npos) << said;
  }
  EXPECT_NE(said.find("skipped 3 of 3: "), std::string::npos) << said;
  EXPECT_NE(said.find("27 test samples (3 more can't be read)"), std::string::npos) << said;
  for (const auto& [nproc, workers] : {std::pair("2", "2"), std::pair("4", "1")}) {
    EXPECT_EQ(outcome_after(words(nproc, {"--steps", "7", "--nproc", nproc, "--workers", workers}), dir / nproc), one);
    EXPECT_EQ(text_of(dir / nproc + "/skipped.txt"), list) << nproc;
  }
  outcome_after(words("resumed", {"--steps", "3", "--nproc", "2"}), dir / "resumed");
  EXPECT_EQ(outcome_after({"train", "--resume", dir / "resumed", "--steps", "7", "--nproc", "1"}, dir / "resumed"),
            one);
  EXPECT_EQ(final_of(dir / "resumed").at("skipped"), 3) << "each is counted once";
  const auto below = run({"train", "--resume", dir / "resumed", "--steps", "9", "--skip-bad", "1", "--nproc", "2"});
  EXPECT_EQ(below.exit_code, 2);
  EXPECT_NE(below.err.find("that can't be read, and --skip-bad is 1; give --skip-bad "), std::string::npos)
      << below.err;
}

TEST(SkippedImages, BeyondTheLimitEndTheRunWithAllOfThemNamed) {
  const TempDir dir;
  write_damaged(dir / "pictures");
  std::string at_one;
  for (const char* nproc : {"1", "2", "4"}) {
    const auto result = run(train_images(dir / nproc, dir / "pictures",
                                         {"--validation", "0", "--skip-bad", "2", "--epochs", "2", "--nproc", nproc}));
    EXPECT_EQ(result.exit_code, 65) << nproc;
    for (const char* name : kDamaged) EXPECT_NE(result.err.find(name), std::string::npos) << nproc << result.err;
    EXPECT_NE(result.err.find("skip-bad passes over 2"), std::string::npos) << result.err;
    const auto steps = steps_logged(dir / nproc);
    if (at_one.empty()) at_one = std::to_string(steps.size());
    EXPECT_EQ(std::to_string(steps.size()), at_one) << "at the same step";
  }
}

TEST(SkippedImages, AreNoneIfNobodyAsksForIt) {
  const TempDir dir;
  write_damaged(dir / "pictures");
  const auto result = run(train_images(dir / "run", dir / "pictures", {"--validation", "0", "--nproc", "2"}));
  EXPECT_EQ(result.exit_code, 65) << result.err;
}

}  // namespace
}  // namespace lockstep::e2e
