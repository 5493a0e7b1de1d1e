#include "lockstep/launch/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lockstep/base/error.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string folder = testing::TempDir() + "runs-XXXXXX";
    root_ = mkdtemp(folder.data());
    runs_ = root_ + "/runs";
    options_.recipe = "mnist";
  }
  RunDirectory prepare() { return RunDirectory::prepare(options_, runs_); }
  std::string touch(const std::string& path) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  template <typename Error>
  std::string refusal() {
    try {
      prepare();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::string root_, runs_;
  train::TrainOptions options_;
};

TEST_F(RunDirectoryTest, TakesTheNextFreeNumber) {
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-2");
  fs::create_directories(runs_ + "/mnist-7");
  fs::create_directories(runs_ + "/mnist-x");
  fs::create_directories(runs_ + "/unet-9");
  const auto run = prepare();
  EXPECT_EQ(run.path(), runs_ + "/mnist-8");
  EXPECT_FALSE(run.resume().has_value());
  for (const char* name : {"checkpoints", "logs", "errors"}) EXPECT_TRUE(fs::is_directory(run.path() + "/" + name));
  EXPECT_EQ(run.logs(), run.path() + "/logs");
}

TEST_F(RunDirectoryTest, OutIsMadeWithItsParents) {
  options_.out = root_ + "/a/b/c/";
  EXPECT_EQ(prepare().path(), root_ + "/a/b/c");
  EXPECT_EQ(prepare().path(), root_ + "/a/b/c") << "an empty one may be used again";
}

TEST_F(RunDirectoryTest, ARunIsNotWrittenOver) {
  options_.out = root_ + "/run";
  touch(options_.out + "/metrics.jsonl");
  EXPECT_THAT(refusal<ConfigError>(), testing::HasSubstr("already holds a run; add --resume"));
}

TEST_F(RunDirectoryTest, WhatCantBeWrittenIsNamed) {
  for (const std::string out : {"/proc/lockstep/run", "/sys/kernel/run"}) {
    options_.out = out;
    EXPECT_THAT(refusal<IoError>(),
                testing::AllOf(testing::HasSubstr(fs::path(out).parent_path().string()), testing::HasSubstr("errno")));
  }
  options_.out = touch(root_ + "/file");
  EXPECT_THAT(refusal<IoError>(), testing::HasSubstr(options_.out));
  options_.out = root_ + "/file/run";
  EXPECT_THAT(refusal<IoError>(), testing::HasSubstr("errno"));
}

TEST_F(RunDirectoryTest, AFailureLeavesNothingBehind) {
  options_.out = root_ + "/new/" + std::string(300, 'x');
  EXPECT_THAT(refusal<IoError>(), testing::HasSubstr("name too long"));
  EXPECT_FALSE(fs::exists(root_ + "/new"));
}

TEST_F(RunDirectoryTest, ResumesANamedRun) {
  const std::string run = root_ + "/old";
  const std::string checkpoint = touch(run + "/checkpoints/last.pt");
  options_.resume = run;
  EXPECT_EQ(prepare().path(), run);
  EXPECT_EQ(prepare().resume(), run);
  options_.resume = checkpoint;
  EXPECT_EQ(prepare().path(), run);
  EXPECT_EQ(prepare().resume(), checkpoint);
  options_.out = root_ + "/elsewhere";
  EXPECT_EQ(prepare().path(), root_ + "/elsewhere");
  options_.out = run;
  options_.resume = "";
  EXPECT_EQ(prepare().resume(), run);
}

TEST_F(RunDirectoryTest, ALoneCheckpointGetsANewRun) {
  options_.resume = touch(root_ + "/lone.pt");
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
  EXPECT_EQ(prepare().resume(), options_.resume);
}

TEST_F(RunDirectoryTest, BareResumeTakesTheNewest) {
  options_.resume = "";
  EXPECT_THAT(refusal<ConfigError>(), testing::HasSubstr("no run of mnist with a checkpoint"));
  touch(runs_ + "/mnist-1/checkpoints/last.pt");
  touch(runs_ + "/mnist-2/checkpoints/last.pt");
  touch(runs_ + "/mnist-3/metrics.jsonl");
  touch(runs_ + "/unet-4/checkpoints/last.pt");
  fs::last_write_time(runs_ + "/mnist-1/checkpoints", fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
}

TEST_F(RunDirectoryTest, WhatCantBeResumed) {
  options_.resume = root_ + "/no-such-run";
  EXPECT_THAT(refusal<ConfigError>(), testing::HasSubstr("no such file or folder"));
  fs::create_directories(*options_.resume);
  EXPECT_THAT(refusal<ConfigError>(), testing::HasSubstr("no checkpoint"));
}

TEST_F(RunDirectoryTest, DiscardsOnlyWhatItMadeAndNobodyUsed) {
  const auto fresh = prepare();
  touch(fresh.logs() + "/rank0.log");
  fresh.discard_if_unused();
  EXPECT_FALSE(fs::exists(fresh.path()));
  const auto used = prepare();
  touch(used.path() + "/metrics.jsonl");
  used.discard_if_unused();
  EXPECT_TRUE(fs::exists(used.path()));
  options_.out = root_ + "/mine";
  fs::create_directories(options_.out);
  prepare().discard_if_unused();
  EXPECT_TRUE(fs::exists(options_.out));
  EXPECT_TRUE(fs::is_empty(options_.out));
}

TEST_F(RunDirectoryTest, InputsMustBeThere) {
  EXPECT_NO_THROW(check_inputs(options_));
  options_.data.path = root_;
  EXPECT_NO_THROW(check_inputs(options_));
  options_.data.path = root_ + "/none";
  EXPECT_THROW(check_inputs(options_), ConfigError);
  options_.data.path = touch(root_ + "/file");
  EXPECT_NO_THROW(check_inputs(options_)) << "the recipe judges what is in it";
  options_.data.path.clear();
  options_.load = root_ + "/file";
  EXPECT_NO_THROW(check_inputs(options_));
  options_.load = root_ + "/none.pt";
  EXPECT_THROW(check_inputs(options_), ConfigError);
  options_.load = root_;
  EXPECT_THROW(check_inputs(options_), ConfigError);
}

TEST_F(RunDirectoryTest, AResumedRunsFileIsFound) {
  const std::string run = root_ + "/mnist-1";
  touch(run + "/checkpoints/last.pt");
  EXPECT_EQ(find_resumed_config(options_, root_), "") << "nothing is resumed";
  options_.resume = run;
  EXPECT_EQ(find_resumed_config(options_, root_), "") << "it has none";
  touch(run + "/config.toml");
  for (const auto& from : {run, run + "/checkpoints/last.pt"}) {
    options_.resume = from;
    EXPECT_TRUE(fs::equivalent(find_resumed_config(options_, root_), run + "/config.toml"));
  }
  options_.resume = "";
  EXPECT_EQ(find_resumed(options_, root_)->run, run);
  options_.resume.reset();
  EXPECT_EQ(find_resumed(options_, root_), std::nullopt);
}

}  // namespace
}  // namespace lockstep::launch
