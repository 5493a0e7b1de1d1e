// Launchers that meet at a real etcd: each stands for a node, with a lease of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "etcd_nodes.h"
#include "lockstep/base/error.h"
#include "lockstep/base/testing/long_test.h"
#include "lockstep/launch/etcd/etcd_client.h"

namespace lockstep::e2e {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::EtcdServer;

class Elastic : public testing::Test {
 protected:
  std::unique_ptr<Program> node(const Words& flags, const Words& program, const std::string& folder = ".") const {
    return nodes_.start(flags, program, folder);
  }
  Words training() const { return disturbed_run(run_, {"--save-every", "10"}); }
  void expect_undisturbed_outcome() const { EXPECT_EQ(outcome_of(run_), undisturbed_outcome()); }

  EtcdNodes nodes_;
  EtcdServer& etcd_ = nodes_.etcd;
  const TempDir dir_;
  std::string run_ = dir_ / "run";
};

TEST_F(Elastic, NodesThatMeetAtEtcdAreOneWorld) {
  const Words show = {"/bin/sh", "-c",
                      "echo rank $RANK of $WORLD_SIZE node $GROUP_RANK restarts $TORCHELASTIC_RESTART_COUNT"};
  const auto a = node({"--nnodes=2"}, show), b = node({"--nnodes=2", "--nproc-per-node=2"}, show);
  const Result one = a->wait(), two = b->wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
  const std::string all = one.out + one.err + two.out + two.err;
  for (const char* rank : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) EXPECT_THAT(all, HasSubstr(rank));
  EXPECT_THAT(all, HasSubstr("restarts 0"));
}

// `train` itself, with the nodes' flags.
TEST_F(Elastic, ATrainingIsItsOwnLauncher) {
  Words words = disturbed_run(run_, {"--save-every", "10", "--max-restarts", "3"});
  words.erase(words.begin());  // lockstep-worker
  const auto start = [&] {
    return std::make_unique<Program>(lockstep_command(
        words + Words{"--nnodes=1:2", "--nproc=1", "--rdzv-backend=etcd", "--rdzv-endpoint", etcd_.endpoint(),
                      "--rdzv-id=r", "--rdzv-conf=last_call_timeout=2,join_timeout=120", "--local-addr=127.0.0.1"}));
  };
  const auto a = start(), b = start();
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err() << b->err();
  EXPECT_THAT(a->err(), HasSubstr(" of 2 are this node's"));
  kill(b->processes("lockstep-worker").at(0), SIGKILL);
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("restart 1 of 3"));
  }
  expect_undisturbed_outcome();
}

TEST_F(Elastic, ANodeThatIsKilledIsDoneWithout) {
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err() << b->err();
  b->signal(SIGKILL);
  b->wait();
  EXPECT_TRUE(b->all_gone(seconds(5))) << "its ranks end with it";
  const Result result = a->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 3"));
  EXPECT_EQ(final_of(run_).value("world_size", 0), 1);
  expect_undisturbed_outcome();
}

// Four lanes go over four ranks, two of the three that each node has; then over two of the three that are left.
TEST_F(Elastic, NodesOfUnlikeNumbersOfRanksTrainWithAsManyAsTheLanesAllow) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:2", "--max-restarts=3", "--nproc-per-node=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 1 or more nodes") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err() << b->err();
  EXPECT_THAT(a->err(), HasSubstr("ranks 0 to 1 of 4 are this node's"));
  EXPECT_THAT(b->err(), HasSubstr("ranks 2 to 3 of 4 are this node's"));
  b->signal(SIGKILL);
  b->wait();
  const Result result = a->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ranks 0 to 1 of 2 are this node's"));
  EXPECT_EQ(final_of(run_).value("world_size", 0), 2);
  expect_undisturbed_outcome();
}

TEST_F(Elastic, ARunThatIsSavedOnEachNodeOutlivesTheFirst) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  for (const char* name : {"a", "b"}) std::filesystem::create_directory(dir_ / name);
  run_ = "run";  // of each node's folder
  const Words words = training() + Words{"--save-on", "node"};
  const auto a = node(flags, words, dir_ / "a");
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 1 or more nodes") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, words, dir_ / "b");
  const std::string first = dir_ / "a/run", second = dir_ / "b/run";
  const auto is_saved = [&] { return std::filesystem::exists(second + "/checkpoints/last.pt"); };
  ASSERT_TRUE(eventually(is_saved, seconds(60))) << a->err() << b->err();
  EXPECT_TRUE(steps_logged(second).empty());
  a->signal(SIGKILL);
  EXPECT_TRUE(a->all_gone(seconds(20)));
  std::filesystem::remove_all(first);
  const Result result = b->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("restart 1: goes on after step "));
  run_ = second;
  expect_undisturbed_outcome();
}

