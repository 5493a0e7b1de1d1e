// The folder of a run whose job's launcher starts it anew by the same command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/refusal.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/launch/resumed.h"
#include "lockstep/launch/run_directory.h"
#include "lockstep/train/folder/run_lock.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Jobs = std::vector<LaunchedJob>;
using Prepared = std::pair<std::string, std::optional<std::string>>;  // the folder, and what is resumed

class RestartedRunTest : public ::testing::Test {
 protected:
  RestartedRunTest() { options_.recipe = "mnist"; }
  Prepared prepared(const Jobs& jobs) const {
    const auto run = RunDirectory::prepare(options_, find_start(options_, runs_, jobs));
    return {run.path(), run.resume()};
  }
  static std::string touch(const std::string& path) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  // A run with checkpoints of steps 200 and 400.
  std::string make_run(const std::string& name) const {
    const std::string run = root_ + "/" + name;
    touch(run + "/checkpoints/step-000200.pt");
    touch(run + "/checkpoints/step-000400.pt");
    touch(run + "/config.toml");
    return run;
  }
  // What a job of Slurm is at its start number `restarts`.
  static LaunchedJob slurm(int restarts, const std::string& command = "a") {
    return {.name = "slurm 7 of one", .command = command, .line = "train " + command, .start = restarts};
  }

  const LaunchedJob torchrun_{.name = "torchrun agent 1 (2) on here", .command = "a", .one_command = true};
  testing_support::TempDir dir_;
  std::string root_ = dir_.path(), runs_ = root_ + "/runs";
  train::TrainOptions options_;
};

TEST_F(RestartedRunTest, GoesOnInTheFolderThatOutNames) {
  const LaunchedJob first = slurm(0), again = slurm(1), other{.name = "slurm 8 of one", .start = 1};
  const std::string run = options_.out = root_ + "/run";
  EXPECT_EQ(prepared({first}), Prepared(run, std::nullopt));
  touch(run + "/metrics.jsonl");
  EXPECT_EQ(prepared({again, other}), Prepared(run, std::nullopt)) << "anew, for it has no checkpoint";
  touch(run + "/checkpoints/step-000200.pt");
  EXPECT_EQ(prepared({again}), Prepared(run, run));
  EXPECT_THROW(prepared({slurm(1, "b")}), ConfigError) << "another command of the script";
  const std::vector<Jobs> strangers = {{}, {first}, {other}};
  for (const auto& jobs : strangers) EXPECT_THROW(prepared(jobs), ConfigError);
  EXPECT_EQ(prepared({again}), Prepared(run, run)) << "who was refused has left no name";
  options_.resume = run;
  EXPECT_EQ(prepared({}), Prepared(run, run));
  options_.resume.reset();
  EXPECT_THROW(prepared({again}), ConfigError) << "a run that went on otherwise is no longer the job's";
}

TEST_F(RestartedRunTest, TorchrunsNeedNoCountButTheSameCommand) {
  const std::string run = options_.out = root_ + "/run";
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, std::nullopt));
  touch(run + "/checkpoints/step-000200.pt");
  LaunchedJob second_command = torchrun_;
  second_command.command = "b";
  EXPECT_THROW(prepared({second_command}), ConfigError);
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, run));
}

TEST_F(RestartedRunTest, FindsTheFolderThatNobodyHasNamed) {
  EXPECT_EQ(prepared({torchrun_, slurm(0)}), Prepared(runs_ + "/mnist-1", std::nullopt));
  touch(runs_ + "/mnist-1/checkpoints/step-000200.pt");
  EXPECT_EQ(prepared({slurm(0)}).first, runs_ + "/mnist-2") << "a second command of the same start";
  EXPECT_EQ(prepared({slurm(1, "b")}).first, runs_ + "/mnist-3") << "not yet begun";
  EXPECT_EQ(prepared({}).first, runs_ + "/mnist-4");
  EXPECT_EQ(prepared({torchrun_}), Prepared(runs_ + "/mnist-1", runs_ + "/mnist-1"));
  EXPECT_EQ(prepared({slurm(1)}), Prepared(runs_ + "/mnist-2", std::nullopt));
  touch(runs_ + "/mnist-3/checkpoints/step-000200.pt");
  EXPECT_EQ(prepared({slurm(1, "b")}), Prepared(runs_ + "/mnist-3", runs_ + "/mnist-3"));
}

TEST_F(RestartedRunTest, IsNotCutBackAgain) {
  const std::string run = make_run("run");
  options_.resume = run + "/checkpoints/step-000200.pt";
  options_.overwrite = true;
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, *options_.resume));
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, run)) << "from its newest, whichever that is now";
  fs::remove(*options_.resume);
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, run)) << "where the run keeps few";
  options_.out = run;
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, run));
  EXPECT_THROW(prepared({}), ConfigError);
}

