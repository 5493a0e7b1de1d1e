// `lockstep launch` keeps the snapshots of ranks that train: they outlive the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "etcd_nodes.h"
#include "lockstep/base/testing/long_test.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class KeptSnapshots : public testing::Test {
 protected:
  // A run that is saved at its end alone.
  static Words training(const std::string& out, const Words& more = {}) {
    return disturbed_run(out, Words{"--save-every", "0", "--snapshot-every", "5"} + more);
  }
  static pid_t a_worker_of(const Program& program) {
    const auto workers = program.processes("lockstep-worker");
    return workers.empty() ? -1 : workers.back();
  }
  static bool has_done(const std::string& run, size_t steps) {
    return eventually([&] { return steps_logged(run).size() > steps; }, seconds(60));
  }

  const TempDir dir_;
  const std::string run_ = dir_ / "run";
};

TEST_F(KeptSnapshots, RanksOfOneNodeGoOnFromThem) {
  Program program(lockstep_command(Words{"launch", "--nproc-per-node=2", "--max-restarts=3"} + training(run_)));
  ASSERT_TRUE(has_done(run_, 30)) << program.err();
  ASSERT_EQ(kill(a_worker_of(program), SIGKILL), 0);
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("saved: snapshot of step [0-9]*[05], .*/run/checkpoints/step-"));
  EXPECT_THAT(result.out, ContainsRegex("restart 1: goes on after step [0-9]*[05], "));
  EXPECT_EQ(outcome_of(run_), undisturbed_outcome());
}

TEST_F(KeptSnapshots, AreNotWrittenIntoAFolderThatIsAnotherRuns) {
  Program program(lockstep_command(Words{"launch", "--nproc-per-node=2"} + training(run_)));
  ASSERT_TRUE(has_done(run_, 30)) << program.err();
  std::filesystem::rename(run_, dir_ / "moved");
  std::filesystem::create_directories(run_ + "/checkpoints");
  const Result result = program.wait();
  EXPECT_EQ(result.exit_code, 74) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(run_ + "/checkpoints"));
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "moved/checkpoints"));
}

// Nodes that meet at etcd.
class KeptSnapshotsOfNodes : public KeptSnapshots {
 protected:
  std::unique_ptr<Program> node(const Words& program, const std::string& folder) const {
    return nodes_.start({"--nnodes=1:2", "--max-restarts=3"}, program, folder);
  }
  // Starts two nodes, a first.
  void start(const Words& a_words, const std::string& a_folder, const Words& b_words, const std::string& b_folder) {
    a_ = node(a_words, a_folder);
    ASSERT_TRUE(eventually([&] { return a_->err().find("1 of 1 or more nodes") != std::string::npos; }, seconds(30)));
    b_ = node(b_words, b_folder);
  }

  EtcdNodes nodes_;
  std::unique_ptr<Program> a_, b_;
};

TEST_F(KeptSnapshotsOfNodes, ARankThatIsKilledOnEitherCostsAFewSteps) {
  start(training(run_), ".", training(run_), ".");
  for (Program* const victim : {b_.get(), a_.get()}) {
    const size_t before = steps_logged(run_).size();
    ASSERT_TRUE(has_done(run_, before + 30)) << a_->err() << b_->err();
    ASSERT_EQ(kill(a_worker_of(*victim), SIGKILL), 0);
    const std::string restart = victim == b_.get() ? "restart 1: " : "restart 2: ";
    ASSERT_TRUE(eventually([&] { return a_->out().find(restart) != std::string::npos; }, seconds(60))) << a_->err();
  }
  const Result a = a_->wait(), b = b_->wait();
  EXPECT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(b.exit_code, 0) << b.err;
  EXPECT_THAT(a.out, ContainsRegex("restart 1: goes on after step [0-9]*[05], "));
  EXPECT_THAT(a.out, ContainsRegex("restart 2: goes on after step [0-9]*[05], "));
  EXPECT_EQ(outcome_of(run_), undisturbed_outcome());
}

TEST_F(KeptSnapshotsOfNodes, OnItsOwnDiskANodeGoesOnWithoutTheFirst) {
  LOCKSTEP_LONG_TEST_IF(true);
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(dir_ / name);
  const Words words = training("run", {"--save-on", "node"});
  start(words, dir_ / "a", words, dir_ / "b");
  ASSERT_TRUE(has_done(dir_ / "a/run", 30)) << a_->err() << b_->err();
  a_->signal(SIGKILL);
  EXPECT_TRUE(a_->all_gone(seconds(20)));
  std::filesystem::remove_all(dir_ / "a");
  const Result b = b_->wait();
  EXPECT_EQ(b.exit_code, 0) << b.err;
  EXPECT_THAT(b.out, ContainsRegex("restart 1: goes on after step [0-9]*[05], "));
  EXPECT_EQ(outcome_of(dir_ / "b/run"), undisturbed_outcome());
}

// A launcher that stands still loses its lease: its memory is as old as its ranks, and the others are ahead.
TEST_F(KeptSnapshotsOfNodes, OfALauncherWithoutALeaseAreNotWritten) {
  LOCKSTEP_LONG_TEST_IF(true);
  start(training(run_), ".", training(run_), ".");
  ASSERT_TRUE(has_done(run_, 30)) << a_->err() << b_->err();
  a_->signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return b_->out().find("restart 1: ") != std::string::npos; }, seconds(60))) << b_->err();
  a_->signal(SIGCONT);
  const Result b = b_->wait(), a = a_->wait();
  EXPECT_EQ(b.exit_code, 0) << b.err;
  EXPECT_THAT(a.err, Not(HasSubstr("saved: snapshot")));
  EXPECT_EQ(outcome_of(run_), undisturbed_outcome());
}

}  // namespace
}  // namespace lockstep::e2e
