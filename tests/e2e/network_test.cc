// Ranks on two hosts: the same bits as one process, over a good network and a bad one; and how it ends where the
// network or a host does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "endless_run.h"
#include "lockstep/base/testing/long_test.h"
#include "network_namespaces.h"
#include "two_hosts.h"

namespace lockstep::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Network : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_namespaces(); !why.empty())
      GTEST_SKIP() << "no network namespaces here: " << why;
  }

  // Trains for kSteps steps on both hosts, in a form of parallel training, and compares with one process.
  static void expect_the_bits_of_one(const TwoHosts& hosts, const Words& more = {}, const Words& form = {}) {
    const TempDir dir;
    const Words words = train_words({"--steps", std::to_string(kSteps), "--out", dir / "run"}) + more + form;
    const auto ranks = hosts.start_all(words);
    for (const auto& rank : ranks) {
      const Result result = rank->wait(seconds(120));
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_EQ(final_of(dir / "run").value("world_size", 0), 4);
    EXPECT_EQ(outcome_of(dir / "run"), outcome_of(finished_run(more)));
  }
};

// A training on two hosts that goes on for hours.
struct EndlessHosts {
  explicit EndlessHosts(std::optional<Link::Options> link, const Words& more = {})
      : hosts(link), ranks(hosts.start_all(train_words({"--epochs", "1000000", "--out", dir / "run"}) + more)) {}