// The eldest node, which writes the epochs, and a spare one in its place.
TEST_F(Elastic, ASpareNodeTakesTheEldestsPlace) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=2:2", "--max-restarts=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 2 nodes have come") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 10; }, seconds(60))) << a->err() << b->err();
  const auto c = node(flags, training());
  ASSERT_TRUE(eventually([&] { return c->err().find("this node is a spare one") != std::string::npos; }, seconds(30)))
      << c->err();
  a->signal(SIGKILL);
  for (const auto& each : {b.get(), c.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(final_of(run_).value("world_size", 0), 2);
  expect_undisturbed_outcome();
}

// Nobody is left who has begun the run.
TEST_F(Elastic, ASpareNodeGoesOnWhereAllOthersAreGone) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:1", "--max-restarts=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err();
  const auto b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return b->err().find("is a spare one") != std::string::npos; }, seconds(30)));
  a->signal(SIGKILL);
  a->wait();
  const Result result = b->wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 3"));
  EXPECT_EQ(steps_logged(run_), first_steps(kDisturbedSteps));
  expect_undisturbed_outcome();
}

// Its rank does not wait to be told: it ends with the lease.
TEST_F(Elastic, TheRanksOfAStoppedLauncherWriteNothingMore) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:1", "--max-restarts=3"};
  const auto a = node(flags, disturbed_run(run_, {"--save-every", "50"}));
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 60; }, seconds(60))) << a->err();
  const auto b = node(flags, disturbed_run(run_, {"--save-every", "50"}));
  ASSERT_TRUE(eventually([&] { return b->err().find("is a spare one") != std::string::npos; }, seconds(30)));
  const pid_t rank = a->processes("lockstep-worker").at(0);
  a->signal(SIGSTOP);
  kill(rank, SIGSTOP);  // both stand still for 20 seconds, as when a machine is suspended
  std::this_thread::sleep_for(seconds(20));
  kill(rank, SIGCONT);
  const Result result = b->wait(seconds(120));
  a->signal(SIGCONT);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(a->wait().exit_code, 0) << "it comes back to a run that has ended";
  EXPECT_EQ(steps_logged(run_), first_steps(kDisturbedSteps)) << "each step was written once";
  expect_undisturbed_outcome();
}

TEST_F(Elastic, AnEtcdThatStandsStillForThreeSecondsChangesNothing) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 10; }, seconds(60))) << a->err() << b->err();
  etcd_.stop();
  std::this_thread::sleep_for(seconds(3));
  etcd_.go_on();
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, testing::Not(HasSubstr("restart 1")));
  }
  expect_undisturbed_outcome();
}

// Both nodes have lost their leases: they come back, and all ranks begin anew.
TEST_F(Elastic, AnEtcdThatStandsStillForLongIsFollowedByARestart) {
  LOCKSTEP_LONG_TEST_IF(true);
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  const auto a = node(flags, training()), b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 10; }, seconds(60))) << a->err() << b->err();
  etcd_.stop();
  std::this_thread::sleep_for(seconds(9));
  etcd_.go_on();
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("coming back to the run"));
    EXPECT_THAT(result.err, HasSubstr("restart 1 of 3"));
  }
  EXPECT_EQ(final_of(run_).value("world_size", 0), 2);
  expect_undisturbed_outcome();
}

// Its rank 0 writes a checkpoint to a slow disk while the lease ends: the file is not put in place.
TEST_F(Elastic, TheRanksOfAStoppedLauncherReplaceNothing) {
  LOCKSTEP_LONG_TEST_IF(true);
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer comes before every library";
#endif
  std::filesystem::create_directory(dir_ / "slow_disk");
  run_ = dir_ / "slow_disk/run";
  const Words flags = {"--nnodes=1:2", "--max-restarts=3"};
  const Words slowly = {"/usr/bin/env", "LD_PRELOAD=" + bin_folder() + "/failing_disk.so"};
  const auto a = node(flags, slowly + training());
  ASSERT_TRUE(
      eventually([&] { return a->err().find("1 of 1 or more nodes have come") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  const auto is_saving = [&] {
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator(run_ + "/checkpoints", ignored)) {
      if (each.path().extension() == ".tmp") return true;
    }
    return false;
  };
  ASSERT_TRUE(eventually(is_saving, seconds(60))) << a->err() << b->err();
  a->signal(SIGSTOP);
  const Result result = b->wait(seconds(120));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  a->signal(SIGCONT);
  const Result late = a->wait();
  EXPECT_EQ(late.exit_code, 0) << "it comes back to a run that has ended: " << late.err;
  EXPECT_THAT(late.err + late.out, HasSubstr("lost its lease"));
  expect_undisturbed_outcome();
}

TEST_F(Elastic, ARankThatFailsOnOneNodeEndsThoseOfAll) {
  const Words fails = {"/bin/sh", "-c", "[ $RANK = 0 ] && sleep 300; exit 3"};
  const auto a = node({"--nnodes=2"}, fails), b = node({"--nnodes=2"}, fails);
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ranks have failed on "));
    EXPECT_LT(result.seconds, 60) << "the rank that sleeps was ended";
  }
}

// The ranks of the other node give up waiting first, with 69; the hang is what the run ends by.
TEST_F(Elastic, ARankThatHangsIsNamedOnItsNode) {
  const Words flags = {"--nnodes=2", "--timeout=3"}, words = training() + Words{"--timeout", "3"};
  const auto a = node(flags, words), b = node(flags, words);
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err() << b->err();
  const pid_t rank = b->processes("lockstep-worker").at(0);
  kill(rank, SIGSTOP);
  const Result one = a->wait(), two = b->wait();
  EXPECT_EQ(one.exit_code, DesyncError::kExitCode) << one.err;
  EXPECT_EQ(two.exit_code, DesyncError::kExitCode) << two.err;
  EXPECT_THAT(two.err, HasSubstr(cat("(pid ", rank, ") failed: hung: no progress")));
  EXPECT_TRUE(b->all_gone(seconds(5)));
}

TEST_F(Elastic, AllStartAnewWhereARankHasFailed) {
  const Words once = {"/bin/sh", "-c",
                      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || [ $RANK = 0 ] || exit 3; "
                      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || sleep 300; echo max=$TORCHELASTIC_MAX_RESTARTS"};
  const auto a = node({"--nnodes=2", "--max-restarts=2"}, once), b = node({"--nnodes=2", "--max-restarts=2"}, once);
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("restart 1 of 2"));
    EXPECT_THAT(result.out + result.err, HasSubstr("max=2"));
  }
}

