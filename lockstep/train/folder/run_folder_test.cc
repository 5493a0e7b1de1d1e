#include "lockstep/train/folder/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunFolderTest : public ::testing::Test {
 protected:
  std::string touch(const std::string& name) const {
    const fs::path path = run_ + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path;
  }

  testing_support::TempDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(RunFolderTest, HoldsARunOnceSomethingIsWritten) {
  EXPECT_FALSE(holds_run(run_));
  fs::create_directories(run_ + "/checkpoints");
  touch("config.toml");
  touch("lock");
  EXPECT_FALSE(holds_run(run_));
  touch("metrics.jsonl");
  EXPECT_TRUE(holds_run(run_));
  EXPECT_FALSE(holds_checkpoint(run_));
  touch("checkpoints/INTERRUPTED.pt");
  EXPECT_TRUE(holds_checkpoint(run_));
}

TEST_F(RunFolderTest, TheInterruptedStateIsNewerThanTheLastStep) {
  EXPECT_EQ(newest_checkpoint(run_), std::nullopt);
  touch("checkpoints/step-000009.pt");
  const std::string last = touch("checkpoints/step-000010.pt");
  EXPECT_EQ(newest_checkpoint(run_), last);
  const std::string interrupted = touch("checkpoints/INTERRUPTED.pt");
  EXPECT_EQ(newest_checkpoint(run_), interrupted);
}

TEST_F(RunFolderTest, AFileBelongsToItsRun) {
  const std::string file = touch("checkpoints/step-000010.pt");
  EXPECT_EQ(run_of(file), run_);
  EXPECT_EQ(run_of(touch("other.pt")), "");
  EXPECT_EQ(run_of(dir_ / "none.pt"), "");
  fs::create_symlink(file, dir_ / "model.pt");
  EXPECT_TRUE(same_place(run_of(dir_ / "model.pt"), run_)) << "a link from elsewhere";
  const fs::path before = fs::current_path();
  fs::current_path(run_);
  EXPECT_EQ(run_of("checkpoints/step-000010.pt"), ".");
  fs::current_path(run_ + "/checkpoints");
  EXPECT_TRUE(same_place(run_of("step-000010.pt"), run_));
  fs::current_path(before);
}

TEST_F(RunFolderTest, ALinkLeadsToANumberedCheckpoint) {
  const std::string file = touch("checkpoints/step-000010.pt"), other = touch("other.pt");
  const std::string checkpoints = run_ + "/checkpoints";
  fs::create_symlink("step-000010.pt", checkpoints + "/last.pt");
  fs::create_symlink(checkpoints + "/last.pt", dir_ / "model.pt");
  EXPECT_EQ(numbered_checkpoint(checkpoints + "/last.pt"), file);
  EXPECT_EQ(numbered_checkpoint(dir_ / "model.pt"), file) << "over another link";
  EXPECT_EQ(numbered_checkpoint(file), file);
  EXPECT_EQ(numbered_checkpoint(other), other);
  EXPECT_EQ(numbered_checkpoint(dir_ / "none.pt"), dir_ / "none.pt");
  fs::create_symlink(other, checkpoints + "/mine.pt");
  EXPECT_EQ(numbered_checkpoint(checkpoints + "/mine.pt"), checkpoints + "/mine.pt") << "its step has no name";
  fs::create_symlink("round.pt", checkpoints + "/round.pt");
  EXPECT_EQ(numbered_checkpoint(checkpoints + "/round.pt"), checkpoints + "/round.pt");
}

TEST_F(RunFolderTest, OnlyTheLastStepIsTheNewest) {
  const std::string older = touch("checkpoints/step-000009.pt"), newest = touch("checkpoints/step-000010.pt");
  fs::create_symlink("step-000010.pt", run_ + "/checkpoints/last.pt");
  fs::create_symlink("step-000009.pt", run_ + "/checkpoints/best.pt");
  EXPECT_TRUE(is_newest(newest));
  EXPECT_TRUE(is_newest(run_ + "/checkpoints/last.pt"));
  EXPECT_FALSE(is_newest(older));
  EXPECT_FALSE(is_newest(run_ + "/checkpoints/best.pt"));
  EXPECT_FALSE(is_newest(touch("checkpoints/mine.pt"))) << "its step is not known";
  const std::string interrupted = touch("checkpoints/INTERRUPTED.pt");
  EXPECT_FALSE(is_newest(newest));
  EXPECT_TRUE(is_newest(interrupted));
}

TEST_F(RunFolderTest, APathNamesACheckpoint) {
  const std::string newest = touch("checkpoints/step-000010.pt");
  EXPECT_EQ(checkpoint_at("inspect", run_), newest);
  EXPECT_EQ(checkpoint_at("inspect", newest), newest);
  EXPECT_THAT(::lockstep::testing_support::refusal([&] { checkpoint_at("inspect", dir_.path()); }),
              HasSubstr("no run's folder with a checkpoint"));
  std::ofstream(dir_ / "model.safetensors") << "x";
  EXPECT_EQ(checkpoint_at("--load", dir_.path()), dir_.path()) << "its reader takes the folder";
}

}  // namespace
}  // namespace lockstep::train
