#include "lockstep/train/run_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

class RunFilesTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(files_.checkpoints()); }
  void TearDown() override { fs::remove_all(files_.folder); }
  RunFiles files_{testing::TempDir() + "run." + std::to_string(getpid())};
};

TEST_F(RunFilesTest, WritesText) {
  write_text(files_.final_json(), "{}\n");
  std::string line;
  std::getline(std::ifstream(files_.final_json()) >> std::ws, line);
  EXPECT_EQ(line, "{}");
}

TEST_F(RunFilesTest, AFolderResumesFromItsStore) {
  const auto point = find_resume_point(files_.folder);
  EXPECT_EQ(point.folder, files_.folder);
  EXPECT_FALSE(point.file);
}

TEST_F(RunFilesTest, TheInterruptedStateComesFirst) {
  std::ofstream(files_.interrupted()) << "x";
  EXPECT_EQ(find_resume_point(files_.folder).file, files_.interrupted());
}

TEST_F(RunFilesTest, AFileBelongsToItsRun) {
  const std::string file = files_.checkpoints() + "/step-000001.pt";
  std::ofstream(file) << "x";
  const auto point = find_resume_point(file);
  EXPECT_EQ(point.file, file);
  EXPECT_TRUE(fs::equivalent(point.folder, files_.folder));
}

TEST_F(RunFilesTest, AnythingElseIsRefused) {
  EXPECT_THROW(find_resume_point(files_.folder + "/none"), ConfigError);
  EXPECT_THROW(find_resume_point(files_.checkpoints()), ConfigError);
}

}  // namespace
}  // namespace lockstep::train