TEST_F(Elastic, CtrlCOnOneNodeStopsAll) {
  const Words waits = {"/bin/sh", "-c", "sleep 300"};
  const auto a = node({"--nnodes=2", "--max-restarts=3"}, waits), b = node({"--nnodes=2", "--max-restarts=3"}, waits);
  for (const auto& each : {a.get(), b.get()}) {
    ASSERT_TRUE(eventually([&] { return !each->processes("sleep").empty(); }, seconds(30))) << each->err();
  }
  a->signal(SIGINT);
  for (const auto& each : {a.get(), b.get()}) EXPECT_EQ(each->wait().exit_code, 128 + SIGINT) << each->err();
}

// The request travels with the gradients: rank 0, which saves, is on the other node.
TEST_F(Elastic, CtrlCOnANodeWithoutRank0SavesAndStopsTheRun) {
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto a = node(flags, training());
  ASSERT_TRUE(eventually([&] { return a->err().find("1 of 2 nodes have come") != std::string::npos; }, seconds(30)));
  const auto b = node(flags, training());
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 30; }, seconds(60))) << a->err() << b->err();
  b->signal(SIGINT);
  for (const auto& each : {a.get(), b.get()}) EXPECT_EQ(each->wait().exit_code, kExitStoppedOnRequest) << each->err();
  EXPECT_THAT(a->out(),
              HasSubstr("; go on with: the same launch on each node, with: lockstep train mnist --resume " + run_));
  EXPECT_LT(steps_logged(run_).size(), static_cast<size_t>(kDisturbedSteps));
  const auto resumed =
      lockstep({"train", "--resume", run_, "--nproc", "1", "--steps", std::to_string(kDisturbedSteps)});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_undisturbed_outcome();
}

// The others of its cluster go on, with or without a new leader.
TEST_F(Elastic, AMemberOfEtcdsClusterThatIsKilledChangesNothing) {
  testing_support::EtcdCluster cluster;
  const Words flags = {"--nnodes=2", "--max-restarts=3"};
  const auto start = [&] {
    return std::make_unique<Program>(
        lockstep_command(Words{"launch", "--rdzv-backend=etcd", "--rdzv-endpoint", cluster.endpoints(), "--rdzv-id=r",
                               "--rdzv-conf=last_call_timeout=2,join_timeout=120", "--local-addr=127.0.0.1"} +
                         flags + training()));
  };
  const auto a = start(), b = start();
  ASSERT_TRUE(eventually([&] { return steps_logged(run_).size() > 10; }, seconds(60))) << a->err() << b->err();
  cluster.member(0).kill();  // the one that both ask first
  for (const auto& each : {a.get(), b.get()}) {
    const Result result = each->wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, testing::Not(HasSubstr("restart 1")));
  }
  expect_undisturbed_outcome();
}

TEST_F(Elastic, AnEtcdThatDoesNotAnswerIsNamed) {
  const auto result = lockstep({"launch", "--rdzv-backend=etcd", "--rdzv-endpoint=127.0.0.1:1", "--rdzv-id=r",
                                "--rdzv-conf=join_timeout=2", "true"});
  EXPECT_EQ(result.exit_code, 69);
  EXPECT_THAT(result.err, HasSubstr("waiting: etcd does not answer (http://127.0.0.1:1"));
  EXPECT_THAT(result.err, HasSubstr("error: etcd does not answer (http://127.0.0.1:1"));
}

// It answers, and what it holds stays as it is: nothing is waited for.
TEST_F(Elastic, AnEpochOfAnotherVersionIsAnErrorAtOnce) {
  launch::EtcdClient({.endpoints = {etcd_.endpoint()}}).put("/lockstep/r/epoch", "of a later version");
  const auto result = node({}, {"true"})->wait();
  EXPECT_EQ(result.exit_code, 69);
  EXPECT_THAT(result.err, HasSubstr("error: run r: etcd holds an epoch that this version can't read"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("waiting:")));
}

}  // namespace
}  // namespace lockstep::e2e
