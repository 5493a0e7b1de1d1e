// A batch script of several commands that Slurm starts anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two commands: a run, then from its best checkpoint on at another rate. Arguments: where the programs are, how they
// are started ("front": by lockstep; "ranks": two, by another launcher), a port, the data's folder.
constexpr const char* kScript = R"(
set -e
bin=$1; how=$2; port=$3; data=$4
train() {
  if [ $how = front ]; then $bin/lockstep "$@"; return; fi
  port=$((port + 1)); failed=0; pids=
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      $bin/lockstep-worker "$@" & pids="$pids $!"
  done
  for pid in $pids; do wait $pid || failed=$?; done
  return $failed
}
train train mnist --data "$data" --lanes 4 --batch-size 8 --out a --lr .1 --epochs 60 --steps 12
train train --resume a/checkpoints/best.pt --overwrite --lr .001 --steps 240 --save-every 10 --eval-every 60epochs
)";

class Requeued : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Program> script(const std::string& folder, const Words& variables) const {
    const std::string port = std::to_string(free_port());
    const Words shell = {"/bin/sh", "-c", kScript, "script", bin_folder(), GetParam(), port, digits_folder()};
    fs::create_directories(folder);
    return std::make_unique<Program>(
        Program::Options{.command = Words{"/usr/bin/env"} + variables + shell, .folder = folder});
  }
  static Words slurm(const char* restarts) { return {"SLURM_JOB_ID=7", cat("SLURM_RESTART_COUNT=", restarts)}; }
  static bool second_is_under_way(const std::string& run) {
    return eventually([&] { return steps_logged(run).size() > 40; });
  }

  const TempDir dir_;
};

TEST_P(Requeued, TheFirstCommandIsDoneAndTheSecondGoesOn) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == std::string("ranks"));
  const std::string run = dir_ / "job/a";
  auto first = script(dir_ / "job", slurm("0"));
  ASSERT_TRUE(second_is_under_way(run)) << first->err();
  first.reset();  // with all its processes
  const auto again = script(dir_ / "job", slurm("1"))->wait();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("nothing left to do: '"), HasSubstr("--lr .1 "), HasSubstr("--lr .001 "),
                               HasSubstr("resumed     a/checkpoints/step-000"), Not(HasSubstr("changed     --lr"))));
  EXPECT_EQ(steps_logged(run), first_steps(240));
  const auto whole = script(dir_ / "whole", {})->wait();
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(outcome_of(run), outcome_of(dir_ / "whole/a"));
  EXPECT_EQ(script(dir_ / "job", slurm("2"))->wait().exit_code, 0) << "both are done";
}

INSTANTIATE_TEST_SUITE_P(How, Requeued, ::testing::Values("front", "ranks"),
                         [](const auto& info) { return info.param; });

// The script went on after a command that failed.
TEST(RequeuedCommand, IsRefusedWhereAnotherHasFollowedBeforeItsEnd) {
  const TempDir dir;
  const std::string run = dir / "a";
  const auto start = [&](const char* restarts, const Words& words) {
    const Words variables = {"/usr/bin/env", "SLURM_JOB_ID=7", cat("SLURM_RESTART_COUNT=", restarts)};
    return std::make_unique<Program>(Program::Options{.command = variables + lockstep_command(words).command});
  };
  const Words long_run = {"--epochs", "1000", "--save-every", "10", "--eval-every", "1000epochs"};
  const Words one = train_words(long_run + Words{"--out", run}),
              two = {"train", "--resume", run, "--steps", "200", "--lr", "0.001"};
  {
    const auto first = start("0", one);
    ASSERT_TRUE(eventually([&] { return steps_logged(run).size() > 30; })) << first->err();
    first->signal(SIGKILL);
    first->wait();
  }
  ASSERT_EQ(start("0", two)->wait().exit_code, 0);
  const auto metrics = read_file(run + "/metrics.jsonl");
  const auto again = start("1", one)->wait();
  EXPECT_EQ(again.exit_code, ConfigError::kExitCode) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("--out " + run + "' had not ended when '"), HasSubstr("--lr 0.001'")));
  const auto unknown = start("1", train_words({"--steps", "3", "--out", run}))->wait();
  EXPECT_EQ(unknown.exit_code, ConfigError::kExitCode) << unknown.err;
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("already holds a run, that of another command of this job"),
                                 HasSubstr("--lr 0.001'"), HasSubstr("--steps 3 ")));
  EXPECT_EQ(start("1", two)->wait().exit_code, 0);
  EXPECT_EQ(read_file(run + "/metrics.jsonl"), metrics);
}

// The script asks for as many steps more as a start has time for.
TEST(RequeuedCommand, GoesOnWithALengthThatIsComputedAnew) {
  LOCKSTEP_LONG_TEST_IF(true);
  constexpr const char* kSteps =
      R"($1/lockstep train mnist --data $2 --lanes 4 --batch-size 8 --epochs 60 --save-every 4 \
    --eval-every 60epochs --out run --steps $((120 * (SLURM_RESTART_COUNT + 1))))";
  const TempDir dir;
  const auto start = [&](const char* restarts) {
    const Words command = {
        "/usr/bin/env", "SLURM_JOB_ID=7", cat("SLURM_RESTART_COUNT=", restarts), "/bin/sh", "-c", kSteps, "script",
        bin_folder(),   digits_folder()};
    return std::make_unique<Program>(Program::Options{.command = command, .folder = dir.path()});
  };
  {
    const auto first = start("0");
    ASSERT_TRUE(eventually([&] { return steps_logged(dir / "run").size() > 20; })) << first->err();
  }
  const auto again = start("1")->wait();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("resumed     run/checkpoints/step-000"));
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("warning: run: goes on with the run that an earlier start of this job has begun "
                              "by '"),
                    HasSubstr("--steps 120', now by '"), HasSubstr("--steps 240'")));
  EXPECT_EQ(steps_logged(dir / "run"), first_steps(240));
  ASSERT_EQ(
      lockstep(train_words({"--epochs", "60", "--steps", "240", "--eval-every", "60epochs", "--out", dir / "whole"}))
          .exit_code,
      0);
  EXPECT_EQ(outcome_of(dir / "run"), outcome_of(dir / "whole"));
}

}  // namespace
}  // namespace lockstep::e2e
