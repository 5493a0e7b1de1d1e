#include "lockstep/launch/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/launch/resumed.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() { options_.recipe = "mnist"; }
  RunDirectory prepare() { return RunDirectory::prepare(options_, find_start(options_, runs_)); }
  std::string touch(const std::string& path) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  // A run with checkpoints of steps 200 and 400; best.pt is the first.
  std::string make_run(const std::string& run) {
    touch(run + "/checkpoints/step-000200.pt");
    touch(run + "/checkpoints/step-000400.pt");
    fs::create_symlink("step-000400.pt", run + "/checkpoints/last.pt");
    fs::create_symlink("step-000200.pt", run + "/checkpoints/best.pt");
    touch(run + "/metrics.jsonl");
    return run;
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

  testing_support::TempDir dir_;
  std::string root_ = dir_.path(), runs_ = root_ + "/runs";
  train::TrainOptions options_;
};

TEST_F(RunDirectoryTest, TakesTheNextFreeNumber) {
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-2");
  fs::create_directories(runs_ + "/mnist-7");
  fs::create_directories(runs_ + "/mnist-x");
  fs::create_directories(runs_ + "/unet-9");
  auto run = prepare();
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
  options_.out = make_run(root_ + "/run");
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("already holds a run; go on with it by --resume " + options_.out));
  options_.overwrite = true;
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("already holds a run")) << "it has checkpoints to go on from";
}

TEST_F(RunDirectoryTest, ARunWithoutACheckpointBeginsAnew) {
  const std::string run = root_ + "/run";
  touch(run + "/metrics.jsonl");
  options_.out = run;
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("holds a run that saved no checkpoint; add --overwrite"));
  options_.out = "";
  options_.resume = run;
  EXPECT_THAT(refusal<ConfigError>(),
              HasSubstr("has saved no checkpoint yet; begin it anew with --out " + run + " --overwrite"));
  options_.resume.reset();
  options_.out = run;
  options_.overwrite = true;
  EXPECT_EQ(prepare().path(), run) << "the advice of both";
}

TEST_F(RunDirectoryTest, HasOneOwner) {
  options_.out = root_ + "/run";
  const std::string held = "--out " + options_.out + ": a run is under way there (pid ";
  {
    RunDirectory owner = prepare();
    EXPECT_THAT(refusal<ConfigError>(), HasSubstr(held));
    owner.discard_if_unused();
    EXPECT_FALSE(fs::exists(options_.out));
  }
  {
    RunDirectory owner = prepare();
    options_.resume = std::exchange(options_.out, "");
    const std::string told = refusal<ConfigError>();
    EXPECT_THAT(told, HasSubstr(": a run is under way there (pid "));
    EXPECT_THAT(told, HasSubstr("and has saved no checkpoint yet; wait for its end or stop it"));
    options_.out = *std::exchange(options_.resume, std::nullopt);
  }
  EXPECT_EQ(prepare().path(), options_.out);
  make_run(options_.out);
  options_.resume = std::exchange(options_.out, "");
  RunDirectory owner = prepare();
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("--resume " + *options_.resume + ": a run is under way there"));
  EXPECT_TRUE(fs::exists(*options_.resume + "/metrics.jsonl"));
}

TEST_F(RunDirectoryTest, WhatCantBeWrittenIsNamed) {
  for (const std::string out : {"/proc/lockstep/run", "/sys/kernel/run"}) {
    options_.out = out;
    EXPECT_THAT(refusal<IoError>(), AllOf(HasSubstr(fs::path(out).parent_path().string()), HasSubstr("errno")));
  }
}

TEST_F(RunDirectoryTest, AFileInTheFoldersPlaceIsAMistake) {
  const std::string file = touch(root_ + "/file"), link = root_ + "/link", run = root_ + "/run";
  fs::create_symlink("nowhere", link);
  touch(run + "/logs");
  const std::vector<std::pair<std::string, std::string>> all = {
      {file, file + " is a file, not a folder"},
      {file + "/run", file + " is a file, not a folder"},
      {link + "/run", link + " is a link that leads nowhere"}};
  for (const auto& [out, why] : all) {
    options_.out = out;
    EXPECT_THAT(refusal<ConfigError>(), HasSubstr("--out " + out + ": " + why));
  }
  options_.out = run;
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr(run + "/logs is a file, not a folder"));
  EXPECT_TRUE(fs::is_regular_file(file) && fs::is_symlink(link) && fs::is_regular_file(run + "/logs"));
}

TEST_F(RunDirectoryTest, AFailureLeavesNothingBehind) {
  options_.out = root_ + "/new/" + std::string(300, 'x');
  EXPECT_THAT(refusal<IoError>(), HasSubstr("name too long"));
  EXPECT_FALSE(fs::exists(root_ + "/new"));
}