  bool is_training() const {
    return eventually([&] { return steps_logged(dir / "run").size() > 2; }, milliseconds(60'000));
  }
  pid_t worker(size_t rank) const {
    const auto pids = ranks[rank]->processes("lockstep-worker");
    return pids.empty() ? -1 : pids[0];
  }
  // Waits for these ranks: each must end with 69, in time, with these words.
  void expect_errors(const std::vector<size_t>& which, seconds within,
                     const std::function<::testing::Matcher<std::string>(size_t)>& text) {
    const auto began = std::chrono::steady_clock::now();
    for (const size_t rank : which) {
      const Result result = ranks[rank]->wait(within + seconds(20));
      EXPECT_EQ(result.exit_code, 69) << "rank " << rank << ": " << result.err;
      EXPECT_THAT(result.err, text(rank)) << "rank " << rank;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, within);
  }

  TempDir dir;
  TwoHosts hosts;
  std::vector<std::unique_ptr<Program>> ranks;
};

TEST_F(Network, TwoHostsGiveTheBitsOfOneProcess) { expect_the_bits_of_one(TwoHosts()); }

TEST_F(Network, AndSoTheyDoWith16BitsOnTheWire) { expect_the_bits_of_one(TwoHosts(), {"--comm-dtype", "bf16"}); }

TEST_F(Network, AndInOtherFormsOfParallelTraining) {
  const TwoHosts hosts;
  expect_the_bits_of_one(hosts, {}, {"--parallel", "pipeline", "--stages", "2"});
  expect_the_bits_of_one(hosts, {}, {"--parallel", "ps", "--servers", "2"});
  expect_the_bits_of_one(hosts, {"--amp", "O2", "--dtype", "bf16"}, {"--parallel", "ps", "--servers", "3"});
}

// Two stages on each host: activations and gradients cross the network.
TEST_F(Network, AndAPipelineFromHostToHost) {
  const TempDir dir;
  const Words unet = {"train", "unet",    "--size", "32",        "--width", "4",       "--batch-size",
                      "1",     "--lanes", "4",      "--threads", "1",       "--steps", "40"};
  const Result one = lockstep(unet + Words{"--nproc", "1", "--out", dir / "one"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const TwoHosts hosts;
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const std::string run = dir / schedule;
    const Words form = {"--parallel", "pipeline", "--stages", "4", "--schedule-pp", schedule, "--out", run};
    for (const auto& rank : hosts.start_all(unet + form)) {
      const Result result = rank->wait(seconds(120));
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    EXPECT_EQ(outcome_of(run), outcome_of(dir / "one")) << schedule;
  }
}

TEST_F(Network, AndOverASlowNetworkThatLosesPackets) {
  LOCKSTEP_LONG_TEST_IF(true);
  expect_the_bits_of_one(TwoHosts(Link::Options{.delay = milliseconds(50), .loss = 0.01}));
}

TEST_F(Network, LostPacketsEndInErrorsOnBothHostsWithinTheTimeout) {
  constexpr seconds kTimeout{4};
  EndlessHosts run(Link::Options{}, {"--timeout", "4"});
  ASSERT_TRUE(run.is_training());
  run.hosts.cut();
  run.expect_errors({0, 1, 2, 3}, kTimeout + seconds(5), [](size_t rank) {
    return rank < 2 ? AnyOf(HasSubstr("rank 2"), HasSubstr("rank 3")) : AnyOf(HasSubstr("rank 0"), HasSubstr("rank 1"));
  });
}

TEST_F(Network, AResetConnectionIsSeenSoon) {
  EndlessHosts run(std::nullopt);
  ASSERT_TRUE(run.is_training());
  run.hosts.reset();
  // A rank may also see first that the one beside it, which saw the reset, has ended. Where Gloo deadlocks at it, that
  // shows after three seconds (comm/network/short_calls.h).
  run.expect_errors({0, 1, 2, 3}, seconds(6), [](size_t rank) {
    return ContainsRegex("the connection to rank [^" + std::to_string(rank) + "].* broke");
  });
}

TEST_F(Network, AKilledRankIsNamedOnTheOtherHost) {
  EndlessHosts run(std::nullopt);
  ASSERT_TRUE(run.is_training());
  signal_to(run.worker(3), SIGKILL);
  run.expect_errors({0, 1, 2}, seconds(4), [](size_t) { return HasSubstr("rank 3"); });
}

TEST_F(Network, AStoppedRankIsToldFromADeadOne) {
  EndlessHosts run(std::nullopt, {"--timeout", "6"});
  ASSERT_TRUE(run.is_training());
  const pid_t stopped = run.worker(3);
  ASSERT_EQ(kill(stopped, SIGSTOP), 0);
  run.expect_errors({0, 1, 2}, seconds(11), [](size_t) { return AllOf(HasSubstr("rank 3"), HasSubstr("stopped")); });
  kill(stopped, SIGKILL);
}

// The disk of rank 0 takes each file only after seconds.
TEST_F(Network, CheckpointsAreWrittenWhileBothHostsTrainOn) {
  LOCKSTEP_LONG_TEST_IF(true);
  if (kSanitized) GTEST_SKIP() << "a sanitizer comes before every library";
  const TempDir dir;
  std::filesystem::create_directory(dir / "slow_disk");
  const std::string run = dir / "slow_disk/run";
  const Words words = train_words({"--steps", "6", "--save-every", "3", "--eval-every", "0", "--keep", "9"});
  ASSERT_EQ(lockstep(words + Words{"--background-saves", "off", "--out", dir / "run"}).exit_code, 0);
  const TwoHosts hosts;
  std::vector<std::unique_ptr<Program>> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const Words disk = rank == 0 ? Words{"LD_PRELOAD=" + bin_folder() + "/failing_disk.so"} : Words{};
    ranks.push_back(hosts.start(rank, words + Words{"--out", run}, disk));
  }
  EXPECT_TRUE(eventually([&] { return steps_logged(run).size() == 6; }, milliseconds(60'000))) << ranks[0]->err();
  EXPECT_FALSE(std::filesystem::exists(run + "/checkpoints/step-000003.pt")) << "the disk was not slow";
  for (const auto& rank : ranks) {
    const Result result = rank->wait(seconds(200));
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  for (const char* step : {"step-000003.pt", "step-000006.pt"}) {
    EXPECT_TRUE(read_file(run + "/checkpoints/" + step) == read_file(dir / "run" + "/checkpoints/" + step)) << step;
  }
}

TEST_F(Network, RankZeroSavesTheSnapshotWhenARankOfAnotherHostIsKilled) {
  EndlessHosts run(std::nullopt,
                   {"--snapshot-every", "1", "--save-every", "1000000epochs", "--eval-every", "1000000epochs"});
  ASSERT_TRUE(run.is_training());
  signal_to(run.worker(3), SIGKILL);
  run.expect_errors({0, 1, 2}, seconds(10), [](size_t rank) {
    return AllOf(HasSubstr("rank 3"), HasSubstr(rank == 0 ? "saved: snapshot of step " : ""));
  });
}

TEST_F(Network, AnUnknownInterfaceIsOneLine) {
  const TwoHosts hosts;
  const TempDir dir;
  const auto ranks = hosts.start_all(train_words({"--steps", "1", "--out", dir / "run", "--interface", "ib7"}));
  for (const auto& rank : ranks) {
    const Result result = rank->wait(seconds(20));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(
        result.err,
        HasSubstr("--interface ib7: this machine has no such interface that is up; it has lo (127.0.0.1), lsnet0"));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace lockstep::e2e