TEST_F(RestartedRunTest, StaysInPlaceWhereItWentOnFromTheNewest) {
  const std::string run = make_run("run");
  options_.resume = run + "/checkpoints/step-000400.pt";
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, *options_.resume));
  touch(run + "/checkpoints/step-000600.pt");
  EXPECT_EQ(prepared({torchrun_}), Prepared(run, run));
  EXPECT_EQ(prepared({}).first, runs_ + "/mnist-1") << "for others it is an older one";
}

TEST_F(RestartedRunTest, AForkGoesOnByItsOwnConfig) {
  const std::string parent = make_run("run"), fork = runs_ + "/mnist-1";
  options_.resume = parent + "/checkpoints/step-000200.pt";
  const auto config = [&] {
    train::TrainOptions asked = options_;
    asked.recipe.clear();  // as the line is read that names none
    return find_resumed_config(asked, find_start(asked, runs_, {torchrun_}));
  };
  EXPECT_EQ(prepared({torchrun_}), Prepared(fork, *options_.resume));
  EXPECT_EQ(prepared({torchrun_}), Prepared(fork, *options_.resume)) << "it got no further than to make its folder";
  EXPECT_EQ(config(), parent + "/config.toml");
  touch(fork + "/config.toml");
  touch(fork + "/checkpoints/step-000200.pt");
  EXPECT_EQ(prepared({torchrun_}), Prepared(fork, fork));
  EXPECT_EQ(config(), fork + "/config.toml");
  fs::remove_all(parent);
  EXPECT_EQ(prepared({torchrun_}), Prepared(fork, fork)) << "it doesn't miss its parent";
}

// The script: `train --steps $N`, of which N is another at each start.
TEST_F(RestartedRunTest, GoesOnByALineThatAsksForAnotherLength) {
  const auto steps = [](int count, int restarts, const std::string& endless = "e") {
    LaunchedJob job = slurm(restarts, cat("--steps ", count));
    job.endless = endless;
    return job;
  };
  for (const bool named : {true, false}) {
    const std::string run = named ? root_ + "/run" : runs_ + "/mnist-1";
    options_.out = named ? run : "";
    EXPECT_EQ(prepared({steps(1, 0)}), Prepared(run, std::nullopt));
    touch(run + "/checkpoints/step-000200.pt");
    {
      const auto again = RunDirectory::prepare(options_, find_start(options_, runs_, {steps(2, 1)}));
      EXPECT_EQ(Prepared(again.path(), again.resume()), Prepared(run, run));
      EXPECT_EQ(again.note(),
                run +
                    ": goes on with the run that an earlier start of this job has begun by 'train --steps "
                    "1', now by 'train --steps 2'");
    }
    EXPECT_EQ(prepared({steps(3, 2)}), Prepared(run, run)) << "and so on";
    EXPECT_EQ(train::RunLock::commands_of(run).size(), 1u);
    EXPECT_EQ(prepared({steps(3, 3)}), Prepared(run, run));
    const std::vector<LaunchedJob> others = {steps(4, 3), steps(4, 4, "f")};  // a second command of this start, or any
    for (const auto& other : others) {
      if (named) EXPECT_THROW(prepared({other}), ConfigError);
      if (!named) EXPECT_NE(prepared({other}).first, run);
    }
  }
}

// The script: `train --epochs 1`, then `train --epochs 5`.
TEST_F(RestartedRunTest, LinesOfTwoLengthsHaveAFolderEach) {
  const auto epochs = [](int count, int restarts) {
    LaunchedJob job = slurm(restarts, cat("--epochs ", count));
    job.endless = "e";
    return job;
  };
  for (const int count : {1, 5}) {
    const std::string run = prepared({epochs(count, 0)}).first;
    touch(run + "/checkpoints/step-000200.pt");
  }
  EXPECT_EQ(prepared({epochs(7, 1)}).first, runs_ + "/mnist-3") << "of two runs nobody can tell whose it is";
  EXPECT_EQ(prepared({epochs(1, 1)}), Prepared(runs_ + "/mnist-1", runs_ + "/mnist-1"));
  EXPECT_EQ(prepared({epochs(5, 1)}), Prepared(runs_ + "/mnist-2", runs_ + "/mnist-2"));
}

// Of two commands nobody can tell whose line it is.
TEST_F(RestartedRunTest, OfSeveralCommandsTheLinesAreTheirOwn) {
  LaunchedJob one = slurm(0, "a"), two = slurm(0, "b"), other = slurm(1, "c");
  one.endless = other.endless = "e";
  const std::string run = options_.out = root_ + "/run";
  prepared({one});
  touch(run + "/checkpoints/step-000200.pt");
  train::TrainOptions follow = options_;
  follow.resume = run;
  RunDirectory::prepare(follow, find_start(follow, runs_, {two}));
  EXPECT_THAT(testing_support::refusal([&] { prepared({other}); }), HasSubstr("('train b', and not 'train c')"));
}