TEST_F(RunDirectoryTest, ARunThatGoesOnTakesNoOtherWeights) {
  auto run = prepare();
  options_.weights.load = "weights.pt";
  go_on(options_, run.path(), run.resume());
  EXPECT_EQ(options_.out, run.path());
  EXPECT_EQ(options_.weights.load, "weights.pt");
  options_.out.clear();
  options_.resume = make_run(root_ + "/old");
  const auto old = prepare();
  options_.weights.average = train::TakesAverage::kOn;
  options_.weights.partly = true;
  go_on(options_, old.path(), old.resume());
  EXPECT_EQ(options_.weights.load, "");
  EXPECT_EQ(options_.loaded.load, "weights.pt");
  EXPECT_TRUE(options_.loaded.average == train::TakesAverage::kOn && options_.loaded.partly);
  EXPECT_FALSE(options_.weights.average == train::TakesAverage::kOn || options_.weights.partly)
      << "without --load they are refused";
}

TEST_F(RunDirectoryTest, ResumesInPlaceFromTheNewest) {
  const std::string run = make_run(root_ + "/old");
  for (const std::string& from : {run, run + "/checkpoints/last.pt", run + "/checkpoints/step-000400.pt"}) {
    options_.resume = from;
    EXPECT_EQ(prepare().path(), run);
    EXPECT_EQ(prepare().resume(), from);
  }
  options_.out = run;
  options_.resume = "";
  EXPECT_EQ(prepare().resume(), run);
}

TEST_F(RunDirectoryTest, AnOlderCheckpointIsForked) {
  const std::string run = make_run(root_ + "/old");
  for (const std::string& from : {run + "/checkpoints/best.pt", run + "/checkpoints/step-000200.pt"}) {
    options_.resume = from;
    const RunDirectory fork = prepare();
    EXPECT_EQ(fork.path(), runs_ + (from.ends_with("best.pt") ? "/mnist-1" : "/mnist-2"));
    EXPECT_EQ(fork.resume(), from);
  }
  touch(run + "/checkpoints/INTERRUPTED.pt");
  options_.resume = run + "/checkpoints/step-000400.pt";
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-3") << "the interrupted state is later";
  options_.overwrite = true;
  EXPECT_EQ(prepare().path(), run);
  options_.overwrite = false;
  options_.out = run + "/.";
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("has later checkpoints; add --overwrite to drop them"));
  options_.overwrite = true;
  EXPECT_EQ(prepare().path(), run);
}

TEST_F(RunDirectoryTest, AnotherFolderIsAForkThatHoldsNoRunYet) {
  options_.resume = make_run(root_ + "/old");
  options_.out = root_ + "/elsewhere";
  EXPECT_EQ(prepare().path(), options_.out);
  make_run(options_.out);
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("--out " + options_.out + ": already holds a run"));
}

TEST_F(RunDirectoryTest, ALoneCheckpointGetsANewRun) {
  options_.resume = touch(root_ + "/lone.pt");
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
  EXPECT_EQ(prepare().resume(), options_.resume);
}

TEST_F(RunDirectoryTest, BareResumeTakesTheNewest) {
  options_.resume = "";
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("no run of mnist with a checkpoint"));
  touch(runs_ + "/mnist-1/checkpoints/last.pt");
  touch(runs_ + "/mnist-2/checkpoints/last.pt");
  touch(runs_ + "/mnist-3/metrics.jsonl");
  touch(runs_ + "/unet-4/checkpoints/last.pt");
  fs::last_write_time(runs_ + "/mnist-1/checkpoints", fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(prepare().path(), runs_ + "/mnist-1");
}

TEST_F(RunDirectoryTest, WhatCantBeResumed) {
  options_.resume = root_ + "/no-such-run";
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("no such file or folder"));
  fs::create_directories(*options_.resume);
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("no run's folder"));
}

TEST_F(RunDirectoryTest, DiscardsOnlyWhatItMadeAndNobodyUsed) {
  auto fresh = prepare();
  touch(fresh.logs() + "/rank0.log");
  fresh.discard_if_unused();
  EXPECT_FALSE(fs::exists(fresh.path()));
  auto used = prepare();
  touch(used.path() + "/metrics.jsonl");
  used.discard_if_unused();
  EXPECT_TRUE(fs::exists(used.path()));
  options_.out = root_ + "/mine";
  fs::create_directories(options_.out);
  prepare().discard_if_unused();
  EXPECT_TRUE(fs::exists(options_.out));
  EXPECT_TRUE(fs::is_empty(options_.out));
}

TEST_F(RunDirectoryTest, OnlyEmptyFoldersGo) {
  options_.out = root_ + "/new/a";
  auto run = prepare();
  touch(run.errors() + "/attempt0.json");
  touch(run.path() + "/config.toml");
  touch(run.path() + "/data.list");
  touch(run.path() + "/data.scan");
  touch(root_ + "/new/b/metrics.jsonl");  // another run's, meanwhile
  run.discard_if_unused();
  EXPECT_FALSE(fs::exists(options_.out));
  EXPECT_TRUE(fs::exists(root_ + "/new/b/metrics.jsonl"));
  auto kept = prepare();
  touch(kept.path() + "/notes.txt");
  kept.discard_if_unused();
  EXPECT_TRUE(fs::exists(kept.path() + "/notes.txt")) << "the user's own";
}

TEST_F(RunDirectoryTest, AFolderThatWasReplacedIsAnothers) {
  options_.out = root_ + "/run";
  auto run = prepare();
  fs::rename(options_.out, root_ + "/moved");
  touch(options_.out + "/logs/rank0.log");
  run.discard_if_unused();
  EXPECT_TRUE(fs::exists(options_.out + "/logs/rank0.log"));
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
  options_.weights.load = root_ + "/file";
  EXPECT_NO_THROW(check_inputs(options_));
  options_.weights.load = root_ + "/none.pt";
  EXPECT_THROW(check_inputs(options_), ConfigError);
  options_.weights.load = root_;
  EXPECT_NO_THROW(check_inputs(options_)) << "the ranks look for a checkpoint in it";
}

TEST_F(RunDirectoryTest, AResumedRunsFileIsFound) {
  const std::string run = root_ + "/mnist-1";
  touch(run + "/checkpoints/last.pt");
  EXPECT_EQ(find_resumed_config(options_, find_start(options_, root_)), "") << "nothing is resumed";
  options_.resume = run;
  EXPECT_EQ(find_resumed_config(options_, find_start(options_, root_)), "") << "it has none";
  touch(run + "/config.toml");
  for (const auto& from : {run, run + "/checkpoints/last.pt"}) {
    options_.resume = from;
    EXPECT_TRUE(fs::equivalent(find_resumed_config(options_, find_start(options_, root_)), run + "/config.toml"));
  }
  options_.resume = "";
  EXPECT_EQ(find_resumed(options_, find_start(options_, root_))->run, run);
  options_.resume.reset();
  EXPECT_EQ(find_resumed(options_, find_start(options_, root_)), std::nullopt);
}

// The folder of another node's rank, which has begun the run `id` there.
class OtherNodesFolder : public RunDirectoryTest {
 protected:
  std::optional<RunDirectory> prepare_other(const std::string& id, bool goes_on = true) {
    return RunDirectory::prepare_other({.path = run_, .id = id, .mark = "start-1", .goes_on = goes_on}, {});
  }
  std::string run_ = root_ + "/a";
};

TEST_F(OtherNodesFolder, IsMadeAndLockedAndKnowsItsRun) {
  const auto run = prepare_other("7f");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->path(), run_);
  EXPECT_EQ(run->id(), "7f");
  EXPECT_TRUE(fs::is_directory(run_ + "/checkpoints"));
  EXPECT_TRUE(train::owner_of(run_).held);
}

TEST_F(OtherNodesFolder, GoesOnWithItsOwnRunAlone) {
  make_run(run_);
  EXPECT_THROW(prepare_other("7f"), ConfigError) << "begun without an id";
  std::ofstream(run_ + "/run-id") << "80";
  EXPECT_THROW(prepare_other("7f"), ConfigError);
  EXPECT_TRUE(fs::exists(run_ + "/checkpoints/step-000400.pt"));
  EXPECT_FALSE(train::owner_of(run_).held);
  EXPECT_THROW(prepare_other("80", /*goes_on=*/false), ConfigError) << "it would be begun anew";
  EXPECT_TRUE(fs::exists(run_ + "/checkpoints/step-000400.pt"));
  EXPECT_TRUE(prepare_other("80"));
}

TEST_F(OtherNodesFolder, ThatHasAnothersResultsIsLeftAlone) {
  touch(run_ + "/metrics.jsonl");
  EXPECT_THROW(prepare_other("7f"), ConfigError);
  EXPECT_FALSE(fs::exists(run_ + "/run-id"));
}

TEST_F(OtherNodesFolder, IsLeftToTheProcessThatHasItOnADiskThatBothSee) {
  options_.out = run_;
  const RunDirectory first = prepare();
  touch(run_ + "/start-1");
  EXPECT_FALSE(prepare_other(first.id()));
  EXPECT_EQ(first.id(), first.id());
}

TEST_F(OtherNodesFolder, GoesWhereTheRunNeverBegan) {
  auto run = prepare_other("7f");
  run->discard_if_unused();
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace lockstep::launch