// The script: `train a`, then `train b --resume run/checkpoints/step-000200.pt --overwrite`.
class TwoCommands : public RestartedRunTest, public ::testing::WithParamInterface<bool> {
 protected:
  // Whether the first names its folder.
  static bool named() { return GetParam(); }
  TwoCommands() {
    if (named()) options_.out = run_;
    second_.recipe = "mnist";
    second_.resume = run_ + "/checkpoints/step-000200.pt";
    second_.overwrite = true;
  }
  void begin(bool ends) {
    auto run = RunDirectory::prepare(options_, find_start(options_, runs_, {slurm(0, "a")}));
    ASSERT_EQ(run.path(), run_);
    touch(run_ + "/checkpoints/step-000200.pt");
    if (ends) run.mark_ended();
  }
  std::optional<std::string> follow(int restarts) {
    auto run = RunDirectory::prepare(second_, find_start(second_, runs_, {slurm(restarts, "b")}));
    touch(run_ + "/checkpoints/step-000400.pt");
    return run.resume();
  }
  std::string done(int restarts, const std::string& command) const {
    return find_done(find_start(options_, runs_, {slurm(restarts, command)}));
  }

  const std::string run_ = runs_ + "/mnist-1";
  train::TrainOptions second_;
};

TEST_P(TwoCommands, TheFirstIsDoneAndTheSecondGoesOn) {
  begin(/*ends=*/true);
  EXPECT_EQ(done(1, "a"), "") << "the second has not begun";
  EXPECT_EQ(follow(0), second_.resume);
  EXPECT_EQ(done(1, "a"),
            "nothing left to do: 'train a' has ended, and 'train b', of the same job, has gone on in " + run_);
  EXPECT_EQ(done(0, "a"), "") << "of the same start";
  EXPECT_EQ(follow(1), run_) << "from its own newest checkpoint";
  EXPECT_EQ(find_done(find_start(second_, runs_, {slurm(1, "b")})), "");
  EXPECT_NE(done(2, "a"), "") << "at every start";
}

TEST_P(TwoCommands, TheFirstIsRefusedWhereItHadNotEnded) {
  begin(/*ends=*/false);
  follow(0);
  const auto refusal = testing_support::refusal([&] { done(1, "a"); });
  EXPECT_THAT(refusal, AllOf(HasSubstr(run_ + ": 'train a' had not ended when 'train b'"), HasSubstr("--out")));
  EXPECT_THROW(done(1, "a"), ConfigError);
  EXPECT_EQ(follow(1), run_);
}

TEST_P(TwoCommands, AThirdThatHasNotBegunYetIsNoneOfThem) {
  begin(/*ends=*/true);
  follow(0);
  EXPECT_EQ(done(1, "c"), "");
  second_.resume = run_;
  second_.overwrite = false;
  EXPECT_EQ(RunDirectory::prepare(second_, find_start(second_, runs_, {slurm(1, "c")})).resume(), run_) << "as it asks";
  if (!named()) return;
  EXPECT_THAT(
      testing_support::refusal([&] { RunDirectory::prepare(options_, find_start(options_, runs_, {slurm(1, "d")})); }),
      AllOf(HasSubstr("already holds a run"), HasSubstr("('train c', and not 'train d')")));
}

TEST_P(TwoCommands, ASecondThatMadeAMistakeHasNotFollowed) {
  begin(/*ends=*/false);
  RunDirectory::prepare(second_, find_start(second_, runs_, {slurm(0, "b")})).discard_if_unused();
  EXPECT_EQ(done(1, "a"), "");
  EXPECT_EQ(prepared({slurm(1, "a")}), Prepared(run_, run_));
}

TEST_P(TwoCommands, AnotherJobsCommandsAreForgotten) {
  begin(/*ends=*/true);
  RunDirectory::prepare(second_,
                        find_start(second_, runs_, {{.name = "slurm 8 of one", .command = "b", .line = "train b"}}));
  EXPECT_EQ(train::RunLock::commands_of(run_).size(), 1U);
  EXPECT_EQ(done(1, "a"), "");
}

INSTANTIATE_TEST_SUITE_P(Folder, TwoCommands, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Named" : "Chosen"; });

TEST_F(RestartedRunTest, ABareResumeStaysWithItsRun) {
  make_run("runs/mnist-1");
  options_.resume = "";
  EXPECT_EQ(prepared({torchrun_}), Prepared(runs_ + "/mnist-1", runs_ + "/mnist-1"));
  make_run("runs/mnist-2");  // of another, meanwhile
  fs::last_write_time(runs_ + "/mnist-2/checkpoints", fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(prepared({}).first, runs_ + "/mnist-2");
  EXPECT_EQ(prepared({torchrun_}).first, runs_ + "/mnist-1");
}

}  // namespace
}  // namespace lockstep::launch
